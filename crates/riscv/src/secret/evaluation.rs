//! From a graph to values: which steps are wanted, in which order, and many of a kind as one operation.

use super::node::{Components, Form, Node, Word};
use super::opaque;
use super::steps::{Joint, Local, Step, Work, step};
use crate::real::Real;
use mpc::{Bilinear, Bits, Error, Join, Operand, Protocol, Recipient, Result, Shift};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// A word that is to have a form.
type Wanted = (Rc<Node>, Form);

/// A word by where it lies, while somebody holds it.
type Key = (*const Node, Form);

/// Shares words that `owner` has, in both forms; the others pass `None`.
///
/// # Errors
/// What the links meet.
pub fn share(
    protocol: &mut dyn Protocol,
    owner: usize,
    values: Option<&[u64]>,
    n: usize,
) -> Result<Vec<Word>> {
    if n == 0 {
        return Ok(Vec::new());
    }
    let arithmetic = written(protocol, n, |protocol, out| {
        protocol.share(owner, values, n, out)
    })?;
    // One plane of all bits is the words themselves.
    let binary = of_bits(protocol.share_bits(owner, values, 1, 64 * n)?);
    let both = arithmetic.into_iter().zip(binary);
    Ok(both
        .map(|(arithmetic, binary)| Node::shared(arithmetic, binary))
        .collect())
}

/// Words of which this party has components that add up with those of the others: a column each.
#[must_use]
pub fn of_summands(parts: &[Vec<u64>]) -> Vec<Word> {
    rows(parts).into_iter().map(Node::summands).collect()
}

/// This party's components of words that add up with those of the others: a column each.
///
/// # Errors
/// `Misuse` for floats; what the links meet.
pub fn summands(protocol: &mut dyn Protocol, words: &[Word]) -> Result<Vec<Vec<u64>>> {
    if words.iter().any(opaque::is_opaque) {
        return Err(Error::misuse(
            "secret floats are to be kept as shares: open them, or keep integers",
        ));
    }
    let secret = |word: &Word| match word {
        Word::Public(_) => None,
        Word::Secret(node) => Some((node.clone(), Form::Arithmetic)),
    };
    let wanted: Vec<Wanted> = words.iter().filter_map(secret).collect();
    compute(protocol, &wanted)?;
    let components = |word: &Word| match word {
        Word::Public(value) => public(protocol, *value, Form::Arithmetic),
        Word::Secret(node) => node.computed(Form::Arithmetic).expect("it was wanted"),
    };
    let rows: Vec<Components> = words.iter().map(components).collect();
    Ok(columns(protocol, &rows))
}

/// Opens words; their values where this party is among the receivers. Of floats these are the bits of those that
/// are nearest.
///
/// # Errors
/// `Misuse` for bytes of floats that are none; what the links meet.
pub fn reveal(
    protocol: &mut dyn Protocol,
    words: &[Word],
    to: Recipient,
) -> Result<Option<Vec<u64>>> {
    let reals: Vec<_> = words.iter().map(opaque::fixed).collect();
    let fixed: Vec<Word> = words
        .iter()
        .zip(&reals)
        .map(|(word, real)| real.as_ref().map_or(word, |(fixed, _)| fixed).clone())
        .collect();
    if fixed.iter().any(opaque::is_opaque) {
        return Err(Error::misuse(
            "some bytes of a secret float are to be opened",
        ));
    }
    let opened = reveal_words(protocol, &fixed, to)?;
    Ok(opened.map(|values| {
        let float = |(value, real): (u64, &Option<(Word, Real)>)| match real {
            Some((_, real)) => real.decode(value),
            None => value,
        };
        values.into_iter().zip(&reals).map(float).collect()
    }))
}

