//! Signs and tests for zero whose messages are proven ([`crate::proof`]).
//!
//! **Sign** of x with |x| < 2^(w−1): the carry into the highest position of s + t, where s = x0 +
//! x1 and t = x2. To leave out k low bits, each component is shifted. If the comparison is guarded,
//! all bits of s are opened, and those of its lowest k positions enter nothing else: the guard
//! looks at s and t as they are ([`super::guard`]). **Zero:** s = −t exactly if every bit of s
//! differs from that of t − 1.
//!
//! **Spans** of two positions, as in [`crate::replicated::leaves`] with four. There, fewer bits are
//! sent, but their relations have twice as many terms. Let s1, s0 be a span's bits, and e = s1·s0.
//! It generates a carry if g = s1·t1 ⊕ e·t0 ⊕ s0·t0·t1, and propagates one if p = e ⊕ s1·t0 ⊕ s0·t1
//! ⊕ t0·t1. Both are linear in s1, s0 and e, of which role 2 knows the left halves and role 1 the
//! right ones ([`super::bits`]).
//!
//! **Symbols.** From k20: q'. From k01: q.
//! - Step 1: role 0 opens s and e. Role 2 evaluates the forms on the left halves, which gives E2, and
//!   sends E2 ⊕ q' to role 1.
//! - Step 2: role 1 evaluates them on the right halves, with the terms of t alone, which gives E1,
//!   and sends E1 ⊕ q to role 2.
//! - Result: b0 = q', b1 = q, b2 = (E1 ⊕ q) ⊕ (E2 ⊕ q').
//!
//! **Rounds:** 2, and those of the tree over the spans. **Bits:** w − 1 carries, a product per span,
//! and two for each g and p.
//!
//! **Relations.** Of role 2's message, the left verifier knows t and the message, the right one the
//! left halves of s and q'. Of role 1's message, the left verifier knows the right halves and q, the
//! right one t and the message. There are three terms for g, and two for p.
//!
//! **Simulation.** Role 1 sees bits of role 2 masked by q' of k20, and role 2 bits of role 1 masked
//! by q of k01. The tree consists of ANDs ([`crate::replicated::binary`]).

use super::bits::{HalfSum, Layout, Sums, bits};
use super::guard::{Guard, Upper, elements};
use super::record::Ledger;
use super::relations::{Half, Role, planes_of};
use crate::dense;
use crate::group::Group;
use crate::replicated::binary::place;
use crate::replicated::roles::MaskWords;
use crate::replicated::{Pair, Replicated};
use crate::tree::{conjunction, top_carry};
use crate::{Bits, Compared, Result, Tally};
use kernels::planes::words_of;
use std::ops::Range;

/// The forms that are evaluated.
#[derive(Clone, Copy)]
pub(in crate::replicated) struct Forms {
    pub layout: Layout,
    /// Whether generate bits are wanted, and with them the position above the spans. Without them,
    /// all propagate bits are.
    pub carry: bool,
}

impl Forms {
    /// The forms of a carry out of positions, into the one above them, of `width` in all.
    fn of_carry(width: usize, positions: Range<usize>) -> Self {
        Self {
            layout: Layout::with_pairs(width, positions),
            carry: true,
        }
    }

    /// The forms of a test of `width` positions.
    pub fn of_zero(width: usize) -> Self {
        Self {
            layout: Layout::with_pairs(width, 0..width),
            carry: false,
        }
    }

    pub fn spans(&self) -> usize {
        self.layout.single + self.layout.pairs
    }

    /// Returns the number of pairs, from the lowest up, whose propagate bits are not wanted.
    fn without_propagate(&self) -> usize {
        usize::from(self.carry && self.layout.single == 0 && self.layout.pairs > 0)
    }

    /// Returns the number of forms: of single positions' generate bits, of those of pairs, and of
    /// propagate bits of pairs.
    fn counts(&self) -> [usize; 3] {
        let Layout { single, pairs, .. } = self.layout;
        let propagates = pairs - self.without_propagate();
        match self.carry {
            true => [single, pairs, propagates],
            false => [0, 0, propagates],
        }
    }

    /// Returns the number of bits of all forms.
    pub fn outputs(&self) -> usize {
        self.counts().iter().sum()
    }

    /// Returns the factors of the forms of each kind, from a half of s.
    fn of_half(&self, half: &HalfSum, stride: usize) -> Kinds {
        let [low, high] = [0, 1].map(|at| self.layout.of_pairs(&half.bits, at, stride));
        let from = self.without_propagate() * stride;
        let single = self.single(&half.bits, stride);
        Kinds {
            factors: [
                vec![single],
                vec![high.clone(), half.products.clone(), low.clone()],
                vec![high[from..].to_vec(), low[from..].to_vec()],
            ],
            alone: half.products[from..].to_vec(),
            top: self.top(&half.bits, stride),
        }
    }

