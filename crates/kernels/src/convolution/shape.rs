//! The shape of a convolution, and its checks.

/// A 2-D convolution as torch.nn.Conv2d defines it (cross-correlation), without bias.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Convolution {
    /// The number of images.
    pub batch: usize,
    /// The number of groups of channels. Channels of different groups do not meet.
    pub groups: usize,
    /// The number of channels of an image.
    pub in_channels: usize,
    /// The number of filters.
    pub out_channels: usize,
    /// Height and width of an image.
    pub input: [usize; 2],
    /// Height and width of a filter.
    pub kernel: [usize; 2],
    /// The vertical and horizontal step of the filter.
    pub stride: [usize; 2],
    /// The number of zeros added on each side of the image, vertically and horizontally.
    pub padding: [usize; 2],
    /// The vertical and horizontal distance between taps of the filter.
    pub dilation: [usize; 2],
}

/// The reason why a shape is not a valid convolution.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ShapeError {
    /// A size that must be positive is 0.
    #[error("a convolution's {0} must be at least 1")]
    Zero(&'static str),
    /// The number of groups does not divide the number of channels.
    #[error("{channels} {what} channels are not a multiple of {groups} groups")]
    Groups {
        /// "input" or "output".
        what: &'static str,
        /// The number of channels.
        channels: usize,
        /// The number of groups.
        groups: usize,
    },
    /// The filter is larger than the padded image.
    #[error("a kernel that spans {span} does not fit the padded {what} of {padded}")]
    KernelTooLarge {
        /// "height" or "width".
        what: &'static str,
        /// The extent of the dilated filter.
        span: usize,
        /// The extent of the padded image.
        padded: usize,
    },
    /// A length exceeds what this machine can address.
    #[error("the convolution's {0} exceeds the address space")]
    TooLarge(&'static str),
}

impl Convolution {
    /// Checks that the sizes fit together and that no length overflows.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn validate(&self) -> Result<(), ShapeError> {
        self.check_positive()?;
        for (what, channels) in [("input", self.in_channels), ("output", self.out_channels)] {
            if channels % self.groups != 0 {
                return Err(ShapeError::Groups {
                    what,
                    channels,
                    groups: self.groups,
                });
            }
        }
        let output = [self.extent(0, "height")?, self.extent(1, "width")?];
        let [height, width] = self.input;
        let [rows, columns] = self.kernel;
        let group_channels = self.in_channels / self.groups;
        length("input", &[self.batch, self.in_channels, height, width])?;
        length(
            "weight",
            &[self.out_channels, group_channels, rows, columns],
        )?;
        length(
            "output",
            &[self.batch, self.out_channels, output[0], output[1]],
        )?;
        length(
            "unfolded input",
            &[group_channels, rows, columns, output[0], output[1]],
        )
    }

    /// Returns the height and width of the result.
    ///
    /// # Panics
    /// If the shape is not valid.
    #[must_use]
    pub fn output(&self) -> [usize; 2] {
        let extent = |axis, what| match self.extent(axis, what) {
            Ok(extent) => extent,
            Err(error) => panic!("{error}"),
        };
        [extent(0, "height"), extent(1, "width")]
    }

    /// Returns the number of words of the images, (batch, in_channels, height, width).
    #[must_use]
    pub fn input_len(&self) -> usize {
        self.batch * self.in_channels * self.input[0] * self.input[1]
    }

    /// Returns the number of words of the filters, (out_channels, in_channels / groups, kernel
    /// height, kernel width).
    #[must_use]
    pub fn weight_len(&self) -> usize {
        self.out_channels * (self.in_channels / self.groups) * self.kernel[0] * self.kernel[1]
    }

    /// Returns the number of words of the result, (batch, out_channels, output height, output
    /// width).
    #[must_use]
    pub fn output_len(&self) -> usize {
        let [height, width] = self.output();
        self.batch * self.out_channels * height * width
    }

    fn check_positive(&self) -> Result<(), ShapeError> {
        let sizes = [
            ("groups", self.groups),
            ("input channels", self.in_channels),
            ("output channels", self.out_channels),
            ("kernel height", self.kernel[0]),
            ("kernel width", self.kernel[1]),
            ("vertical stride", self.stride[0]),
            ("horizontal stride", self.stride[1]),
            ("vertical dilation", self.dilation[0]),
            ("horizontal dilation", self.dilation[1]),
        ];
        match sizes.into_iter().find(|(_, size)| *size == 0) {
            Some((what, _)) => Err(ShapeError::Zero(what)),
            None => Ok(()),
        }
    }

    /// Returns the number of output positions along an axis.
    fn extent(&self, axis: usize, what: &'static str) -> Result<usize, ShapeError> {
        self.check_positive()?;
        let padded = self.padding[axis]
            .checked_mul(2)
            .and_then(|both| both.checked_add(self.input[axis]));
        let span = self.dilation[axis]
            .checked_mul(self.kernel[axis] - 1)
            .and_then(|steps| steps.checked_add(1));
        // Positions are computed as signed numbers.
        let limit = |size: Option<usize>| size.filter(|size| *size <= isize::MAX as usize / 2);
        let (Some(padded), Some(span)) = (limit(padded), limit(span)) else {
            return Err(ShapeError::TooLarge(what));
        };
        if span > padded {
            return Err(ShapeError::KernelTooLarge { what, span, padded });
        }
        Ok((padded - span) / self.stride[axis] + 1)
    }
}

/// Refuses a product of sizes whose words exceed the address space.
fn length(what: &'static str, sizes: &[usize]) -> Result<(), ShapeError> {
    let words = sizes
        .iter()
        .try_fold(1usize, |product, size| product.checked_mul(*size));
    match words.filter(|words| *words <= isize::MAX as usize / 8) {
        Some(_) => Ok(()),
        None => Err(ShapeError::TooLarge(what)),
    }
}
