//! Reduction of a convolution to products of polynomials.
//!
//! **Phases.** A convolution with stride s meets each s-th row and column of an image. The rows and
//! columns with the same remainder are a *phase*: a smaller image, which only the taps of that
//! remainder meet. Phases can be further channels of a convolution with stride 1, whose filters
//! span fewer rows and columns. Or all rows and columns are one phase, and only each s-th result is
//! of use. That has fewer, fuller filters, and larger images.
//!
//! **Windows.** The outputs of an image are cut into rectangles. With stride 1, h×w outputs need a
//! window of H×W = (h + a − 1)×(w + b − 1) inputs, where filters span a×b, and zeros outside the
//! image. A window is laid out row by row, with D channels at each position: input (y, x) of
//! channel j at the exponent (y·W + x)·D − j. Tap (y, x) of a filter is at ((a−1−y)·W + b−1−x)·D +
//! j. In the product, output (y, x) is at ((y + a−1)·W + x + b−1)·D: pairs that sum up to this
//! place lie y + y' and x + x' apart, since a sum of columns neither reaches the next row's outputs
//! nor falls below this row's (as in Huang et al., see `tiling`).
//!
//! **Blocks.** Several windows lie one after another in a block, and several filters at distances
//! of all windows of a block. Small windows with many filters have fewer blocks of filters. What
//! passes the end of a window meets no output: it falls into the first a − 1 rows and b − 1 columns
//! of what follows. So does what passes X^N.

use crate::prices::{Counts, Prices};
use crate::tiling::{DEEPEST, MOST_TERMS, Places, powers};
use kernels::convolution::Convolution;
use kernels::ntt::DEGREE;
use std::ops::Range;

/// A group of a convolution with its windows and blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Windows {
    shape: Convolution,
    group: usize,
    /// Whether rows and columns of equal remainder are phases.
    phases: bool,
    /// Channels of all phases.
    channels: usize,
    /// Channels of a block.
    depth: usize,
    /// Blocks of the product that are packed in one answer.
    together: usize,
    /// Height and width of the outputs of a window.
    outputs: [usize; 2],
    /// Windows of a block of images.
    windows: usize,
    /// Filters of a block of filters.
    filters: usize,
    /// The blocks of images.
    first: usize,
    rows: usize,
}

/// One axis of a convolution.
#[derive(Clone, Copy)]
struct Axis {
    input: usize,
    kernel: usize,
    /// The number of phases, also of those that no tap meets.
    remainders: usize,
    /// The distance between outputs within a phase.
    step: usize,
    padding: usize,
    dilation: usize,
}

impl Axis {
    fn of(shape: &Convolution, at: usize, phases: bool) -> Self {
        let stride = shape.stride[at];
        let (remainders, step) = if phases { (stride, 1) } else { (1, stride) };
        Self {
            input: shape.input[at],
            kernel: shape.kernel[at],
            remainders,
            step,
            padding: shape.padding[at],
            dilation: shape.dilation[at],
        }
    }

    /// Returns the phase that a tap meets, among the given ones, and its place there.
    fn tap(&self, tap: usize, phases: &[usize]) -> (usize, usize) {
        let place = tap * self.dilation;
        let phase = phases.binary_search(&(place % self.remainders));
        (phase.expect("a phase of a tap"), place / self.remainders)
    }

    /// Lists the phases that taps meet.
    fn phases(&self) -> Vec<usize> {
        let of_taps = (0..self.kernel).map(|tap| tap * self.dilation % self.remainders);
        let mut phases: Vec<usize> = of_taps.collect();
        phases.sort_unstable();
        phases.dedup();
        phases
    }

    /// Returns the extent of filters in a phase.
    fn span(&self) -> usize {
        (self.kernel - 1) * self.dilation / self.remainders + 1
    }

    /// Returns the inputs that this many outputs next to each other need.
    fn inputs(&self, outputs: usize) -> usize {
        (outputs - 1) * self.step + self.span()
    }

    /// Returns the place of an output of a window in a product.
    fn result(&self, output: usize) -> usize {
        output * self.step + self.span() - 1
    }

    /// Lists the inputs of a phase in a window of this many, which begins with those of an output.
    /// Gives the place in the window of each. There are none in the padding.
    fn window(
        &self,
        phase: usize,
        output: usize,
        count: usize,
    ) -> impl Iterator<Item = (usize, usize)> + use<> {
        let axis = *self;
        (0..count).filter_map(move |place| {
            let padded = (output * axis.step + place) * axis.remainders + phase;
            let input = padded.checked_sub(axis.padding)?;
            (input < axis.input).then_some((place, input))
        })
    }
}

