//! Local arithmetic on one party's words: ring products of a component with public operands, and
//! the greatest magnitude.

use crate::buffer::Words;
use crate::errors::{misuse, raise};
use ::session::use_threads;
use kernels::projection::PROJECTIONS;
use kernels::stream::{Key, Stream};
use mpc::Bilinear;
use pyo3::prelude::*;

/// Shape of a convolution of images with filters. In pairs of sizes, height is before width. The
/// shape is checked when it is used.
#[pyclass(frozen, module = "tacit._core")]
pub struct Convolution(kernels::convolution::Convolution);

#[pymethods]
impl Convolution {
    #[new]
    #[pyo3(signature = (*, batch, groups, in_channels, out_channels, input, kernel, stride, padding, dilation))]
    #[expect(
        clippy::too_many_arguments,
        reason = "by name, as torch.nn.Conv2d has them"
    )]
    fn new(
        batch: usize,
        groups: usize,
        in_channels: usize,
        out_channels: usize,
        input: [usize; 2],
        kernel: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
    ) -> Self {
        Self(kernels::convolution::Convolution {
            batch,
            groups,
            in_channels,
            out_channels,
            input,
            kernel,
            stride,
            padding,
            dilation,
        })
    }
}

impl Convolution {
    /// Returns the shape after checking that its sizes fit together.
    pub fn checked(&self) -> PyResult<kernels::convolution::Convolution> {
        let checked = self.0.validate();
        checked.map_err(|error| misuse(error.to_string()))?;
        Ok(self.0)
    }
}

/// Shape of a bilinear map of matrices or of images.
#[derive(FromPyObject)]
pub enum Shape<'py> {
    /// Batch, rows of the left matrix, columns of the left matrix, columns of the right matrix; and
    /// whether the right matrix is stored transposed.
    Matrix([usize; 4], bool),
    /// Convolution of images with filters.
    Convolution(PyRef<'py, Convolution>),
}

impl Shape<'_> {
    /// Returns the map after checking that its sizes fit together.
    pub fn map(&self) -> PyResult<Bilinear> {
        match self {
            Self::Convolution(shape) => Ok(Bilinear::Convolution(shape.checked()?)),
            &Self::Matrix([batch, m, k, n], is_transposed) => {
                for sizes in [[batch, m, k], [batch, k, n], [batch, m, n]] {
                    product_of(&sizes)?;
                }
                Ok(if is_transposed {
                    Bilinear::ByTransposed { batch, m, k, n }
                } else {
                    Bilinear::Matrix { batch, m, k, n }
                })
            }
        }
    }
}

/// Checks a length against the length that the shape needs.
pub fn expect_length(what: &str, found: usize, expected: usize) -> PyResult<()> {
    if found == expected {
        Ok(())
    } else {
        Err(misuse(format!(
            "{what} has {found} elements where {expected} are needed"
        )))
    }
}

/// Returns the product of sizes, or a misuse if it overflows.
pub fn product_of(sizes: &[usize]) -> PyResult<usize> {
    sizes
        .iter()
        .try_fold(1_usize, |product, size| product.checked_mul(*size))
        .ok_or_else(|| misuse("the shape has more elements than memory can hold"))
}

/// Writes out = a·b mod 2^64: `batch` products of m×k by k×n matrices, row-major.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the sizes of a matrix product")]
pub fn ring_matmul(
    py: Python<'_>,
    a: Words,
    b: Words,
    out: Words,
    batch: usize,
    m: usize,
    k: usize,
    n: usize,
) -> PyResult<()> {
    use_threads(None).map_err(raise)?;
    expect_length("the left operand", a.len(), product_of(&[batch, m, k])?)?;
    expect_length("the right operand", b.len(), product_of(&[batch, k, n])?)?;
    expect_length("the output", out.len(), product_of(&[batch, m, n])?)?;
    let (inputs, mut out) = ([a, b], [out]);
    let read = inputs.each_ref().map(Words::addresses);
    let mut slices = Words::outputs(&mut out, &read)?;
    let [a, b] = &inputs;
    py.detach(|| {
        kernels::matrix::multiply_batch(
            slices[0],
            batch,
            [m, k, n],
            kernels::matrix::Layout::Straight,
            &[(a.words(), b.words())],
        )
    });
    Ok(())
}

/// Returns how fast a device evaluates a product, in one party: seconds, multiply-adds a second,
/// and bytes a second that were copied meanwhile.
#[pyfunction]
pub fn rate_of_product(
    py: Python<'_>,
    device: String,
    shape: Shape<'_>,
) -> PyResult<(f64, f64, f64)> {
    use_threads(None).map_err(raise)?;
    let map = shape.map()?;
    let rate = py.detach(|| ::session::devices::rate(&device, &map));
    let rate = rate.map_err(raise)?;
    Ok((rate.seconds, rate.multiply_adds, rate.bytes_copied))
}

/// Writes out = x convolved with w, mod 2^64.
#[pyfunction]
pub fn ring_convolution(
    py: Python<'_>,
    x: Words,
    w: Words,
    out: Words,
    shape: &Convolution,
) -> PyResult<()> {
    use_threads(None).map_err(raise)?;
    let shape = shape.checked()?;
    expect_length("the input", x.len(), shape.input_len())?;
    expect_length("the weight", w.len(), shape.weight_len())?;
    expect_length("the output", out.len(), shape.output_len())?;
    let (inputs, mut out) = ([x, w], [out]);
    let read = inputs.each_ref().map(Words::addresses);
    let mut slices = Words::outputs(&mut out, &read)?;
    let [x, w] = &inputs;
    py.detach(|| kernels::convolution::convolve(&shape, slices[0], &[(x.words(), w.words())]));
    Ok(())
}

/// Writes the products of each part's rows, of `size` words each, with random weights -1, 0 and 1,
/// modulo 2^64: 40 products for each row. The weights are expanded from a coin of 16 bytes.
#[pyfunction]
pub fn ring_projections(
    py: Python<'_>,
    parts: Vec<Words>,
    size: usize,
    coin: [u8; 16],
    out: Words,
) -> PyResult<()> {
    use_threads(None).map_err(raise)?;
    let rows = parts.iter().map(|part| part.len() / size.max(1)).sum();
    for part in &parts {
        expect_length("a part", part.len() % size.max(1), 0)?;
    }
    expect_length("the output", out.len(), product_of(&[rows, PROJECTIONS])?)?;
    let mut out = [out];
    let read: Vec<_> = parts.iter().map(Words::addresses).collect();
    let mut slices = Words::outputs(&mut out, &read)?;
    let rows: Vec<&[u64]> = parts
        .iter()
        .flat_map(|part| part.words().chunks_exact(size.max(1)))
        .collect();
    let mut weights = Stream::new(&Key::from_bytes(coin), "random projections");
    py.detach(|| kernels::projection::project(slices[0], &rows, &mut weights));
    Ok(())
}

/// Returns the greatest magnitude of words as signed numbers, by the definition of the plain
/// reference.
#[pyfunction]
pub fn greatest_magnitude(py: Python<'_>, words: Words) -> u64 {
    py.detach(|| mpc::plain::greatest_magnitude(words.words()))
}

/// Returns the name of the kernels in use: "portable", "avx2" or "avx512".
#[pyfunction]
#[pyo3(name = "kernels")]
pub fn backend() -> String {
    kernels::dispatch::backend().name().to_owned()
}
