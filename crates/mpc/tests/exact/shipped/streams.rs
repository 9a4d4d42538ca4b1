//! The streams that the shipped parties and the model both expand.

use crate::model::{Extent, Key, Range, Slot, Tape};
use kernels::planes::words_of;
use kernels::stream::Stream;
use std::collections::HashMap;

/// Returns the stream of a key, the same for every call.
pub fn stream(key: Key) -> Stream {
    let words = match key {
        Key::Pair(a, b) => [1 + a as u64, 1 + b as u64],
        Key::Common => [0, 100],
        Key::Dealer(party) => [200, party as u64],
    };
    Stream::new(&kernels::stream::Key::from_words(words), "exact")
}

/// The expanded ranges that parties took of each stream. For streams shared with a dealer, the
/// stream itself is kept, since lengths follow from the columns.
#[derive(Default)]
pub struct Ranges {
    taken: HashMap<Key, Vec<Vec<u64>>>,
}

impl Ranges {
    /// Inserts ranges of these lengths.
    pub fn insert(&mut self, key: Key, lengths: &[usize]) {
        let mut stream = stream(key);
        let expand = |length: &usize| {
            let mut words = vec![0; *length];
            stream.reserve(*length).fill(0, &mut words);
            words
        };
        let ranges = lengths.iter().map(expand).collect();
        self.taken.insert(key, ranges);
    }

    /// Returns the range with this number of a column of n elements, after the ranges before it.
    fn column(&mut self, key: Key, index: usize, words: usize, streams: &mut HashMap<Key, Stream>) {
        let taken = self.taken.entry(key).or_default();
        if index == taken.len() {
            let mut range = vec![0; words];
            let stream = streams.entry(key).or_insert_with(|| stream(key));
            stream.reserve(words).fill(0, &mut range);
            taken.push(range);
        }
    }
}

/// The view that one element has of the ranges.
pub struct Element<'r> {
    pub ranges: &'r mut Ranges,
    pub dealt: &'r mut HashMap<Key, Stream>,
    /// The place among all n elements.
    pub at: usize,
    pub n: usize,
    /// The run of rotated roles that the element belongs to, its number of elements, and the place
    /// in it.
    pub run: usize,
    pub of_run: usize,
    pub at_run: usize,
    /// The number of ranges taken so far, by key.
    pub next: HashMap<Key, usize>,
    /// The number of ranges taken before the current step.
    pub before: HashMap<Key, usize>,
}

impl<'r> Element<'r> {
    /// Starts at the first of n elements, with roles that are not rotated.
    pub fn first(ranges: &'r mut Ranges, dealt: &'r mut HashMap<Key, Stream>, n: usize) -> Self {
        Self {
            ranges,
            dealt,
            at: 0,
            n,
            run: 0,
            of_run: n,
            at_run: 0,
            next: HashMap::new(),
            before: HashMap::new(),
        }
    }

    /// Returns the elements of the longer of two halves. Each begins with a word of bits.
    fn longer_half(&self) -> usize {
        self.n.div_ceil(2).next_multiple_of(64).min(self.n)
    }

    /// Returns the number of elements that share a range, and the place of this one.
    fn place(&self, extent: Extent) -> (usize, usize) {
        match extent {
            Extent::Runs => (self.of_run, self.at_run),
            Extent::Half { .. } => (self.longer_half(), self.at % self.longer_half()),
            Extent::Whole | Extent::Column { .. } => (self.n, self.at),
        }
    }

    /// Returns the parties' key for the model's roles: in run c, party c has role 0.
    fn of_parties(&self, key: Key) -> Key {
        match key {
            Key::Pair(a, b) => Key::pair((a + self.run) % 3, (b + self.run) % 3),
            other => other,
        }
    }
}

impl Tape for Element<'_> {
    fn range(&mut self, key: Key, extent: Extent) -> usize {
        let key = self.of_parties(key);
        let next = self.next.entry(key).or_default();
        let index = *next;
        *next += if extent == Extent::Runs { 3 } else { 1 };
        match extent {
            Extent::Whole => index,
            Extent::Runs => index + self.run,
            Extent::Column { planes } | Extent::Half { planes } => {
                let (n, _) = self.place(extent);
                let words = if planes == 0 { n } else { planes * words_of(n) };
                self.ranges.column(key, index, words, self.dealt);
                index
            }
        }
    }

    fn draw(&mut self, range: Range, slot: Slot, _: u32) -> u64 {
        let words = &self.ranges.taken[&self.of_parties(range.key)][range.index];
        let (n, at) = self.place(range.extent);
        // Fields begin at even words.
        match slot {
            Slot::Word { field, shift } => words[field * n.next_multiple_of(2) + at] >> shift,
            Slot::Plane { after, plane } => {
                let bit = plane * n + at;
                let start = words_of(after * n).next_multiple_of(2);
                words[start + bit / 64] >> (bit % 64) & 1
            }
        }
    }

    fn step(&mut self, elements: Option<usize>) {
        (self.n, self.of_run) = [elements.unwrap_or(1); 2].into();
        self.before.clone_from(&self.next);
        (self.at, self.at_run) = (0, 0);
    }

    fn element(&mut self, at: usize) {
        self.next.clone_from(&self.before);
        (self.at, self.at_run) = (at, at);
    }

    fn half(&self) -> usize {
        self.at / self.longer_half()
    }

    /// Elements follow one another, with those of one value side by side. They are cut at whole
    /// words of bits.
    fn corrected(&self, parties: usize, extent: Extent, at: usize, of: usize) -> usize {
        let (n, place) = self.place(extent);
        let (word, words) = ((at * n + place) / 64, of * n / 64);
        let is_before = |party: &usize| words * (party + 1) / parties <= word;
        (0..parties).take_while(is_before).count()
    }
}