impl Windows {
    /// Returns the cheapest layout of the first group, and its cost; see [`Prices::cost`]. There is
    /// none if filters do not fit a polynomial.
    #[must_use]
    pub fn new(shape: &Convolution, prices: &Prices) -> Option<(Self, u64)> {
        Self::all(*shape)
            .map(|windows| (windows, windows.counts().cost(prices)))
            .min_by_key(|(_, cost)| *cost)
    }

    /// Lists layouts of the first group.
    pub(crate) fn all(shape: Convolution) -> impl Iterator<Item = Self> {
        let output = shape.output();
        let depths = [true, false].into_iter().flat_map(move |phases| {
            let axes = [0, 1].map(|at| Axis::of(&shape, at, phases));
            let counts = axes.map(|axis| axis.phases().len());
            let channels = shape.in_channels / shape.groups * counts[0] * counts[1];
            let most = channels.next_power_of_two().min(DEEPEST);
            powers(most).map(move |depth| (phases, axes, channels, depth))
        });
        depths.flat_map(move |(phases, axes, channels, depth)| {
            let cuts = powers(output[0])
                .flat_map(move |down| powers(output[1]).map(move |across| [down, across]));
            cuts.flat_map(move |cuts| {
                let outputs = [0, 1].map(|at| output[at].div_ceil(cuts[at]));
                let [height, width] = [0, 1].map(|at| axes[at].inputs(outputs[at]));
                let most = DEGREE / depth / (height * width);
                let [down, across] = [0, 1].map(|at| output[at].div_ceil(outputs[at]));
                let all = shape.batch * down * across;
                let blocks = powers(most.min(all)).flat_map(move |windows| {
                    let together = [1, depth].into_iter().take(depth.min(2));
                    together.map(move |together| (windows, together))
                });
                let layouts = blocks.map(move |(windows, together)| Self {
                    shape,
                    group: 0,
                    phases,
                    channels,
                    depth,
                    together,
                    outputs,
                    windows,
                    filters: (most / windows).min(shape.out_channels / shape.groups),
                    first: 0,
                    rows: all.div_ceil(windows),
                });
                layouts.filter(|layout| layout.terms() <= MOST_TERMS)
            })
        })
    }

    /// Returns this layout for another group.
    #[must_use]
    pub fn of_group(&self, group: usize) -> Self {
        Self { group, ..*self }
    }

    /// Returns this layout for some of its blocks of images.
    #[must_use]
    pub fn of_rows(&self, rows: Range<usize>) -> Self {
        Self {
            first: self.first + rows.start,
            rows: rows.len(),
            ..*self
        }
    }

    fn axes(&self) -> [Axis; 2] {
        [0, 1].map(|at| Axis::of(&self.shape, at, self.phases))
    }

    /// Returns the height and the width of a window.
    fn window(&self) -> [usize; 2] {
        let axes = self.axes();
        [0, 1].map(|at| axes[at].inputs(self.outputs[at]))
    }

