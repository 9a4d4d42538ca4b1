//! Whether new words are fixed-point numbers to be checked, and which instruction makes them. Each
//! such word is made with its *claim*, which tells [`super::claims`] that its computation may leave
//! the range of a word. Words are made in many places that know nothing of checks, so this state
//! lies beside them, as their place does.

use std::cell::Cell;

/// Of which instruction a checked word is: its address, or from [`GIVEN`] on what is no
/// instruction; 0 of a word that is not checked.
pub type Claim = u32;

/// From here on claims are of what a program is given: the place of an array is added. Programs lie
/// below.
pub const GIVEN: Claim = 1 << 31;

/// What a program leaves as shares.
pub const LEFT: Claim = u32::MAX;

#[derive(Clone, Copy)]
struct State {
    /// Whether anything is checked.
    is_on: bool,
    /// The instruction that is carried out.
    address: Claim,
    /// What words are made with.
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

/// Whether a thread's words are checked, until it is dropped.
pub struct Watch(State);

impl Watch {
    /// From here on.
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

/// The instruction at that address is carried out.
pub fn at(address: u64) {
    // An address that no program has is still some claim.
    let claim = u32::try_from(address).ok().filter(|at| *at < GIVEN);
    changed(|state| state.address = claim.unwrap_or(0).max(1));
}

/// What is made from here on is of the array at that place.
pub fn at_given(place: usize) {
    // There are far fewer.
    changed(|state| state.address = GIVEN | place as u32);
}

/// Whether what is made from here on is checked, where anything is; before.
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

/// What is made from here on is of that claim; before.
pub fn set_claim(claim: Claim) -> Claim {
    changed(|state| std::mem::replace(&mut state.claim, if state.is_on { claim } else { 0 }))
}

/// What words are made with.
#[must_use]
pub fn claim() -> Claim {
    STATE.get().claim
}
