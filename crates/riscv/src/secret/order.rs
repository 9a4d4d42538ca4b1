//! Which steps are needed, and in which order. All steps that are ready begin: those of one kind as
//! one call, and those of different kinds side by side ([`mpc::Protocol::side_by_side`]). The
//! number of rounds is therefore that of the longest chain of steps. Long chains are handled by
//! [`super::trees`], sums of products by [`super::sums`].

use super::claims::{Claims, Owner, Reached};
use super::costs;
use super::node::{Components, Form, Node, Wanted, Word, set_place};
use super::operations::{self, Batch, Publics};
use super::size::{self, Size};
use super::steps::{Joint, Kind, Local, Step, Work};
use super::steps::{local, product_of, same, step, sum_of_products};
use super::sums::{self, Sum, Summand, Terms};
use super::trees::{self, Join};
use super::watch;
use mpc::{Cost, Fiber, Protocol, Result};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::mpsc::channel;

/// A planned step.
struct Task {
    /// The word and form that it computes.
    target: Wanted,
    /// The step itself.
    step: Step,
    /// The number of unfinished steps that it waits for.
    waits: usize,
    /// The last entry of [`Tasks::waiting`] that waits for this step.
    after: usize,
    /// The rounds that the step takes.
    rounds: u64,
    /// The round after which it is done.
    depth: u64,
}

/// A step that waits for another.
struct Waiting {
    step: usize,
    /// The previous entry that waits for the same step.
    before: usize,
}

/// The end of a list of waiting steps.
const NONE: usize = usize::MAX;

/// The computation of a form of a word, before its operands are planned.
enum Plan {
    /// A single step.
    Step(Step),
    /// The last link of a chain.
    Chain(Join, Vec<Word>),
    /// A sum of many terms.
    Sum(Sum),
}

/// The steps that are planned so far.
struct Tasks<'p> {
    /// The protocol whose operations the steps use.
    protocol: &'p dyn Protocol,
    all: Vec<Task>,
    /// The waiting steps as linked lists in one vector, since most steps have few.
    waiting: Vec<Waiting>,
    /// The claims on the steps' words.
    claims: Claims,
    reached: &'p Reached,
    /// The owner of claims that are created now.
    owner: Owner,
}

/// Computes forms of words with all their dependencies. Returns the claims on them.
///
/// # Errors
/// The errors of the network links.
pub fn compute(
    protocol: &mut dyn Protocol,
    wanted: &[Wanted],
    reached: &Reached,
) -> Result<Claims> {
    let account = protocol.channel().set_account(0);
    let computed = compute_all(protocol, wanted, reached);
    protocol.channel().set_account(account);
    computed
}

fn compute_all(
    protocol: &mut dyn Protocol,
    wanted: &[Wanted],
    reached: &Reached,
) -> Result<Claims> {
    let publics = Publics::of(protocol);
    let (give, ended) = channel();
    let mut planned = plan(protocol, wanted, reached);
    let claims = std::mem::take(&mut planned.claims);
    let mut schedule = Schedule::new(publics, planned);
    protocol.side_by_side(&mut || {
        let all = ended.try_iter();
        all.for_each(|(steps, results)| schedule.keep(steps, results));
        let ready = schedule.ready();
        let fiber = |(steps, batch): (Vec<usize>, Batch)| -> Fiber {
            let (give, place) = (give.clone(), schedule.place(&steps));
            Box::new(move |protocol| {
                protocol.channel().set_account(place);
                let results = batch.carry_out(protocol)?;
                // The receiver lives until all fibers have ended.
                let _ = give.send((steps, results));
                Ok(())
            })
        };
        ready.into_iter().map(fiber).collect()
    })?;
    Ok(claims)
}

/// Returns the declared cost of computing forms of words: the rounds of the longest chain of steps
/// that they wait for, and the bits of all steps. Each step begins as soon as its dependencies are
/// done, together with others of its kind.
pub fn cost(protocol: &dyn Protocol, wanted: &[Wanted]) -> Cost {
    let tasks = plan(protocol, wanted, &Reached::default()).all;
    let mut together: BTreeMap<(u64, Kind, u64), Vec<&Step>> = BTreeMap::new();
    for task in &tasks {
        if let Work::Joint(joint) = task.step.work {
            let began = task.depth - task.rounds;
            let kind = (began, joint.kind(), task.rounds);
            together.entry(kind).or_default().push(&task.step);
        }
    }
    let mut cost = Cost::default();
    for steps in together.values() {
        cost = cost.beside(operations::cost(protocol, steps));
    }
    let depths = tasks.iter().map(|task| task.depth);
    cost.rounds = depths.max().unwrap_or(0);
    cost
}

