//! Truncation by f bits without wild errors.
//!
//! **Computes** x / 2^f for signed |x| < 2^62: ⌊x / 2^f⌋ or one more, the latter with a probability that
//! makes it unbiased (up to 2^−f of a unit for two parties).
//!
//! **Two parties.** As in [`crate::replicated`]: with s = x0 + 2^62, t = x1 and A, B their highest bits,
//! s + t lies in [0, 2^63), so it wraps exactly when A or B is set:
//! x / 2^f = (s >> f) + (t >> f) − (A + B − AB)·2^(64−f) − 2^(62−f) + 1 up to one unit. AB is a product of
//! a bit that party 0 knows and one that party 1 knows, wanted mod 2^f: from a correlation (α of
//! party 0, β of party 1, [αβ]) each opens one bit, A ⊕ α and B ⊕ β. One round, 1 bit a party.
//! Which of the two results it is, is a function of the sharing, not a coin that nobody knows.
//!
//! **More parties** (Escudero+ 2020, section 5): from [r], [r >> f] and r's highest bit R, open
//! c = x + 2^62 + r. As x + 2^62 < 2^63, the sum wraps exactly when R is set and c's highest bit is not:
//! x / 2^f = (c >> f) − (r >> f) + R(1 − C)·2^(64−f) − 2^(62−f), where C is c's highest bit; the borrow
//! out of the dropped bits is not computed, which rounds up with the right probability. One round,
//! 64 bits a party and peer.
//!
//! **Simulation.** The opened bits are masked by α and β, which their owners alone know; c by r.

use super::Additive;
use crate::bits::{bit_at, flip};
use crate::correlations::kind::Kind;
use crate::group::Group;
use crate::{Result, blocks};
use ring::planes::words_of;

impl Additive {
    /// As part of the step that is under way.
    ///
    /// # Panics
    /// If `bits` is not in 1..=61.
    pub(super) fn truncate_words(&mut self, x: &[u64], bits: u32, out: &mut [u64]) -> Result<()> {
        assert!(
            (1..=61).contains(&bits),
            "truncation by 1 to 61 bits, not {bits}"
        );
        if x.is_empty() {
            return Ok(());
        }
        if self.channel.parties() == 2 {
            self.truncate_between_two(x, bits, out)
        } else {
            self.truncate_with_pair(x, bits, out)
        }
    }

    fn truncate_between_two(&mut self, x: &[u64], f: u32, out: &mut [u64]) -> Result<()> {
        let n = x.len();
        let cross = self.supply.take(Kind::CrossBits { bits: f }, n)?;
        let [mask, product] = &cross.columns[..] else {
            unreachable!("two columns of cross products")
        };
        let offset = if self.is_first() { 1 << 62 } else { 0 };
        let mut mine = vec![0; words_of(n)];
        for (high, x) in mine.iter_mut().zip(x.chunks(64)) {
            for (i, x) in x.iter().enumerate() {
                *high |= (x.wrapping_add(offset) >> 63) << i;
            }
        }
        mine.iter_mut()
            .zip(mask)
            .for_each(|(bit, mask)| *bit ^= mask);
        let peer = 1 - self.channel.party();
        self.channel.send(peer, mine.clone())?;
        let theirs = self.channel.receive(peer, mine.len())?;
        #[cfg(feature = "mutation")]
        self.show(&theirs);
        let first = self.is_first();
        let (mine, theirs) = (&mine[..], &theirs[..]);
        blocks::for_each([out], [x, &product[..n]], &|at, [out], [x, product]| {
            for i in 0..x.len() {
                let [own, other, secret] = [mine, theirs, mask].map(|plane| bit_at(plane, at + i));
                let s = x[i].wrapping_add(offset);
                // AB from the opened bits a', b': party 0 adds a'b' + b'(1 − 2a')α, party 1 a'(1 − 2b')β.
                let mut both = flip(flip(product[i], own), other);
                both = both.wrapping_add(other.wrapping_mul(flip(secret, own)));
                let mut constant = 0;
                if first {
                    both = both.wrapping_add(own & other);
                    constant = 1_u64.wrapping_sub(1 << (62 - f));
                }
                out[i] = (s >> f)
                    .wrapping_add(both.wrapping_sub(s >> 63) << (64 - f))
                    .wrapping_add(constant);
            }
        });
        Ok(())
    }

    fn truncate_with_pair(&mut self, x: &[u64], f: u32, out: &mut [u64]) -> Result<()> {
        let n = x.len();
        let pairs = self.supply.take(Kind::Truncations { bits: f }, n)?;
        let [r, shifted, top] = &pairs.columns[..] else {
            unreachable!("three columns of truncations")
        };
        let offset = if self.is_first() { 1 << 62 } else { 0 };
        let mut message = vec![0; n];
        blocks::for_each([&mut message], [x, &r[..n]], &|_, [c], [x, r]| {
            for i in 0..x.len() {
                c[i] = x[i].wrapping_add(r[i]).wrapping_add(offset);
            }
        });
        let opened = self.open(Group::Additive, message)?;
        let first = self.is_first();
        blocks::for_each([out], [&opened, &shifted[..n], &top[..n]], &|_,
                                                                       [out],
                                                                       [
            c,
            shifted,
            top,
        ]| {
            for i in 0..c.len() {
                let wrapped = top[i].wrapping_mul(1 - (c[i] >> 63)) << (64 - f);
                out[i] = wrapped.wrapping_sub(shifted[i]);
                if first {
                    out[i] = out[i].wrapping_add(c[i] >> f).wrapping_sub(1 << (62 - f));
                }
            }
        });
        Ok(())
    }
}
