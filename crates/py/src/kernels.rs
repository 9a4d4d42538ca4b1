//! Ring arithmetic on public operands: each component of a sharing is mapped on its own.

use crate::buffer::Words;
use crate::errors::misuse;
use pyo3::prelude::*;
use ring::convolution::Convolution;

/// The 14 numbers of a convolution: batch, groups, channels in and out, input, kernel, stride,
/// padding and dilation, height before width.
pub type Geometry = [usize; 14];

/// The checked shape.
pub fn convolution_shape(geometry: Geometry) -> PyResult<Convolution> {
    let [
        batch,
        groups,
        in_channels,
        out_channels,
        ih,
        iw,
        kh,
        kw,
        sh,
        sw,
        ph,
        pw,
        dh,
        dw,
    ] = geometry;
    let shape = Convolution {
        batch,
        groups,
        in_channels,
        out_channels,
        input: [ih, iw],
        kernel: [kh, kw],
        stride: [sh, sw],
        padding: [ph, pw],
        dilation: [dh, dw],
    };
    shape
        .validate()
        .map_err(|error| misuse(error.to_string()))?;
    Ok(shape)
}

/// A length that the shape demands.
pub fn expect_length(what: &str, found: usize, expected: usize) -> PyResult<()> {
    if found == expected {
        Ok(())
    } else {
        Err(misuse(format!(
            "{what} has {found} elements where {expected} are needed"
        )))
    }
}

/// The product of sizes, or a misuse where it does not fit.
pub fn product_of(sizes: &[usize]) -> PyResult<usize> {
    sizes
        .iter()
        .try_fold(1_usize, |product, size| product.checked_mul(*size))
        .ok_or_else(|| misuse("the shape has more elements than memory can hold"))
}

/// out = a·b mod 2^64: batch products of m×k by k×n, row-major.
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
    expect_length("the left operand", a.len(), product_of(&[batch, m, k])?)?;
    expect_length("the right operand", b.len(), product_of(&[batch, k, n])?)?;
    expect_length("the output", out.len(), product_of(&[batch, m, n])?)?;
    let (inputs, mut out) = ([a, b], [out]);
    let read = inputs.each_ref().map(Words::addresses);
    let mut slices = Words::outputs(&mut out, &read)?;
    let [a, b] = &inputs;
    py.detach(|| {
        ring::matrix::multiply_batch(slices[0], batch, m, k, n, &[(a.words(), b.words())])
    });
    Ok(())
}

/// out = x convolved with w mod 2^64.
#[pyfunction]
pub fn ring_convolution(
    py: Python<'_>,
    x: Words,
    w: Words,
    out: Words,
    geometry: Geometry,
) -> PyResult<()> {
    let shape = convolution_shape(geometry)?;
    expect_length("the input", x.len(), shape.input_len())?;
    expect_length("the weight", w.len(), shape.weight_len())?;
    expect_length("the output", out.len(), shape.output_len())?;
    let (inputs, mut out) = ([x, w], [out]);
    let read = inputs.each_ref().map(Words::addresses);
    let mut slices = Words::outputs(&mut out, &read)?;
    let [x, w] = &inputs;
    py.detach(|| ring::convolution::convolve(&shape, slices[0], &[(x.words(), w.words())]));
    Ok(())
}

/// The name of the kernels in use: "portable", "avx2" or "avx512".
#[pyfunction]
pub fn kernels() -> String {
    ring::dispatch::backend().name().to_owned()
}
