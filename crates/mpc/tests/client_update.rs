//! Tests of clients' updates as integers: differences, limits and rounding.

use mpc::client_update::{Floats, Learned, Measured, Outgoing};

fn written(outgoing: &Outgoing, at_once: usize) -> Vec<u64> {
    let mut words = vec![0; outgoing.len()];
    for (at, words) in words.chunks_mut(at_once).enumerate() {
        outgoing.write(at * at_once, words);
    }
    words
}

#[test]
fn pieces_of_any_length_are_read_from_any_place() {
    let singles: Vec<f32> = (0..2000_u16).map(|at| f32::from(at) / 4.0).collect();
    let doubles: Vec<f64> = singles
        .iter()
        .map(|single| f64::from(*single) + 2000.0)
        .collect();
    let start: Vec<f32> = (0..4000_u16).map(|at| f32::from(at % 7)).collect();
    let pieces = [
        Floats::Single(&[]),
        Floats::Single(&singles[..1]),
        Floats::Single(&singles[1..700]),
        Floats::Double(&[]),
        Floats::Single(&singles[700..]),
        Floats::Double(&doubles),
        Floats::Single(&[]),
    ];
    let learned = Learned::new(pieces, Some(&start)).unwrap();
    assert_eq!(learned.len(), 4000);
    let wide = singles
        .iter()
        .map(|single| f64::from(*single))
        .chain(doubles.iter().copied());
    let differences: Vec<f64> = wide
        .zip(&start)
        .map(|(x, start)| x - f64::from(*start))
        .collect();
    let measured = learned.measured();
    let norm = differences.iter().map(|x| x * x).sum::<f64>().sqrt();
    assert!((measured.norm / norm - 1.0).abs() < 1e-14);
    assert_eq!(
        measured.greatest,
        differences.iter().fold(0.0, |a, b| b.abs().max(a))
    );
    let mut expected: Vec<u64> = differences
        .iter()
        .map(|x| (x * 0.75).round_ties_even() as i64 as u64)
        .collect();
    expected.push(99);
    for at_once in [1, 7, 512, 1000, 4001] {
        let outgoing = learned.by(0.75, f64::INFINITY, 99);
        assert_eq!(written(&outgoing, at_once), expected);
        outgoing.check().unwrap();
    }
    assert!(Learned::new(pieces, Some(&start[1..])).is_err());
}

#[test]
fn rounding_is_to_the_nearest_and_ties_to_even() {
    let most = (1_u64 << 51) as f64 - 1.0;
    let numbers = [
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        -2.5,
        0.499_999_999_999_999_94,
        0.500_000_1,
        -0.0,
        1e-300,
        most,
        -most,
    ];
    let learned = Learned::new([Floats::Double(&numbers)], None).unwrap();
    let outgoing = learned.by(1.0, f64::INFINITY, 0);
    let words: Vec<i64> = written(&outgoing, 512)
        .iter()
        .map(|word| *word as i64)
        .collect();
    let whole = most as i64;
    assert_eq!(words, [0, 2, 2, 0, -2, -2, 0, 1, 0, 0, whole, -whole, 0]);
    outgoing.check().unwrap();
}

#[test]
fn what_is_not_below_the_limit_is_noticed() {
    let below = f64::from_bits(100_f64.to_bits() - 1);
    for (number, factor, is_right) in [
        (below, 1.0, true),
        (-below, 1.0, true),
        (50.0, 2.0, false),
        (-100.0, 1.0, false),
        (f64::NAN, 1.0, false),
        (f64::INFINITY, 1.0, false),
        (f64::NEG_INFINITY, 0.0, false),
    ] {
        let numbers = [1.0, number, 2.0];
        let learned = Learned::new([Floats::Double(&numbers)], None).unwrap();
        let outgoing = learned.by(factor, 100.0, 7);
        written(&outgoing, 512);
        assert_eq!(outgoing.check().is_ok(), is_right, "{number} by {factor}");
    }
}

#[test]
fn what_is_no_finite_number_is_measured_as_none() {
    for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for place in [0, 1, 20_000, 40_000] {
            let mut numbers = vec![0.5; 40_001];
            numbers[place] = number;
            let learned = Learned::new([Floats::Single(&numbers)], None).unwrap();
            assert!(learned.measured().greatest.is_nan(), "{number} at {place}");
            // The numbers that training started from may be invalid as well.
            let learned = Learned::new([Floats::Single(&[0.5; 40_001])], Some(&numbers)).unwrap();
            assert!(learned.measured().greatest.is_nan(), "{number} at {place}");
        }
    }
    let none = Learned::new([], None).unwrap();
    assert_eq!(
        none.measured(),
        Measured {
            norm: 0.0,
            greatest: 0.0
        }
    );
}

#[test]
fn norms_are_right_where_squares_leave_the_range_of_doubles() {
    for magnitude in [
        1e-320, 1e-300, 1e-170, 1e-154, 1e-120, 1.0, 1e150, 1e154, 1e200, 1e300, 1e307,
    ] {
        let mut numbers = vec![0.0; 40_000];
        (numbers[0], numbers[39_999]) = (3.0 * magnitude, -4.0 * magnitude);
        let learned = Learned::new([Floats::Double(&numbers)], None).unwrap();
        let Measured { norm, greatest } = learned.measured();
        let right = 5.0 * magnitude;
        let off = (norm - right).abs();
        // The least doubles have only few bits.
        assert!(off <= 1e-14 * right + 1e-322, "{norm} for {right}");
        assert_eq!(greatest, 4.0 * magnitude);
    }
    // A norm that no double can hold is reported as infinite.
    let learned = Learned::new([Floats::Double(&[1.7e308, 1.7e308])], None).unwrap();
    assert_eq!(learned.measured().norm, f64::INFINITY);
}
