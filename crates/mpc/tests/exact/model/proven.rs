//! The model of truncation under replicated sharing with proofs, by roles. Names are those of the
//! heads of `src/replicated/proven/truncation.rs` and `wraps.rs`.

use super::replicated::{product, ranges};
use super::value::joined;
use super::{Extent, Key, Shared, Slot, Value, World};

/// The highest bits, by which wraps are found.
const TOP: u32 = 4;

/// Words of masks from k20, before the bits: r0, ρ1, ρ2 and q'.
const WORDS: usize = 4;

/// Truncates x, rerandomized by the public coin κ, which is what it reveals.
pub fn truncate(w: &mut World, x: Shared<3>, f: u32) -> (Shared<3>, Value) {
    let common = w.range(Key::Common, Extent::Whole);
    let coin = w.coin(common, Slot::word(0), w.word);
    let y = truncate_uniform(w, [x[0], x[1] + coin, x[2] - coin], f);
    (y, coin)
}

/// Truncates a product, whose sharing is uniform.
pub fn truncated_product(w: &mut World, x: Shared<3>, y: Shared<3>, f: u32) -> Shared<3> {
    let product = product(w, x, y);
    truncate_uniform(w, product, f)
}

fn truncate_uniform(w: &mut World, [x, y, t]: Shared<3>, f: u32) -> Shared<3> {
    let k = w.word;
    let y = y + w.public((1 << (k - 2)) - 1);
    let [k01, _, k20] = ranges(w, Extent::Runs);
    let r0 = w.coin(k20, Slot::word(0), k);
    let [rho1, rho2, q2] = [1, 2, 3].map(|field| w.coin(k20, Slot::word(field), f));
    let q1 = w.coin(k01, Slot::word(0), f);
    let above = |x: Value| x.widen(k) << (k - f);

    // Step 1, role 0: the shared bits, m and a.
    let low = carries(x, y, f);
    let carry = low[f as usize - 1].widen(k);
    let wraps = Wraps::of(x, y);
    let m = (x >> f) + (y >> f) + carry - above(y.high()) - above(wraps.carry) + w.public(1)
        - w.public(1 << (k - 2 - f))
        - r0;
    let mut message = vec![m];
    for (plane, bit) in low.into_iter().chain(wraps.shared).enumerate() {
        let after = 64 * WORDS;
        message.push(bit + w.coin(k20, Slot::Plane { after, plane }, 1));
    }
    let bits = message.len();
    for (beta, rho) in wraps.beta.into_iter().zip([rho1, rho2]) {
        let a = beta.widen(f) - rho;
        message.extend((0..f).map(|at| a.bit(at)));
    }
    w.send(0, 1, &mut message);
    let m = message[0];
    let [a1, a2] = [0, f as usize].map(|at| joined(&message[bits + at..][..f as usize]));

    // Step 1, role 2: c2. Step 2, role 1: c1.
    let [v1, v2] = chosen(t).map(|v| v.widen(f));
    let mut c2 = [v1 * rho1 + v2 * rho2 + q2];
    w.send(2, 1, &mut c2);
    let mut c1 = [v1 * a1 + v2 * a2 + q1];
    w.send(1, 2, &mut c1);
    let y2 = (t >> f) - above(c1[0] + c2[0]);
    [r0 + above(q2), m + above(q1), y2]
}

/// What role 0 knows of the wraps.
struct Wraps {
    /// The bits that it shares: the carries of G, s2·s1, s3·(s2 ∨ s1) and s3·s2.
    shared: Vec<Value>,
    /// g4.
    carry: Value,
    beta: [Value; 2],
}

impl Wraps {
    fn of(x: Value, y: Value) -> Self {
        let top = |x: Value| (x >> (x.width() - TOP)).low(TOP);
        let (x, y) = (top(x), top(y) + Value::public(8, TOP));
        let mut shared = carries(x, y, TOP);
        let carry = shared[TOP as usize - 1];
        let [s1, s2, s3] = [1, 2, 3].map(|at| (x + y).bit(at));
        let both = s2 * s1;
        let beta1 = s3 * (s1 + s2 + both);
        let upper = s3 * s2;
        shared.extend([both, beta1, upper]);
        Self {
            shared,
            carry,
            beta: [beta1, s3 + s2 + upper],
        }
    }
}

/// Returns the carries out of the lowest `bits` bits of a sum.
fn carries(x: Value, y: Value, bits: u32) -> Vec<Value> {
    let mut carry = Value::public(0, 1);
    let out_of = |at| {
        let (x, y) = (x.bit(at), y.bit(at));
        carry = x * y + carry * (x + y);
        carry
    };
    (0..bits).map(out_of).collect()
}

/// Returns v1 and v2.
fn chosen(t: Value) -> [Value; 2] {
    let top = (t >> (t.width() - TOP)).bits();
    let tau = u64::from(top >= 6) + u64::from(top >= 12);
    [1, 2].map(|wanted| Value::new(u64::from(tau == wanted), 1, t.known()))
}
