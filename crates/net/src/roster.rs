//! Members at the ends of the links: the computing parties, and perhaps a dealer after them.

use crate::error::{DEALER, Name};
use crate::network::Network;
use crate::wording::{Voice, Words};

/// Kind of a session's members, without their number.
#[derive(Clone, Copy, Debug)]
pub struct Members {
    /// Whether the last member is a dealer.
    pub dealer: bool,
    /// Words that texts use for the members.
    pub words: &'static Words,
    /// Network that the links imitate, if any.
    pub network: Option<Network>,
}

/// Parties in the default words; `true` makes the last member a dealer.
impl From<bool> for Members {
    fn from(dealer: bool) -> Self {
        Self {
            dealer,
            words: &Words::PARTIES,
            network: None,
        }
    }
}

/// Members of a mesh, counted from 0. A dealer is the last.
#[derive(Clone, Copy)]
pub(crate) struct Roster {
    pub members: usize,
    pub dealer: bool,
    pub words: &'static Words,
    pub network: Option<Network>,
}

impl Roster {
    /// Returns the number of members that compute.
    pub fn parties(self) -> usize {
        self.members - usize::from(self.dealer)
    }

    /// Returns whether two of these members can say of a third that one of two cheated.
    pub fn is_of_three(self) -> bool {
        self.members == 3 && !self.dealer
    }

    /// Makes a roster of `members` members.
    pub fn new(members: usize, kind: Members) -> Self {
        let Members {
            dealer,
            words,
            network,
        } = kind;
        Self {
            members,
            dealer,
            words,
            network,
        }
    }

    /// Returns the point of view in which the others read what a member reports.
    pub fn voice_of(self, member: usize) -> Voice<'static> {
        Voice::told(self.words, self.name(member))
    }

    /// Returns the name of a member in errors.
    pub fn of(self, member: usize) -> Name {
        Name::Member(self.name(member))
    }

    /// Returns the number of a member in errors.
    pub fn name(self, member: usize) -> usize {
        if self.dealer && member + 1 == self.members {
            DEALER
        } else {
            member
        }
    }
}