fn reveal_words(
    protocol: &mut dyn Protocol,
    words: &[Word],
    to: Recipient,
) -> Result<Option<Vec<u64>>> {
    // The form that is nearer.
    let form = |word: &Word| {
        if word.has(Form::Arithmetic) {
            Form::Arithmetic
        } else {
            Form::Binary
        }
    };
    let secret = |word: &Word| match word {
        Word::Public(_) => None,
        Word::Secret(node) => Some((node.clone(), form(word))),
    };
    let wanted: Vec<Wanted> = words.iter().filter_map(secret).collect();
    compute(protocol, &wanted)?;
    let mut opened: HashMap<Key, u64> = HashMap::new();
    for form in [Form::Arithmetic, Form::Binary] {
        let of_form: Vec<&Wanted> = wanted.iter().filter(|wanted| wanted.1 == form).collect();
        if of_form.is_empty() {
            continue;
        }
        let components: Vec<Components> = of_form
            .iter()
            .map(|(node, form)| node.computed(*form).expect("it was wanted"))
            .collect();
        let parts = columns(protocol, &components);
        let values = match form {
            Form::Arithmetic => protocol.reveal(&slices(&parts), to)?,
            Form::Binary => {
                let bits = Bits::new(1, 64 * components.len(), parts);
                protocol.reveal_bits(&bits, to)?
            }
        };
        let keys = of_form.iter().map(|(node, form)| (Rc::as_ptr(node), *form));
        opened.extend(keys.zip(values.into_iter().flatten()));
    }
    if !to.includes(protocol.party()) {
        return Ok(None);
    }
    let value = |word: &Word| match word {
        Word::Public(value) => *value,
        Word::Secret(node) => opened[&(Rc::as_ptr(node), form(word))],
    };
    Ok(Some(words.iter().map(value).collect()))
}

/// A step that is wanted, and after how many operations of the protocol it is done.
struct Planned {
    target: Wanted,
    step: Step,
    level: usize,
}

/// The steps that are done after as many operations of the protocol: those that need none, and those that are
/// one, by kind.
#[derive(Default)]
struct Level {
    local: Vec<Planned>,
    joint: BTreeMap<Joint, Vec<Planned>>,
}

/// Computes forms of words, and what they depend on.
///
/// # Errors
/// What the links meet.
pub fn compute(protocol: &mut dyn Protocol, wanted: &[Wanted]) -> Result<()> {
    let mut levels: BTreeMap<usize, Level> = BTreeMap::new();
    for planned in plan(wanted) {
        let level = levels.entry(planned.level).or_default();
        match planned.step.work {
            Work::Local(_) => level.local.push(planned),
            Work::Joint(kind) => level.joint.entry(kind).or_default().push(planned),
        }
    }
    for Level { local, joint } in levels.into_values() {
        for (kind, steps) in joint {
            carry_out(protocol, kind, &steps)?;
        }
        for planned in local {
            let Work::Local(work) = planned.step.work else {
                unreachable!("sorted above")
            };
            let operands = operands(protocol, &planned.step);
            planned.target.0.keep(planned.target.1, work.on(&operands));
        }
    }
    Ok(())
}

/// All steps that are needed, each after those that it needs.
fn plan(wanted: &[Wanted]) -> Vec<Planned> {
    let mut done: HashMap<Key, usize> = HashMap::new();
    let mut planned = Vec::new();
    // Words to look at; with their step when what they need was looked at.
    let mut left: Vec<(Wanted, Option<Step>)> = wanted
        .iter()
        .rev()
        .map(|wanted| (wanted.clone(), None))
        .collect();
    while let Some((target, ready)) = left.pop() {
        let key = (Rc::as_ptr(&target.0), target.1);
        if done.contains_key(&key) {
            continue;
        }
        if target.0.computed(target.1).is_some() {
            done.insert(key, 0);
            continue;
        }
        let Some(step) = ready else {
            let step = with_other_form(&target);
            let needs: Vec<_> = secrets(&step).map(|needed| (needed, None)).collect();
            left.push((target, Some(step)));
            left.extend(needs);
            continue;
        };
        let before = secrets(&step).map(|(node, form)| done[&(Rc::as_ptr(&node), form)]);
        let level = before.max().unwrap_or(0) + usize::from(matches!(step.work, Work::Joint(_)));
        done.insert(key, level);
        planned.push(Planned {
            target,
            step,
            level,
        });
    }
    planned
}

