//! Proofs about products of matrices and convolutions, compared with plain arithmetic.

use super::map_definitions::add_outputs;
use super::tests::{Keys, Kind, Message, NAME, converse, kind, known, random, terms};
use super::*;
use kernels::convolution::Convolution;
use kernels::matrix::Layout;

/// Equations about a map, with everybody's part.
#[derive(Clone)]
struct About {
    map: Product,
    /// The place of the left verifier's operand, the first operand, and the second one.
    terms: Vec<(Place, [Vec<u64>; 2])>,
    constants: [Vec<u64>; 2],
    /// Whether the left verifier's constants still have the map of its own operands.
    less_own: bool,
}

/// What a proof is about.
#[derive(Clone, Default)]
struct Batch {
    kinds: Vec<Kind>,
    maps: Vec<About>,
}

impl Batch {
    fn of_maps(maps: impl IntoIterator<Item = About>) -> Self {
        Self {
            kinds: Vec::new(),
            maps: maps.into_iter().collect(),
        }
    }
}

fn matrices(batch: usize, sizes: [usize; 3]) -> Product {
    Product::Matrices {
        batch,
        sizes,
        layout: Layout::Straight,
    }
}

fn transposed(batch: usize, sizes: [usize; 3]) -> Product {
    Product::Matrices {
        batch,
        sizes,
        layout: Layout::Transposed,
    }
}

const PLAIN: Convolution = Convolution {
    batch: 1,
    groups: 1,
    in_channels: 2,
    out_channels: 3,
    input: [5, 4],
    kernel: [3, 2],
    stride: [1, 1],
    padding: [0, 0],
    dilation: [1, 1],
};

/// Convolutions with steps, padding, dilation, groups, and several images.
fn convolutions() -> Vec<Product> {
    let shapes = [
        PLAIN,
        Convolution {
            batch: 3,
            padding: [1, 2],
            ..PLAIN
        },
        Convolution {
            batch: 2,
            groups: 2,
            in_channels: 4,
            out_channels: 6,
            stride: [2, 3],
            padding: [2, 1],
            ..PLAIN
        },
        Convolution {
            groups: 5,
            in_channels: 5,
            out_channels: 5,
            input: [9, 11],
            kernel: [3, 3],
            dilation: [2, 3],
            padding: [2, 0],
            ..PLAIN
        },
        Convolution {
            batch: 40,
            in_channels: 17,
            out_channels: 33,
            input: [2, 3],
            kernel: [1, 1],
            ..PLAIN
        },
    ];
    shapes.map(Product::Convolution).to_vec()
}

fn lengths(map: &Product) -> [usize; 3] {
    match *map {
        Product::Matrices {
            batch,
            sizes: [m, k, n],
            ..
        } => [batch * m * k, batch * k * n, batch * m * n],
        Product::Convolution(shape) => [shape.input_len(), shape.weight_len(), shape.output_len()],
    }
}

/// True equations about a map of random words and the largest and smallest ones. The left verifier
/// knows first operands and second ones in turn.
fn about(seed: u64, map: Product, terms: usize) -> About {
    let [first, second, _] = lengths(&map);
    let operand = |from: u64, n: usize| {
        let mut words = random(1000 * seed + from, n);
        for (at, word) in words.iter_mut().enumerate() {
            match (at + from as usize) % 13 {
                2 => *word = 1 << 63,
                6 => *word = u64::MAX,
                9 => *word = 0,
                _ => {}
            }
        }
        words
    };
    let term = |at: usize| {
        let place = [Place::First, Place::Second][(at + seed as usize) % 2];
        let from = 2 * at as u64;
        (place, [operand(from, first), operand(from + 1, second)])
    };
    of_terms(seed, map, (0..terms).map(term).collect())
}

/// True equations about these terms.
fn of_terms(seed: u64, map: Product, terms: Vec<(Place, [Vec<u64>; 2])>) -> About {
    let own = random(1000 * seed + 999, lengths(&map)[2]);
    let mut rest: Vec<u64> = own.iter().map(|word| word.wrapping_neg()).collect();
    for (_, operands) in &terms {
        add_outputs(&map, operands, &mut rest);
    }
    About {
        map,
        terms,
        constants: [own, rest],
        less_own: false,
    }
}

