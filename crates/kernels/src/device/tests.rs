//! Tests of the processor as a device.

use super::{Cpu, Device, Name, Operand, Term};
use crate::bilinear::Bilinear;

const MAP: Bilinear = Bilinear::Matrix {
    batch: 1,
    m: 2,
    k: 2,
    n: 1,
};

#[test]
fn sums_are_added_before_the_product() {
    let (x, y, more) = ([1, 2, 3, u64::MAX], [5, 7], [11, 1 << 63]);
    let name = Some(Name {
        operand: 3,
        part: 2,
    });
    let term = Term {
        x: Operand::of(&x),
        y: Operand::sum(&y, &more).named(name),
    };
    let mut out = [0; 2];
    let cpu = Cpu::default();
    cpu.bilinear(&MAP, &mut out, &[term, Term::of(&x, &y)])
        .expect("a product");
    let column = [0, 1].map(|at: usize| {
        let added = y[at].wrapping_add(more[at]);
        added.wrapping_add(y[at])
    });
    let row = |x: &[u64]| {
        x[0].wrapping_mul(column[0])
            .wrapping_add(x[1].wrapping_mul(column[1]))
    };
    assert_eq!(out, [row(&x[..2]), row(&x[2..])]);
}

#[test]
fn the_processor_counts_products_and_copies_nothing() {
    let cpu = Cpu::default();
    let before = cpu.counters();
    assert_eq!((before.products, before.bytes_copied), (0, 0));
    for _ in 0..3 {
        let mut out = [0; 2];
        cpu.bilinear(&MAP, &mut out, &[Term::of(&[1, 2, 3, 4], &[5, 6])])
            .expect("a product");
        assert_eq!(out, [17, 39]);
    }
    let after = cpu.counters();
    assert_eq!((after.products, after.bytes_copied), (3, 0));
    assert_eq!(cpu.memory(), Ok(None));
}

#[test]
#[should_panic(expected = "words of a sum")]
fn a_sum_is_of_equal_lengths() {
    let _ = Operand::sum(&[1, 2], &[3]);
}
