//! What a channel lets ride on its frames, so that parties find out whether they agree.

/// Longest rider of a frame, in bytes.
pub const LONGEST_RIDER: usize = 64;

/// Messages in each direction until two parties know that they agree.
pub(crate) const TURNS: usize = 2;

/// Compares with each other party what all take for public, without showing it: by riders on the frames of a
/// [`crate::Channel`] that go anyway, and by frames of its own before something is opened.
///
/// Both ends of a link go through the same calls, since all parties run the same program; so each knows at
/// the begin of a step what the other has sent and received.
pub trait Agreement: Send {
    /// Takes a public value in; `step` says where it belongs.
    fn note(&mut self, step: &str, value: &[u8]);

    /// A step begins, the one of that number. Before an opening all that was noted so far is compared.
    fn begin(&mut self, number: u64, opening: bool);

    /// What rides on the next frame to that party, at most [`LONGEST_RIDER`] bytes.
    fn ride(&mut self, to: usize) -> Vec<u8>;

    /// What rode on that party's frame, hostile until checked.
    ///
    /// # Errors
    /// The parties disagree, or it is nothing that belongs here.
    fn arrived(&mut self, from: usize, rider: &[u8]) -> Result<(), Disagreement>;

    /// The first step with a public value of which that party does not yet know that it has the same.
    fn uncompared(&self, with: usize) -> Option<&str>;

    /// Whether something must still go to that party in this turn, 0 or 1, before an opening; never to oneself.
    fn owes(&self, to: usize, turn: usize) -> bool;

    /// Whether something must still come from that party in this turn; never from oneself.
    fn awaits(&self, from: usize, turn: usize) -> bool;
}

/// Why two parties do not agree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Disagreement {
    /// They took different values for public, at the earliest in this step.
    Values {
        /// Its name.
        step: String,
    },
    /// What came belongs to no comparison that is under way.
    Rider,
}
