//! Who is at the ends of the links: the computing parties, and behind them perhaps a dealer.

use crate::error::DEALER;

/// The members of a mesh, counted from 0; with a dealer, it is the last.
#[derive(Clone, Copy)]
pub(crate) struct Roster {
    pub members: usize,
    pub dealer: bool,
}

impl Roster {
    /// Members that compute.
    pub fn parties(self) -> usize {
        self.members - usize::from(self.dealer)
    }

    /// What errors call a member.
    pub fn name(self, member: usize) -> usize {
        if self.dealer && member + 1 == self.members {
            DEALER
        } else {
            member
        }
    }
}
