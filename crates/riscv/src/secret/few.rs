//! The values that a secret word can have, if they are few: by its known bits, by a stated range,
//! and by the selects that it was computed from.
//!
//! A word is followed back to secret bits: conditions of selects, and the bits of words that have
//! few. Each is a variable, and the operations on the way are applied to diagrams over these
//! variables. Two selects by one condition therefore go together, as in the two halves of
//! `czero.eqz`, `czero.nez` and `or`. Words without a common variable count as independent, so the
//! diagram may have values that the word never has, but it has all that it can have.
//!
//! Everything here follows from origins, facts and public numbers. Nothing is computed or sent.

use super::node::{Held, Node, Order, Origin, Word, low};
use super::opaque;
use crate::numbers::choices::{Choice, Choices, VALUES};
use crate::numbers::words::{Plain, Signs, Words};
use std::collections::HashMap;
use std::rc::Rc;

/// The maximum number of bits of a word of which all combinations are considered.
const BITS: u32 = 8;

/// The maximum number of nodes of a diagram, and of words that are followed.
const NODES: usize = 1 << 13;

/// The maximum number of pairs of nodes that operations are applied to, for one word.
const PAIRS: usize = 1 << 15;

/// The maximum for the condition of a branch. Loops ask for it on each trip, and it helps only where
/// the condition has one value, as after a comparison of a pointer with null.
const PAIRS_OF_CONDITION: usize = 1 << 9;

/// A node of a diagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Entry {
    /// A value.
    Value(u64),
    /// The word never has this value, so it does not matter.
    Never,
    /// A variable, and the entries for 1 and 0. The variables below it have greater numbers.
    Either(usize, usize, usize),
}

/// An operation on one word or two.
#[derive(Clone, Copy)]
enum Rule {
    Add,
    Subtract,
    Multiply,
    And,
    Xor,
    ShiftLeft(u32),
    ShiftRight(u32, Signs),
    Extend(u32, Signs),
    Between(i64, i64),
    Divide(Signs),
    IsZero,
    Sign(u32),
    Less(u32),
    Precedes(Order),
    /// The second operand if the first is 1, else the third.
    Select,
}

/// The rule that a word was computed by, and its operands.
type Ruled = (Rule, Vec<Word>);

impl Rule {
    /// Returns the result; `None` if it is impossible.
    fn on(self, x: u64, y: u64) -> Option<u64> {
        Some(match self {
            Self::Add => x.wrapping_add(y),
            Self::Subtract => x.wrapping_sub(y),
            Self::Multiply | Self::Select => x.wrapping_mul(y),
            Self::And => x & y,
            Self::Xor => x ^ y,
            Self::ShiftLeft(places) => x << places,
            Self::ShiftRight(places, signs) => Plain.shift_right(&x, &places.into(), signs),
            Self::Extend(bits, signs) => Plain.extend(&x, bits, signs),
            Self::Between(least, most) if !(least..=most).contains(&(x as i64)) => return None,
            Self::Between(..) => x,
            Self::Divide(signs) => Plain.divide(&x, &y, signs),
            Self::IsZero => (x == 0).into(),
            Self::Sign(width) => x >> (width - 1) & 1,
            Self::Less(width) => (x & low(width) < y & low(width)).into(),
            Self::Precedes(Order::Numbers(signs)) => Plain.less(&x, &y, signs),
            Self::Precedes(Order::Near) => x.wrapping_sub(y) >> 63,
        })
    }
}

/// The diagrams of a word and of the words that it was computed from.
#[derive(Default)]
struct Diagram {
    entries: Vec<Entry>,
    places: HashMap<Entry, usize>,
    /// The variables: a word, and the place of the bit in it.
    variables: Vec<(Word, u32)>,
    numbers: HashMap<(*const Node, u32), usize>,
    /// The diagrams of words, or `None` for those that have many values.
    known: HashMap<*const Node, Option<usize>>,
    /// The pairs of nodes that operations may still be applied to.
    pairs: usize,
}

