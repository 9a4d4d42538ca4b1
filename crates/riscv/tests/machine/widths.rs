//! Public facts about words, such as their width, change the costs but not the results.

use mpc::Recipient;
use riscv::isa::extensions::encodings;
use riscv::isa::operation::{Function, Operation};
use riscv::secret::evaluation::reveal;
use riscv::secret::inputs::share_integers;
use riscv::{Plain, Secret, Signs, Words};
use testkit::{Random, run, usual_parties};

const EDGES: [u64; 8] = [0, 1, 2, 31, 0x7f, 0x80, 0x7fff_ffff, u64::MAX];

fn functions() -> impl Iterator<Item = (&'static str, Function)> {
    encodings().filter_map(|encoding| match encoding.operation {
        Operation::Registers(function) | Operation::Immediate(function) => {
            Some((encoding.name, function))
        }
        _ => None,
    })
}

/// Extends an integer of `bytes` bytes as load instructions do.
fn loaded(value: u64, bytes: u64) -> u64 {
    match bytes {
        4 => Plain.extend(&value, 32, Signs::Signed),
        _ => Plain.extend(&value, 8 * bytes as u32, Signs::Unsigned),
    }
}

/// Checks all functions on words of two widths, also after operations that leave the words in one
/// form or the other.
fn check(protocol: &str, every: usize) {
    let random = Random::new(11).words(4);
    let edges = EDGES.iter().flat_map(|x| EDGES.map(|y| (*x, y)));
    let pairs = edges
        .step_by(every)
        .chain([(random[0], random[1]), (random[2], random[3])]);
    let (left, right): (Vec<u64>, Vec<u64>) = pairs.unzip();
    for (of_left, of_right) in [(1, 1), (2, 1), (4, 4), (4, 8), (8, 2)] {
        let results = run(protocol, usual_parties(protocol), |p| {
            let mine = |party: usize, values| (p.party() == party).then_some(values);
            let (mine_left, mine_right) = (mine(0, &left[..]), mine(1, &right[..]));
            let x = share_integers(p, 0, mine_left, left.len(), of_left)?;
            let y = share_integers(p, 1, mine_right, right.len(), of_right)?;
            let mut results = Vec::new();
            for (_, function) in functions() {
                let mut computed = Vec::new();
                for (x, y) in x.iter().zip(&y) {
                    for form in FORMS {
                        let (x, y) = (form(&mut Secret, x, y), form(&mut Secret, y, x));
                        computed.push(function.compute(&mut Secret, &x, &y));
                    }
                }
                results.push(reveal(p, &computed, Recipient::All)?.expect("opened to all"));
            }
            Ok(results)
        });
        for ((name, function), found) in functions().zip(&results[0]) {
            for (at, found) in found.iter().enumerate() {
                let (x, y) = (
                    loaded(left[at / 3], of_left),
                    loaded(right[at / 3], of_right),
                );
                let form = PLAIN_FORMS[at % 3];
                let (a, b) = (form(&mut Plain, &x, &y), form(&mut Plain, &y, &x));
                let expected = function.compute(&mut Plain, &a, &b);
                assert_eq!(
                    *found, expected,
                    "{name} of {a:#x} and {b:#x}, {of_left} and {of_right} bytes"
                );
            }
        }
    }
}

fn whole<W: Words>(_: &mut W, x: &W::Word, _: &W::Word) -> W::Word {
    x.clone()
}

fn sum<W: Words>(words: &mut W, x: &W::Word, y: &W::Word) -> W::Word {
    words.add(x, y)
}

fn bits<W: Words>(words: &mut W, x: &W::Word, y: &W::Word) -> W::Word {
    let differ = words.xor(x, y);
    words.and(&differ, x)
}

type Form<W> = fn(&mut W, &<W as Words>::Word, &<W as Words>::Word) -> <W as Words>::Word;
const FORMS: [Form<Secret>; 3] = [whole, sum, bits];
const PLAIN_FORMS: [Form<Plain>; 3] = [whole, sum, bits];

#[test]
fn in_the_reference() {
    check("plain", 2);
}

#[test]
fn by_replicated_sharing() {
    check("replicated", 9);
}

#[test]
fn by_two_parties_and_a_dealer() {
    check("additive_2_dealer", 9);
}