    /// Returns the factors of the forms of each kind, from t.
    fn of_t(&self, t: &[u64], stride: usize) -> Kinds {
        let [low, high] = [0, 1].map(|at| self.layout.of_pairs(t, at, stride));
        let both: Vec<u64> = low
            .iter()
            .zip(&high)
            .map(|(low, high)| low & high)
            .collect();
        let from = self.without_propagate() * stride;
        let single = self.single(t, stride);
        Kinds {
            alone: both[from..].to_vec(),
            factors: [
                vec![single],
                vec![high.clone(), low.clone(), both],
                vec![low[from..].to_vec(), high[from..].to_vec()],
            ],
            top: self.top(t, stride),
        }
    }

    fn top(&self, planes: &[u64], stride: usize) -> Vec<u64> {
        match self.carry {
            true => planes[self.layout.above() * stride..][..stride].to_vec(),
            false => Vec::new(),
        }
    }

    fn single(&self, planes: &[u64], stride: usize) -> Vec<u64> {
        planes[self.layout.below * stride..][..self.layout.single * stride].to_vec()
    }

    /// Splits the planes of all forms by kind.
    fn split(&self, planes: &[u64], stride: usize) -> [Vec<u64>; 3] {
        let mut rest = planes;
        self.counts().map(|count| {
            let kind;
            (kind, rest) = rest.split_at(count * stride);
            kind.to_vec()
        })
    }

    /// Evaluates the forms.
    fn evaluate(&self, half: &Kinds, t: &Kinds, first: bool, stride: usize) -> Vec<u64> {
        let mut out: Vec<Vec<u64>> = Vec::new();
        let kinds = half.factors.iter().zip(&t.factors).zip(self.counts());
        for ((half, t), count) in kinds {
            let mut sum = vec![0; count * stride];
            for (a, b) in half.iter().zip(t) {
                for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
                    *sum ^= a & b;
                }
            }
            out.push(sum);
        }
        self.add_alone(&mut out, half);
        if first {
            self.add_alone(&mut out, t);
        }
        out.concat()
    }

    /// Adds the terms of one factor alone, to the forms of each kind or to their constants.
    fn add_alone(&self, kinds: &mut [Vec<u64>], of: &Kinds) {
        Group::Binary.add(&mut kinds[2], &of.alone);
        if self.carry {
            // The highest span has the highest of the generate bits.
            let highest = if self.layout.pairs > 0 { 1 } else { 0 };
            let from = kinds[highest].len() - of.top.len();
            Group::Binary.add(&mut kinds[highest][from..], &of.top);
        }
    }

    /// Returns the halves of the relations of a message. `known` is what this half has beside its
    /// factors: the message, or the mask.
    fn halves(&self, kinds: Kinds, known: &[u64], alone: bool, stride: usize) -> Vec<Half> {
        let mut constants = self.split(known, stride);
        if alone {
            self.add_alone(&mut constants, &kinds);
        }
        let all = kinds.factors.into_iter().zip(constants);
        let halves = all.map(|(factors, constants)| Half { factors, constants });
        halves.filter(|half| !half.constants.is_empty()).collect()
    }
}

/// How the sign of x0 + x1 + x2 is found.
pub(in crate::replicated) struct Comparison {
    pub forms: Forms,
    /// The number of bits by which each component is shifted first.
    shift: u32,
    /// What a guard looks at.
    pub guard: Option<Upper>,
    /// What is public of it, equal in all parties.
    parameters: [u64; 3],
}

impl Comparison {
    pub fn of(compared: Compared) -> Self {
        if !compared.is_guarded() {
            let (compared, shift) = compared.of_summands(3, 0);
            let width = compared.width();
            return Self {
                forms: Forms::of_carry(width, 0..width - 1),
                shift,
                guard: None,
                parameters: compared.parameters(shift),
            };
        }
        // The bits of s are exact, so that it counts as one summand.
        let (compared, dropped) = compared.of_summands(2, 0);
        let (below, width) = (dropped as usize, dropped as usize + compared.width());
        let reach = compared.reach(64 - below).map(|reach| reach as usize);
        let upper = reach.map(|reach| Upper {
            first: width - 2,
            reach,
        });
        let opened = upper.map_or(width, |upper| upper.first + upper.reach);
        Self {
            forms: Forms::of_carry(opened, below..width - 1),
            shift: 0,
            guard: upper,
            parameters: compared.parameters(dropped),
        }
    }
}

