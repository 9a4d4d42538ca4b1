//! Private comparison of public values, in data that a channel attaches to its frames.

/// Longest piggyback of a frame, in bytes.
pub const LONGEST_PIGGYBACK: usize = 64;

/// Messages in each direction until two parties know that they agree.
pub(crate) const TURNS: usize = 2;

/// Comparison with each other party of the values that all parties treat as public, without showing
/// them. The data travel as piggybacks on the frames that a [`crate::Channel`] sends anyway, and in
/// separate frames before an opening.
///
/// Both ends of a link make the same calls, since all parties run the same program. So each end
/// knows at the beginning of a step what the other has sent and received.
pub trait Agreement: Send {
    /// Adds a public value; `step` is the step that it belongs to.
    fn note(&mut self, step: &str, value: &[u8]);

    /// Records that step `number` begins. With `comparing`, all values noted so far begin to be
    /// compared: in a step in which all parties send to all, and before an opening, which waits
    /// until the comparison is complete.
    fn begin(&mut self, number: u64, comparing: bool);

    /// Returns the piggyback of the next frame to a party, at most [`LONGEST_PIGGYBACK`] bytes.
    fn piggyback(&mut self, to: usize) -> Vec<u8>;

    /// Takes in the piggyback of a party's frame, which is hostile until checked. Returns whether
    /// it belongs to a comparison under way.
    fn arrived(&mut self, from: usize, piggyback: &[u8]) -> bool;

    /// Returns the disagreement of this party with another one, as far as it is known.
    fn disagreement(&self) -> Option<Disagreement>;

    /// Returns the first step with a public value for which party `with` does not know yet that the
    /// two parties agree.
    fn uncompared(&self, with: usize) -> Option<&str>;

    /// Returns whether this party must still send something to party `to` in this turn, 0 or 1,
    /// before an opening. Never true for this party itself.
    fn owes(&self, to: usize, turn: usize) -> bool;

    /// Returns whether something must still come from party `from` in this turn. Never true for
    /// this party itself.
    fn awaits(&self, from: usize, turn: usize) -> bool;
}

/// Two parties treat different values as public.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disagreement {
    /// The other party.
    pub party: usize,
    /// The first step in which the values may differ.
    pub step: String,
    /// Of three or more parties, the one whose values no other party has, if known.
    pub odd: Option<usize>,
    /// Whether nothing more will become known, because this party has compared with all others.
    pub is_complete: bool,
}
