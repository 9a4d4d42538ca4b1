//! What a channel lets ride on its frames, so that parties find out whether they agree.

/// Longest piggyback of a frame, in bytes.
pub const LONGEST_PIGGYBACK: usize = 64;

/// Messages in each direction until two parties know that they agree.
pub(crate) const TURNS: usize = 2;

/// Compares with each other party what all take for public, without showing it: by piggybacks on
/// the frames of a [`crate::Channel`] that go anyway, and by frames of its own before something is
/// opened.
///
/// Both ends of a link go through the same calls, since all parties run the same program; so each
/// knows at the begin of a step what the other has sent and received.
pub trait Agreement: Send {
    /// Takes a public value in; `step` says where it belongs.
    fn note(&mut self, step: &str, value: &[u8]);

    /// A step begins, the one of that number. Before an opening all that was noted so far is
    /// compared, and with a step
    /// in which all send to all it begins to be: `comparing`.
    fn begin(&mut self, number: u64, comparing: bool);

    /// What rides on the next frame to that party, at most [`LONGEST_PIGGYBACK`] bytes.
    fn piggyback(&mut self, to: usize) -> Vec<u8>;

    /// What rode on that party's frame, hostile until checked; whether it belongs to a comparison
    /// under way.
    fn arrived(&mut self, from: usize, piggyback: &[u8]) -> bool;

    /// That this party disagrees with another one, as far as that is known.
    fn disagreement(&self) -> Option<Disagreement>;

    /// The first step with a public value of which that party does not yet know that it has the
    /// same.
    fn uncompared(&self, with: usize) -> Option<&str>;

    /// Whether something must still go to that party in this turn, 0 or 1, before an opening; never
    /// to oneself.
    fn owes(&self, to: usize, turn: usize) -> bool;

    /// Whether something must still come from that party in this turn; never from oneself.
    fn awaits(&self, from: usize, turn: usize) -> bool;
}

/// That two parties took different values for public.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disagreement {
    /// The other one.
    pub party: usize,
    /// The first step in which they may have.
    pub step: String,
    /// Which of three or more has values that no other one has, if that is known.
    pub odd: Option<usize>,
    /// Whether all that this party will know of it is known: it has compared with all others.
    pub is_complete: bool,
}
