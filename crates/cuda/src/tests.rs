//! Tests of cards, on the simulated one and by a fake driver, against this processor.

#[cfg(target_os = "linux")]
mod cards;
mod digits;
#[cfg(target_os = "linux")]
mod driver;
mod maps;
mod order;
mod self_test;
mod stays;
mod thirds;
