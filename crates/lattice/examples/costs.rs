//! Prints how long the parts of a matrix product by encryption take, for several sizes of blocks,
//! in microseconds for each: a ciphertext at both ends, a block of the product until it is
//! decrypted, a block of values, and a product of polynomials. Layouts are chosen by such times:
//! `RAYON_NUM_THREADS=1 cargo run --release -p tacit-lattice --example costs`.

use kernels::stream::random_key;
use lattice::{Ciphertexts, Layout, PublicKey, SecretKey, Tiling, Values};
use std::time::Instant;

/// The allocator of sessions.
#[global_allocator]
static MEMORY: kernels::large_pages::LargePages = kernels::large_pages::LargePages;

/// Rows, depth and columns of the product.
const SIZES: [usize; 3] = [512, 512, 512];

/// Blocks of values, and of the product, that are handled together.
const TOGETHER: [usize; 2] = [256, 128];

/// Rows and depth of the blocks.
const BLOCKS: [[usize; 2]; 6] = [
    [512, 16],
    [256, 32],
    [128, 64],
    [128, 32],
    [64, 16],
    [64, 32],
];

/// Returns different words.
fn words(salt: u64, n: usize) -> Vec<u64> {
    let word = |i: u64| (i + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (1..=n as u64).map(word).collect()
}

/// Seconds since the last call, and now.
fn lap(clock: &mut Instant) -> f64 {
    let seconds = clock.elapsed().as_secs_f64();
    *clock = Instant::now();
    seconds
}

fn main() -> Result<(), lattice::Error> {
    let [m, k, n] = SIZES;
    let (scalars, values) = (words(1, m * k), words(2, k * n));
    let (mut secret, key) = SecretKey::new()?;
    let mut public = PublicKey::read(&key, &random_key()?)?;
    let (mut theirs, mut ready) = (Ciphertexts::default(), Values::default());
    let (mut one, mut other) = (vec![0; m * n], vec![0; m * n]);
    println!("rows depth columns  ciphertext   block  values product     all");
    for [rows, depth] in BLOCKS {
        let tiling = Tiling::with(rows, depth, true).expect("blocks that divide the degree");
        let layout = Layout::Matrices(tiling, SIZES);
        let steps: Vec<usize> = (0..depth.ilog2() as usize).collect();
        public.read_packing_keys(&steps, &secret.packing_keys(&steps)?)?;
        let columns = (TOGETHER[1] / layout.rows()).max(depth / layout.rows());
        let part = (TOGETHER[0] / layout.depths()).max(1);

        let (mut times, mut clock) = ([0.0; 4], Instant::now());
        theirs.read(&layout, &secret.encrypt(&layout, &scalars)?)?;
        times[0] += lap(&mut clock);
        for start in (0..layout.columns()).step_by(columns) {
            let columns = start..layout.columns().min(start + columns);
            for first in columns.clone().step_by(part) {
                let part = first..columns.end.min(first + part);
                let of_part = tiling.columns_of(part.clone(), n);
                let rows = values.chunks_exact(n);
                let block: Vec<u64> = rows
                    .flat_map(|row| &row[of_part.clone()])
                    .copied()
                    .collect();
                ready.read(&layout, &block, part);
                times[2] += lap(&mut clock);
                public.multiply(&theirs, &ready);
                times[3] += lap(&mut clock);
            }
            let answer = public.answer(&layout, columns.clone(), &mut one);
            secret.decrypt(&layout, columns, &answer, &mut other)?;
            times[1] += lap(&mut clock);
        }
        let [rows_of_blocks, depths, columns] = [layout.rows(), layout.depths(), layout.columns()];
        let counts = [
            rows_of_blocks * depths,
            rows_of_blocks * columns,
            depths * columns,
            rows_of_blocks * depths * columns,
        ];
        let [ciphertext, block, value, product]: [f64; 4] =
            std::array::from_fn(|at| times[at] * 1e6 / counts[at] as f64);
        let (columns, all) = (tiling.columns(), times.iter().sum::<f64>());
        println!(
            "{rows:4} {depth:5} {columns:7} {ciphertext:11.0} {block:7.0} {value:7.0} \
             {product:7.0} {all:5.2} s"
        );
    }
    Ok(())
}
