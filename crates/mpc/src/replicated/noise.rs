//! Secret noise, added without a message.
//!
//! **Computes** x + g0 + g1 + g2, where each g is a vector of discrete Gaussians of one variance
//! ([`crate::gaussian`]). Parties i − 1 and i hold the component x_i and share a key. Both draw g_i
//! from the stream of that key and add it.
//!
//! **Adversary:** as in [`super`]. No party chooses noise: a stream's key is random if at least one
//! of its two holders draws its half at random, and the noise is a function of the key.
//!
//! **A malicious party** cannot leave out noise or add other noise. Each g_i is added by two
//! parties, to a component that both hold. If one adds something else, its component differs from
//! the other's. Where it uses that component, its proof is refused, or the hash of an opening
//! differs, as for any component that a party falsifies ([`super::proven`]). Parties that prove
//! what they send commit to their halves of keys first. So none can choose its half by what the
//! other's is, and with it a key whose noise it likes.
//!
//! **Rounds and bits:** none.
//!
//! **What each party knows.** Two of the three parts. The part that it lacks comes from the key of
//! the other two. A privacy guarantee against a party may count only this part: σ² of the 3σ² that
//! are added.
//!
//! **Simulation.** A party sees nothing. When x plus noise is opened, its view is that of an
//! opening: the component that it lacks is the result minus its own two components, which it knows.
//!
//! The time to draw depends on the number of trials that the numbers take. It is not reported to
//! anyone, but it can be observed.

use super::{PairMut, Replicated};
use crate::Result;
use crate::gaussian::Gaussian;

impl Replicated {
    pub(super) fn add_noise(&mut self, variance: u64, [first, second]: PairMut) -> Result<()> {
        let gaussian = Gaussian::new(variance)?;
        self.channel.begin_of("add noise", first.len(), &[variance]);
        gaussian.add(&mut self.previous, first);
        gaussian.add(&mut self.next, second);
        Ok(())
    }
}
