use super::*;
use crate::dispatch::backends;
use crate::matrix::blocked::tests::{slowly, thirds_add_up, total, values};

#[test]
fn large_products_agree_bit_for_bit() {
    // Beyond one block in every direction, and parallel; then few rows, divided along the depth;
    // then one column.
    for shape in [
        [70, 2 * 256 + 3, 2 * 240 + 5],
        [2, 5000, 70],
        [6, 301, 1100],
        [3, 100_003, 1],
    ] {
        check_large(shape);
    }
}

#[test]
fn transposed_operands_give_the_same() {
    // Inner products; slices of the depth; several blocks in every direction; and terms that meet
    // within one block.
    for [m, k, n] in [
        [1, 1, 1],
        [2, 3, 5],
        [1, 100_003, 1],
        [3, 70_000, 2],
        [5, 601, 700],
        [700, 601, 5],
        [7, 5, 7],
        [8, 255, 24],
        [9, 257, 25],
        [70, 300, 2 * 240 + 5],
    ] {
        let all: Vec<_> = (0..3)
            .map(|t| (values(m * k, t), values(k * n, 10 + t)))
            .collect();
        let turned: Vec<_> = all.iter().map(|(_, b)| transposed(b, k, n)).collect();
        for used in 0..=3 {
            let straight: Vec<_> = all.iter().map(|(a, b)| (&a[..], &b[..])).collect();
            let other = all.iter().zip(&turned).map(|((a, _), b)| (&a[..], &b[..]));
            let other: Vec<_> = other.collect();
            let mut expected = vec![7; m * n];
            multiply(&mut expected, m, k, n, &straight[..used]);
            for (backend, threads) in backends().flat_map(|backend| [(backend, 1), (backend, 3)]) {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                let mut out = vec![7; m * n];
                pool.build().unwrap().install(|| {
                    multiply_with(
                        backend,
                        &mut out,
                        1,
                        [m, k, n],
                        Layout::Transposed,
                        &other[..used],
                        None,
                    );
                });
                assert!(
                    out == expected,
                    "{backend}, {threads} threads: {m}×{k}×{n}, {used} terms"
                );
            }
        }
    }
}

fn check_large([m, k, n]: [usize; 3]) {
    let operands: Vec<_> = (0..2)
        .map(|t| (values(m * k, t), values(k * n, 10 + t)))
        .collect();
    let terms: Vec<_> = operands.iter().map(|(a, b)| (&a[..], &b[..])).collect();
    let mut expected = slowly(m, k, n, terms[0].0, terms[0].1);
    let second = slowly(m, k, n, terms[1].0, terms[1].1);
    expected
        .iter_mut()
        .zip(second)
        .for_each(|(sum, x)| *sum = sum.wrapping_add(x));
    for backend in backends() {
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let mut out = vec![7; m * n];
            pool.install(|| {
                multiply_with(
                    backend,
                    &mut out,
                    1,
                    [m, k, n],
                    Layout::Straight,
                    &terms,
                    None,
                )
            });
            assert!(out == expected, "{backend} on {threads} threads");
        }
    }
}

#[test]
fn products_of_many_shapes() {
    for m in [0, 1, 2, 7, 8, 9, 33] {
        for k in [0, 1, 5, 64, 300] {
            for n in [0, 1, 2, 3, 7, 8, 9, 24, 31, 65] {
                let (a, b) = (values(m * k, 1), values(k * n, 2));
                let expected = slowly(m, k, n, &a, &b);
                for backend in backends() {
                    let mut out = vec![7; m * n];
                    multiply_with(
                        backend,
                        &mut out,
                        1,
                        [m, k, n],
                        Layout::Straight,
                        &[(&a, &b)],
                        None,
                    );
                    assert!(out == expected, "{backend}: {m}×{k}×{n}");
                }
            }
        }
    }
}

