//! Which steps are needed, and in which order. All that are ready begin, those of one kind as one
//! call, and those of different kinds side by side ([`mpc::Protocol::side_by_side`]), so the number
//! of rounds is that of the longest chain of steps. Long chains are handled by [`super::trees`],
//! sums of products by [`super::sums`].

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

/// A step that is wanted.
struct Task {
    /// What it computes.
    target: Wanted,
    /// What it does.
    step: Step,
    /// How many others it waits for.
    waits: usize,
    /// The last of [`Tasks::waiting`] that waits for it.
    after: usize,
    /// Rounds that it takes.
    rounds: u64,
    /// Rounds until it is done.
    depth: u64,
}

/// A step that waits for another.
struct Waiting {
    step: usize,
    /// The one before that waits for the same.
    before: usize,
}

/// Before the first that waits.
const NONE: usize = usize::MAX;

/// What a form of a word takes, before what that needs was looked at.
enum Plan {
    /// One step.
    Step(Step),
    /// The last link of a chain.
    Chain(Join, Vec<Word>),
    /// A sum of many.
    Sum(Sum),
}

/// The steps that are wanted so far.
struct Tasks<'p> {
    /// Whose rounds they take.
    protocol: &'p dyn Protocol,
    all: Vec<Task>,
    /// What waits for them: one list for all, since most steps have few.
    waiting: Vec<Waiting>,
    /// What is claimed of them, and what depends on which.
    claims: Claims,
    reached: &'p Reached,
    /// Whose claims are made now.
    owner: Owner,
}

/// Computes forms of words, and what they depend on; what is claimed of that.
///
/// # Errors
/// What the links meet.
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
                // Whoever asked is there until all fibers have ended.
                let _ = give.send((steps, results));
                Ok(())
            })
        };
        ready.into_iter().map(fiber).collect()
    })?;
    Ok(claims)
}

/// What computing forms of words costs, as it is declared: the rounds of the longest chain of steps
/// that they wait for, and the bits of all, each of which begins as soon as what it waits for is
/// there, together with others of its kind.
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

/// What is to be done, and what of it can be.
struct Schedule {
    publics: Publics,
    tasks: Vec<Task>,
    waiting: Vec<Waiting>,
    /// Steps that wait for nothing, by kind and rounds: a narrow comparison does not wait for a
    /// wide one.
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

    /// All steps that are ready, those of a kind together, in the order of the program.
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

    /// Of which place most of these steps are.
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
                node.keep(*form, local.on(&self.publics.two(step)));
                done.push(at);
            }
        }
    }
}

/// All steps that are needed, each after those that it needs.
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
    // What is claimed of numbers is found out by their sums: most have that form.
    let held = tasks.claims.held();
    tasks.reach(&held);
    tasks
}

impl Tasks<'_> {
    /// The steps of words, and of what they need that is not known.
    fn reach(&mut self, wanted: &[Wanted]) {
        let (place, claim, owner) = (set_place(0), watch::set_claim(0), self.owner);
        self.reach_all(wanted);
        set_place(place);
        watch::set_claim(claim);
        self.owner = owner;
    }

    fn reach_all(&mut self, wanted: &[Wanted]) {
        // Words to look at, with whom they reach where the graph does not say it, and with their
        // plan when what they need was looked at.
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
            // What is made for it is of its place, and reaches whom it does.
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

    /// Where the step of a form of a word is, if it has one here. The word says where to look; what
    /// it says of another plan is not believed (the sparse sets of Briggs and Torczon, 1993).
    fn step_of(&self, node: &Rc<Node>, form: Form) -> Option<usize> {
        let at = node.step(form);
        let (target, of) = &self.all.get(at)?.target;
        (Rc::ptr_eq(target, node) && *of == form).then_some(at)
    }

    /// Whether a form of a word is there, or has its step.
    fn has(&self, node: &Rc<Node>, form: Form) -> bool {
        self.step_of(node, form).is_some() || node.computed(form).is_some()
    }

    /// After how many rounds a form of a word is there.
    fn depth(&self, (node, form): &Wanted) -> u64 {
        debug_assert!(self.has(node, *form), "what is needed was reached");
        self.step_of(node, *form)
            .map_or(0, |before| self.all[before].depth)
    }

    /// A step after those that it needs, and what is claimed of it where it is checked; after how
    /// many rounds it is done.
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

    /// The last link of a chain, by those of pairs of its members.
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
                // It may be there in another form than the one that is wanted.
                if let Word::Secret(node) = &link {
                    self.reach(&[(node.clone(), target.1)]);
                }
                same(link, target.1)
            }
            Join::And | Join::Product => product_of(target.1, target.0.facts, last),
        };
        self.add(target, step);
    }

    /// A sum, of what is there and of products, and of sums that are rounded.
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

    /// The terms, of which all products are one.
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

    /// The sum of all, each of which is held so that this has a word.
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

    /// What a step of its own computes, of which whoever asks makes the claims.
    fn planned(&mut self, step: Step, size: Size) -> Word {
        let node = Node::planned(size);
        self.add((node.clone(), Form::Arithmetic), step);
        Word::Secret(node)
    }
}

impl Plan {
    /// What a form of a word takes.
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
        Self::Step(match trees::meant(node, *form) {
            Some(word) => same(word, *form),
            None => with_other_form(node, *form),
        })
    }

    /// What is needed first.
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

/// The step of a form; a conversion takes the word itself in its other form.
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
