//! Costs of compositions: the declared costs of their operations, one after another and side by
//! side as they run. The sizes come from [`super::division`] and [`super::known`], which define the
//! stages.

use super::division::{REST, Stage, WIDE};
use super::known::{Stages, of_public};
use crate::tree::{prefix_conjunction_levels, top_carry_levels};
use crate::{Cost, Opening, Operation, Protocol, Shift};

/// A composition of this module, with the public sizes that determine its cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Composition {
    /// [`super::less`] of n pairs.
    Less {
        /// The number of elements.
        n: u64,
        /// The number of planes.
        width: u64,
    },
    /// [`super::is_zero`] of n values.
    IsZero {
        /// The number of elements.
        n: u64,
        /// The number of planes.
        width: u64,
    },
    /// [`super::divide`] of n pairs.
    Divide {
        /// The number of elements.
        n: u64,
        /// The width of both numbers in bits.
        width: u64,
        /// Whether the highest bit of each is a sign.
        signed: bool,
    },
    /// [`super::divide_by`] of n words.
    DivideBy {
        /// The number of elements.
        n: u64,
        /// The width in bits.
        width: u64,
        /// The divisor.
        divisor: u64,
        /// Whether the highest bit is a sign.
        signed: bool,
    },
}

/// Returns the declared cost of a composition under a protocol: rounds of its chain, and bits over
/// all links.
///
/// # Panics
/// If a width is 0 or more than 64.
#[must_use]
pub fn cost(protocol: &dyn Protocol, composition: Composition) -> Cost {
    match composition {
        Composition::Less { n, width } => Costs { protocol, n }.less(width),
        Composition::IsZero { n, width } => Costs { protocol, n }.is_zero(width),
        Composition::Divide { n, width, signed } => Costs { protocol, n }.divide(width, signed),
        Composition::DivideBy {
            n,
            width,
            divisor,
            signed,
        } => Costs { protocol, n }.divide_by(width, divisor, signed),
    }
}

/// Costs for n elements under a protocol. Each function is named after the function whose cost it
/// returns; `count` is the number of words or bits per element that are processed together.
struct Costs<'p> {
    protocol: &'p dyn Protocol,
    n: u64,
}

impl Costs<'_> {
    fn of(&self, operation: Operation) -> Cost {
        self.protocol.cost(operation)
    }

    fn and(&self, width: u64, rights: u64) -> Cost {
        let n = self.n;
        self.of(Operation::And { n, width, rights })
    }

    fn products(&self, count: u64, dropped: usize) -> Cost {
        let n = count * self.n;
        self.of(Operation::Bilinear {
            left: Opening::New(n),
            right: Opening::New(n),
            n,
            truncate: Shift::new(dropped as u32),
        })
    }

    fn truncated(&self, dropped: usize) -> Cost {
        let n = self.n;
        let shift = Shift::new(dropped as u32);
        shift.map_or(Cost::default(), |shift| {
            self.of(Operation::Truncate { n, shift })
        })
    }

    fn chosen(&self, count: u64) -> Cost {
        let n = count * self.n;
        self.of(Operation::BitMultiply { n })
    }

    fn as_words(&self, count: u64) -> Cost {
        let n = count * self.n;
        self.of(Operation::BitToRing { n })
    }

    fn negative(&self, count: u64, width: usize) -> Cost {
        let (n, width) = (count * self.n, width as u64);
        self.of(Operation::Sign { n, width })
    }

    fn as_bits(&self, count: u64, width: u64) -> Cost {
        let n = count * self.n;
        self.of(Operation::ToBinary { n, width })
    }

    /// Returns the cost of the levels of a tree, one after another. Each level has joins with the
    /// given numbers of products, side by side.
    fn levels(&self, levels: impl IntoIterator<Item = Vec<(u64, u64)>>) -> Cost {
        let level = |joins: Vec<(u64, u64)>| {
            let joins = joins.into_iter().filter(|(count, _)| *count > 0);
            joins.fold(Cost::default(), |cost, (count, rights)| {
                cost.beside(self.and(count, rights))
            })
        };
        let costs = levels.into_iter().map(level);
        costs.fold(Cost::default(), |cost, level| cost + level)
    }

    fn less(&self, width: u64) -> Cost {
        let levels = top_carry_levels(as_size(width)).into_iter();
        self.and(width, 1) + self.levels(levels.map(|(one, two)| vec![(one, 1), (two, 2)]))
    }

    fn is_zero(&self, width: u64) -> Cost {
        let widths = std::iter::successors(Some(width), |width| Some(width.div_ceil(2)));
        let levels = widths.take_while(|width| *width > 1);
        self.levels(levels.map(|width| vec![(width / 2, 1)]))
    }

    fn divide(&self, width: u64, signed: bool) -> Cost {
        let levels = prefix_conjunction_levels(as_size(width));
        let lengths = self.levels(levels.map(|level| level.map(|rights| (1, rights)).collect()))
            + self.as_words(width + 1);
        let quotient = match as_size(width) {
            width if width <= WIDE => self.narrow(width),
            width => self.wide(width),
        };
        if signed {
            let sizes = self.chosen(2) + self.as_bits(2, width);
            sizes + lengths + quotient + self.and(1, 1) + self.chosen(2)
        } else {
            lengths + quotient + self.chosen(1)
        }
    }

    fn narrow(&self, bits: usize) -> Cost {
        let stages = Stage::all(bits);
        let powers = self.products(1 + stages.len() as u64, 0);
        let reciprocal = self.truncated(bits.max(30) - 30)
            + self.products(1, REST)
            + self.products(2, 30)
            + self.products(2, 30)
            + self.products(1, 30);
        let stages = stages.iter().fold(Cost::default(), |cost, stage| {
            cost + self.truncated(stage.u)
                + self.products(1, stage.v)
                + self.products(1, REST)
                + self.products(2, 0)
        });
        powers + reciprocal + stages + self.negative(2, (bits + 2).min(64)) + self.chosen(4)
    }

    /// Two steps of long division, after the quotient of the upper 62 bits.
    fn wide(&self, width: usize) -> Cost {
        let less = match width {
            64 => self.negative(2, 64) + self.and(1, 1),
            _ => self.negative(1, 64),
        };
        let step = less + self.chosen(2);
        self.as_words(width as u64) + self.products(1, 0) + self.narrow(WIDE) + step + step
    }

    fn divide_by(&self, width: u64, divisor: u64, signed: bool) -> Cost {
        let Some(size) = of_public(divisor, signed) else {
            return self.as_bits(1, 64) + self.divide(64, signed);
        };
        if size < 2 {
            return Cost::default();
        }
        let stages = Stages::of(as_size(width), size, signed);
        let highest = match as_size(width) - stages.rest {
            0 => Cost::default(),
            1 => self.negative(1, as_size(width)) + self.as_words(1),
            count => self.negative(count as u64, 64) + self.as_words(count as u64),
        };
        let quotient = stages.each().fold(Cost::default(), |cost, stage| {
            cost + self.truncated(stage.u) + self.truncated(stage.dropped)
        });
        highest + quotient + self.negative(3, stages.length + 3) + self.as_words(3)
    }
}

fn as_size(width: u64) -> usize {
    assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
    width as usize
}
