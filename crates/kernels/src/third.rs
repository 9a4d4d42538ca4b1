//! A product of two values that three parties share, by one product of each party.
//!
//! Let x = x0 + x1 + x2, and y likewise. Party i holds parts i and i + 1. By the usual summand,
//! x_i(y_i + y_{i+1}) + x_{i+1}y_i (Araki+ 2016, section 2.2), it evaluates two products. But
//!
//! xy = ½(2x0 + x1)(2y0 + y1) + ½(x1 + 2x2)(y1 + 2y2) − (x2 − x0)(y2 − y0).
//!
//! The halves need not be integers. Both are halves of numbers with the parity of x1·y1. So the
//! first party rounds down, the second one rounds up, and their sum is exact. This holds mod 2^64
//! if the products are known mod 2^65. It holds for sums of products if both parties round the same
//! sums: those of each run of 256 along the depth, from its beginning. The number of threads, and
//! the division of results into blocks, may differ between the parties.
//!
//! A formula without halves does not exist. With summands c_i(x_i + x_{i+1}/c_i)(y_i +
//! y_{i+1}/c_i), the squares of parts occur once if c_i + 1/c_{i−1} = 1. So the three factors are
//! c, 1 − 1/c and 1/(1 − c), and one of c and c − 1 is even. Here c = 2.
//!
//! **Narrow thirds.** The lowest bits of a product determine it if it is known to be small. Mod
//! 2^52, a product of words is one multiply-add of 52 bits; mod 2^65 it takes two and a half.
//! Halving leaves [`NARROW`] bits. They are stored at the upper end of words, times 2^[`ABOVE`], so
//! that sums of them wrap around at the right bit.
//!
//! Each summand belongs to one party and is computed from the parts that it holds. The protocol
//! must mask the summands when it sends them.

/// Words along the depth that are summed up before a half is rounded.
pub const RUN: usize = 256;

/// The number of correct bits of a narrow third.
pub const NARROW: u32 = 51;

/// The number of bits by which a narrow third is shifted up.
pub const ABOVE: u32 = 64 - NARROW;

/// The thirds that a machine evaluates faster than two products of all bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thirds {
    /// Whether it evaluates thirds of all 64 bits.
    pub whole: bool,
    /// Whether it evaluates narrow thirds.
    pub narrow: bool,
}

impl Thirds {
    /// No thirds.
    pub const NONE: Self = Self {
        whole: false,
        narrow: false,
    };

    /// Encodes the value for other machines. The AND of all machines' words is what all of them
    /// support.
    #[must_use]
    pub fn word(self) -> u64 {
        u64::from(self.whole) | u64::from(self.narrow) << 1
    }

    /// Decodes the value from such a word.
    #[must_use]
    pub fn of_word(word: u64) -> Self {
        Self {
            whole: word & 1 != 0,
            narrow: word & 2 != 0,
        }
    }

    /// Returns a party's third, narrow or not, if the machine evaluates it.
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

/// The kind of a summand. Its parts are in the order in which the party holds them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Summand {
    /// ⌊½(2x + x′)(2y + y′)⌋
    First,
    /// ⌈½(x + 2x′)(y + 2y′)⌉
    Second,
    /// −(x − x′)(y − y′)
    Last,
}

impl Third {
    /// Returns the third of a party.
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

    /// Returns the kind of the summand.
    #[must_use]
    pub fn summand(self) -> Summand {
        self.summand
    }

    /// Returns whether the third is narrow.
    #[must_use]
    pub fn is_narrow(self) -> bool {
        self.is_narrow
    }

    /// Returns the narrow version of the third: its lowest bits, shifted up.
    #[must_use]
    pub fn narrow(self) -> Self {
        Self {
            is_narrow: true,
            ..self
        }
    }
}
