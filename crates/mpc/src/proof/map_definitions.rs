//! What maps are by definition, for tests.

use super::Product;
use kernels::matrix::Layout;

/// Computes a map's outputs by definition, and adds them.
pub(super) fn add_outputs(map: &Product, [first, second]: &[Vec<u64>; 2], out: &mut [u64]) {
    let mut add = |to: usize, x: usize, y: usize| {
        out[to] = out[to].wrapping_add(first[x].wrapping_mul(second[y]));
    };
    match *map {
        Product::Matrices {
            batch,
            sizes: [m, k, n],
            layout,
        } => {
            for at in 0..batch * m * n * k {
                let (b, i, j, l) = (at / k / n / m, at / k / n % m, at / k % n, at % k);
                let second = match layout {
                    Layout::Straight => l * n + j,
                    Layout::Transposed => j * k + l,
                };
                add((b * m + i) * n + j, (b * m + i) * k + l, b * k * n + second);
            }
        }
        Product::Convolution(shape) => {
            let [height, width] = shape.output();
            let (of_group, filters) = (
                shape.in_channels / shape.groups,
                shape.out_channels / shape.groups,
            );
            for to in 0..shape.output_len() {
                let (x, y) = (to % width, to / width % height);
                let channel = to / width / height % shape.out_channels;
                let image = to / width / height / shape.out_channels;
                for tap in 0..of_group * shape.kernel[0] * shape.kernel[1] {
                    let (of_x, of_y) = (
                        tap % shape.kernel[1],
                        tap / shape.kernel[1] % shape.kernel[0],
                    );
                    let from = tap / shape.kernel[1] / shape.kernel[0];
                    let x = x * shape.stride[1] + of_x * shape.dilation[1];
                    let y = y * shape.stride[0] + of_y * shape.dilation[0];
                    let (Some(x), Some(y)) = (
                        x.checked_sub(shape.padding[1]),
                        y.checked_sub(shape.padding[0]),
                    ) else {
                        continue;
                    };
                    if x < shape.input[1] && y < shape.input[0] {
                        let plane = image * shape.in_channels + channel / filters * of_group + from;
                        let word = (plane * shape.input[0] + y) * shape.input[1] + x;
                        let taps = shape.weight_len() / shape.out_channels;
                        add(to, word, channel * taps + tap);
                    }
                }
            }
        }
    }
}
