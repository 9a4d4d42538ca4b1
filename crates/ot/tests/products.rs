//! Tests of products of scalars and values against plain arithmetic.

mod parties;

use ot::products::{self, ScalarKeys, Scalars};
use ot::{Chosen, Offered, Pair};
use parties::{edges, pairs, words};

fn transfers(chooser: &mut Pair, sender: &mut Pair, scalars: &[u64]) -> (Offered, Chosen) {
    let choices = products::choices(scalars);
    assert_eq!(choices.len(), products::choice_words(scalars.len()));
    let (message, chosen) = chooser.receiver.extend(&choices);
    (
        sender.sender.extend(choices.len(), &message).unwrap(),
        chosen,
    )
}

#[test]
fn pairs_multiply() {
    let (mut one, mut two) = pairs(ot::DEPTH);
    for n in [0, 1, 2, 63, 64, 65, 500, 1023, 1024, 1025, 3000] {
        let (scalars, values) = (edges(n, 1), words(n, 2));
        let (offered, chosen) = transfers(&mut one, &mut two, &scalars);
        let (mine, message) = products::offer(offered, &values);
        assert_eq!(message.len(), products::message_words(n));
        let theirs = products::receive(chosen, n, &message).unwrap();
        for i in 0..n {
            let product = scalars[i].wrapping_mul(values[i]);
            assert_eq!(mine[i].wrapping_add(theirs[i]), product, "{i} of {n}");
        }
    }
}

/// Computes the product of some rows, added to the previous contents.
fn plain(
    scalars: &[u64],
    k: usize,
    rows: std::ops::Range<usize>,
    values: &[u64],
    n: usize,
) -> Vec<u64> {
    let mut out = vec![0u64; rows.len() * n];
    for (i, row) in rows.enumerate() {
        for j in 0..k {
            for c in 0..n {
                let term = scalars[row * k + j].wrapping_mul(values[j * n + c]);
                out[i * n + c] = out[i * n + c].wrapping_add(term);
            }
        }
    }
    out
}

#[test]
fn rows_multiply_as_often_as_wanted() {
    let (mut one, mut two) = pairs(ot::DEPTH);
    let shapes = [
        (1, 1, 1),
        (1, 1, 2),
        (1, 1, 3000),
        (3, 2, 1),
        (2, 3, 5),
        (7, 9, 33),
        (5, 130, 1),
        (4, 10, 300),
        (2, 1, 1024),
        (2, 2, 1025),
        (40, 40, 3),
    ];
    for (m, k, n) in shapes {
        let scalars = edges(m * k, 3);
        let (offered, chosen) = transfers(&mut one, &mut two, &scalars);
        let mut keys = ScalarKeys::new(offered, m * k);
        let mut set = Scalars::new(chosen, &scalars);
        for (call, rows) in [0..m, 0..m, 0..m.div_ceil(2), m / 2..m, m..m]
            .into_iter()
            .enumerate()
        {
            let values = edges(k * n, call as u64);
            let (mut mine, mut theirs) = (words(rows.len() * n, 1), words(rows.len() * n, 2));
            let expected: Vec<u64> = plain(&scalars, k, rows.clone(), &values, n)
                .iter()
                .zip(mine.iter().zip(&theirs))
                .map(|(sum, (a, b))| sum.wrapping_add(*a).wrapping_add(*b))
                .collect();
            let message = keys.multiply_rows(k, rows.clone(), &values, n, &mut mine);
            assert_eq!(message.len(), products::rows_words(k, rows.len(), n));
            set.multiply_rows(k, rows.clone(), n, &mut theirs, &message)
                .unwrap();
            let sums: Vec<u64> = mine
                .iter()
                .zip(&theirs)
                .map(|(a, b)| a.wrapping_add(*b))
                .collect();
            assert!(sums == expected, "{m}x{k} by {n}, rows {rows:?}");
        }
    }
}

#[test]
fn digits_multiply_as_bits_do() {
    let (mut one, mut two) = pairs(ot::DEPTH);
    for bits in 1..=8 {
        for (m, k, n) in [(0, 1, 1), (1, 1, 1), (3, 25, 7), (2, 3, 700), (80, 1, 2)] {
            let scalars = edges(m * k, 3);
            let (offered, chosen) = transfers(&mut one, &mut two, &scalars);
            let (mut keys, message) = ScalarKeys::new(offered, m * k).in_digits(bits);
            assert_eq!(message.len(), products::digit_words(m * k, bits));
            let mut set = Scalars::new(chosen, &scalars)
                .in_digits(bits, &message)
                .unwrap();
            for (call, rows) in [0..m, m / 2..m, m..m].into_iter().enumerate() {
                let values = edges(k * n, call as u64);
                let expected = plain(&scalars, k, rows.clone(), &values, n);
                let (mut mine, mut theirs) = (vec![0; expected.len()], vec![0; expected.len()]);
                let message = keys.multiply_rows(k, rows.clone(), &values, n, &mut mine);
                assert_eq!(message.len(), keys.rows_words(k, rows.len(), n));
                assert_eq!(message.len(), set.rows_words(k, rows.len(), n));
                set.multiply_rows(k, rows, n, &mut theirs, &message)
                    .unwrap();
                let sums: Vec<u64> = mine
                    .iter()
                    .zip(&theirs)
                    .map(|(a, b)| a.wrapping_add(*b))
                    .collect();
                assert!(sums == expected, "{m}x{k} by {n}, digits of {bits} bits");
            }
        }
    }
}

/// A key of 16 bytes for each value of each digit. The chooser lacks one of them, and has its
/// choices.
#[test]
fn sets_say_what_memory_they_take() {
    let (mut one, mut two) = pairs(1);
    let scalars = edges(100, 3);
    let (offered, chosen) = transfers(&mut one, &mut two, &scalars);
    let (keys, message) = ScalarKeys::new(offered, 100).in_digits(4);
    let set = Scalars::new(chosen, &scalars)
        .in_digits(4, &message)
        .unwrap();
    assert_eq!(keys.bytes(), 128 * 16 * 16 * 16);
    assert_eq!(set.bytes(), 128 * (16 * 15 * 16 + 8));
}

#[test]
#[should_panic(expected = "a set of scalars is cut into digits once, before its first product")]
fn digits_after_a_product_are_refused() {
    let (mut one, mut two) = pairs(1);
    let (offered, _) = transfers(&mut one, &mut two, &[7]);
    let mut keys = ScalarKeys::new(offered, 1);
    let _ = keys.multiply_rows(1, 0..1, &[1], 1, &mut [0]);
    let _ = keys.in_digits(2);
}
