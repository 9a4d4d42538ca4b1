//! Inner products in GF(2^64), as equations beside those of bits.

use super::field::{BitBlock, FieldElement};
use super::grid::{Grid, Map, Place};
use kernels::binary_field::{self, LANES};

/// An inner product of elements of GF(2^64), each a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InnerProduct {
    /// The number of elements of each operand.
    pub length: usize,
}

impl Map for InnerProduct {
    type Element = FieldElement;
    type Block = BitBlock;
    type Weights = ();

    fn grid(&self) -> Grid {
        Grid {
            rows: 1,
            columns: 1,
            inner: self.length,
            operands: [self.length; 2],
        }
    }

    /// The one row has one weight, and so has the one column.
    fn sums(&self, _: Place, words: &[u64], weights: &[u64]) -> Vec<FieldElement> {
        let mut sums = vec![0; words.len()];
        binary_field::add_scaled(&mut sums, words, weights[0]);
        sums.into_iter().map(FieldElement).collect()
    }

    fn inner_product(a: &[FieldElement], b: &[FieldElement]) -> FieldElement {
        let products = a.iter().zip(b).map(|(a, b)| a.mul(*b));
        products.fold(FieldElement::ZERO, FieldElement::add)
    }

    fn outputs(&self, words: &[u64], [rows, columns]: [&[u64]; 2]) -> FieldElement {
        let weight = binary_field::mul(rows[0], columns[0]);
        FieldElement(binary_field::mul(words[0], weight))
    }

    /// Elements need no weights: see [`super::ring::Ring::block_sums`] of bits.
    fn blocks(elements: &[FieldElement], _: Option<&()>) -> Vec<BitBlock> {
        let block = |elements: &[FieldElement]| {
            std::array::from_fn(|lane| elements.get(lane).map_or(0, |element| element.0))
        };
        elements.chunks(LANES).map(block).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Keys, Kind, Message, NAME, converse, kind, known, random, terms};
    use super::super::*;
    use super::*;

    /// An equation, with everybody's part.
    #[derive(Clone)]
    struct About {
        places: Vec<Place>,
        /// The operands of the left verifier, and those of the right one, for each term.
        operands: [Vec<Vec<u64>>; 2],
        constants: [u64; 2],
    }

    #[derive(Clone)]
    struct Batch {
        kinds: Vec<Kind>,
        maps: Vec<About>,
    }

    /// A true equation of random elements and the edges.
    fn about(seed: u64, length: usize, terms: usize) -> About {
        let operand = |from: u64| {
            let mut words = random(500 * seed + from, length);
            for (word, edge) in words.iter_mut().skip(1).zip([0, 1, u64::MAX, 1 << 63]) {
                *word = edge;
            }
            words
        };
        let side = |side| (0..terms as u64).map(|at| operand(2 * at + side)).collect();
        let operands: [Vec<Vec<u64>>; 2] = [side(0), side(1)];
        let own = random(seed, 1)[0];
        let [left, right] = &operands;
        let products = left.iter().flatten().zip(right.iter().flatten());
        let rest = products.fold(own, |sum, (a, b)| sum ^ binary_field::mul(*a, *b));
        let places = [Place::First, Place::Second].into_iter().cycle();
        About {
            places: places.skip(seed as usize % 2).take(terms).collect(),
            operands,
            constants: [own, rest],
        }
    }

    fn equations<T>(about: &About, factors: impl Fn(usize) -> T) -> MapEquations<InnerProduct, T> {
        let length = about.operands[0].first().map_or(0, Vec::len);
        let terms = about.places.iter().enumerate();
        let terms = terms.map(|(at, place)| MapTerm {
            left: *place,
            factors: factors(at),
        });
        MapEquations {
            map: InnerProduct { length },
            terms: terms.collect(),
        }
    }

