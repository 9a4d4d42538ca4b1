//! Noise that no party knows, without a message.
//!
//! **Computes** x + g0 + g1 + g2, each g a vector of discrete Gaussians of one variance
//! ([`crate::gaussian`]). The component x_i is held by parties i − 1 and i, who share a key: both
//! draw g_i from its stream and add it.
//!
//! **Adversary:** as in [`super`]. No party chooses noise: a stream's key is random as long as one
//! of its two holders draws its half at random, and what follows from it is determined.
//!
//! **Rounds and bits:** none.
//!
//! **What each party knows.** Two of the three parts. The one that it lacks comes from the key of
//! the other two, and is all that a promise against a party may count on: σ² of the 3σ² that are
//! added.
//!
//! **Simulation.** A party sees nothing. When x plus noise is opened, its view is that of an
//! opening: the component that it lacks is the result minus its own two, which it knows.
//!
//! Drawing takes a time that depends on how many trials numbers take, and is told to nobody but by
//! its length.

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