/// Too many nodes.
struct Beyond;

/// Returns the values that a word can have, if they are few.
pub fn choices(word: &Word) -> Option<Choices<Word>> {
    within(word, PAIRS)
}

/// Returns the value that a condition always has, if that is found with little work.
pub fn always(condition: &Word) -> Option<u64> {
    within(condition, PAIRS_OF_CONDITION).and_then(|choices| choices.only())
}

fn within(word: &Word, pairs: usize) -> Option<Choices<Word>> {
    match word {
        Word::Public(value) => Some(Choices::new(vec![Choice::Value(*value)])),
        Word::Secret(root) => {
            let mut diagram = Diagram {
                pairs,
                ..Diagram::default()
            };
            let Ok(found) = diagram.follow(root) else {
                // It is not followed again.
                root.set_many_values();
                return None;
            };
            diagram.finished(found?)
        }
    }
}

impl Diagram {
    /// Finds the diagram of a word, after those of its operands.
    fn follow(&mut self, root: &Rc<Node>) -> Result<Option<usize>, Beyond> {
        let mut left: Vec<(Rc<Node>, usize)> = vec![(root.clone(), 0)];
        let mut followed = 0;
        while let Some((node, at)) = left.pop() {
            let key = Rc::as_ptr(&node);
            if self.known.contains_key(&key) {
                continue;
            }
            followed += 1;
            if followed > NODES {
                return Err(Beyond);
            }
            let rule = (!node.has_many_values())
                .then(|| rule(&node, Rc::ptr_eq(&node, root)))
                .flatten();
            let found = match &rule {
                None => None,
                Some((_, words)) => match words.get(at) {
                    Some(Word::Secret(inner)) => match self.known.get(&Rc::as_ptr(inner)) {
                        None => {
                            left.extend([(node.clone(), at), (inner.clone(), 0)]);
                            continue;
                        }
                        Some(None) => None,
                        Some(Some(_)) => {
                            left.push((node, at + 1));
                            continue;
                        }
                    },
                    Some(Word::Public(_)) => {
                        left.push((node, at + 1));
                        continue;
                    }
                    None => self.combined(&rule)?,
                },
            };
            let found = match found {
                Some(found) => Some(found),
                None => self.stated(&node)?,
            };
            if found.is_none() {
                node.set_many_values();
            }
            self.known.insert(key, found);
        }
        Ok(self.known[&Rc::as_ptr(root)])
    }

    /// Applies a rule to operands whose diagrams are known.
    fn combined(&mut self, rule: &Option<Ruled>) -> Result<Option<usize>, Beyond> {
        let Some((rule, words)) = rule else {
            return Ok(None);
        };
        let mut operands = Vec::with_capacity(words.len());
        for word in words {
            operands.push(match word {
                Word::Public(value) => self.entry(Entry::Value(*value))?,
                Word::Secret(node) => match self.known[&Rc::as_ptr(node)] {
                    Some(found) => found,
                    None => return Ok(None),
                },
            });
        }
        let mut both = |rule, x, y| self.apply(rule, x, y, &mut HashMap::new());
        Ok(Some(match (rule, operands.as_slice()) {
            (Rule::Select, &[bit, x, y]) => {
                let not = both(Rule::IsZero, bit, bit)?;
                let (chosen, other) =
                    (both(Rule::Multiply, bit, x)?, both(Rule::Multiply, not, y)?);
                both(Rule::Add, chosen, other)?
            }
            (rule, &[x]) => both(*rule, x, x)?,
            (rule, &[x, y]) => both(*rule, x, y)?,
            _ => return Ok(None),
        }))
    }