/// What enters the forms: for each kind, as many factors as terms.
struct Kinds {
    factors: [Vec<Vec<u64>>; 3],
    /// What is added to the propagate bits of pairs.
    alone: Vec<u64>,
    /// What is added to the highest generate bit.
    top: Vec<u64>,
}

impl Replicated {
    /// Computes the sign, and a tally if the comparison is guarded.
    pub(in crate::replicated) fn proven_sign(
        &mut self,
        x: Pair,
        compared: Compared,
    ) -> Result<(Bits, Option<Tally>)> {
        let comparison = Comparison::of(compared);
        let (n, shift) = (x[0].len(), comparison.shift);
        self.channel.begin_of("sign", n, &comparison.parameters);
        let guard = comparison.guard.map(|upper| self.proven_guard(n, upper));
        let shifted = x.map(|x| x.iter().map(|word| word >> shift).collect::<Vec<u64>>());
        let forms = comparison.forms;
        let of_x = [&shifted[0][..], &shifted[1]];
        let (leaves, tally) = self.proven_leaves(of_x, forms, 0, guard)?;
        let sign = top_carry(&leaves, forms.spans(), &mut |joins| self.join_planes(joins))?;
        Ok((sign, tally))
    }

    /// Computes whether x is zero modulo 2^width.
    pub(in crate::replicated) fn proven_equal_zero(
        &mut self,
        x: Pair,
        width: usize,
    ) -> Result<Bits> {
        let (leaves, _) = self.proven_leaves(x, Forms::of_zero(width), 1, None)?;
        conjunction(leaves, &mut |joins| self.join_planes(joins))
    }

