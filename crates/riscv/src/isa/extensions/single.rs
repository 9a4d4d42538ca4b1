//! F: floats of 32 bits.

use super::floats;
use crate::isa::encoding::Encoding;
use crate::isa::operation::Precision::Single;

/// The encodings of these instructions.
pub const ENCODINGS: &[Encoding] = &floats::encodings(Single);
