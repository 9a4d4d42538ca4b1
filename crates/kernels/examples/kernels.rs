//! Measures the kernels on this machine, on one thread or the number given as the argument:
//!
//! ```sh
//! cargo run --release -p tacit-kernels --example kernels
//! cargo run --release -p tacit-kernels --example kernels 4
//! TACIT_KERNELS=avx2 cargo run --release -p tacit-kernels --example kernels
//! ```
//!
//! Reports the best of several runs. The limits are one vector multiplication per cycle for
//! products (eight words with AVX-512), and the speed of memory for the rest.

use kernels::convolution::{Convolution, convolve};
use kernels::matrix::Layout;
use kernels::stream::{Stream, random_key};
use kernels::{dispatch, matrix, pack, planes};
use std::time::Instant;

const RUNS: usize = 7;

fn best(mut work: impl FnMut()) -> f64 {
    let time = |work: &mut dyn FnMut()| {
        let started = Instant::now();
        work();
        started.elapsed().as_secs_f64()
    };
    (0..RUNS)
        .map(|_| time(&mut work))
        .fold(f64::INFINITY, f64::min)
}

fn words(n: usize) -> Vec<u64> {
    (0..n as u64)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect()
}

fn product(m: usize, k: usize, n: usize) {
    let (a, b, mut out) = (words(m * k), words(k * n), vec![0; m * n]);
    let seconds = best(|| matrix::multiply(&mut out, m, k, n, &[(&a, &b)]));
    let rate = (m * k * n) as f64 / seconds / 1e9;
    println!("product {m} x {k} x {n}: {rate:.1} thousand million multiply-adds a second");
}

fn by_rows(m: usize, k: usize, n: usize) {
    let (a, b, mut out) = (words(m * k), words(n * k), vec![0; m * n]);
    let sizes = [m, k, n];
    let seconds = best(|| {
        matrix::multiply_batch(&mut out, 1, sizes, Layout::Transposed, &[(&a, &b)]);
    });
    let rate = (m * k * n) as f64 / seconds / 1e9;
    println!("the same of {m} x {k} and {n} x {k}, rows by rows: {rate:.1}");
}

fn convolution(name: &str, shape: Convolution) {
    let (x, w, mut out) = (
        words(shape.input_len()),
        words(shape.weight_len()),
        vec![0; shape.output_len()],
    );
    let seconds = best(|| convolve(&shape, &mut out, &[(&x, &w)]));
    let taps = shape.weight_len() / shape.out_channels;
    let rate = (shape.output_len() * taps) as f64 / seconds / 1e9;
    println!("convolution {name}: {rate:.1} thousand million multiply-adds a second");
}

fn main() {
    rayon::ThreadPoolBuilder::new()
        .num_threads(
            std::env::args()
                .nth(1)
                .map_or(1, |threads| threads.parse().expect("the number of threads")),
        )
        .build_global()
        .expect("the first pool");
    println!("kernels: {}", dispatch::backend());
    product(512, 512, 512);
    product(1, 4096, 4096);
    product(4096, 4096, 1);
    product(1, 100_000, 64);
    for rows in [2, 3, 4, 5, 6, 8, 16] {
        product(rows, 2048, 1024);
    }
    product(1024, 2048, 8);
    by_rows(16, 1 << 20, 16);
    by_rows(32, 1 << 14, 32);
    by_rows(33, 1 << 14, 33);
    by_rows(128, 64, 128);
    by_rows(128, 768, 768);
    by_rows(1, 4096, 4096);
    let shape = Convolution {
        batch: 1,
        groups: 1,
        in_channels: 64,
        out_channels: 64,
        input: [56, 56],
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1],
        dilation: [1, 1],
    };
    convolution("3x3, 64 channels, 56x56", shape);
    let first = Convolution {
        in_channels: 3,
        input: [224, 224],
        kernel: [7, 7],
        stride: [2, 2],
        padding: [3, 3],
        ..shape
    };
    convolution("7x7 stride 2, 3 channels, 224x224", first);
    convolution(
        "depthwise 3x3, 64 channels, 56x56",
        Convolution {
            groups: 64,
            ..shape
        },
    );
    convolution(
        "depthwise 3x3, 512 channels, 7x7",
        Convolution {
            groups: 512,
            in_channels: 512,
            out_channels: 512,
            input: [7, 7],
            ..shape
        },
    );
    convolution(
        "depthwise 3x3 stride 2, 64 channels, 56x56",
        Convolution {
            groups: 64,
            stride: [2, 2],
            ..shape
        },
    );
    for batch in [1, 8] {
        convolution(
            &format!("3x3, 512 channels, {batch} of 7x7"),
            Convolution {
                batch,
                in_channels: 512,
                out_channels: 512,
                input: [7, 7],
                ..shape
            },
        );
    }
    let n = 1 << 20;
    let (values, mut bits, mut back) = (words(n), vec![0; n], vec![0; n]);
    let gigabytes = 8.0 * n as f64 / 1e9;
    let seconds = best(|| planes::split(&values, 64, &mut bits));
    println!("values to planes: {:.1} GB/s", gigabytes / seconds);
    let seconds = best(|| planes::join(&bits, 64, n, &mut back));
    println!("planes to values: {:.1} GB/s", gigabytes / seconds);
    let (mut bytes, mut packed) = (vec![1; n], vec![0; n / 64]);
    let seconds = best(|| planes::pack_bytes(&bytes, &mut packed));
    println!("bytes to bits: {:.1} GB/s", n as f64 / 1e9 / seconds);
    let seconds = best(|| planes::unpack_bytes(&packed, &mut bytes));
    println!("bits to bytes: {:.1} GB/s", n as f64 / 1e9 / seconds);
    for bits in [13, 32, 46] {
        let small = 1 << 13;
        let mut packed = vec![0; pack::packed_words(small, bits)];
        let gigabytes = 8.0 * small as f64 / 1e9;
        let seconds = best(|| pack::pack_low(&values[..small], bits, &mut packed));
        println!("words to {bits} bits: {:.1} GB/s", gigabytes / seconds);
        let seconds = best(|| pack::unpack_low(&packed, bits, &mut back[..small]));
        println!("{bits} bits to words: {:.1} GB/s", gigabytes / seconds);
    }
    let mut stream = Stream::new(&random_key().expect("entropy"), "timing");
    let seconds = best(|| stream.reserve(n).fill(0, &mut back));
    println!("stream: {:.1} GB/s", gigabytes / seconds);
    let (mut own, small) = (vec![0; 1 << 12], 1 << 12);
    let seconds = best(|| stream.reserve(small).fill(0, &mut own));
    println!(
        "stream in the cache: {:.1} GB/s",
        8.0 * small as f64 / 1e9 / seconds
    );
}
