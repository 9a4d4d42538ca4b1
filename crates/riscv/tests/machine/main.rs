//! Tests of the machine on plain and on secret words. One binary builds faster than one per
//! subject. Tests that measure the memory of their process have their own binary (`damaged.rs`).

mod assembly;
mod bare_metal;
mod branches;
mod cases;
mod checked;
mod choices;
mod compiled_tables;
mod composition_costs;
mod costs;
mod elementary;
mod figures;
mod float_moves;
mod float_ranges;
mod floats;
mod obliviousness;
mod ordinary;
mod programs;
mod published;
mod random_programs;
mod ranges;
mod refused;
mod rounds;
mod runs;
mod secret_floats;
mod secrets;
mod semantics;
mod settling;
mod system;
mod tables;
mod texts;
mod vectors;
mod widths;
