//! The few values that a secret word can have, and the secret bits that decide between them: a
//! decision diagram (Bryant 1986; with numbers at its ends, Clarke and others 1993).
//!
//! The diagram is public: its shape and its values follow from the program. Which of its paths is
//! the right one is secret. To look something up at such a word, it is looked up for all values,
//! and one of the results is selected, node by node ([`Choices::folded`]). To change something at
//! such a word, it is changed for each value under a condition.

/// The maximum number of values of a word.
pub const VALUES: usize = 1 << 10;

/// A node of a diagram.
#[derive(Clone)]
pub enum Choice<Word> {
    /// A value.
    Value(u64),
    /// One of two nodes, by a secret bit.
    Either {
        /// The bit.
        bit: Word,
        /// The index of the node for 1.
        if_one: usize,
        /// The index of the node for 0.
        if_zero: usize,
    },
}

/// A diagram. Each node comes after those that it decides between; the last one is the beginning.
/// No two nodes are the same value.
pub struct Choices<Word>(Vec<Choice<Word>>);

impl<Word: Clone> Choices<Word> {
    /// Creates a diagram from its nodes.
    ///
    /// # Panics
    /// Panics if there are none.
    #[must_use]
    pub fn new(nodes: Vec<Choice<Word>>) -> Self {
        assert!(!nodes.is_empty(), "a word has a value");
        Self(nodes)
    }

    /// Returns all values.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().filter_map(|node| match node {
            Choice::Value(value) => Some(*value),
            Choice::Either { .. } => None,
        })
    }

    /// Returns the value, if there is only one.
    #[must_use]
    pub fn only(&self) -> Option<u64> {
        match self.0.as_slice() {
            [Choice::Value(value)] => Some(*value),
            _ => None,
        }
    }

    /// Looks up each value, and joins the results by the bits, each bit with the results for 1 and
    /// for 0.
    ///
    /// # Errors
    /// Those of the look-up.
    pub fn folded<T, E>(
        &self,
        mut value: impl FnMut(u64) -> Result<T, E>,
        mut join: impl FnMut(&Word, &T, &T) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut results: Vec<T> = Vec::with_capacity(self.0.len());
        for node in &self.0 {
            let result = match node {
                Choice::Value(number) => value(*number)?,
                Choice::Either {
                    bit,
                    if_one,
                    if_zero,
                } => join(bit, &results[*if_one], &results[*if_zero])?,
            };
            results.push(result);
        }
        Ok(results.pop().expect("there is a beginning"))
    }

    /// Returns the nodes, each after those that it decides between.
    #[must_use]
    pub fn nodes(&self) -> &[Choice<Word>] {
        &self.0
    }
}
