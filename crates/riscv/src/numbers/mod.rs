//! Words: what registers hold, and the arithmetic on them.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`words`] | the operations on words, and plain integers as their reference |
//! | [`fixed_point`] | numbers as words of fixed point, the form of secret floats |
//! | [`composed`] | operations built from others: long division, upper halves of products |

pub mod composed;
pub mod fixed_point;
pub mod words;