    fn run_with(
        prover: &Batch,
        verifiers: &Batch,
        mut change: impl FnMut(Message, &mut Vec<u64>),
    ) -> Result<(), Refused> {
        let keys = Keys::of(1);
        let of_prover = terms(&prover.kinds);
        let maps: Vec<_> = prover
            .maps
            .iter()
            .map(|about| {
                let [left, right] = &about.operands;
                equations(about, |at| [&left[at][..], &right[at]])
            })
            .collect();
        let of_side = |side: usize| {
            let maps = verifiers.maps.iter().map(move |about| KnownMap {
                factors: equations(about, move |at| &about.operands[side][at][..]),
                constants: &about.constants[side..=side],
                less_own: false,
            });
            (known(&verifiers.kinds, side), maps.collect::<Vec<_>>())
        };
        let (of_left, of_right) = (of_side(0), of_side(1));
        let left = LeftVerifier::<Bits>::new(&of_left.0, &of_left.1, NAME, keys.of_left());
        let right = RightVerifier::new(&of_right.0, &of_right.1, NAME, keys.of_right());
        let prover = |openings| Prover::new(&of_prover, &maps, openings, NAME, keys.of_prover());
        converse(prover, left, right, &mut change)
    }

    fn run(prover: &Batch, verifiers: &Batch) -> Result<(), Refused> {
        run_with(prover, verifiers, |_, _| {})
    }

    fn several() -> Batch {
        let lengths = [1, 2, 63, 64, 65, 300];
        let maps = (0..).zip(lengths);
        Batch {
            kinds: vec![kind::<Bits>(1, 2, 2)],
            maps: maps
                .map(|(at, length)| about(at, length, 1 + at as usize % 2))
                .collect(),
        }
    }

    #[test]
    fn true_equations_are_proved() {
        assert_eq!(run(&several(), &several()), Ok(()));
        for length in [0, 1, 64, 5000] {
            let batch = Batch {
                kinds: Vec::new(),
                maps: vec![about(3, length, 1)],
            };
            assert_eq!(run(&batch, &batch), Ok(()), "{length}");
        }
    }

    /// Each bit of each constant and of each operand, of the prover or of a verifier.
    #[test]
    fn false_equations_are_refused() {
        let batch = several();
        for at in 0..batch.maps.len() {
            for bit in 0..64 {
                let mut wrong = batch.clone();
                wrong.maps[at].constants[bit % 2] ^= 1 << bit;
                assert_eq!(run(&batch, &wrong), Err(Refused::Wrong), "{at}, bit {bit}");
                for side in 0..2 {
                    let mut wrong = batch.clone();
                    let operands = &mut wrong.maps[at].operands[side];
                    let term = bit % operands.len();
                    // The first element is random, and so is its factor.
                    operands[term][0] ^= 1 << bit;
                    assert_eq!(run(&batch, &wrong), Err(Refused::Wrong), "{at}, bit {bit}");
                    assert_eq!(run(&wrong, &batch), Err(Refused::Wrong), "{at}, bit {bit}");
                }
            }
        }
    }

    /// An error that is the same in two equations: both of inner products, or one of bits.
    #[test]
    fn errors_do_not_cancel() {
        let batch = several();
        for error in [1, 1 << 63, random(9, 1)[0]] {
            for first in 0..batch.maps.len() {
                for second in 0..first {
                    let mut wrong = batch.clone();
                    wrong.maps[first].constants[0] ^= error;
                    wrong.maps[second].constants[0] ^= error;
                    assert_eq!(run(&batch, &wrong), Err(Refused::Wrong));
                }
                let mut wrong = batch.clone();
                wrong.maps[first].constants[0] ^= error;
                wrong.kinds[0].constants[0][first] ^= error;
                assert_eq!(run(&batch, &wrong), Err(Refused::Wrong));
            }
        }
    }

    #[test]
    fn changed_messages_are_refused() {
        let batch = several();
        let mut lengths = Vec::new();
        run_with(&batch, &batch, |which, message| {
            lengths.push((which, message.len()));
        })
        .unwrap();
        for (which, length) in lengths {
            for word in (0..length).step_by(7) {
                let found = run_with(&batch, &batch, |each, message| {
                    if each == which {
                        message[word] ^= 1 << (word % 64);
                    }
                });
                assert_eq!(found, Err(Refused::Wrong), "{which:?}, word {word}");
            }
        }
    }
}