    /// Evaluates the forms for s = x0 + x1 and t = x2 − `less`. Returns the bits of a carry in the
    /// order that its tree takes, or those of a test; and the guard's tally.
    fn proven_leaves(
        &mut self,
        x: Pair,
        forms: Forms,
        less: u64,
        mut guard: Option<Guard>,
    ) -> Result<(Bits, Option<Tally>)> {
        let n = x[0].len();
        let (layout, outputs) = (forms.layout, forms.outputs());
        let mut sums = self.sums(n, layout);
        let masks = self.masks(n, |n| MaskWords {
            k01: words_of(outputs * n),
            k12: 0,
            k20: words_of(outputs * n),
        });
        let (after, before) = (self.after(), self.before());
        let ranges = sums.ranges.clone();
        let t_of = |words: &[u64], role: usize| {
            let words = words[ranges[role].clone()].iter();
            let words: Vec<u64> = words.map(|word| word.wrapping_sub(less)).collect();
            planes_of(&words, layout.width.min(layout.above() + 1))
        };
        let mask = |masks, role: usize| {
            let n = ranges[role].len();
            dense::unpack(bits(masks, 0, outputs * n), outputs, n)
        };
        let t = [Vec::new(), t_of(x[1], 1), t_of(x[0], 2)];
        // Of each role: q', q, and the messages of roles 2 and 1.
        let mut known: [[Vec<u64>; 4]; 3] = Default::default();
        sums.open(self, x)?;
        if let Some(guard) = &mut guard {
            guard.open(&sums);
        }
        if !ranges[0].is_empty() {
            known[0][0] = mask(&masks[0].with_previous, 0);
            known[0][1] = mask(&masks[0].with_next, 0);
        }
        if let Some(half) = &sums.left[2] {
            let stride = sums.stride(2);
            let (half, t) = (forms.of_half(half, stride), forms.of_t(&t[2], stride));
            let mut message = forms.evaluate(&half, &t, false, stride);
            self.told("leaves of role 2", ranges[2].len(), [&mut message]);
            known[2][0] = mask(&masks[2].with_next, 2);
            Group::Binary.add(&mut message, &known[2][0]);
            let mut sent = dense::pack(message.clone(), ranges[2].len());
            if let Some(guard) = &mut guard {
                let (run, name) = (ranges[2].clone(), "guard of role 2");
                let n = elements(run.len());
                let told = |sum: &mut [u64]| self.told(name, n, [sum]);
                sent.extend(guard.help(&x[0][run], told));
            }
            self.send_some(before, sent)?;
            known[2][2] = message;
        }
        self.0.round()?;
        sums.hear(self, x[0])?;
        let guards = guard.is_some();
        let hear = |party: &mut Self, from: usize, role: usize| -> Result<(Vec<u64>, Vec<u64>)> {
            let run = ranges[role].len();
            let of_guard = if guards { elements(run) } else { 0 };
            match words_of(outputs * run) {
                0 => Ok((Vec::new(), Vec::new())),
                words => {
                    let mut message = party.channel.receive(from, words + of_guard)?;
                    let of_guard = message.split_off(words);
                    Ok((dense::unpack(message, outputs, run), of_guard))
                }
            }
        };
        if let Some(half) = &sums.right[1] {
            let stride = sums.stride(1);
            let (half, t) = (forms.of_half(half, stride), forms.of_t(&t[1], stride));
            let mut message = forms.evaluate(&half, &t, true, stride);
            self.told("leaves of role 1", ranges[1].len(), [&mut message]);
            known[1][1] = mask(&masks[1].with_previous, 1);
            Group::Binary.add(&mut message, &known[1][1]);
            let mut sent = dense::pack(message.clone(), ranges[1].len());
            if let Some(guard) = &mut guard {
                let (run, name) = (ranges[1].clone(), "guard of role 1");
                let n = elements(run.len());
                let told = |sum: &mut [u64]| self.told(name, n, [sum]);
                sent.extend(guard.middle(&sums, &x[1][run], told));
            }
            self.send_some(after, sent)?;
            known[1][3] = message;
            let of_guard;
            (known[1][2], of_guard) = hear(self, after, 1)?;
            if let Some(guard) = &mut guard {
                guard.hear(1, of_guard);
            }
        }
        self.0.round()?;
        if !ranges[2].is_empty() {
            let of_guard;
            (known[2][3], of_guard) = hear(self, before, 2)?;
            if let Some(guard) = &mut guard {
                guard.hear(2, of_guard);
            }
        }
        let mut parts = [(); 2].map(|()| vec![0; outputs * words_of(n)]);
        let both = |role: usize| {
            let mut sum = known[role][2].clone();
            Group::Binary.add(&mut sum, &known[role][3]);
            sum
        };
        let [of_1, of_2] = [1, 2].map(both);
        for (role, at, planes) in [
            (0, 0, &known[0][0]),
            (0, 1, &known[0][1]),
            (1, 0, &known[1][1]),
            (1, 1, &of_1),
            (2, 0, &of_2),
            (2, 1, &known[2][0]),
        ] {
            place(&mut parts[at], planes, n, &ranges[role], outputs);
        }
        let roles = self.roles_by_run();
        if let Some(verifying) = &mut self.0.verifying {
            let ledger = &mut verifying.record.bits;
            for role in roles {
                sums.record(role, ledger);
                if !ranges[role].is_empty() {
                    record(forms, &sums, role, &t[role], &known[role], ledger);
                }
                if let Some(guard) = &guard {
                    guard.record(role, ledger);
                }
            }
        }
        self.recorded()?;
        let evaluated = Bits::new(outputs, n, parts.into());
        let tally = guard.map(|guard| guard.close());
        if forms.carry || layout.single == 0 {
            return Ok((evaluated, tally));
        }
        // A position alone propagates a carry if its bits differ.
        let mut differing = sums.sharing().planes(0..1).into_parts();
        for (role, at) in [(2, 0), (1, 1)] {
            let mut plane = vec![0; words_of(n)];
            place(
                &mut plane,
                &t[role][..sums.stride(role)],
                n,
                &ranges[role],
                1,
            );
            Group::Binary.add(&mut differing[at], &plane);
        }
        let lowest = Bits::new(1, n, differing);
        Ok((Bits::stack(&[&lowest, &evaluated]), tally))
    }
}

/// Records the relations of the messages of roles 2 and 1, as this party knows them in a role.
fn record(
    forms: Forms,
    sums: &Sums,
    role: usize,
    t: &[u64],
    [q_of_2, q_of_1, of_2, of_1]: &[Vec<u64>; 4],
    ledger: &mut Ledger,
) {
    let stride = sums.stride(role);
    let left = sums.left[role].as_ref();
    let right = sums.right[role].as_ref();
    let half = |half: Option<&HalfSum>, known: &[u64]| {
        let half = forms.of_half(half.expect("a half"), stride);
        forms.halves(half, known, true, stride)
    };
    let of_t =
        |message: &[u64], first: bool| forms.halves(forms.of_t(t, stride), message, first, stride);
    let mut verify = |role, halves: Vec<Half>| {
        for half in halves {
            ledger.verify(role, half);
        }
    };
    let proven = match role {
        0 => {
            verify(Role::RightVerifier, half(left, q_of_2));
            verify(Role::LeftVerifier, half(right, q_of_1));
            return;
        }
        1 => {
            verify(Role::LeftVerifier, of_t(of_2, false));
            [half(right, q_of_1), of_t(of_1, true)]
        }
        _ => {
            verify(Role::RightVerifier, of_t(of_1, true));
            [of_t(of_2, false), half(left, q_of_2)]
        }
    };
    let [left, right] = proven;
    for (left, right) in left.into_iter().zip(right) {
        ledger.prove([left, right]);
    }
}