/// The remaining steps, and those of them that are ready.
struct Schedule {
    publics: Publics,
    tasks: Vec<Task>,
    waiting: Vec<Waiting>,
    /// The ready steps by kind and rounds, so that a narrow comparison does not wait for a wide
    /// one.
    ready: BTreeMap<(Kind, u64), Vec<usize>>,
}

impl Schedule {
    fn new(publics: Publics, planned: Tasks) -> Self {
        let Tasks {
            all: tasks,
            waiting,
            ..
        } = planned;
        let first: Vec<usize> = (0..tasks.len())
            .filter(|at| tasks[*at].waits == 0)
            .collect();
        let mut schedule = Self {
            publics,
            tasks,
            waiting,
            ready: BTreeMap::new(),
        };
        let mut done = Vec::new();
        first.iter().for_each(|at| schedule.begin(*at, &mut done));
        schedule.follow(done);
        schedule
    }

    /// Takes all steps that are ready, grouped by kind, in the order of the program.
    fn ready(&mut self) -> Vec<(Vec<usize>, Batch)> {
        let kinds = std::mem::take(&mut self.ready).into_values();
        let batches = |mut steps: Vec<usize>| {
            steps.sort_unstable();
            let placed: Vec<_> = steps
                .iter()
                .map(|at| (*at, &self.tasks[*at].step))
                .collect();
            Batch::of(&self.publics, &placed)
        };
        kinds.flat_map(batches).collect()
    }

    /// Returns the place that most of these steps belong to.
    fn place(&self, steps: &[usize]) -> u32 {
        let mut places: HashMap<u32, usize> = HashMap::new();
        for at in steps {
            *places.entry(self.tasks[*at].target.0.place).or_default() += 1;
        }
        let most = places
            .into_iter()
            .max_by_key(|(place, count)| (*count, *place));
        most.map_or(0, |(place, _)| place)
    }

    /// Stores the results of steps.
    fn keep(&mut self, steps: Vec<usize>, results: Vec<Components>) {
        for (at, components) in steps.iter().zip(results) {
            let (node, form) = &self.tasks[*at].target;
            node.keep(*form, components);
        }
        self.follow(steps);
    }

    /// Begins the steps that waited for finished ones.
    fn follow(&mut self, mut done: Vec<usize>) {
        while let Some(at) = done.pop() {
            let mut last = self.tasks[at].after;
            while let Some(&Waiting { step, before }) = self.waiting.get(last) {
                last = before;
                self.tasks[step].waits -= 1;
                if self.tasks[step].waits == 0 {
                    self.begin(step, &mut done);
                }
            }
        }
    }

    /// Executes a local step at once; queues a joint one with others of its kind.
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
                node.keep(*form, local.on(&self.publics.two(step)));
                done.push(at);
            }
        }
    }
}

/// Plans all steps that are needed, each after its dependencies.
fn plan<'p>(protocol: &'p dyn Protocol, wanted: &[Wanted], reached: &'p Reached) -> Tasks<'p> {
    let mut tasks = Tasks {
        protocol,
        all: Vec::new(),
        waiting: Vec::new(),
        claims: Claims::default(),
        reached,
        owner: Owner::default(),
    };
    tasks.reach(wanted);
    // Range checks use the arithmetic form, which most checked numbers have anyway.
    let held = tasks.claims.held();
    tasks.reach(&held);
    tasks
}

