//! Relations of the messages of bit products ([`crate::replicated::bit_products`] has the protocol).
//!
//! - Role 0 sends H = h − ρ and U = u − σ, with h = u·(x0 + x1) and u = β0 ⊕ β1 = β0 + β1 − 2β0β1.
//!   So h = β0·(1 − 2β1)·x1 + (1 − 2β0)·x0·β1 + β0·x0 + β1·x1. Its left verifier knows β0, x0, ρ
//!   and σ, its right one β1, x1, H and U.
//! - Role 2 sends E2 = ρ + v·(x0 − 2ρ) + (1 − 2v)·x2·σ − q'. Its left verifier knows v, x2 and E2,
//!   its right one x0, ρ, σ and q'.
//! - Role 1 sends E1 = H + v·(x1 − 2H) + v·x2 + (1 − 2v)·x2·U − q. Its left verifier knows x1, H, U
//!   and q, its right one v, x2 and E1.
//!
//! If the bit alone is converted, x0 = x1 = 0 and x2 = 1, and there are no h, H and ρ.

use super::record::Ledger;
use super::relations::{Half, Role};
use crate::Result;
use crate::bits::{bit_at, flip};
use crate::replicated::binary::expand;
use crate::replicated::bit_products::{Factors, Heard, plane_of};
use crate::replicated::roles::{Masks, field};
use crate::replicated::{Pair, Replicated};
use std::ops::Range;

/// Computes a half of relations from each element's factors and constant, which comes last.
fn half<const N: usize>(n: usize, of: impl Fn(usize) -> [u64; N]) -> Half {
    let mut lists = vec![vec![0; n]; N];
    for i in 0..n {
        for (list, word) in lists.iter_mut().zip(of(i)) {
            list[i] = word;
        }
    }
    let constants = lists.pop().expect("a constant");
    Half {
        factors: lists,
        constants,
    }
}

/// The components of the factors on the elements of a role.
struct Own<'a> {
    bit: Pair<'a>,
    x: Option<Pair<'a>>,
    n: usize,
}

impl<'a> Own<'a> {
    fn of(factors: &Factors<'a>, range: &Range<usize>) -> Self {
        Self {
            bit: factors.bit.map(|plane| plane_of(plane, range)),
            x: factors.x.map(|x| x.map(|words| &words[range.clone()])),
            n: range.len(),
        }
    }

    /// Returns a component of x. `fixed` is what it is if the bit alone is converted.
    fn x(&self, component: usize, i: usize, fixed: u64) -> u64 {
        self.x.map_or(fixed, |x| x[component][i])
    }

    fn bit(&self, component: usize, i: usize) -> u64 {
        bit_at(self.bit[component], i)
    }
}

/// The words of k20: ρ, which is zero if the bit alone is converted, σ and q'.
struct Secret {
    rho: Vec<u64>,
    sigma: Vec<u64>,
    q: Vec<u64>,
}

impl Secret {
    fn of(masks: &kernels::stream::Reserved, fields: usize, n: usize) -> Self {
        let at = |at: usize| expand(masks, at * field(n), n);
        let (rho, sigma) = match fields {
            1 => (vec![0; n], at(0)),
            _ => (at(0), at(1)),
        };
        Self {
            rho,
            sigma,
            q: at(fields),
        }
    }

    /// The right half of E2.
    fn of_e2(&self, x0: impl Fn(usize) -> u64) -> Half {
        half(self.q.len(), |i| {
            let twice = self.rho[i].wrapping_mul(2);
            [
                x0(i).wrapping_sub(twice),
                self.sigma[i],
                self.q[i].wrapping_sub(self.rho[i]),
            ]
        })
    }

    /// The left halves of H, if x is given, and of U.
    fn of_opened(&self, own: &Own, component: usize) -> Vec<Half> {
        let n = own.n;
        let bit = |i| own.bit(component, i);
        let u = half(n, |i| {
            let twice = bit(i).wrapping_mul(2).wrapping_neg();
            [twice, self.sigma[i].wrapping_sub(bit(i))]
        });
        let h = own.x.is_some().then(|| {
            half(n, |i| {
                let x0 = own.x(component, i, 0);
                let constant = self.rho[i].wrapping_sub(bit(i).wrapping_mul(x0));
                [bit(i), flip(x0, bit(i)), constant]
            })
        });
        h.into_iter().chain([u]).collect()
    }
}

