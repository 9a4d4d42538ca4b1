//! Programs with published answers, or answers of another algorithm, on plain and on secret files.

use crate::cases::{Case, PROTOCOLS, bytes, hexadecimal};
use testkit::Random;

/// The examples of FIPS 180-4: one block, an empty message, and two blocks.
#[test]
fn sha256_gives_what_the_standard_says() {
    let case = |message: &[u8]| Case {
        file: include_bytes!("../../programs/sha256.elf"),
        told: &[],
        inputs: vec![("message", 1, bytes(message))],
        output: ("digest", 1),
    };
    let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    for (message, digest, protocols) in [
        (
            b"".as_slice(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            &[] as &[&str],
        ),
        (
            long,
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            &[],
        ),
        (
            b"abc",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            &PROTOCOLS,
        ),
    ] {
        case(message).is(&hexadecimal(digest), protocols, &[]);
    }
}

/// The examples of FIPS 197: appendix B, and C.1.
#[test]
fn aes_gives_what_the_standard_says() {
    for (key, block, sealed, protocols) in [
        (
            "2b7e151628aed2a6abf7158809cf4f3c",
            "3243f6a8885a308d313198a2e0370734",
            "3925841d02dc09fbdc118597196a0b32",
            &PROTOCOLS[..],
        ),
        (
            "000102030405060708090a0b0c0d0e0f",
            "00112233445566778899aabbccddeeff",
            "69c4e0d86a7b0430d8cdb78070b4c55a",
            &PROTOCOLS[..1],
        ),
    ] {
        let case = Case {
            file: include_bytes!("../../programs/aes.elf"),
            told: &[],
            inputs: vec![
                ("key", 1, hexadecimal(key)),
                ("blocks", 1, hexadecimal(block)),
            ],
            output: ("sealed", 1),
        };
        case.is(&hexadecimal(sealed), protocols, &[]);
    }
}

/// Known answers of Ascon v1.2: the hash of the empty message, and Ascon-128 of it.
#[test]
fn ascon_gives_known_answers() {
    let hash = Case {
        file: include_bytes!("../../programs/ascon.elf"),
        told: &["hash"],
        inputs: vec![("message", 1, Vec::new())],
        output: ("out", 1),
    };
    let digest = "7346bc14f036e87ae03d0997913088f5f68411434b3cf8b54fa796a80d251f91";
    // The message is empty, but belongs to a party.
    hash.is(&hexadecimal(digest), &PROTOCOLS, &[]);
    let zero = Case {
        inputs: vec![("message", 1, vec![0])],
        ..hash
    };
    let digest = "8dd446ada58a7740ecf56eb638ef775f7d5c0fd5f0c2bbbdfdec29609d3c43a2";
    zero.is(&hexadecimal(digest), &PROTOCOLS, &[]);
    let sealed = Case {
        told: &[],
        inputs: vec![
            ("message", 1, Vec::new()),
            ("key", 1, (0..16).collect()),
            ("nonce", 1, (0..16).collect()),
        ],
        ..zero
    };
    let sealed_text = hexadecimal("e355159f292911f794cb1432a0103a8a");
    sealed.is(&sealed_text, &PROTOCOLS, &["message", "nonce"]);
}

#[test]
fn what_two_lists_have_in_common_is_found_by_a_network() {
    let case = |a: &[u64], b: &[u64]| Case {
        file: include_bytes!("../../programs/psi.elf"),
        told: &[],
        inputs: vec![("a", 8, a.to_vec()), ("b", 8, b.to_vec())],
        output: ("common", 8),
    };
    case(&[3, 7, 9, 20, 1 << 63, u64::MAX], &[1, 7, 20, u64::MAX]).is(
        &[7, 20, u64::MAX, 0],
        &PROTOCOLS,
        &[],
    );
    case(&[5], &[5]).is(&[5], &["plain"], &[]);
    case(&[5], &[]).is(&[], &["plain"], &[]);
    let mut random = Random::new(11);
    let mut list = |count| {
        let mut list: Vec<u64> = random
            .words(count)
            .iter()
            .map(|word| 1 + word % 300)
            .collect();
        list.sort_unstable();
        list.dedup();
        list
    };
    let (a, b) = (list(90), list(120));
    let mut common: Vec<u64> = a
        .iter()
        .filter(|value| b.contains(value))
        .copied()
        .collect();
    assert!(common.len() > 10);
    common.resize(a.len().min(b.len()), 0);
    case(&a, &b).is(&common, &["plain", "replicated"], &[]);
}

#[test]
fn texts_have_a_distance() {
    let case = |x: &[u8], y: &[u8]| Case {
        file: include_bytes!("../../programs/distance.elf"),
        told: &[],
        inputs: vec![("x", 1, bytes(x)), ("y", 1, bytes(y))],
        output: ("distance", 8),
    };
    case(b"kitten", b"sitting").is(&[3], &["plain", "replicated"], &[]);
    case(b"", b"four").is(&[4], &["plain"], &[]);
    case(b"intention", b"execution").is(&[5], &["plain"], &[]);
}

#[test]
fn secret_numbers_are_found_in_a_table() {
    let case = Case {
        file: include_bytes!("../../programs/search.elf"),
        told: &[],
        inputs: vec![
            ("table", 4, vec![10, 20, 30, 40, 50]),
            ("wanted", 4, vec![5, 20, 21, 60]),
        ],
        output: ("places", 4),
    };
    case.is(&[0, 1, 2, 5], &["plain", "replicated"], &["table"]);
}

#[test]
fn lists_are_compared_in_loops() {
    let case = Case {
        file: include_bytes!("../../programs/psi_loops.elf"),
        told: &[],
        inputs: vec![
            ("a", 8, vec![9, 0x1_0000_0007, 4, 8]),
            ("b", 8, vec![7, 4, 9]),
        ],
        output: ("common", 8),
    };
    case.is(&[9, 0, 4, 0], &PROTOCOLS, &[]);
}

#[test]
fn numbers_are_sorted_by_a_network() {
    let mut values: Vec<u64> = Random::new(5)
        .words(37)
        .iter()
        .map(|word| word & 0xffff_ffff)
        .chain([0, 0x8000_0000, 0x7fff_ffff, 0xffff_ffff, 1, 1])
        .collect();
    let case = Case {
        file: include_bytes!("../../programs/sort.elf"),
        told: &[],
        inputs: vec![("values", 4, values.clone())],
        output: ("sorted", 4),
    };
    values.sort_unstable_by_key(|value| *value as u32 as i32);
    case.is(&values, &["plain", "replicated"], &[]);
}

/// Computes one layer on numbers with 16 fraction bits: the weights of each output in turn, and
/// then the biases.
fn layer(weights: &[u64], x: &[i64]) -> Vec<i64> {
    let number = |word: &u64| i64::from(*word as u32 as i32);
    let (rows, added) = weights.split_at(weights.len() / (x.len() + 1) * x.len());
    let output = |(row, added): (&[u64], &u64)| {
        let products = row.iter().zip(x).map(|(weight, x)| number(weight) * x);
        i64::from((((number(added) << 16) + products.sum::<i64>()) >> 16) as i32)
    };
    rows.chunks(x.len()).zip(added).map(output).collect()
}

#[test]
fn a_network_says_what_whole_numbers_say() {
    let mut random = Random::new(19);
    // Numbers from -1 to below 1.
    let mut numbers = |count| -> Vec<u64> {
        let numbers = random.words(count).into_iter();
        numbers
            .map(|word| (word as i64 >> 47) as u32 as u64)
            .collect()
    };
    let (x, first, second) = (numbers(20), numbers(21 * 8), numbers(9 * 4));
    let x_numbers: Vec<i64> = x.iter().map(|x| i64::from(*x as u32 as i32)).collect();
    let hidden: Vec<i64> = layer(&first, &x_numbers)
        .iter()
        .map(|y| (*y).max(0))
        .collect();
    assert!(hidden.iter().any(|y| *y > 0) && hidden.contains(&0));
    let expected: Vec<u64> = layer(&second, &hidden)
        .iter()
        .map(|y| *y as u32 as u64)
        .collect();
    let case = Case {
        file: include_bytes!("../../programs/net.elf"),
        told: &["20", "8", "4"],
        inputs: vec![("input", 4, x), ("first", 4, first), ("second", 4, second)],
        output: ("output", 4),
    };
    case.is(&expected, &PROTOCOLS, &[]);
}

/// A network of the size for handwritten digits, compared with unrounded floats: the greatest
/// output is the same, and no output is off by 2^-10.
#[test]
fn a_network_as_for_digits_says_what_floats_say() {
    const SIZES: [usize; 3] = [784, 128, 10];
    let mut random = Random::new(23);
    let mut numbers = |count, most: f64| -> Vec<f64> {
        let words = random.words(count).into_iter();
        words
            .map(|word| word as i64 as f64 / 2_f64.powi(63) * most)
            .collect()
    };
    // Weights of a typical size; inputs from 0 to 1.
    let light: Vec<f64> = numbers(SIZES[0], 1.0).iter().map(|x| x.abs()).collect();
    let first = numbers((SIZES[0] + 1) * SIZES[1], 1.0 / 28.0);
    let second = numbers((SIZES[1] + 1) * SIZES[2], 1.0 / 11.0);
    let in_floats = |weights: &[f64], x: &[f64]| -> Vec<f64> {
        let (rows, added) = weights.split_at(weights.len() / (x.len() + 1) * x.len());
        let rows = rows.chunks(x.len()).zip(added);
        rows.map(|(row, added)| added + row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>())
            .collect()
    };
    let hidden: Vec<f64> = in_floats(&first, &light)
        .iter()
        .map(|y| y.max(0.0))
        .collect();
    let expected = in_floats(&second, &hidden);
    let class = |outputs: &[f64]| {
        let places = 0..outputs.len();
        places.max_by(|x, y| outputs[*x].total_cmp(&outputs[*y]))
    };
    let words = |numbers: &[f64]| -> Vec<u64> {
        let word = |x: &f64| u64::from((x * 65536.0).round() as i32 as u32);
        numbers.iter().map(word).collect()
    };
    let case = Case {
        file: include_bytes!("../../programs/net.elf"),
        told: &["784", "128", "10"],
        inputs: vec![
            ("input", 4, words(&light)),
            ("first", 4, words(&first)),
            ("second", 4, words(&second)),
        ],
        output: ("output", 4),
    };
    for protocol in PROTOCOLS {
        let found = case.secret(protocol, &[]).values;
        let found: Vec<f64> = found
            .iter()
            .map(|word| f64::from(*word as u32 as i32) / 65536.0)
            .collect();
        assert_eq!(class(&found), class(&expected), "{protocol}");
        for (found, expected) in found.iter().zip(&expected) {
            assert!(
                (found - expected).abs() < 2_f64.powi(-10),
                "{protocol}: {found}, {expected}"
            );
        }
    }
}
