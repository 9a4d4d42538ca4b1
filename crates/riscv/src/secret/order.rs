//! Which steps are wanted, and in which order: of those that are ready, all of one kind at once, and first of
//! the kind on which the longest chain of others waits. Long products are done as [`super::trees`].

use super::node::{Form, Node, Word};
use super::operations::{carry_out, operands};
use super::steps::{Kind, Step, Work, product_of, step};
use super::trees;
use mpc::{Protocol, Result};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

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
    /// Rounds until it is done.
    depth: usize,
    /// Rounds until all that waits for it is done.
    height: usize,
}

/// What a form of a word takes, before what that needs was looked at.
enum Plan {
    /// One step.
    Step(Step),
    /// The product of many words, in that form.
    Product(Vec<Word>),
}

/// The steps that are wanted so far.
#[derive(Default)]
struct Tasks {
    all: Vec<Task>,
    /// Where the step of a word is, if it needs one.
    known: HashMap<Key, Option<usize>>,
}

/// Computes forms of words, and what they depend on.
///
/// # Errors
/// What the links meet.
pub fn compute(protocol: &mut dyn Protocol, wanted: &[Wanted]) -> Result<()> {
    let mut tasks = plan(wanted);
    let mut ready: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
    let mut done: Vec<usize> = Vec::new();
    for at in 0..tasks.len() {
        if tasks[at].waits == 0 {
            begin(protocol, &tasks, at, &mut ready, &mut done);
        }
    }
    loop {
        while let Some(at) = done.pop() {
            for next in std::mem::take(&mut tasks[at].after) {
                tasks[next].waits -= 1;
                if tasks[next].waits == 0 {
                    begin(protocol, &tasks, next, &mut ready, &mut done);
                }
            }
        }
        let height = |of: &Vec<usize>| of.iter().map(|at| tasks[*at].height).max();
        let Some(kind) = ready
            .iter()
            .max_by_key(|(_, of)| height(of))
            .map(|(kind, _)| *kind)
        else {
            return Ok(());
        };
        done = ready.remove(&kind).unwrap_or_default();
        // In the order of the program.
        done.sort_unstable();
        let steps: Vec<&Step> = done.iter().map(|at| &tasks[*at].step).collect();
        let results = carry_out(protocol, &steps)?;
        for (at, components) in done.iter().zip(results) {
            let (node, form) = &tasks[*at].target;
            node.keep(*form, components);
        }
    }
}

/// What is local is done, what is not waits for others of its kind.
fn begin(
    protocol: &dyn Protocol,
    tasks: &[Task],
    at: usize,
    ready: &mut BTreeMap<Kind, Vec<usize>>,
    done: &mut Vec<usize>,
) {
    let Task { target, step, .. } = &tasks[at];
    match step.work {
        Work::Joint(joint) => ready.entry(joint.kind()).or_default().push(at),
        Work::Local(local) => {
            let (node, form) = target;
            node.keep(*form, local.on(&operands(protocol, step)));
            done.push(at);
        }
    }
}

/// All steps that are needed, each after those that it needs.
fn plan(wanted: &[Wanted]) -> Vec<Task> {
    let mut tasks = Tasks::default();
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
    let mut tasks = tasks.all;
    for at in (0..tasks.len()).rev() {
        let after = tasks[at].after.iter().map(|next| tasks[*next].height);
        tasks[at].height = tasks[at].step.rounds() + after.max().unwrap_or(0);
    }
    tasks
}

impl Tasks {
    /// A step after those that it needs; after how many rounds it is done.
    fn add(&mut self, target: Wanted, step: Step) -> usize {
        let at = self.all.len();
        let (mut waits, mut depth) = (0, 0);
        for needed in secrets(&step) {
            if let Some(before) = self.known[&key(&needed)] {
                self.all[before].after.push(at);
                waits += 1;
                depth = depth.max(self.all[before].depth);
            }
        }
        depth += step.rounds();
        self.known.insert(key(&target), Some(at));
        self.all.push(Task {
            target,
            step,
            waits,
            after: Vec::new(),
            depth,
            height: 0,
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
