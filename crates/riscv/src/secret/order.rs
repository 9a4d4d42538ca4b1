//! Which steps are wanted, and in which order: of those that are ready, all of one kind at once, and first of
//! the kind on which the longest chain of others waits.

use super::node::{Form, Node, Word};
use super::operations::{carry_out, operands};
use super::steps::{Kind, Step, Work, step};
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
    /// Rounds until all that waits for it is done.
    height: usize,
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
    // Where the step of a word is, if it needs one.
    let mut known: HashMap<Key, Option<usize>> = HashMap::new();
    let mut tasks: Vec<Task> = Vec::new();
    // Words to look at; with their step when what they need was looked at.
    let mut left: Vec<(Wanted, Option<Step>)> = wanted
        .iter()
        .rev()
        .map(|wanted| (wanted.clone(), None))
        .collect();
    while let Some((target, ready)) = left.pop() {
        let key = (Rc::as_ptr(&target.0), target.1);
        if known.contains_key(&key) {
            continue;
        }
        if target.0.computed(target.1).is_some() {
            known.insert(key, None);
            continue;
        }
        let Some(step) = ready else {
            let step = with_other_form(&target);
            let needs: Vec<_> = secrets(&step).map(|needed| (needed, None)).collect();
            left.push((target, Some(step)));
            left.extend(needs);
            continue;
        };
        let at = tasks.len();
        let mut waits = 0;
        for (node, form) in secrets(&step) {
            if let Some(before) = known[&(Rc::as_ptr(&node), form)] {
                tasks[before].after.push(at);
                waits += 1;
            }
        }
        known.insert(key, Some(at));
        tasks.push(Task {
            target,
            step,
            waits,
            after: Vec::new(),
            height: 0,
        });
    }
    for at in (0..tasks.len()).rev() {
        let rounds = match tasks[at].step.work {
            Work::Local(_) => 0,
            Work::Joint(joint) => joint.rounds(),
        };
        let after = tasks[at].after.iter().map(|next| tasks[*next].height);
        tasks[at].height = rounds + after.max().unwrap_or(0);
    }
    tasks
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