/// The step of a form; a conversion takes the word itself in its other form.
fn with_other_form((node, form): &Wanted) -> Step {
    let mut step = step(node, *form);
    if step.needs.is_empty() {
        let other = match form {
            Form::Arithmetic => Form::Binary,
            Form::Binary => Form::Arithmetic,
        };
        step.needs.push((Word::Secret(node.clone()), other));
    }
    step
}

fn secrets(step: &Step) -> impl Iterator<Item = Wanted> {
    step.needs.iter().filter_map(|(word, form)| match word {
        Word::Public(_) => None,
        Word::Secret(node) => Some((node.clone(), *form)),
    })
}

/// The components of a step's operands.
fn operands(protocol: &dyn Protocol, step: &Step) -> Vec<Components> {
    let of = |(word, form): &(Word, Form)| match word {
        Word::Secret(node) => node.computed(*form).expect("it was planned before"),
        Word::Public(value) => public(protocol, *value, *form),
    };
    step.needs.iter().map(of).collect()
}

fn public(protocol: &dyn Protocol, value: u64, form: Form) -> Components {
    match form {
        Form::Binary => of_bits(protocol.trivial_bits(&[value], 1, 64))[0],
        Form::Arithmetic => {
            let mut parts = [[0], [0]];
            let mut out: Vec<&mut [u64]> = parts
                .iter_mut()
                .take(protocol.parts())
                .map(|part| part.as_mut_slice())
                .collect();
            protocol.trivial(&[value], &mut out);
            parts.map(|[word]| word)
        }
    }
}

/// One operation of the protocol for all steps of a kind.
fn carry_out(protocol: &mut dyn Protocol, kind: Joint, steps: &[Planned]) -> Result<()> {
    let all: Vec<Vec<Components>> = steps
        .iter()
        .map(|planned| operands(protocol, &planned.step))
        .collect();
    let operand = |place: usize| -> Vec<Components> { all.iter().map(|of| of[place]).collect() };
    let n = steps.len();
    let results = match kind {
        Joint::Multiply => {
            let (x, y) = (
                columns(protocol, &operand(0)),
                columns(protocol, &operand(1)),
            );
            written(protocol, n, |protocol, out| {
                let map = Bilinear::Elementwise { n };
                protocol.bilinear(
                    &map,
                    Operand::once(&slices(&x)),
                    Operand::once(&slices(&y)),
                    None,
                    out,
                )
            })?
        }
        Joint::And => {
            let [x, y] =
                [0, 1].map(|place| Bits::new(1, 64 * n, columns(protocol, &operand(place))));
            let mut products = protocol.and_all(&[Join::new(&x, vec![&y])])?;
            of_bits(products.swap_remove(0))
        }
        Joint::Choose => {
            let bit = lowest_bits(protocol, &operand(0), 1);
            let x = columns(protocol, &operand(1));
            written(protocol, n, |protocol, out| {
                protocol.bit_multiply(&bit, &slices(&x), out)
            })?
        }
        Joint::Sign => {
            let x = columns(protocol, &operand(0));
            let bits = protocol.sign(&slices(&x), 64)?;
            gathered(&bits)
        }
        Joint::IsZero => {
            let x = columns(protocol, &operand(0));
            let bits = protocol.equal_zero(&slices(&x), 64)?;
            gathered(&bits)
        }
        Joint::ToBinary(width) => {
            let x = columns(protocol, &operand(0));
            let bits = protocol.to_binary(&slices(&x), width as usize)?;
            gathered(&bits)
        }
        Joint::ToArithmetic(width, signed) => {
            let worth = |place: u32| {
                let worth = 1_u64 << place;
                if signed && place + 1 == width {
                    worth.wrapping_neg()
                } else {
                    worth
                }
            };
            weighed(protocol, &operand(0), width, worth)?
        }
        Joint::Truncate(bits) => {
            let x = columns(protocol, &operand(0));
            let shift = Shift::new(bits).expect("1 to 61 bits are dropped");
            written(protocol, n, |protocol, out| {
                protocol.truncate(&slices(&x), shift, out)
            })?
        }
        Joint::Population => weighed(protocol, &operand(0), 64, |_| 1)?,
    };
    for (planned, components) in steps.iter().zip(results) {
        planned.target.0.keep(planned.target.1, components);
    }
    Ok(())
}