#[test]
fn terms_add_up_and_batches_are_independent() {
    let (batch, m, k, n) = (3, 5, 17, 11);
    let operands: Vec<_> = (0..3)
        .map(|t| (values(batch * m * k, t), values(batch * k * n, 10 + t)))
        .collect();
    let terms: Vec<_> = operands.iter().map(|(a, b)| (&a[..], &b[..])).collect();
    let turned: Vec<Vec<u64>> = operands
        .iter()
        .map(|(_, b)| {
            b.chunks_exact(k * n)
                .flat_map(|b| transposed(b, k, n))
                .collect()
        })
        .collect();
    let other = operands
        .iter()
        .zip(&turned)
        .map(|((a, _), b)| (&a[..], &b[..]));
    let other: Vec<_> = other.collect();
    for (right, stored) in [(Layout::Straight, &terms), (Layout::Transposed, &other)] {
        check_batch(right, stored, &terms, [batch, m, k, n]);
    }
}

fn check_batch(
    right: Layout,
    stored: &[(&[u64], &[u64])],
    terms: &[(&[u64], &[u64])],
    [batch, m, k, n]: [usize; 4],
) {
    for used in 0..=3 {
        let mut out = vec![7; batch * m * n];
        multiply_batch(&mut out, batch, [m, k, n], right, &stored[..used]);
        for item in 0..batch {
            let mut expected = vec![0u64; m * n];
            for (a, b) in &terms[..used] {
                let product = slowly(
                    m,
                    k,
                    n,
                    &a[item * m * k..][..m * k],
                    &b[item * k * n..][..k * n],
                );
                expected
                    .iter_mut()
                    .zip(product)
                    .for_each(|(sum, x)| *sum = sum.wrapping_add(x));
            }
            assert_eq!(out[item * m * n..][..m * n], expected);
        }
    }
}

#[test]
#[should_panic(expected = "the right operand of 1 × 3×4 has 11 words")]
fn a_wrong_length_is_refused() {
    multiply(&mut [0; 8], 2, 3, 4, &[(&[0; 6], &[0; 11])]);
}

/// Tests batches, transposed operands, and different numbers of threads in different parties.
#[test]
fn thirds_add_up_to_the_product() {
    let Some(backend) = crate::matrix::blocked::tests::backend_of_thirds() else {
        return;
    };
    for ([batch, m, k, n], right) in [
        ([1, 7, 1, 4], Layout::Straight),
        ([3, 9, 257, 25], Layout::Straight),
        ([1, 70, 600, 2 * 240 + 5], Layout::Straight),
        ([1, 7, 300, 7], Layout::Transposed),
        ([4, 33, 64, 48], Layout::Transposed),
        ([2, 64, 0, 64], Layout::Transposed),
    ] {
        let sizes = [m, k, n];
        assert!(is_blocked(sizes, right));
        let share = |n: usize, seed: u64| [0, 1, 2].map(|part| values(n, seed + part));
        let (x, y) = (share(batch * m * k, 1), share(batch * k * n, 5));
        let mut expected = vec![7; batch * m * n];
        let whole = [total(&x), total(&y)];
        multiply_batch(
            &mut expected,
            batch,
            sizes,
            right,
            &[(&whole[0], &whole[1])],
        );
        let are = thirds_add_up(&x, &y, &expected, |party, third, parts, out| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1 + party);
            pool.build().unwrap().install(|| {
                multiply_with(backend, out, batch, sizes, right, &parts, Some(third));
            });
        });
        assert!(are, "{batch} × {sizes:?}, {right:?}");
    }
}

#[test]
#[should_panic(expected = "thirds are of blocked products")]
fn thirds_of_thin_products_are_refused() {
    let parts: [(&[u64], &[u64]); 2] = [(&[0; 6], &[0; 12]); 2];
    third_of_batch(
        Third::of(0),
        &mut [0; 8],
        1,
        [2, 3, 4],
        Layout::Straight,
        parts,
    );
}
