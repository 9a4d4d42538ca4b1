//! Which steps are wanted, and in which order: all that are ready begin, those of one kind as one call, and those of
//! different kinds side by side ([`mpc::Protocol::side_by_side`]), so that rounds are those of the longest chain of
//! steps. Long products are done as [`super::trees`].

use super::node::{Components, Form, Node, Word};
use super::operations::{Batch, Publics, operands};
use super::steps::{Kind, Step, Work, product_of, step};
use super::trees;
use mpc::{Lane, Protocol, Result};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::mpsc::channel;

/// A word that is to have a form.
pub type Wanted = (Rc<Node>, Form);

/// A word by where it lies, while somebody holds it.
pub type Key = (*const Node, Form);

/// A step that is wanted.
struct Task {
    /// What it computes.
    target: Wanted,
    /// What it does.
    step: Step,
    /// How many others it waits for.
    waits: usize,
    /// Which others wait for it.
    after: Vec<usize>,
    /// Rounds that it takes.
    rounds: u64,
    /// Rounds until it is done.
    depth: u64,
}

/// What a form of a word takes, before what that needs was looked at.
enum Plan {
    /// One step.
    Step(Step),
    /// The product of many words, in that form.
    Product(Vec<Word>),
}

/// The steps that are wanted so far.
struct Tasks<'p> {
    /// Whose rounds they take.
    protocol: &'p dyn Protocol,
    all: Vec<Task>,
    /// Where the step of a word is, if it needs one.
    known: HashMap<Key, Option<usize>>,
}

/// Computes forms of words, and what they depend on.
///
/// # Errors
/// What the links meet.
pub fn compute(protocol: &mut dyn Protocol, wanted: &[Wanted]) -> Result<()> {
    let publics = Publics::of(protocol);
    let (give, ended) = channel();
    let mut schedule = Schedule::new(publics, plan(protocol, wanted));
    protocol.side_by_side(&mut || {
        let all = ended.try_iter();
        all.for_each(|(steps, results)| schedule.keep(steps, results));
        let lane = |(steps, batch): (Vec<usize>, Batch)| -> Lane {
            let give = give.clone();
            Box::new(move |protocol| {
                let results = batch.carry_out(protocol)?;
                // Whoever asked is there until all lanes have ended.
                let _ = give.send((steps, results));
                Ok(())
            })
        };
        schedule.ready().into_iter().map(lane).collect()
    })
}

/// Rounds of the longest chain of steps that words wait for.
pub fn longest(protocol: &dyn Protocol, wanted: &[Wanted]) -> u64 {
    let depths = plan(protocol, wanted).into_iter().map(|task| task.depth);
    depths.max().unwrap_or(0)
}

/// What is to be done, and what of it can be.
struct Schedule {
    publics: Publics,
    tasks: Vec<Task>,
    /// Steps that wait for nothing, by kind and rounds: a narrow comparison does not wait for a wide one.
    ready: BTreeMap<(Kind, u64), Vec<usize>>,
}

impl Schedule {
    fn new(publics: Publics, tasks: Vec<Task>) -> Self {
        let first: Vec<usize> = (0..tasks.len())
            .filter(|at| tasks[*at].waits == 0)
            .collect();
        let mut schedule = Self {
            publics,
            tasks,
            ready: BTreeMap::new(),
        };
        let mut done = Vec::new();
        first.iter().for_each(|at| schedule.begin(*at, &mut done));
        schedule.follow(done);
        schedule
    }

    /// All steps that are ready, those of a kind together, in the order of the program.
    fn ready(&mut self) -> Vec<(Vec<usize>, Batch)> {
        let kinds = std::mem::take(&mut self.ready).into_values();
        let batch = |mut steps: Vec<usize>| {
            steps.sort_unstable();
            let batch = steps.iter().map(|at| &self.tasks[*at].step);
            let batch = Batch::of(&self.publics, batch);
            (steps, batch)
        };
        kinds.map(batch).collect()
    }

    /// What steps have computed.
    fn keep(&mut self, steps: Vec<usize>, results: Vec<Components>) {
        for (at, components) in steps.iter().zip(results) {
            let (node, form) = &self.tasks[*at].target;
            node.keep(*form, components);
        }
        self.follow(steps);
    }

