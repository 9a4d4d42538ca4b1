//! Who is at the ends of the links: the computing parties, and behind them perhaps a dealer.

use crate::error::{DEALER, Name};
use crate::wording::{Voice, Words};

/// Who the members of a session are, besides how many.
#[derive(Clone, Copy, Debug)]
pub struct Members {
    /// Whether the last one is a dealer.
    pub dealer: bool,
    /// How texts call them.
    pub words: &'static Words,
}

/// Parties, the last of whom may be a dealer.
impl From<bool> for Members {
    fn from(dealer: bool) -> Self {
        Self {
            dealer,
            words: &Words::PARTIES,
        }
    }
}

/// The members of a mesh, counted from 0; with a dealer, it is the last.
#[derive(Clone, Copy)]
pub(crate) struct Roster {
    pub members: usize,
    pub dealer: bool,
    pub words: &'static Words,
}

impl Roster {
    /// Members that compute.
    pub fn parties(self) -> usize {
        self.members - usize::from(self.dealer)
    }

    /// One with that many members.
    pub fn new(members: usize, kind: Members) -> Self {
        let Members { dealer, words } = kind;
        Self {
            members,
            dealer,
            words,
        }
    }

    /// How a member is heard by the others.
    pub fn voice_of(self, member: usize) -> Voice<'static> {
        Voice::told(self.words, self.name(member))
    }

    /// What an error calls a member.
    pub fn of(self, member: usize) -> Name {
        Name::Member(self.name(member))
    }

    /// The number of a member in errors.
    pub fn name(self, member: usize) -> usize {
        if self.dealer && member + 1 == self.members {
            DEALER
        } else {
            member
        }
    }
}
