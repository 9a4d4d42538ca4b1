//! Carry-less products by multiplication of integers, which takes the same time for all of them.
//!
//! Bits are split into four classes by their position mod 4. In the product of two integers that
//! each have bits of only one class, position p counts the pairs of bits that add up to p. Up to 15
//! pairs fit in the four bits from p to the next position of the class, and the lowest one of the
//! four is the carry-less sum.

/// The positions of class 0.
const CLASS: u128 = 0x1111_1111_1111_1111_1111_1111_1111_1111;

/// The bits of the first factor that are multiplied as integers: 15 of each class.
const COUNTED: u32 = 60;

/// Returns the carry-less product.
pub(super) fn product(a: u64, b: u64) -> u128 {
    let classes =
        |word: u64| -> [u128; 4] { std::array::from_fn(|class| u128::from(word) & CLASS << class) };
    let (x, y) = (classes(a & ((1 << COUNTED) - 1)), classes(b));
    let mut product = 0;
    for class in 0..4 {
        let terms = (0..4).map(|i| x[i] * y[(4 + class - i) % 4]);
        product |= terms.fold(0, |sum, term| sum ^ term) & CLASS << class;
    }
    for bit in COUNTED..64 {
        let mask = 0_u128.wrapping_sub(u128::from(a >> bit & 1));
        product ^= u128::from(b) << bit & mask;
    }
    product
}

/// Returns the sum of the products before reduction.
pub(super) fn inner_product(a: &[u64], b: &[u64]) -> u128 {
    let products = a.iter().zip(b).map(|(a, b)| product(*a, *b));
    products.fold(0, |sum, product| sum ^ product)
}