fn outputs(map: &Product, operands: &[Vec<u64>; 2]) -> Vec<u64> {
    let mut outputs = vec![0; lengths(map)[2]];
    add_outputs(map, operands, &mut outputs);
    outputs
}

/// The operands of the left verifier, and then of the right one.
fn by_side((place, [first, second]): &(Place, [Vec<u64>; 2])) -> [&[u64]; 2] {
    match place {
        Place::First => [first, second],
        Place::Second => [second, first],
    }
}

fn equations<'a, T>(
    about: &'a About,
    operands: impl Fn([&'a [u64]; 2]) -> T,
) -> MapEquations<Product, T> {
    let terms = about.terms.iter().map(|term| MapTerm {
        left: term.0,
        factors: operands(by_side(term)),
    });
    MapEquations {
        map: about.map,
        terms: terms.collect(),
    }
}

fn run_with(
    keys: &Keys,
    prover: &Batch,
    verifiers: &Batch,
    mut change: impl FnMut(Message, &mut Vec<u64>),
) -> Result<(), Refused> {
    let of_prover = (
        terms(&prover.kinds),
        prover
            .maps
            .iter()
            .map(|about| equations(about, |both| both))
            .collect::<Vec<_>>(),
    );
    let [of_left, of_right] = [0, 1].map(|side| {
        let maps = verifiers.maps.iter().map(|about| KnownMap {
            factors: equations(about, |both| both[side]),
            constants: &about.constants[side][..],
            less_own: about.less_own && side == 0,
        });
        (known(&verifiers.kinds, side), maps.collect::<Vec<_>>())
    });
    let left = LeftVerifier::<Words>::new(&of_left.0, &of_left.1, NAME, keys.of_left());
    let right = RightVerifier::new(&of_right.0, &of_right.1, NAME, keys.of_right());
    let (kinds, maps) = (&of_prover.0, &of_prover.1);
    let prover = |openings| Prover::new(kinds, maps, openings, NAME, keys.of_prover());
    converse(prover, left, right, &mut change)
}

fn run(prover: &Batch, verifiers: &Batch) -> Result<(), Refused> {
    run_with(&Keys::of(1), prover, verifiers, |_, _| {})
}

fn honest(batch: &Batch) -> Result<(), Refused> {
    run(batch, batch)
}

/// Maps of several sizes: of one block, of some, and with an odd number of elements.
fn several() -> Batch {
    let mut maps = vec![
        about(1, matrices(1, [3, 5, 2]), 2),
        about(2, transposed(2, [2, 7, 3]), 2),
        about(3, matrices(3, [1, 9, 4]), 1),
    ];
    for (seed, map) in (4..).zip(convolutions()) {
        maps.push(about(seed, map, 2));
    }
    Batch {
        kinds: vec![kind::<Words>(1, 2, 2), kind::<Words>(2, 1, 1)],
        maps,
    }
}

#[test]
fn true_equations_are_proved() {
    for sizes in [
        [1, 1, 1],
        [1, 8, 1],
        [2, 3, 4],
        [7, 9, 5],
        [1, 40, 17],
        [33, 1, 1],
        [130, 129, 3],
        [3, 260, 131],
        [0, 3, 2],
        [3, 0, 2],
        [3, 2, 0],
    ] {
        for batch in [1, 3, 0] {
            for map in [matrices(batch, sizes), transposed(batch, sizes)] {
                for terms in 0..3 {
                    let batch = Batch::of_maps([about(5, map, terms)]);
                    assert_eq!(honest(&batch), Ok(()), "{map:?}, {terms} terms");
                }
            }
        }
    }
    for (seed, map) in (0..).zip(convolutions()) {
        let batch = Batch::of_maps([about(seed, map, 2)]);
        assert_eq!(honest(&batch), Ok(()), "{map:?}");
    }
    assert_eq!(honest(&several()), Ok(()));
    // Thousands of blocks, of maps and of words.
    let batch = Batch {
        kinds: vec![kind::<Words>(3, 150, 2)],
        maps: vec![about(8, matrices(1, [1, 9000, 1]), 2)],
    };
    assert_eq!(honest(&batch), Ok(()));
}

/// Each output of each map, whichever verifier's constant is wrong.
#[test]
fn a_false_equation_is_refused() {
    let batch = several();
    let mut cases = 0;
    for (at, about) in batch.maps.iter().enumerate() {
        for output in 0..about.constants[0].len().min(24) {
            let error = [1, 1 << 63, random(cases, 1)[0]][output % 3];
            let mut wrong = batch.clone();
            let side = output / 3 % 2;
            // Of many outputs, those at the end too.
            let place = match output % 2 {
                0 => output,
                _ => about.constants[0].len() - 1 - output,
            };
            let word = &mut wrong.maps[at].constants[side][place];
            *word = word.wrapping_add(error);
            assert_eq!(
                run(&batch, &wrong),
                Err(Refused::Wrong),
                "{error} at {place}"
            );
            cases += 1;
        }
    }
    assert!(cases > 100);
}

/// Every output of small maps, with every kind of error.
#[test]
fn every_single_output_counts() {
    let small = [
        about(1, matrices(2, [2, 3, 3]), 2),
        about(2, transposed(2, [3, 2, 2]), 2),
        about(3, convolutions()[0], 2),
        about(4, convolutions()[2], 1),
    ];
    for about in small {
        for output in 0..about.constants[0].len() {
            for error in [1, 1 << 63, random(output as u64, 1)[0]] {
                let batch = Batch::of_maps([about.clone()]);
                let mut wrong = batch.clone();
                let word = &mut wrong.maps[0].constants[output % 2][output];
                *word = word.wrapping_add(error);
                assert_eq!(run(&batch, &wrong), Err(Refused::Wrong), "{:?}", about.map);
            }
        }
    }
}

/// Errors that would cancel if rows or columns, maps, products of a batch, or a map and words had
/// the same weights: of one output one more, and of another one less.
#[test]
fn errors_do_not_cancel() {
    let map = matrices(2, [2, 3, 2]);
    let batch = Batch {
        kinds: vec![kind::<Words>(1, 1, 1)],
        maps: vec![about(1, map, 1), about(2, map, 1)],
    };
    let outputs = lengths(&map)[2];
    for first in 0..2 * outputs {
        for second in 0..first {
            let mut wrong = batch.clone();
            for (at, error) in [(first, 1), (second, u64::MAX)] {
                let word = &mut wrong.maps[at / outputs].constants[0][at % outputs];
                *word = word.wrapping_add(error);
            }
            assert_eq!(
                run(&batch, &wrong),
                Err(Refused::Wrong),
                "{first}, {second}"
            );
        }
    }
    for at in (0..Words::ROW).step_by(5) {
        let mut wrong = batch.clone();
        let word = &mut wrong.kinds[0].constants[1][at];
        *word = word.wrapping_add(1);
        let word = &mut wrong.maps[0].constants[1][at % outputs];
        *word = word.wrapping_sub(1);
        assert_eq!(run(&batch, &wrong), Err(Refused::Wrong), "{at}");
    }
}

/// The left verifier's constants still have what both its own operands give.
#[test]
fn maps_of_own_operands_are_taken_away() {
    let mut cases = 0;
    for (seed, about) in several().maps.into_iter().enumerate() {
        let both = about.terms.clone();
        let [(Place::First, [a, _]), (Place::Second, [_, b])] = &both[..] else {
            continue;
        };
        let mut about = about.clone();
        about.less_own = true;
        let own = [a.clone(), b.clone()];
        add_outputs(&about.map, &own, &mut about.constants[0]);
        let batch = Batch {
            kinds: vec![kind::<Words>(seed as u64, 1, 1)],
            maps: vec![about.clone(), several().maps[0].clone(), about],
        };
        assert_eq!(honest(&batch), Ok(()));
        for at in [0, 2] {
            let mut wrong = batch.clone();
            wrong.maps[at].less_own = false;
            assert_eq!(run(&batch, &wrong), Err(Refused::Wrong));
            let mut wrong = batch.clone();
            let word = wrong.maps[at].constants[0].last_mut().expect("an output");
            *word = word.wrapping_add(1 << 63);
            assert_eq!(run(&batch, &wrong), Err(Refused::Wrong));
        }
        cases += 1;
    }
    assert_eq!(cases, 4);
}

#[test]
#[should_panic(expected = "a first and a second operand of its own")]
fn own_operands_have_both_places() {
    let mut about = about(1, matrices(1, [2, 3, 2]), 2);
    about.less_own = true;
    let _ = honest(&Batch::of_maps([about]));
}

/// A prover whose polynomial of words is wrong by what maps lack, in vain: its first message and
/// the claim of maps have independent weights.
#[test]
fn an_error_of_words_does_not_make_up_for_maps() {
    let batch = Batch {
        kinds: vec![kind::<Words>(1, 1, 1)],
        maps: vec![about(1, matrices(1, [1, 1, 1]), 1)],
    };
    let mut wrong = batch.clone();
    let constant = &mut wrong.maps[0].constants[0][0];
    *constant = constant.wrapping_add(1);
    // The weight of the one output, as the parties draw it.
    let keys = Keys::of(1);
    let seeds = challenges::Seeds::draw::<Words>(NAME, &keys.0[2], 3);
    let grid = batch.maps[0].map.grid();
    let weights = challenges::Weights::<Words>::draw(&seeds.weights, 1, &[grid]);
    let [rows, columns] = &weights.maps[0];
    let [row, column] = [rows[0], columns[0]].map(Words::member);
    let error = row.mul(&column);
    for sign in [1, u64::MAX] {
        let found = run_with(&keys, &batch, &wrong, |which, message| {
            // The constant polynomial: at {0, 1}^5 alone, since it has no higher coefficient.
            if which == Message::Prover(0) {
                for (vertex, words) in message.chunks_exact_mut(Words::WORDS).enumerate() {
                    let digits = (0..5).map(|digit| vertex / 3_usize.pow(digit) % 3);
                    if digits.into_iter().all(|digit| digit < 2) {
                        for (word, error) in words.iter_mut().zip(error.0) {
                            *word = word.wrapping_add(error.wrapping_mul(sign));
                        }
                    }
                }
            }
        });
        assert_eq!(found, Err(Refused::Wrong));
    }
}

/// A prover or a verifier that holds another operand, of either side and of every term.
#[test]
fn another_operand_is_refused() {
    for (at, about) in several().maps.iter().enumerate() {
        for (term, (_, operands)) in about.terms.iter().enumerate() {
            for operand in 0..2 {
                for bit in [0, 17, 63] {
                    // All words of operands are odd, so that each difference counts.
                    let mut terms = about.terms.clone();
                    let all = terms.iter_mut().flat_map(|(_, operands)| operands);
                    all.flatten().for_each(|word| *word |= 1);
                    let truth = Batch::of_maps([of_terms(at as u64, about.map, terms)]);
                    let mut other = truth.clone();
                    // A pixel that no filter meets does not count.
                    for place in (0..operands[operand].len()).cycle().skip(31 * bit + at) {
                        other = truth.clone();
                        let operands = &mut other.maps[0].terms[term].1;
                        operands[operand][place] ^= 1 << bit;
                        if outputs(&about.map, operands)
                            != outputs(&about.map, &truth.maps[0].terms[term].1)
                        {
                            break;
                        }
                    }
                    assert_eq!(run(&truth, &truth), Ok(()));
                    for (prover, verifiers) in [(&truth, &other), (&other, &truth)] {
                        assert_eq!(
                            run(prover, verifiers),
                            Err(Refused::Wrong),
                            "{:?}",
                            about.map
                        );
                    }
                }
            }
        }
    }
}

/// Messages about blocks of maps: elements of each, with their lowest or their highest bit.
#[test]
fn changed_messages_are_refused() {
    let batch = Batch {
        kinds: vec![kind::<Words>(6, 1, 1)],
        maps: vec![about(1, matrices(1, [2, 70, 3]), 2)],
    };
    let mut lengths = Vec::new();
    run_with(&Keys::of(1), &batch, &batch, |which, message| {
        lengths.push((which, message.len()))
    })
    .unwrap();
    // The blocks: one of words, and 18 of 140 elements. So there are two folds.
    assert_eq!(lengths.len(), 5);
    for (which, length) in lengths {
        for element in (0..length / Words::WORDS).step_by(length / 2000 + 1) {
            let bit = [0, 63][element % 2];
            let place = Words::WORDS * element + element * 7 % Words::WORDS;
            let found = run_with(&Keys::of(1), &batch, &batch, |each, message| {
                if each == which {
                    message[place] ^= 1 << bit;
                }
            });
            assert_eq!(found, Err(Refused::Wrong), "{which:?}, word {place}");
        }
    }
}

/// Whatever operands are, all that the right verifier sees are masks and blindings, and the left
/// verifier cannot find out whether the right operands are zero.
#[test]
fn messages_do_not_depend_on_operands_alone() {
    let map = matrices(1, [3, 90, 2]);
    let zeros = vec![(Place::First, [vec![0; 270], vec![0; 180]]); 2];
    let batch = Batch::of_maps([of_terms(1, map, zeros)]);
    let seen = |seed: u64| {
        let mut found = Vec::new();
        let keys = Keys([[1, seed], [2, 1], [3, 1]].map(kernels::stream::Key::from_words));
        run_with(&keys, &batch, &batch, |_, message| {
            found.extend(message.clone())
        })
        .unwrap();
        found
    };
    let (first, second) = (seen(1), seen(2));
    assert!(
        first
            .iter()
            .zip(&second)
            .all(|(first, second)| first != second)
    );
    let mut sorted = first.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), first.len());
    assert_ne!(sorted[0], 0);
    for lane in 0..Words::LANES {
        let found = run_with(&Keys::of(1), &batch, &batch, |which, message| {
            if which == Message::Left {
                let at = message.len() - Words::WORDS * (Words::LANES - lane);
                message[at] ^= 1;
            }
        });
        assert_eq!(found, Err(Refused::Wrong), "lane {lane}");
    }
}

