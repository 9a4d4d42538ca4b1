//! Comparison for two parties that compare by tables.

use super::elements::Operands;
use super::operations::{self, Model, OPERATIONS, Operation};
use super::parties::by_tables;
use super::{compare, is_same};
use crate::model::additive::product;
use crate::model::{add, tables};

/// Elements of which party 0 reads twice as many as party 1, so that their tables have different
/// lengths, and the dealer corrects either party in look-ups.
const UNEVEN: usize = 192;

/// Elements of which both parties read as many.
const EVEN: usize = 256;

/// Operations that [`OPERATIONS`] lists, with their models by tables.
fn models() -> Vec<(&'static str, Model<2>)> {
    vec![
        ("sign", |w, on| {
            vec![tables::sign(w, on.x, [64, 0], w.half())]
        }),
        ("sign of 32 bits", |w, on| {
            vec![tables::sign(w, on.x, [32, 0], w.half())]
        }),
        ("sign of 5 bits", |w, on| {
            vec![tables::sign(w, on.x, [5, 0], w.half())]
        }),
        ("sign of 2 bits", |w, on| {
            vec![tables::sign(w, on.x, [2, 0], w.half())]
        }),
        ("ReLU of 20 bits without 7", |w, on| {
            let negative = tables::sign(w, on.x, [20, 7], w.half());
            vec![tables::rectified(w, on.x, negative)]
        }),
        ("ReLU of 20 bits, or what is below zero", |w, on| {
            let negative = tables::sign(w, on.x, [20, 0], w.half());
            vec![tables::rectified(w, on.x, add(negative, on.b))]
        }),
        ("equal to zero", |w, on| {
            vec![tables::equal_zero(w, on.x, 64, w.half())]
        }),
        ("equal to zero, 27 bits", |w, on| {
            vec![tables::equal_zero(w, on.x, 27, w.half())]
        }),
        ("to binary", |w, on| tables::to_binary(w, on.x, 64)),
        ("to binary, 7 bits", |w, on| tables::to_binary(w, on.x, 7)),
        ("bit product", |w, on| {
            vec![tables::bit_multiply(w, on.b, on.x)]
        }),
    ]
}

fn operation(wanted: &str) -> Operation {
    let found = OPERATIONS.into_iter().find(|(name, ..)| *name == wanted);
    found.expect("the operation is listed").1
}

#[test]
fn two_parties_by_tables_are_the_model() {
    for (name, model) in models() {
        is_same((name, operation(name), model), UNEVEN, by_tables);
    }
}

/// The dealer corrects products by single elements, so their number is even.
#[test]
fn rectified_products_by_tables_are_the_model() {
    fn model(
        w: &mut crate::model::World,
        on: &Operands<2>,
        compared: [u32; 2],
    ) -> Vec<crate::model::Shared<2>> {
        let product = product(w, on.x, on.y);
        vec![tables::rectified_sum(w, product, 16, compared, w.half())]
    }
    let models: [Model<2>; 2] = [
        |w, on| model(w, on, [20, 16]),
        |w, on| model(w, on, [5, 31]),
    ];
    let all = operations::products_rectified_without_guard();
    for ((name, operation), model) in all.into_iter().zip(models) {
        is_same((name, operation, model), EVEN, by_tables);
    }
}

/// The other reader, and selections and conversions that open a masked number.
#[test]
fn another_model_by_tables_is_noticed() {
    let different = [false; 2];
    let turned: Model<2> = |w, on| vec![tables::sign(w, on.x, [5, 0], 1 - w.half())];
    let sign = operation("sign of 5 bits");
    assert_eq!(compare(sign, turned, EVEN, by_tables), different);
    for name in ["sign of 5 bits", "to binary, 7 bits", "bit product"] {
        let entry = OPERATIONS.into_iter().find(|(other, ..)| *other == name);
        let (_, operation, _, opened, _) = entry.expect("the operation is listed");
        let same = compare(operation, opened, EVEN, by_tables);
        assert_eq!(same, different, "{name}");
    }
}
