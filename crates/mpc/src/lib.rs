//! Sharings and protocols: how parties compute on values that no single party holds.
//!
//! The layers above use one trait only, [`Protocol`]. Its implementations are:
//!
//! | module | parties | adversary |
//! | --- | --- | --- |
//! | [`plain`] | any | none: the reference that the others are tested against; no secrecy |
//! | [`replicated`] | 3 | semi-honest, one corrupt party |
//! | [`additive`] | 2 or more | semi-honest, all but one corrupt; uses [`correlations`] |
//!
//! A *ring sharing* of n values of Z_2^64 is a fixed number of components, each a vector of n
//! words. The protocol sets the number of components ([`Protocol::parts`]). Components are borrowed
//! slices, so they may lie in memory that the caller owns. A *binary sharing* ([`Bits`]) is stored
//! as packed bit planes.
//!
//! Public operands must be equal in all parties; the parties compare them in private
//! ([`agreement`]). Clients outside the session may submit vectors ([`submission`], [`request`]).
//! Correlations may come from files made ahead of time ([`preprocessing`], [`sealed`]). A comparison may use
//! fewer bits than are proved to be enough; then a guard checks its range afterwards ([`guards`]).
//! Further checks verify that products and sums stayed in range ([`checks`]). [`functions`],
//! [`integers`] and [`series`] build operations that every protocol supports (ReLU, maximum, exact
//! division, approximations) from the trait alone.

pub mod additive;
mod affine;
pub mod agreement;
mod bits;
mod blocks;
mod broadcast;
mod checking;
pub mod checks;
pub mod client_update;
mod combinations;
pub mod correlations;
mod cost;
mod dense;
mod fibers;
pub mod functions;
pub mod gaussian;
mod group;
pub mod guards;
pub mod integers;
mod keys;
mod leaves;
mod open;
mod operand;
pub mod plain;
pub mod preprocessing;
pub mod proof;
mod protocol;
mod providers;
mod range;
pub mod replicated;
pub mod request;
pub mod sealed;
pub mod series;
mod steps;
pub mod submission;
mod threat_model;
mod tree;
pub mod width;

use kernels::residues;

pub use affine::{Addend, Affine, Term};
pub use bits::Bits;
pub use broadcast::{broadcast, gather};
pub use checking::{Checking, Factors, Hold, Kept, Summands};
pub use cost::{Cost, Opening, Operation};
pub use guards::{Flag, Opened, SharedFlag};
pub use net::{Error, Result};
pub use open::{Settings, consuming, is_dealt, open, sources};
pub use operand::{Bilinear, Join, Name, Operand, Parts, PartsMut, Recipient, Shift};
pub use protocol::{
    Correlated, Expectation, Fiber, Next, OwnedFiber, Protocol, Rehearsal, Verification,
};
#[cfg(feature = "mutation")]
pub use providers::open_exactly;
pub use providers::{Needs, PROTOCOLS, ProtocolProvider, SOURCES, SourceProvider, Transfers};
pub use range::{Compared, SUMS, Tally};
pub use submission::{Federated, Serving};
pub use threat_model::{ThreatModel, Trust};
