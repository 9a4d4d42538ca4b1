//! Words, which registers hold, and the arithmetic on them.
//!
//! | module | contents |
//! | --- | --- |
//! | [`choices`] | the few values that a secret word can have |
//! | [`words`] | the operations on words, and plain integers as their reference |
//! | [`fixed_point`] | numbers as fixed-point words, the form of secret floats |
//! | [`composed`] | operations composed of others: minimum, shifts, upper halves of products |

pub mod choices;
pub mod composed;
pub mod fixed_point;
pub mod words;