    fn counts(&self) -> Counts {
        Counts {
            blocks: [self.rows, self.depths(), self.columns()],
            times: 1,
            depth: self.depth,
            together: self.together,
            results: self.results_len() / self.shape.groups,
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn together(&self) -> usize {
        self.together
    }

    pub(crate) fn depths(&self) -> usize {
        self.channels.div_ceil(self.depth)
    }

    pub(crate) fn columns(&self) -> usize {
        (self.shape.out_channels / self.shape.groups).div_ceil(self.filters)
    }

    pub(crate) fn images_len(&self) -> usize {
        self.shape.input_len()
    }

    pub(crate) fn filters_len(&self) -> usize {
        self.shape.weight_len()
    }

    pub(crate) fn results_len(&self) -> usize {
        self.shape.output_len()
    }

    pub(crate) fn terms(&self) -> usize {
        self.filters * (self.shape.weight_len() / self.shape.out_channels)
    }

    /// Lists the windows of a block of images: the place in the block, the image, and the first row
    /// and column of the outputs.
    fn windows_of(&self, row: usize) -> impl Iterator<Item = (usize, usize, [usize; 2])> + use<> {
        let [height, width] = self.shape.output();
        let outputs = self.outputs;
        let (down, across) = (height.div_ceil(outputs[0]), width.div_ceil(outputs[1]));
        let start = (self.first + row) * self.windows;
        let all = start..(start + self.windows).min(self.shape.batch * down * across);
        all.enumerate().map(move |(at, window)| {
            let (image, window) = (window / (down * across), window % (down * across));
            let corner = [window / across * outputs[0], window % across * outputs[1]];
            (at, image, corner)
        })
    }

    pub(crate) fn scalars(&self, row: usize, depth: usize) -> Places {
        let [down, across] = self.axes();
        let [height, width] = self.window();
        let channels = self.shape.in_channels / self.shape.groups;
        let phases = [down.phases(), across.phases()];
        let deep = depth * self.depth..self.channels.min((depth + 1) * self.depth);
        let mut places = Vec::new();
        for (at, image, [top, left]) in self.windows_of(row) {
            for (j, channel) in deep.clone().enumerate() {
                let (phase, channel) = (channel / channels, channel % channels);
                let plane = image * self.shape.in_channels + self.group * channels + channel;
                let of_rows = phases[0][phase / phases[1].len()];
                let of_columns = phases[1][phase % phases[1].len()];
                for (y, line) in down.window(of_rows, top, height) {
                    let line = plane * down.input + line;
                    for (x, column) in across.window(of_columns, left, width) {
                        let place = ((at * height + y) * width + x) * self.depth;
                        let exponent = (place + 2 * DEGREE - j) % (2 * DEGREE);
                        places.push((exponent, line * across.input + column));
                    }
                }
            }
        }
        places
    }

    pub(crate) fn values(&self, depth: usize, column: usize) -> Places {
        let [down, across] = self.axes();
        let [height, width] = self.window();
        let [tall, wide] = self.shape.kernel;
        let channels = self.shape.in_channels / self.shape.groups;
        let phases = [down.phases(), across.phases()];
        let deep = depth * self.depth..(depth + 1) * self.depth;
        let mut places = Vec::new();
        for (at, filter) in self.filters_of(column) {
            for (ky, kx) in (0..tall).flat_map(|ky| (0..wide).map(move |kx| (ky, kx))) {
                let ((py, y), (px, x)) = (down.tap(ky, &phases[0]), across.tap(kx, &phases[1]));
                let place = (down.span() - 1 - y) * width + across.span() - 1 - x;
                let place = at * self.windows * height * width + place;
                // Channels of this phase that are in the block.
                let first = (py * phases[1].len() + px) * channels;
                let of_block = deep.start.max(first)..deep.end.min(first + channels);
                for deeper in of_block {
                    let channel = filter * channels + deeper - first;
                    let element = (channel * tall + ky) * wide + kx;
                    places.push((place * self.depth + deeper - deep.start, element));
                }
            }
        }
        places
    }

    /// Lists the filters of a block: the place in the block, and the filter.
    fn filters_of(&self, column: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let of_group = self.shape.out_channels / self.shape.groups;
        let start = column * self.filters;
        let first = self.group * of_group;
        (start..of_group.min(start + self.filters))
            .enumerate()
            .map(move |(at, filter)| (at, first + filter))
    }

    /// Returns the outputs of a window that begins here.
    fn outputs_of(&self, [top, left]: [usize; 2]) -> [usize; 2] {
        let [height, width] = self.shape.output();
        [
            self.outputs[0].min(height - top),
            self.outputs[1].min(width - left),
        ]
    }

    pub(crate) fn products(&self, row: usize, column: usize) -> Places {
        let [down, across] = self.axes();
        let [height, width] = self.window();
        let [all_rows, all_columns] = self.shape.output();
        let mut places = Vec::new();
        for (of, filter) in self.filters_of(column) {
            for (at, image, corner) in self.windows_of(row) {
                let plane = image * self.shape.out_channels + filter;
                let window = (of * self.windows + at) * height;
                let [rows, columns] = self.outputs_of(corner);
                for (y, x) in (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x))) {
                    let place = (window + down.result(y)) * width + across.result(x);
                    let line = plane * all_rows + corner[0] + y;
                    places.push((place * self.depth, line * all_columns + corner[1] + x));
                }
            }
        }
        places
    }

    pub(crate) fn useful(&self, row: usize, column: usize) -> usize {
        let outputs = self
            .windows_of(row)
            .map(|(_, _, corner)| self.outputs_of(corner));
        let of_filter: usize = outputs.map(|[rows, columns]| rows * columns).sum();
        self.filters_of(column).count() * of_filter
    }
}