    fn apply(
        &mut self,
        rule: Rule,
        x: usize,
        y: usize,
        done: &mut HashMap<(usize, usize), usize>,
    ) -> Result<usize, Beyond> {
        if let Some(&found) = done.get(&(x, y)) {
            return Ok(found);
        }
        self.pairs = self.pairs.checked_sub(1).ok_or(Beyond)?;
        let (of_x, of_y) = (self.entries[x], self.entries[y]);
        let found = match (of_x, of_y) {
            (Entry::Never, _) | (_, Entry::Never) => self.entry(Entry::Never)?,
            (Entry::Value(x), Entry::Value(y)) => {
                let result = rule.on(x, y);
                self.entry(result.map_or(Entry::Never, Entry::Value))?
            }
            _ => {
                let variable = [of_x, of_y].into_iter().filter_map(|entry| match entry {
                    Entry::Either(variable, ..) => Some(variable),
                    _ => None,
                });
                let variable = variable.min().expect("one of them is no value");
                let sides = |at: usize, entry| match entry {
                    Entry::Either(own, one, zero) if own == variable => [one, zero],
                    _ => [at, at],
                };
                let ([x1, x0], [y1, y0]) = (sides(x, of_x), sides(y, of_y));
                let one = self.apply(rule, x1, y1, done)?;
                let zero = self.apply(rule, x0, y0, done)?;
                self.either(variable, one, zero)?
            }
        };
        done.insert((x, y), found);
        Ok(found)
    }

    fn entry(&mut self, entry: Entry) -> Result<usize, Beyond> {
        if let Some(&at) = self.places.get(&entry) {
            return Ok(at);
        }
        if self.entries.len() == NODES {
            return Err(Beyond);
        }
        self.entries.push(entry);
        self.places.insert(entry, self.entries.len() - 1);
        Ok(self.entries.len() - 1)
    }

    fn either(&mut self, variable: usize, one: usize, zero: usize) -> Result<usize, Beyond> {
        match (self.entries[one], self.entries[zero]) {
            _ if one == zero => Ok(one),
            (Entry::Never, _) => Ok(zero),
            (_, Entry::Never) => Ok(one),
            _ => self.entry(Entry::Either(variable, one, zero)),
        }
    }

    /// Returns the diagram of a word by its own bits, within the range that is stated for it. If
    /// the range leaves one value, as of a promise, it is not used: the result would not depend on
    /// the word, nor on the claim that it has.
    fn stated(&mut self, node: &Rc<Node>) -> Result<Option<usize>, Beyond> {
        let range = node.with_origin(|origin| match origin {
            Some(Origin::Held(_, Held::Between(least, most))) if least < most => {
                Some(Rule::Between(*least, *most))
            }
            _ => None,
        });
        match (self.bits(node)?, range) {
            (Some(bits), Some(range)) => {
                let found = self.apply(range, bits, bits, &mut HashMap::new())?;
                Ok(Some(found))
            }
            (bits, _) => Ok(bits),
        }
    }

    /// Returns the diagram of a word by its known bits, if few are unknown.
    fn bits(&mut self, node: &Rc<Node>) -> Result<Option<usize>, Beyond> {
        let word = Word::Secret(node.clone());
        let (ones, width) = (node.facts.ones, node.facts.width);
        if opaque::is_opaque(&word) {
            return Ok(None);
        }
        let is_few = ones.count_ones() <= BITS;
        if !is_few && width > BITS {
            return Ok(None);
        }
        let (mut sum, mut done) = (self.entry(Entry::Value(0))?, HashMap::new());
        let highest = if is_few { 64 } else { width };
        for place in (0..highest).filter(|place| ones >> place & 1 == 1) {
            // The highest bit of a signed number stands for all above it.
            let is_sign = !is_few && place + 1 == width;
            let value = if is_sign {
                u64::MAX << place
            } else {
                1 << place
            };
            let variable = self.variable(node, &word, place);
            let (one, zero) = (
                self.entry(Entry::Value(value))?,
                self.entry(Entry::Value(0))?,
            );
            let bit = self.either(variable, one, zero)?;
            sum = self.apply(Rule::Add, bit, sum, &mut done)?;
            done.clear();
        }
        Ok(Some(sum))
    }

