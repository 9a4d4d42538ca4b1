//! Words that are used once: a mask hides one value, a hidden value is opened once, and a column
//! goes into one result.
//!
//! An opened value stays secret only if its mask hides nothing else: x − a and y − a together
//! reveal x − y. So hiding a value consumes the mask, opening consumes the hidden value, and
//! computing a result consumes the column. Using a mask once compiles:
//!
//! ```
//! use mpc::correlations::once::Mask;
//!
//! let mask = Mask::drawn(vec![5]);
//! let (_first, _) = Mask::hide([mask], |[a]| vec![7 - a[0]]);
//! ```
//!
//! Using it twice does not:
//!
//! ```compile_fail,E0382
//! use mpc::correlations::once::Mask;
//!
//! let mask = Mask::drawn(vec![5]);
//! let (_first, _) = Mask::hide([mask], |[a]| vec![7 - a[0]]);
//! let (_second, _) = Mask::hide([mask], |[a]| vec![8 - a[0]]);
//! ```
//!
//! A mask that has hidden a value cannot hide another:
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
//! but only into one:
//!
//! ```compile_fail,E0382
//! use mpc::correlations::once::Column;
//!
//! let product = Column::drawn(vec![15]);
//! Column::spend([product], |[c]| 7 + c[0]);
//! Column::spend([product], |[c]| 8 + c[0]);
//! ```
//!
//! None of these types can be copied:
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

/// Words for computing results: derived words, and masks that have already hidden their value.
pub struct Column(Vec<u64>);

/// This party's share of hidden values, to be opened.
#[must_use = "a hidden value must be opened: otherwise its mask is wasted"]
pub struct Hidden(Vec<u64>);

impl Mask {
    /// Wraps a mask as the source has made it.
    #[must_use]
    pub fn drawn(words: Vec<u64>) -> Self {
        Self(words)
    }

    /// Hides a message under masks. Returns the hidden message, and the masks as columns for the
    /// result.
    pub fn hide<const MASKS: usize>(
        masks: [Self; MASKS],
        message: impl FnOnce([&[u64]; MASKS]) -> Vec<u64>,
    ) -> (Hidden, [Column; MASKS]) {
        let hidden = Hidden(message(masks.each_ref().map(|mask| &mask.0[..])));
        (hidden, masks.map(|mask| Column(mask.0)))
    }

    /// Hides a message under those masks that are `Some`, as [`Mask::hide`] does.
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
    /// Wraps a column as the source has made it.
    #[must_use]
    pub fn drawn(words: Vec<u64>) -> Self {
        Self(words)
    }

    /// Computes a result with columns, and consumes them.
    pub fn spend<const COLUMNS: usize, Result>(
        columns: [Self; COLUMNS],
        work: impl FnOnce([&[u64]; COLUMNS]) -> Result,
    ) -> Result {
        work(columns.each_ref().map(|column| &column.0[..]))
    }

    /// Returns the words, for results that are computed in place. A caller that keeps them says
    /// why.
    pub(crate) fn into_words(self) -> Vec<u64> {
        self.0
    }
}

impl Hidden {
    /// Packs several hidden values into one message.
    pub(crate) fn pack(all: Vec<Self>, message: impl FnOnce(Vec<&[u64]>) -> Vec<u64>) -> Self {
        Self(message(all.iter().map(|hidden| &hidden.0[..]).collect()))
    }

    /// Returns an empty message that hides nothing.
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    /// Appends other hidden values, to be opened together with this one.
    pub(crate) fn join(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Returns the words to be sent to the parties that open the value.
    pub(crate) fn into_message(self) -> Vec<u64> {
        self.0
    }
}
