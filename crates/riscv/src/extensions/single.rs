//! F: floats of 32 bits.

use super::floats;
use crate::encoding::Encoding;
use crate::operation::Precision::Single;

/// How they are written.
pub const ENCODINGS: &[Encoding] = &floats::encodings(Single);