    fn variable(&mut self, node: &Rc<Node>, word: &Word, place: u32) -> usize {
        let variables = &mut self.variables;
        *self
            .numbers
            .entry((Rc::as_ptr(node), place))
            .or_insert_with(|| {
                variables.push((word.clone(), place));
                variables.len() - 1
            })
    }

    /// Builds the result from the entries that it reaches.
    fn finished(&self, root: usize) -> Option<Choices<Word>> {
        let mut reached: HashMap<usize, usize> = HashMap::new();
        let (mut nodes, mut values, mut left) = (Vec::new(), 0, vec![(root, false)]);
        while let Some((at, is_ready)) = left.pop() {
            if reached.contains_key(&at) {
                continue;
            }
            let node = match self.entries[at] {
                Entry::Value(value) => {
                    values += 1;
                    Choice::Value(value)
                }
                // Nothing is known of a word that contradicts its stated range.
                Entry::Never => return None,
                Entry::Either(_, one, zero) if !is_ready => {
                    left.extend([(at, true), (one, false), (zero, false)]);
                    continue;
                }
                Entry::Either(variable, one, zero) => Choice::Either {
                    bit: bit(&self.variables[variable]),
                    if_one: reached[&one],
                    if_zero: reached[&zero],
                },
            };
            reached.insert(at, nodes.len());
            nodes.push(node);
        }
        (values <= VALUES).then(|| Choices::new(nodes))
    }
}

/// Returns a bit of a word.
fn bit((word, place): &(Word, u32)) -> Word {
    let shifted = super::Secret.shift_right(word, &Word::Public((*place).into()), Signs::Unsigned);
    super::Secret.extend(&shifted, 1, Signs::Unsigned)
}

/// Returns the rule that a word was computed by, and its operands. A comparison is followed only if
/// it is what was asked for: its operands seldom have few values, and it is a bit in any case.
fn rule(node: &Node, is_root: bool) -> Option<Ruled> {
    let one = |rule, x: &Word| Some((rule, vec![x.clone()]));
    let two = |rule, x: &Word, y: &Word| Some((rule, vec![x.clone(), y.clone()]));
    node.with_origin(|origin| match origin? {
        Origin::Sum(x, y) | Origin::Union(x, y) => two(Rule::Add, x, y),
        Origin::Difference(x, y) => two(Rule::Subtract, x, y),
        Origin::Product(x, y) | Origin::Choose(x, y) => two(Rule::Multiply, x, y),
        Origin::And(x, y) => two(Rule::And, x, y),
        Origin::Xor(x, y) => two(Rule::Xor, x, y),
        Origin::ShiftLeft(x, places) => one(Rule::ShiftLeft(*places), x),
        Origin::ShiftRight(x, places, signs) => one(Rule::ShiftRight(*places, *signs), x),
        Origin::Extend(x, bits, signs) => one(Rule::Extend(*bits, *signs), x),
        // A claimed word is not looked through: what is chosen by it depends on its claim.
        Origin::Held(x, Held::Between(least, most)) if node.claim == 0 => {
            one(Rule::Between(*least, *most), x)
        }
        Origin::Quotient(x, y, _, signs) => two(Rule::Divide(*signs), x, y),
        Origin::Extreme(x, y, precedes, end) => {
            let (if_so, else_this) = if end.first { (x, y) } else { (y, x) };
            let words = [precedes, if_so, else_this].map(Word::clone);
            Some((Rule::Select, words.into()))
        }
        Origin::IsZero(x) if is_root => one(Rule::IsZero, x),
        Origin::Sign(x, width) if is_root => one(Rule::Sign(*width), x),
        Origin::Less(x, y, width) if is_root => two(Rule::Less(*width), x, y),
        Origin::Precedes(x, y, order) if is_root => two(Rule::Precedes(*order), x, y),
        _ => None,
    })
}
