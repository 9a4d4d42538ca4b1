//! Tests of cards, on the simulated one, against this processor.

mod maps;
