//! Messages that are proven: what parties do in addition, or otherwise, if one of them may deviate.
//!
//! An operation records what it sent as equations ([`record`], [`relations`]). Before anything is
//! opened, each party proves its equations to the two others ([`verification`]). Products, ANDs and
//! products with bits send the same messages as without proofs. Truncations, signs and bit
//! decompositions send others, whose relations are equations of few terms.
//!
//! **Adversary:** malicious, at most one corrupt party; security with abort. Whatever it sends, the
//! others get the right result or stop before they send anything from which a result could be
//! computed, except with the probability that [`crate::proof`] states.
//!
//! **Simulation.** Each file names the mask of each message, as in [`super`]. A corrupt party sees
//! messages that are masked by the key of the two others. These messages depend on what it sent
//! itself, but their distribution does not depend on what the others hold. Proofs tell it nothing
//! else ([`crate::proof`]). It may choose its messages, so honest parties may hold other values
//! than those of an honest run; then its proof fails before anything is opened.
//!
//! **Clients outside the session.** What they share among the parties is the same in each honest
//! party ([`super::submissions`]), and so is noise ([`super::noise`]). They compare what parties
//! send them ([`super::sealing`]).
//!
//! **What a party can choose.** Its inputs, among them numbers for which an operation is not
//! specified: a guard finds these only if they are within its reach, and its coins were tossed
//! after the input was shared. And which way numbers are rounded, within the unit that a truncation
//! allows: the coins of truncations come from a key that all parties know from the start.
//! Checked mode ([`crate::checks`]) finds a product that differs from the exact one by less than
//! 2^94, whoever chose its operands. A larger difference is missed if 2^31 − 1 divides it, and a
//! corrupt party can choose such inputs. So what it makes of its own inputs may be wrong, but it
//! cannot make anything of others' inputs wrong.

pub(super) mod bit_products;
pub(super) mod bits;
pub(super) mod checking;
pub(super) mod cost;
pub(super) mod guard;
pub(super) mod products;
mod record;
mod relations;
pub(super) mod sign;
mod spread;
pub(super) mod truncation;
pub(super) mod verification;
mod wraps;
