//! The functionalities: what each operation gives to whom, stated independently of its
//! implementation.

use crate::inputs::sum;
use crate::model::{Extent, Holders, Key, Slot, Value, World};

/// Draws a random value that only the functionality knows.
pub fn coin(w: &mut World, width: u32) -> Value {
    let range = w.range(Key::Common, Extent::Whole);
    w.coin(range, Slot::word(0), width)
}

/// Gives a fresh sharing, uniform among all that add up to the value.
pub fn fresh(w: &mut World, value: Value, components: &[Holders]) {
    let (last, others) = components.split_last().expect("at least one component");
    let mut rest = value;
    for known in others {
        let share = coin(w, value.width());
        rest = rest - share;
        w.give([share.given(*known)]);
    }
    w.give([rest.given(*last)]);
}

/// Returns the share of the truncated s + t at the holder of t: t shifted, with f uniform bits
/// above it. A truncated value is not shared afresh, but no party gains by it: the holder of s has
/// the corresponding share of s, and the two add up to the result.
pub fn shifted(w: &mut World, t: Value, f: u32) -> Value {
    let k = t.width();
    (t >> f) + (coin(w, f).widen(k) << (k - f))
}

/// Truncates s + t by f bits, with the rounding that s and t determine: ⌊x / 2^f⌋, and one more
/// under this condition. The dropped bits of x − 1, less than 2^f, must come from a sum of the
/// dropped bits of s − 1 + 2^(k−2) and of t that does not carry.
pub fn truncated(s: Value, t: Value, f: u32) -> Value {
    let k = s.width();
    let x = s + t;
    let dropped = |value: Value| value.bits() & ((1 << f) - 1);
    let offset = Value::public((1 << (k - 2)) - 1, k);
    let carries = dropped(s + offset) + dropped(t) >= 1 << f;
    let less = (x - Value::public(1, k)).signed() >> f;
    Value::public((less + 1 - i64::from(carries)) as u64, k)
}

/// Truncates x by f bits, with the rounding that the public value c determines, which is x masked:
/// ⌊x / 2^f⌋, and one more if the dropped bits of c are less than those of x.
pub fn truncated_by(x: Value, c: Value, f: u32) -> Value {
    let dropped = |value: Value| value.bits() & ((1 << f) - 1);
    let up = dropped(c) < dropped(x);
    Value::public(((x.signed() >> f) + i64::from(up)) as u64, x.width())
}

/// Returns 1 if the number is below zero.
pub fn sign(shares: &[Value], width: u32) -> Value {
    sum(shares).low(width).high()
}

/// Returns 1 if the number is below zero, or found so because of the carry of its summands' low
/// bits.
pub fn sign_without(summands: &[Value], width: u32, dropped: u32) -> Value {
    let upper: Vec<Value> = summands.iter().map(|summand| *summand >> dropped).collect();
    sign(&upper, width - dropped)
}

/// Returns 1 if the number is zero.
pub fn is_zero(shares: &[Value], width: u32) -> Value {
    Value::public(u64::from(sum(shares).low(width).bits() == 0), 1)
}