/// Weights of lanes are invertible, and none of all weights comes twice.
#[test]
fn weights_differ() {
    let grids = several()
        .maps
        .iter()
        .map(|about| about.map.grid())
        .collect::<Vec<_>>();
    let weights = challenges::Weights::<Words>::draw(&[[1, 2], [3, 4]], 20, &grids);
    let mut members = weights.rows.clone();
    for (grid, [rows, columns]) in grids.iter().zip(&weights.maps) {
        assert_eq!([rows.len(), columns.len()], [grid.rows, grid.columns]);
        members.extend(rows.iter().chain(columns));
    }
    for element in weights.chunks.iter().chain(&weights.lanes.lanes()) {
        let bits = element.0.iter().enumerate();
        members.push(bits.map(|(at, bit)| bit << at).sum());
    }
    let count = members.len();
    members.sort_unstable();
    members.dedup();
    assert_eq!(members.len(), count);
    assert_ne!(members[0], 0);
    let _ = weights.lanes.inverses();
}

#[test]
#[should_panic(expected = "at most 131072 rows")]
fn too_many_blocks_panic() {
    let map = matrices(1, [1, 8 * MOST_ROWS / 2 + 1, 1]);
    let _ = honest(&Batch::of_maps([about(1, map, 2)]));
}

#[test]
#[should_panic(expected = "at most 131072 rows")]
fn blocks_and_rows_count_together() {
    let map = matrices(1, [1, 8 * MOST_ROWS, 1]);
    let _ = honest(&Batch {
        kinds: vec![kind::<Words>(1, 1, 1)],
        maps: vec![about(1, map, 1)],
    });
}

#[test]
#[should_panic(expected = "words of a map's operand")]
fn an_operand_of_another_length_panics() {
    let mut about = about(1, matrices(1, [2, 3, 2]), 1);
    about.terms[0].1[1].push(0);
    let _ = honest(&Batch::of_maps([about]));
}

#[test]
#[should_panic(expected = "a constant of each output")]
fn a_missing_constant_panics() {
    let mut about = about(1, matrices(1, [2, 3, 2]), 1);
    about.constants[1].pop();
    let _ = honest(&Batch::of_maps([about]));
}
