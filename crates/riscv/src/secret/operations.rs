//! Many steps of one kind as one operation of the protocol.

use super::columns::{columns, rows, slices, written};
use super::costs;
use super::node::{Components, Form, Word};
use super::packing::Places;
use super::products::{Placed, Products};
use super::steps::{Joint, Local, Step, Work};
use crate::numbers::words::Signs;
use mpc::integers::{self, Number};
use mpc::{Bits, Cost, Protocol, Result, Shift};

/// The components of public words, computed without access to the protocol.
pub struct Publics {
    /// The components of 1, whose multiples are all words.
    one: Components,
    /// The components of all ones, in binary form.
    ones: Components,
}

impl Publics {
    /// Gets the components from a protocol.
    #[must_use]
    pub fn of(protocol: &dyn Protocol) -> Self {
        let mut parts = [[0], [0]];
        let mut out: Vec<&mut [u64]> = parts
            .iter_mut()
            .take(protocol.parts())
            .map(|part| part.as_mut_slice())
            .collect();
        protocol.trivial(&[1], &mut out);
        Self {
            one: parts.map(|[word]| word),
            ones: rows(protocol.trivial_bits(&[u64::MAX], 1, 64).parts())[0],
        }
    }

    /// Returns the components of a public word.
    #[must_use]
    pub fn components(&self, value: u64, form: Form) -> Components {
        match form {
            Form::Binary => Local::Mask(value).on(&[self.ones]),
            Form::Arithmetic => Local::Scale(value).on(&[self.one]),
        }
    }

    /// Returns the components of the at most two operands of local work.
    #[must_use]
    pub fn two(&self, step: &Step) -> [Components; 2] {
        let mut operands = [Components::default(); 2];
        for (components, need) in operands.iter_mut().zip(&step.needs) {
            *components = self.operand(need);
        }
        operands
    }

    /// Returns the components of an operand.
    pub fn operand(&self, (word, form): &(Word, Form)) -> Components {
        match word {
            Word::Secret(node) => node.computed(*form).expect("it was planned before"),
            Word::Public(value) => self.components(*value, *form),
        }
    }
}

/// Returns the cost of steps of one kind together.
pub fn cost(protocol: &dyn Protocol, steps: &[&Step]) -> Cost {
    let joint = |step: &Step| match step.work {
        Work::Joint(joint) => joint,
        Work::Local(_) => unreachable!("local work has no kind"),
    };
    let works: Vec<Joint> = steps.iter().map(|step| joint(step)).collect();
    if works[0] != Joint::Multiply {
        return costs::of_steps(protocol, &works);
    }
    let placed: Vec<Placed> = steps.iter().copied().enumerate().collect();
    // The matrices depend on the operands, and not on their shares.
    let products = Products::of(&placed, &|_| Components::default()).into_iter();
    let costs = products.map(|(_, products)| products.cost(protocol));
    costs.fold(Cost::default(), Cost::beside)
}

/// Steps of a kind, as one operation. Deliberately without `Debug`: it holds shares.
pub enum Batch {
    /// Products of numbers.
    Products(Products),
    /// Steps of any other kind.
    Steps(Steps),
}

impl Batch {
    /// Builds the operations for steps of one kind, each with the indices of its steps.
    pub fn of(publics: &Publics, steps: &[Placed]) -> Vec<(Vec<usize>, Self)> {
        if matches!(steps[0].1.work, Work::Joint(Joint::Multiply)) {
            let products = Products::of(steps, &|need| publics.operand(need)).into_iter();
            return products
                .map(|(steps, products)| (steps, Self::Products(products)))
                .collect();
        }
        let batch = Steps::of(publics, steps);
        vec![(
            steps.iter().map(|(at, _)| *at).collect(),
            Self::Steps(batch),
        )]
    }

    /// Executes the operation. Returns the components of each step's result.
    ///
    /// # Errors
    /// The errors of the network links.
    pub fn carry_out(self, protocol: &mut dyn Protocol) -> Result<Vec<Components>> {
        match self {
            Self::Products(products) => products.carry_out(protocol),
            Self::Steps(batch) => Carrying { protocol, batch }.carry_out(),
        }
    }
}

