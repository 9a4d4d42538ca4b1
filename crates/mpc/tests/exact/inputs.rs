//! Shares of all operands, enumerated or chosen.

use crate::model::{Holders, Value};
use testkit::Random;

/// The most random values of a run.
const MOST_COINS: usize = 64;

/// The inputs of an experiment: all admitted sharings of all operands, ...
#[derive(Clone)]
pub struct Inputs {
    /// The holders of each component of a sharing.
    pub components: Vec<Holders>,
    /// The bits of each operand.
    pub operands: Vec<u32>,
    /// Selects the operands.
    pub admits: fn(&[Value]) -> bool,
    /// ... or this number of random choices of the coalition's shares, each with all shares of the
    /// others.
    pub choices: Option<usize>,
}

impl Inputs {
    /// Returns for each choice a word for each chosen random value, and all assignments of shares,
    /// component by component of each operand. Assignments on which the coalition's shares agree
    /// follow one another.
    pub fn all(&self, coalition: Holders) -> Vec<(Vec<u64>, Vec<Vec<Value>>)> {
        let shape = self.shape();
        let is_known = |at: usize| shape[at].1 & coalition != 0;
        let is_free = |at: usize| self.choices.is_none() || !is_known(at);
        let mut order: Vec<usize> = (0..shape.len()).filter(|at| is_free(*at)).collect();
        order.sort_by_key(|at| is_known(*at));
        let total: u32 = order.iter().map(|at| shape[*at].0).sum();
        let mut random = Random::new(u64::from(coalition));
        let mut chosen = random.words(shape.len());
        let mut coins = random.words(MOST_COINS);
        let mut all = Vec::new();
        for choice in 0..self.choices.unwrap_or(1) {
            // Every other choice is the previous one with all bits flipped, so that each bit takes
            // both values.
            if choice % 2 == 1 {
                let words = chosen.iter_mut().chain(&mut coins);
                words.for_each(|word| *word = !*word);
            } else if choice > 0 {
                (chosen, coins) = (random.words(shape.len()), random.words(MOST_COINS));
            }
            let shares = |assignment: u64| {
                let mut shares = chosen.clone();
                let mut rest = assignment;
                for at in &order {
                    shares[*at] = rest;
                    rest >>= shape[*at].0;
                }
                let shares = shares.into_iter().zip(&shape);
                let shares: Vec<Value> = shares
                    .map(|(share, (width, holders))| Value::new(share, *width, *holders))
                    .collect();
                shares
            };
            let assignments = (0..1_u64 << total).map(shares);
            let admitted = assignments.filter(|shares| (self.admits)(&self.secrets(shares)));
            all.push((coins.clone(), admitted.collect()));
        }
        all
    }

    /// Returns the assignment of zeros.
    pub fn zeros(&self) -> Vec<Value> {
        let shape = self.shape().into_iter();
        shape
            .map(|(width, known)| Value::new(0, width, known))
            .collect()
    }

    /// Returns the bits and holders of each component of each operand.
    fn shape(&self) -> Vec<(u32, Holders)> {
        let of = |width: &u32| {
            let components = self.components.iter();
            components.map(|known| (*width, *known)).collect::<Vec<_>>()
        };
        self.operands.iter().flat_map(of).collect()
    }

    /// Returns the sums of the shares of each operand.
    fn secrets(&self, shares: &[Value]) -> Vec<Value> {
        let operands = shares.chunks(self.components.len());
        operands.map(sum).collect()
    }
}

/// Adds up shares.
pub fn sum(shares: &[Value]) -> Value {
    shares
        .iter()
        .copied()
        .reduce(|a, b| a + b)
        .expect("at least one share")
}