    /// What waits for steps that are done.
    fn follow(&mut self, mut done: Vec<usize>) {
        while let Some(at) = done.pop() {
            for next in std::mem::take(&mut self.tasks[at].after) {
                self.tasks[next].waits -= 1;
                if self.tasks[next].waits == 0 {
                    self.begin(next, &mut done);
                }
            }
        }
    }

    /// What is local is done, what is not waits for others of its kind.
    fn begin(&mut self, at: usize, done: &mut Vec<usize>) {
        let Task {
            target,
            step,
            rounds,
            ..
        } = &self.tasks[at];
        match step.work {
            Work::Joint(joint) => {
                let kind = (joint.kind(), *rounds);
                self.ready.entry(kind).or_default().push(at);
            }
            Work::Local(local) => {
                let (node, form) = target;
                node.keep(*form, local.on(&operands(&self.publics, step)));
                done.push(at);
            }
        }
    }
}

/// All steps that are needed, each after those that it needs.
fn plan(protocol: &dyn Protocol, wanted: &[Wanted]) -> Vec<Task> {
    let mut tasks = Tasks {
        protocol,
        all: Vec::new(),
        known: HashMap::new(),
    };
    // Words to look at; with their step when what they need was looked at.
    let mut left: Vec<(Wanted, Option<Plan>)> = wanted
        .iter()
        .rev()
        .map(|wanted| (wanted.clone(), None))
        .collect();
    while let Some((target, ready)) = left.pop() {
        let key = key(&target);
        if tasks.known.contains_key(&key) {
            continue;
        }
        if target.0.computed(target.1).is_some() {
            tasks.known.insert(key, None);
            continue;
        }
        match ready {
            None => {
                let plan = match trees::factors(&target.0, target.1) {
                    Some(factors) => Plan::Product(factors),
                    None => Plan::Step(with_other_form(&target)),
                };
                let needs: Vec<_> = plan
                    .secrets(target.1)
                    .map(|needed| (needed, None))
                    .collect();
                left.push((target, Some(plan)));
                left.extend(needs);
            }
            Some(Plan::Step(step)) => {
                tasks.add(target, step);
            }
            Some(Plan::Product(factors)) => tasks.add_product(target, factors),
        }
    }
    tasks.all
}

impl Tasks<'_> {
    /// A step after those that it needs; after how many rounds it is done.
    fn add(&mut self, target: Wanted, step: Step) -> u64 {
        let at = self.all.len();
        let (mut waits, mut depth) = (0, 0);
        for needed in secrets(&step) {
            if let Some(before) = self.known[&key(&needed)] {
                self.all[before].after.push(at);
                waits += 1;
                depth = depth.max(self.all[before].depth);
            }
        }
        let rounds = step.rounds(self.protocol);
        depth += rounds;
        self.known.insert(key(&target), Some(at));
        self.all.push(Task {
            target,
            step,
            waits,
            after: Vec::new(),
            rounds,
            depth,
        });
        depth
    }

    /// A product, by those of pairs of its factors.
    fn add_product(&mut self, target: Wanted, factors: Vec<Word>) {
        let form = target.1;
        let depth = |word: &Word| match word {
            Word::Public(_) => 0,
            Word::Secret(node) => {
                self.known[&key(&(node.clone(), form))].map_or(0, |before| self.all[before].depth)
            }
        };
        let factors = factors.into_iter().map(|word| (depth(&word), word));
        let factors = factors.collect();
        let last = trees::joined(form, factors, |product, pair| match product {
            Word::Public(_) => 0,
            Word::Secret(node) => {
                let step = product_of(form, node.facts, pair);
                self.add((node.clone(), form), step)
            }
        });
        let step = product_of(form, target.0.facts, last);
        self.add(target, step);
    }
}

impl Plan {
    /// What is needed first.
    fn secrets(&self, form: Form) -> Box<dyn Iterator<Item = Wanted> + '_> {
        match self {
            Self::Step(step) => Box::new(secrets(step)),
            Self::Product(factors) => {
                let secret = move |word: &Word| match word {
                    Word::Public(_) => None,
                    Word::Secret(node) => Some((node.clone(), form)),
                };
                Box::new(factors.iter().filter_map(secret))
            }
        }
    }
}

fn key((node, form): &Wanted) -> Key {
    (Rc::as_ptr(node), *form)
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