/// Steps and their operands. Deliberately without `Debug`: it holds shares.
pub struct Steps {
    works: Vec<Joint>,
    /// The operands by position, each with one entry per step.
    operands: Vec<Vec<Components>>,
}

impl Steps {
    /// Collects steps of one kind.
    ///
    /// # Panics
    /// Panics for local work, which has no kind.
    fn of(publics: &Publics, steps: &[Placed]) -> Self {
        let joint = |(_, step): &Placed| match step.work {
            Work::Joint(joint) => joint,
            Work::Local(_) => unreachable!("local work has no kind"),
        };
        let operand = |place: usize| {
            let needs = steps.iter().map(|(_, step)| &step.needs[place]);
            needs.map(|need| publics.operand(need)).collect()
        };
        Self {
            works: steps.iter().map(joint).collect(),
            operands: (0..steps[0].1.needs.len()).map(operand).collect(),
        }
    }
}

/// Steps, and the protocol that executes them.
struct Carrying<'p> {
    protocol: &'p mut dyn Protocol,
    batch: Steps,
}

impl Carrying<'_> {
    fn carry_out(self) -> Result<Vec<Components>> {
        match self.batch.works[0] {
            Joint::Multiply => unreachable!("products are done apart"),
            Joint::And(..) => self.and(),
            Joint::Choose => self.choose(),
            Joint::Sign(_) => {
                let (x, width) = (self.arithmetic(0), self.width());
                let signs = self.protocol.sign(&slices(&x), width)?;
                Ok(gathered(&signs))
            }
            Joint::IsZero(_) => {
                let (x, width) = (self.arithmetic(0), self.width());
                let zeros = self.protocol.equal_zero(&slices(&x), width)?;
                Ok(gathered(&zeros))
            }
            Joint::NoOnes(_) => {
                let x = self.binary(0, self.width());
                Ok(gathered(&integers::is_zero(self.protocol, &x)?))
            }
            Joint::Less(_) => {
                let [x, y] = [0, 1].map(|place| self.binary(place, self.width()));
                Ok(gathered(&integers::less(self.protocol, &x, &y)?))
            }
            Joint::ToBinary(..) => self.make_binary(),
            Joint::ToArithmetic(_) => self.make_arithmetic(),
            Joint::Divide(width, signs) => self.divide(width as usize, signs),
            Joint::Truncate(bits) => {
                let x = self.arithmetic(0);
                let shift = Shift::new(bits).expect("1 to 61 bits are dropped");
                written(self.protocol, self.batch.works.len(), |protocol, out| {
                    protocol.truncate(&slices(&x), shift, out)
                })
            }
            Joint::DivideBy(width, divisor, signs) => {
                let x = self.arithmetic(0);
                let signed = signs == Signs::Signed;
                written(self.protocol, self.batch.works.len(), |protocol, out| {
                    integers::divide_by(protocol, &slices(&x), width as usize, divisor, signed, out)
                })
            }
        }
    }

    fn operand(&self, place: usize) -> &[Components] {
        &self.batch.operands[place]
    }

    /// Returns an operand of all steps in arithmetic form, by component.
    fn arithmetic(&self, place: usize) -> Vec<Vec<u64>> {
        columns(self.protocol, self.operand(place))
    }

    /// Returns the low bits of an operand of all steps in binary form, as bit planes.
    fn binary(&self, place: usize, width: usize) -> Bits {
        let words = self.operand(place);
        let n = words.len();
        let stride = n.div_ceil(64);
        let component = |part: usize| {
            let mut planes = vec![0; width * stride];
            for (at, word) in words.iter().enumerate() {
                for (place, plane) in planes.chunks_mut(stride).enumerate() {
                    plane[at / 64] |= (word[part] >> place & 1) << (at % 64);
                }
            }
            planes
        };
        let parts = (0..self.protocol.parts()).map(component).collect();
        Bits::new(width, n, parts)
    }

    /// Returns the greatest width among the steps.
    fn width(&self) -> usize {
        let widths = self.batch.works.iter().map(|work| work.width() as usize);
        // A signed number has at least a sign and one more bit.
        widths.max().unwrap_or(1).max(2)
    }

    /// Computes the AND of the bits that may be one in both operands.
    fn and(self) -> Result<Vec<Components>> {
        let of = |work: &Joint| match work {
            Joint::And(ones, width) => (*ones, *width),
            _ => unreachable!("all are of one kind"),
        };
        let (masks, widths): (Vec<u64>, Vec<u32>) = self.batch.works.iter().map(of).unzip();
        let places = Places::of(masks);
        let [x, y] = [0, 1].map(|place| places.pack_shares(self.protocol, self.operand(place)));
        let product = self.protocol.and(&x, &y)?;
        let words = places.unpack(&product).into_iter().zip(widths);
        Ok(words
            .map(|(word, width)| Local::Extend(width, Signs::Signed).on(&[word]))
            .collect())
    }

    fn choose(self) -> Result<Vec<Components>> {
        let n = self.batch.works.len();
        let bits = Places::of(vec![1; n]).pack_shares(self.protocol, self.operand(0));
        let x = self.arithmetic(1);
        written(self.protocol, n, |protocol, out| {
            protocol.bit_multiply(&bits, &slices(&x), out)
        })
    }

    fn make_binary(self) -> Result<Vec<Components>> {
        let widths = self.batch.works.iter().map(|work| work.width() as usize);
        let width = widths.max().unwrap_or(1);
        let x = self.arithmetic(0);
        let bits = self.protocol.to_binary(&slices(&x), width)?;
        let words = gathered(&bits).into_iter().zip(&self.batch.works);
        let finished = words.map(|(word, work)| match work {
            Joint::ToBinary(_, then) => then.on(&[word]),
            _ => unreachable!("all are of one kind"),
        });
        Ok(finished.collect())
    }

    /// Converts to arithmetic form: the sum of the values of the bits.
    fn make_arithmetic(self) -> Result<Vec<Components>> {
        let worth = |work: &Joint| match work {
            Joint::ToArithmetic(worth) => *worth,
            _ => unreachable!("all are of one kind"),
        };
        let worths: Vec<_> = self.batch.works.iter().map(worth).collect();
        let places = Places::of(worths.iter().map(|worth| worth.mask()).collect());
        let bits = places.pack_shares(self.protocol, self.operand(0));
        let counted = written(self.protocol, places.bits(), |protocol, out| {
            protocol.bit_to_ring(&bits, out)
        })?;
        let mut sums = vec![Components::default(); worths.len()];
        for ((at, place), components) in places.each().zip(counted) {
            let scaled = Local::Scale(worths[at].of(place)).on(&[components]);
            sums[at] = Local::Add.on(&[sums[at], scaled]);
        }
        Ok(sums)
    }

    fn divide(self, width: usize, signs: Signs) -> Result<Vec<Components>> {
        let [x, y] = [0, 1].map(|place| self.arithmetic(place));
        let y_bits = self.binary(2, width);
        let x_bits = (self.batch.operands.len() > 3).then(|| self.binary(3, width));
        written(self.protocol, self.batch.works.len(), |protocol, out| {
            let x = Number {
                words: &slices(&x),
                bits: x_bits.as_ref().unwrap_or(&y_bits),
            };
            let y = Number {
                words: &slices(&y),
                bits: &y_bits,
            };
            integers::divide(protocol, x, y, signs == Signs::Signed, out)
        })
    }
}

/// Gathers words from their bit planes, the lowest first.
fn gathered(bits: &Bits) -> Vec<Components> {
    let stride = bits.stride();
    let mut words = vec![Components::default(); bits.len()];
    for (component, part) in bits.parts().iter().enumerate() {
        for (place, plane) in part.chunks(stride).enumerate() {
            for (at, word) in words.iter_mut().enumerate() {
                word[component] |= (plane[at / 64] >> (at % 64) & 1) << place;
            }
        }
    }
    words
}