impl Tasks<'_> {
    /// Plans the steps of words, and of their dependencies that are not computed.
    fn reach(&mut self, wanted: &[Wanted]) {
        let (place, claim, owner) = (set_place(0), watch::set_claim(0), self.owner);
        self.reach_all(wanted);
        set_place(place);
        watch::set_claim(claim);
        self.owner = owner;
    }

    fn reach_all(&mut self, wanted: &[Wanted]) {
        // Words to visit. Each comes with the recipients that it reaches, if the graph does not
        // record them, and with its plan once its dependencies have been visited.
        let among = self.owner.among;
        let mut left: Vec<(Wanted, u64, Option<Plan>)> = wanted
            .iter()
            .rev()
            .map(|wanted| (wanted.clone(), among, None))
            .collect();
        while let Some((target, among, ready)) = left.pop() {
            if self.has(&target.0, target.1) {
                continue;
            }
            // Words that are created for the target take its place, claim and recipients.
            let among = self.reached.among(&target.0).unwrap_or(among);
            set_place(target.0.place);
            watch::set_claim(target.0.claim);
            self.owner = Owner {
                claim: target.0.claim,
                among,
            };
            match ready {
                None => {
                    let (at, plan) = (left.len(), Plan::of(&target));
                    left.push((target, among, None));
                    plan.secrets(|node, form| {
                        if !self.has(node, form) {
                            left.push(((node.clone(), form), among, None));
                        }
                    });
                    left[at].2 = Some(plan);
                }
                Some(Plan::Step(step)) => {
                    self.add(target, step);
                }
                Some(Plan::Chain(join, members)) => self.add_chain(target, join, members),
                Some(Plan::Sum(sum)) => self.add_sum(target, sum),
            }
        }
    }

    /// Returns the index of the step of a word's form in this plan, if there is one. The word
    /// stores an index, which may belong to another plan, so it is verified (the sparse sets of
    /// Briggs and Torczon, 1993).
    fn step_of(&self, node: &Rc<Node>, form: Form) -> Option<usize> {
        let at = node.step(form);
        let (target, of) = &self.all.get(at)?.target;
        (Rc::ptr_eq(target, node) && *of == form).then_some(at)
    }

    /// Returns whether a form of a word is computed, or has a step.
    fn has(&self, node: &Rc<Node>, form: Form) -> bool {
        self.step_of(node, form).is_some() || node.computed(form).is_some()
    }

    /// Returns the round after which a form of a word is ready.
    fn depth(&self, (node, form): &Wanted) -> u64 {
        debug_assert!(self.has(node, *form), "what is needed was reached");
        self.step_of(node, *form)
            .map_or(0, |before| self.all[before].depth)
    }

    /// Adds a step after its dependencies, with its claims if it is checked. Returns the round
    /// after which it is done.
    fn add(&mut self, target: Wanted, step: Step) -> u64 {
        if target.0.claim != 0 {
            self.claims.add(self.owner, &target.0, &step);
        }
        let at = self.all.len();
        let (mut waits, mut depth) = (0, 0);
        for (node, form) in secrets(&step) {
            debug_assert!(self.has(node, form), "what is needed was reached");
            if let Some(needed) = self.step_of(node, form) {
                let needed = &mut self.all[needed];
                let before = std::mem::replace(&mut needed.after, self.waiting.len());
                self.waiting.push(Waiting { step: at, before });
                waits += 1;
                depth = depth.max(needed.depth);
            }
        }
        let rounds = costs::rounds(self.protocol, &step);
        depth += rounds;
        target.0.set_step(target.1, at);
        self.all.push(Task {
            target,
            step,
            waits,
            after: NONE,
            rounds,
            depth,
        });
        depth
    }

    /// Adds the last link of a chain, and the links between pairs of its members.
    fn add_chain(&mut self, target: Wanted, join: Join, members: Vec<Word>) {
        let rounds = |tasks: &mut Self, word: &Word| match word {
            Word::Public(_) => 0,
            Word::Secret(node) => {
                let wanted = (node.clone(), join.form(word));
                tasks.reach(std::slice::from_ref(&wanted));
                tasks.depth(&wanted)
            }
        };
        let members = members.into_iter();
        let members = members.map(|word| (rounds(self, &word), word)).collect();
        let last = trees::joined(join, members, |link| rounds(self, link));
        let step = match join {
            Join::Extreme(_) => {
                let link = join.of([&last[0], &last[1]]);
                // The link may be available in another form than the requested one.
                if let Word::Secret(node) = &link {
                    self.reach(&[(node.clone(), target.1)]);
                }
                same(link, target.1)
            }
            Join::And | Join::Product => product_of(target.1, target.0.facts, last),
        };
        self.add(target, step);
    }

    /// Adds a sum of words, of products, and of sums that are truncated.
    fn add_sum(&mut self, target: Wanted, sum: Sum) {
        let mut summands = self.summands(sum.whole);
        for (bits, terms) in sum.cut {
            let summands_of_cut = self.summands(terms);
            let whole = self.total(summands_of_cut);
            let size = size::truncated(whole.size(), bits);
            self.claims.hold_truncated(self.owner, &whole);
            let step = Step {
                work: Work::Joint(Joint::Truncate(bits)),
                needs: vec![(whole, Form::Arithmetic)],
            };
            summands.push((false, self.planned(step, size)));
        }
        let total = self.total(summands);
        self.add(target, same(total, Form::Arithmetic));
    }

    /// Returns the terms of a sum, with all products combined into one sum of products.
    fn summands(&mut self, terms: Terms) -> Vec<Summand> {
        let mut summands = terms.others;
        for (negative, products) in [false, true].into_iter().zip(terms.products) {
            if !products.is_empty() {
                let size =
                    size::of_products(products.iter().map(|pair| pair.each_ref().map(Word::size)));
                let step = sum_of_products(products);
                let sum = self.planned(step.clone(), size::held(size));
                self.claims.add_products(self.owner, &sum, step, size);
                summands.push((negative, sum));
            }
        }
        summands
    }

    /// Adds up all terms. Each is range-checked such that the sum does not overflow.
    fn total(&mut self, summands: Vec<Summand>) -> Word {
        let mut sum = Word::Public(0);
        self.claims
            .hold_summands(self.owner, summands.iter().map(|(_, word)| word));
        for (at, (negative, word)) in summands.into_iter().enumerate() {
            let size = size::of_sum([sum.size(), word.size()].into_iter());
            sum = match negative {
                false if at == 0 => word,
                false => self.planned(local(Local::Add, [sum, word]), size),
                true => self.planned(local(Local::Subtract, [sum, word]), size),
            };
        }
        sum
    }

    /// Adds a step for a new word. The caller creates its claims.
    fn planned(&mut self, step: Step, size: Size) -> Word {
        let node = Node::planned(size);
        self.add((node.clone(), Form::Arithmetic), step);
        Word::Secret(node)
    }
}