/// The sum of what a binary form's low bits are worth.
fn weighed(
    protocol: &mut dyn Protocol,
    words: &[Components],
    width: u32,
    worth: impl Fn(u32) -> u64,
) -> Result<Vec<Components>> {
    let bits = lowest_bits(protocol, words, width);
    let count = words.len() * width as usize;
    let places = written(protocol, count, |protocol, out| {
        protocol.bit_to_ring(&bits, out)
    })?;
    let sum = |of_word: &[Components]| {
        let mut sum = Components::default();
        for (place, components) in of_word.iter().enumerate() {
            let scaled = Local::Scale(worth(place as u32)).on(&[*components]);
            sum = Local::Add.on(&[sum, scaled]);
        }
        sum
    };
    Ok(places.chunks(width as usize).map(sum).collect())
}

/// The low bits of words, one word's after another's, as one plane.
fn lowest_bits(protocol: &dyn Protocol, words: &[Components], width: u32) -> Bits {
    let n = words.len() * width as usize;
    let component = |part: usize| {
        let mut plane = vec![0; n.div_ceil(64)];
        let each = words
            .iter()
            .flat_map(|word| (0..width).map(move |place| word[part] >> place & 1));
        for (at, bit) in each.enumerate() {
            plane[at / 64] |= bit << (at % 64);
        }
        plane
    };
    Bits::new(1, n, (0..protocol.parts()).map(component).collect())
}

/// Words of their bits in planes, the lowest first.
fn gathered(bits: &Bits) -> Vec<Components> {
    let stride = bits.stride();
    let word = |at: usize| {
        let mut components = Components::default();
        for (component, part) in components.iter_mut().zip(bits.parts()) {
            let planes = part.chunks(stride).enumerate();
            *component = planes
                .map(|(place, plane)| (plane[at / 64] >> (at % 64) & 1) << place)
                .sum();
        }
        components
    };
    (0..bits.len()).map(word).collect()
}

/// Words that lie in one plane.
fn of_bits(bits: Bits) -> Vec<Components> {
    rows(&bits.into_parts())
}

/// What an operation writes, word by word.
fn written(
    protocol: &mut dyn Protocol,
    n: usize,
    write: impl FnOnce(&mut dyn Protocol, mpc::PartsMut) -> Result<()>,
) -> Result<Vec<Components>> {
    let mut parts = vec![vec![0; n]; protocol.parts()];
    let mut out: Vec<&mut [u64]> = parts.iter_mut().map(Vec::as_mut_slice).collect();
    write(protocol, &mut out)?;
    Ok(rows(&parts))
}

fn rows(parts: &[Vec<u64>]) -> Vec<Components> {
    let row = |at: usize| {
        let mut row = Components::default();
        for (component, part) in row.iter_mut().zip(parts) {
            *component = part[at];
        }
        row
    };
    (0..parts[0].len()).map(row).collect()
}

fn columns(protocol: &dyn Protocol, rows: &[Components]) -> Vec<Vec<u64>> {
    let column = |part: usize| rows.iter().map(|row| row[part]).collect();
    (0..protocol.parts()).map(column).collect()
}

fn slices(parts: &[Vec<u64>]) -> Vec<&[u64]> {
    parts.iter().map(Vec::as_slice).collect()
}