/// The right halves of H, if x is given, and of U.
fn right_of_opened(message: &[u64], own: &Own, component: usize) -> Vec<Half> {
    let (h, u) = message.split_at(message.len() - own.n);
    let bit = |i| own.bit(component, i);
    let of_u = half(own.n, |i| [bit(i), u[i].wrapping_sub(bit(i))]);
    let of_h = own.x.is_some().then(|| {
        half(own.n, |i| {
            let x1 = own.x(component, i, 0);
            let constant = h[i].wrapping_sub(bit(i).wrapping_mul(x1));
            [flip(x1, bit(i)), bit(i), constant]
        })
    });
    of_h.into_iter().chain([of_u]).collect()
}

/// The left half of E1, from role 0's message.
fn left_of_e1(message: &[u64], q: &[u64], x1: impl Fn(usize) -> u64) -> Half {
    let n = q.len();
    let (h, u) = message.split_at(message.len() - n);
    half(n, |i| {
        let h = h.get(i).copied().unwrap_or(0);
        let first = x1(i).wrapping_sub(h.wrapping_mul(2));
        [first, u[i], q[i].wrapping_sub(h)]
    })
}

/// The half of E1 or of E2 that knows v and x2: of E2 with the message as the constant, of E1 with
/// the message less v·x2.
fn half_of_v(own: &Own, component: usize, message: &[u64], is_e1: bool) -> Half {
    half(own.n, |i| {
        let (v, x2) = (own.bit(component, i), own.x(component, i, 1));
        let less = if is_e1 { v.wrapping_mul(x2) } else { 0 };
        [v, flip(x2, v), message[i].wrapping_sub(less)]
    })
}

impl Replicated {
    /// Records the relations of a bit product.
    pub(in crate::replicated) fn record_bit_product(
        &mut self,
        factors: &Factors,
        heard: &Heard,
        masks: &[Masks; 3],
        fields: usize,
    ) -> Result<()> {
        let roles = self.roles_by_run();
        let Some(verifying) = &mut self.0.verifying else {
            return Ok(());
        };
        let ledger = &mut verifying.record.words;
        for role in roles {
            let range = &heard.ranges[role];
            if range.is_empty() {
                continue;
            }
            let own = Own::of(factors, range);
            match role {
                0 => record_role_0(ledger, &own, heard, &masks[0], fields),
                1 => record_role_1(ledger, &own, heard, &masks[1]),
                _ => record_role_2(ledger, &own, heard, &masks[2], fields),
            }
        }
        self.recorded()
    }
}

fn record_role_0(ledger: &mut Ledger, own: &Own, heard: &Heard, masks: &Masks, fields: usize) {
    let secret = Secret::of(&masks.with_previous, fields, own.n);
    let left = secret.of_opened(own, 0);
    let right = right_of_opened(&heard.sent, own, 1);
    for (left, right) in left.into_iter().zip(right) {
        ledger.prove([left, right]);
    }
    let of_e2 = secret.of_e2(|i| own.x(0, i, 0));
    ledger.verify(Role::RightVerifier, of_e2);
    let q = expand(&masks.with_next, 0, own.n);
    let of_e1 = left_of_e1(&heard.sent, &q, |i| own.x(1, i, 0));
    ledger.verify(Role::LeftVerifier, of_e1);
}

fn record_role_1(ledger: &mut Ledger, own: &Own, heard: &Heard, masks: &Masks) {
    for half in right_of_opened(&heard.opened, own, 0) {
        ledger.verify(Role::RightVerifier, half);
    }
    let q = expand(&masks.with_previous, 0, own.n);
    let left = left_of_e1(&heard.opened, &q, |i| own.x(0, i, 0));
    ledger.prove([left, half_of_v(own, 1, &heard.e1_sent, true)]);
    ledger.verify(Role::LeftVerifier, half_of_v(own, 1, &heard.e2, false));
}

fn record_role_2(ledger: &mut Ledger, own: &Own, heard: &Heard, masks: &Masks, fields: usize) {
    let secret = Secret::of(&masks.with_next, fields, own.n);
    for half in secret.of_opened(own, 1) {
        ledger.verify(Role::LeftVerifier, half);
    }
    let left = half_of_v(own, 0, &vec![0; own.n], false);
    ledger.prove([left, secret.of_e2(|i| own.x(1, i, 0))]);
    ledger.verify(Role::RightVerifier, half_of_v(own, 0, &heard.e1, true));
}