impl Plan {
    /// Returns the plan of a form of a word.
    fn of((node, form): &Wanted) -> Self {
        if let Some((join, members)) = trees::chain(node, *form) {
            return Self::Chain(join, members);
        }
        if let Some(sum) = (*form == Form::Arithmetic)
            .then(|| sums::sum(node))
            .flatten()
        {
            return Self::Sum(sum);
        }
        Self::Step(match trees::expanded(node, *form) {
            Some(word) => same(word, *form),
            None => with_other_form(node, *form),
        })
    }

    /// Visits the dependencies.
    fn secrets(&self, mut each: impl FnMut(&Rc<Node>, Form)) {
        let mut secret = |word: &Word, form| {
            if let Word::Secret(node) = word {
                each(node, form);
            }
        };
        match self {
            Self::Step(step) => secrets(step).for_each(|(node, form)| each(node, form)),
            Self::Chain(join, members) => members
                .iter()
                .for_each(|word| secret(word, join.form(word))),
            Self::Sum(sum) => sum.words().for_each(|word| secret(word, Form::Arithmetic)),
        }
    }
}

/// Returns the step of a form. A conversion takes the same word in its other form.
fn with_other_form(node: &Rc<Node>, form: Form) -> Step {
    let mut step = step(node, form);
    if step.needs.is_empty() {
        let other = match form {
            Form::Arithmetic => Form::Binary,
            Form::Binary => Form::Arithmetic,
        };
        step.needs.push((Word::Secret(node.clone()), other));
    }
    step
}

fn secrets(step: &Step) -> impl Iterator<Item = (&Rc<Node>, Form)> {
    step.needs.iter().filter_map(|(word, form)| match word {
        Word::Public(_) => None,
        Word::Secret(node) => Some((node, *form)),
    })
}
