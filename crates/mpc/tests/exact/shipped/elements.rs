//! Operands of many elements, and the model's results for them one by one.

use super::operations::Model;
use super::parties::Ran;
use super::streams::Element;
use crate::model::additive::of_share;
use crate::model::replicated::of_component;
use crate::model::{Holders, Shared, Value, World};
use kernels::pack::{pack_low, packed_words};
use std::collections::{BTreeMap, HashMap};
use testkit::Random;

/// Messages between parties: the frames from one party to another, sorted.
pub type Frames = BTreeMap<[usize; 2], Vec<Vec<u64>>>;

/// Components of two words and two bits for each element: arbitrary shares.
pub struct Elements<const N: usize> {
    pub n: usize,
    pub words: [[Vec<u64>; N]; 2],
    pub bits: [[Vec<u64>; N]; 2],
}

/// The operands of one element.
pub struct Operands<const N: usize> {
    pub x: Shared<N>,
    pub y: Shared<N>,
    pub b: Shared<N>,
    pub c: Shared<N>,
}

/// The outputs and messages of the model, for all elements.
pub struct Modelled<const N: usize> {
    pub outputs: [Vec<Vec<u64>>; N],
    pub frames: Frames,
}

impl<const N: usize> Elements<N> {
    pub fn new(n: usize) -> Self {
        let mut random = Random::new(n as u64);
        let mut components = || std::array::from_fn(|_| random.words(n));
        let words = [components(), components()];
        let mut bits = [components(), components()];
        bits.iter_mut()
            .flatten()
            .flatten()
            .for_each(|bit| *bit &= 1);
        Self { n, words, bits }
    }

    /// Component i of an element is component i + run of the parties.
    fn operands(&self, at: usize, run: usize, known: fn(usize) -> Holders) -> Operands<N> {
        let of = |components: &[Vec<u64>; N], width: u32| {
            std::array::from_fn(|i| Value::new(components[(i + run) % N][at], width, known(i)))
        };
        Operands {
            x: of(&self.words[0], 64),
            y: of(&self.words[1], 64),
            b: of(&self.bits[0], 1),
            c: of(&self.bits[1], 1),
        }
    }
}

/// The part of a frame that belongs to one element.
type Payload = Vec<Value>;

/// Runs the model on every element, and assembles its messages as they travel.
pub fn modelled<const N: usize>(
    elements: &Elements<N>,
    ran: &Ran<N>,
    model: Model<N>,
) -> Modelled<N> {
    let known = if ran.is_replicated {
        of_component
    } else {
        of_share
    };
    let n = elements.n;
    let runs = if ran.is_turned { 3 } else { 1 };
    let mut outputs: [Vec<Vec<u64>>; N] = std::array::from_fn(|_| Vec::new());
    let mut frames = Frames::new();
    let mut ranges = ran.ranges.take();
    let mut dealt = HashMap::new();
    for run in 0..runs {
        let of_run = n / runs;
        let mut parts = Parts::new();
        for at_run in 0..of_run {
            let at = run * of_run + at_run;
            let first = Element::first(&mut ranges, &mut dealt, n);
            let mut tape = Element {
                at,
                run,
                of_run,
                at_run,
                ..first
            };
            let mut world = World::new(64, 4, &mut tape);
            let shares = model(&mut world, &elements.operands(at, run, known));
            for event in &world.events {
                if let Some([from, to, frame]) = event.sent {
                    let key = [(from + run) % N, (to + run) % N, frame];
                    put(&mut parts, key, at_run, event.value);
                }
            }
            for (i, output) in outputs.iter_mut().enumerate() {
                output.resize(shares.len(), vec![0; n]);
                for (output, share) in output.iter_mut().zip(&shares) {
                    output[at] = share[(i + N - run) % N].bits();
                }
            }
        }
        add(&mut frames, &parts);
    }
    Modelled {
        outputs,
        frames: sorted(frames),
    }
}

/// Frames of a step, by sender, receiver and number.
type Parts = BTreeMap<[usize; 3], Vec<Payload>>;

/// Runs a model of many elements at once ([`World::each`]), and assembles its messages as they
/// travel. The model outputs a share of each element of one position.
pub fn modelled_at_once<const N: usize>(
    ran: &Ran<N>,
    model: impl FnOnce(&mut World) -> Vec<Shared<N>>,
) -> Modelled<N> {
    let (mut ranges, mut dealt) = (ran.ranges.take(), HashMap::new());
    let mut tape = Element::first(&mut ranges, &mut dealt, 1);
    let mut world = World::new(64, 4, &mut tape);
    let shares = model(&mut world);
    let outputs =
        std::array::from_fn(|i| vec![shares.iter().map(|share| share[i].bits()).collect()]);
    let mut parts = Parts::new();
    for event in &world.events {
        if let Some(key) = event.sent {
            put(&mut parts, key, event.element, event.value);
        }
    }
    let mut frames = Frames::new();
    add(&mut frames, &parts);
    Modelled {
        outputs,
        frames: sorted(frames),
    }
}

fn put(parts: &mut Parts, key: [usize; 3], element: usize, value: Value) {
    let elements = parts.entry(key).or_default();
    elements.resize(element + 1, Vec::new());
    elements[element].push(value);
}

fn add(frames: &mut Frames, parts: &Parts) {
    for ([from, to, _], elements) in parts {
        let frames = frames.entry([*from, *to]).or_default();
        // Elements of the other half may be in no frame of this number and sender.
        let elements = elements.iter().filter(|part| !part.is_empty());
        frames.push(travelling(&elements.collect::<Vec<_>>()));
    }
}

fn sorted(mut frames: Frames) -> Frames {
    frames
        .values_mut()
        .for_each(|frames| frames.sort_unstable());
    frames
}

/// Assembles a frame of all elements: words one after another, fewer bits packed, and planes of
/// bits without gaps.
fn travelling(elements: &[&Payload]) -> Vec<u64> {
    let mut frame = Vec::new();
    let mut bits = Vec::new();
    for at in 0..elements[0].len() {
        let width = elements[0][at].width();
        let values = elements.iter().map(|part| part[at].bits());
        if width == 1 {
            bits.extend(values);
            continue;
        }
        frame.extend(packed(&std::mem::take(&mut bits), 1));
        frame.extend(packed(&values.collect::<Vec<_>>(), width));
    }
    frame.extend(packed(&bits, 1));
    frame
}

fn packed(values: &[u64], width: u32) -> Vec<u64> {
    let mut words = vec![0; packed_words(values.len(), width)];
    pack_low(values, width, &mut words);
    words
}
