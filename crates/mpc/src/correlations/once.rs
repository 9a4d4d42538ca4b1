//! Words that are used once: a mask hides one value, what it hides is opened once, a column goes
//! into one result.
//!
//! All that is secret of an opened value is secret by its mask's hiding nothing else: x − a and y −
//! a together show x − y. So a mask is used up by what it hides, what it hides by being opened, and
//! a column by the result that it goes into. Once compiles:
//!
//! ```
//! use mpc::correlations::once::Mask;
//!
//! let mask = Mask::drawn(vec![5]);
//! let (_first, _) = Mask::hide([mask], |[a]| vec![7 - a[0]]);
//! ```
//!
//! Twice does not:
//!
//! ```compile_fail,E0382
//! use mpc::correlations::once::Mask;
//!
//! let mask = Mask::drawn(vec![5]);
//! let (_first, _) = Mask::hide([mask], |[a]| vec![7 - a[0]]);
//! let (_second, _) = Mask::hide([mask], |[a]| vec![8 - a[0]]);
//! ```
//!
//! Nor does what has hidden a value hide another:
//!
//! ```compile_fail,E0308
//! use mpc::correlations::once::Mask;
//!
//! let mask = Mask::drawn(vec![5]);
//! let (_first, [mask]) = Mask::hide([mask], |[a]| vec![7 - a[0]]);
//! let (_second, _) = Mask::hide([mask], |[a]| vec![8 - a[0]]);
//! ```
//!
//! A column goes into a result:
//!
//! ```
//! use mpc::correlations::once::Column;
//!
//! let product = Column::drawn(vec![15]);
//! assert_eq!(Column::spend([product], |[c]| 7 + c[0]), 22);
//! ```
//!
//! and into one alone:
//!
//! ```compile_fail,E0382
//! use mpc::correlations::once::Column;
//!
//! let product = Column::drawn(vec![15]);
//! Column::spend([product], |[c]| 7 + c[0]);
//! Column::spend([product], |[c]| 8 + c[0]);
//! ```
//!
//! Of none of these is a copy to be had:
//!
//! ```compile_fail,E0277
//! fn copied<Word: Clone>() {}
//!
//! copied::<mpc::correlations::once::Mask>();
//! ```
//!
//! ```compile_fail,E0277
//! fn copied<Word: Clone>() {}
//!
//! copied::<mpc::correlations::once::Column>();
//! ```
//!
//! ```compile_fail,E0277
//! fn copied<Word: Clone>() {}
//!
//! copied::<mpc::correlations::once::Hidden>();
//! ```

/// Uniform words that have hidden nothing yet.
pub struct Mask(Vec<u64>);

/// Words that results are computed with: what follows from masks, and masks that have hidden their
/// value.
pub struct Column(Vec<u64>);

/// This party's share of what masks hide, to be opened.
#[must_use = "what is hidden is opened, or the mask was for nothing"]
pub struct Hidden(Vec<u64>);

impl Mask {
    /// As the source has made it.
    #[must_use]
    pub fn drawn(words: Vec<u64>) -> Self {
        Self(words)
    }

    /// A message under masks, and these for the result.
    pub fn hide<const MASKS: usize>(
        masks: [Self; MASKS],
        message: impl FnOnce([&[u64]; MASKS]) -> Vec<u64>,
    ) -> (Hidden, [Column; MASKS]) {
        let hidden = Hidden(message(masks.each_ref().map(|mask| &mask.0[..])));
        (hidden, masks.map(|mask| Column(mask.0)))
    }

    /// [`Mask::hide`] under those that are there.
    pub(crate) fn hide_new<const MASKS: usize>(
        masks: [Option<Self>; MASKS],
        message: impl FnOnce([Option<&[u64]>; MASKS]) -> Vec<u64>,
    ) -> (Hidden, [Option<Column>; MASKS]) {
        let words = masks
            .each_ref()
            .map(|mask| mask.as_ref().map(|mask| &mask.0[..]));
        let hidden = Hidden(message(words));
        (hidden, masks.map(|mask| mask.map(|mask| Column(mask.0))))
    }
}

impl Column {
    /// As the source has made it.
    #[must_use]
    pub fn drawn(words: Vec<u64>) -> Self {
        Self(words)
    }

    /// What is computed with columns.
    pub fn spend<const COLUMNS: usize, Result>(
        columns: [Self; COLUMNS],
        work: impl FnOnce([&[u64]; COLUMNS]) -> Result,
    ) -> Result {
        work(columns.each_ref().map(|column| &column.0[..]))
    }

    /// The words themselves, where the result takes their place. Whoever keeps them says why.
    pub(crate) fn into_words(self) -> Vec<u64> {
        self.0
    }
}

impl Hidden {
    /// Several in one message.
    pub(crate) fn pack(all: Vec<Self>, message: impl FnOnce(Vec<&[u64]>) -> Vec<u64>) -> Self {
        Self(message(all.iter().map(|hidden| &hidden.0[..]).collect()))
    }

    /// Of nothing yet.
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    /// What others hide, opened together with this.
    pub(crate) fn join(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// What travels, for those who open.
    pub(crate) fn into_message(self) -> Vec<u64> {
        self.0
    }
}
