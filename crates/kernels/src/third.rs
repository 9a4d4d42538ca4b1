//! A product of two values that three parties share, by one product of each party.
//!
//! Of x = x0 + x1 + x2, and of y alike, party i holds parts i and i + 1. By the usual summand,
//! x_i(y_i + y_{i+1}) + x_{i+1}y_i (Araki+ 2016, section 2.2), it evaluates two products. But
//!
//! xy = ½(2x0 + x1)(2y0 + y1) + ½(x1 + 2x2)(y1 + 2y2) − (x2 − x0)(y2 − y0).
//!
//! Neither half is a whole number; both are halves of numbers that are as odd as x1y1 is. So the
//! first party rounds down, the second one up, and their sum is exact. That holds mod 2^64 if the
//! products are known mod 2^65; and of sums of products, if both round the same sums: those of each
//! run of 256 along the depth, from its beginning. Threads, and the division of results into
//! blocks, may differ between the parties.
//!
//! Without halves it cannot be done: of summands c_i(x_i + x_{i+1}/c_i)(y_i + y_{i+1}/c_i) the
//! squares of parts come out once if c_i + 1/c_{i−1} = 1, so the three are c, 1 − 1/c and 1/(1 −
//! c), and of c and c − 1 one is even. Here c = 2.
//!
//! **Narrow thirds.** The lowest bits of a product that is known to be small say all of it. Mod
//! 2^52 a product of words is one multiply-add of 52 bits, where mod 2^65 it takes two and a half;
//! what is halved leaves [`NARROW`] bits. They are written at the upper end of words, times
//! 2^[`ABOVE`], so that sums of them wrap around where they should.
//!
//! Summands are each party's own and of its own parts; what hides them where they are sent is the
//! protocol's.

/// Bits of a narrow third that are right.
pub const NARROW: u32 = 51;

/// Places by which a narrow third is shifted up.
pub const ABOVE: u32 = 64 - NARROW;

/// Which thirds a machine evaluates faster than two products of all bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thirds {
    /// Those of all 64 bits.
    pub whole: bool,
    /// Narrow ones.
    pub narrow: bool,
}

impl Thirds {
    /// As machines tell each other: what all of them can is what all words have in common.
    #[must_use]
    pub fn word(self) -> u64 {
        u64::from(self.whole) | u64::from(self.narrow) << 1
    }

    /// Of such a word.
    #[must_use]
    pub fn of_word(word: u64) -> Self {
        Self {
            whole: word & 1 != 0,
            narrow: word & 2 != 0,
        }
    }

    /// A party's third, narrow or not, if there is one.
    #[must_use]
    pub fn of(self, party: usize, is_narrow: bool) -> Option<Third> {
        let third = Third::of(party);
        if is_narrow {
            self.narrow.then(|| third.narrow())
        } else {
            self.whole.then_some(third)
        }
    }
}

/// One of the three summands, of all 64 bits or [narrow](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Third {
    pub(crate) summand: Summand,
    pub(crate) is_narrow: bool,
}

/// Which of the three; its parts are in the order in which the party holds them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Summand {
    /// ⌊½(2x + x′)(2y + y′)⌋
    First,
    /// ⌈½(x + 2x′)(y + 2y′)⌉
    Second,
    /// −(x − x′)(y − y′)
    Last,
}

impl Third {
    /// That of a party.
    ///
    /// # Panics
    /// If there is no such party.
    #[must_use]
    pub fn of(party: usize) -> Self {
        Self {
            summand: [Summand::First, Summand::Second, Summand::Last][party],
            is_narrow: false,
        }
    }

    /// The same of its lowest bits, shifted up.
    #[must_use]
    pub fn narrow(self) -> Self {
        Self {
            is_narrow: true,
            ..self
        }
    }
}
