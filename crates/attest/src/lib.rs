//! Evidence of which program runs on which machine, and its verification. It knows no links.
//!
//! A machine with a trusted execution environment makes a *report*: a measurement of the software
//! that it started, and 64 bytes of data that the software chose, signed with a key that the
//! vendor of the processor certifies. [`Evidence`] is such a report with what is needed to check
//! it. [`judge`] checks it, against a [`Policy`] and without any network.
//!
//! | module | content |
//! | --- | --- |
//! | [`kind`], [`kinds`] | the trait [`Kind`] and the table of kinds; each kind is a module |
//! | [`simulated`] | a kind whose root key is public: for tests, and for trying things out |
//! | [`tdx`] | Intel TDX |
//! | [`sev_snp`] | AMD SEV-SNP |
//! | [`versions`] | versions of AMD's firmware |
//! | [`tsm`] | reports of this machine, from the kernel's configfs-tsm |
//! | [`policy`], [`reading`] | what is accepted, and how it is written |
//! | [`binding`] | the 64 bytes of data of a party of a session |
//! | [`intake`] | those of a federation's server, for its clients |
//!
//! **Rules.** Everything that is read is hostile until checked, and bounded. What is not known to
//! be right is refused. Who owns a machine and can reach its memory bus can forge evidence of
//! every kind.

pub mod binding;
mod error;
mod evidence;
pub mod intake;
pub mod kind;
pub mod kinds;
pub mod policy;
pub mod reading;
pub mod sev_snp;
pub mod simulated;
pub mod tdx;
pub mod tsm;
pub mod versions;

pub use binding::{Binding, DATA, program_of};
pub use error::{Error, Result, from_hex, hex};
pub use evidence::{Evidence, LONGEST, Verdict, judge, now};
pub use intake::IntakeBinding;
pub use kind::{Kind, Report};
pub use kinds::{KINDS, kind_here, kind_of};
pub use policy::Policy;
