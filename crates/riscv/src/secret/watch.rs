//! The state of checked mode: whether new words are fixed-point numbers to be checked, and which
//! instruction creates them. Each such word carries its *claim*, which tells [`super::claims`] that
//! its computation may leave the range of a word. The state is thread-local because words are
//! created in many functions that are unaware of checks.

use std::cell::Cell;

/// The instruction that a checked word belongs to: its address, or a number from [`GIVEN`] on if it
/// belongs to no instruction; 0 for a word that is not checked.
pub type Claim = u32;

/// The first claim of the program's inputs: the index of the array is added. Programs lie below
/// this address.
pub const GIVEN: Claim = 1 << 31;

/// The claim of outputs that the program leaves as shares.
pub const LEFT: Claim = u32::MAX;

#[derive(Clone, Copy)]
struct State {
    /// Whether checked mode is on.
    is_on: bool,
    /// The instruction that is being executed.
    address: Claim,
    /// The claim of new words.
    claim: Claim,
}

thread_local! {
    static STATE: Cell<State> = const {
        Cell::new(State { is_on: false, address: 1, claim: 0 })
    };
}

fn changed<T>(change: impl FnOnce(&mut State) -> T) -> T {
    let mut state = STATE.get();
    let result = change(&mut state);
    STATE.set(state);
    result
}

/// A guard that turns checked mode on or off for this thread until it is dropped.
pub struct Watch(State);

impl Watch {
    /// Begins to check words, if `is_on`.
    #[must_use]
    pub fn begin(is_on: bool) -> Self {
        let before = STATE.get();
        STATE.set(State {
            is_on,
            address: 1,
            claim: 0,
        });
        Self(before)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        STATE.set(self.0);
    }
}

/// Sets the address of the instruction that is being executed.
pub fn at(address: u64) {
    // An address outside all programs still needs a nonzero claim.
    let claim = u32::try_from(address).ok().filter(|at| *at < GIVEN);
    changed(|state| state.address = claim.unwrap_or(0).max(1));
}

/// Attributes new words to the input array with this index.
pub fn at_given(place: usize) {
    // There are far fewer arrays than the claims have room for.
    changed(|state| state.address = GIVEN | place as u32);
}

/// Sets whether new words are checked, if checked mode is on. Returns the previous setting.
pub fn set(is_claimed: bool) -> bool {
    changed(|state| {
        let before = state.claim != 0;
        state.claim = if state.is_on && is_claimed {
            state.address
        } else {
            0
        };
        before
    })
}

/// Sets the claim of new words. Returns the previous one.
pub fn set_claim(claim: Claim) -> Claim {
    changed(|state| std::mem::replace(&mut state.claim, if state.is_on { claim } else { 0 }))
}

/// Returns the claim of new words.
#[must_use]
pub fn claim() -> Claim {
    STATE.get().claim
}
