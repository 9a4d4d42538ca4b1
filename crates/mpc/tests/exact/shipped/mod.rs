//! Tests that the model matches the shipped code: with words of 64 bits and the parties' own
//! streams, every message and every output is the same, bit for bit.

mod elements;
mod looks;
mod operations;
mod parties;
mod streams;
mod tables;

use elements::Elements;
use operations::{Model, OPERATIONS, Operation};
use parties::{Ran, additive, proven, replicated};

/// Runs an operation on n elements in all parties, and the model element by element. Returns
/// whether outputs and whether messages are the same.
fn compare<const N: usize>(
    operation: Operation,
    model: Model<N>,
    n: usize,
    run: fn(Operation, &Elements<N>) -> Ran<N>,
) -> [bool; 2] {
    let elements = Elements::new(n);
    let ran = run(operation, &elements);
    let modelled = elements::modelled(&elements, &ran, model);
    assert!(!ran.outputs[0].is_empty(), "the operation has no output");
    [
        modelled.outputs == ran.outputs,
        modelled.frames == ran.frames,
    ]
}

fn is_same<const N: usize>(
    (name, operation, model): (&str, Operation, Model<N>),
    n: usize,
    run: fn(Operation, &Elements<N>) -> Ran<N>,
) {
    let [outputs, messages] = compare(operation, model, n, run);
    assert!(outputs, "{name} of {n}: outputs");
    assert!(messages, "{name} of {n}: messages");
}

#[test]
fn replicated_sharing_is_the_model() {
    for (name, operation, model, ..) in OPERATIONS {
        if let Some(model) = model {
            is_same((name, operation, model), 128, replicated);
        }
    }
}

/// What differs with proofs. Messages of a product alone are not rotated.
#[test]
fn proven_truncations_are_the_model() {
    for (name, operation, model) in operations::proven_truncations() {
        is_same((name, operation, model), 128, proven);
        if name.starts_with("truncate ") {
            is_same((name, operation, model), 1536, proven);
        }
    }
    // Another number of bits, and the model without proofs.
    let [(.., of_16), (_, by_40, _), _] = operations::proven_truncations();
    let without: Model<3> = |w, on| vec![crate::model::replicated::truncate(w, on.x, 40).0];
    for model in [of_16, without] {
        assert_eq!(compare(by_40, model, 128, proven), [false; 2]);
    }
}

/// With roles rotated over three thirds. The levels of a tree are not rotated, and are compared
/// above.
#[test]
fn turned_roles_are_the_model() {
    let without_tree = [
        "truncated product",
        "truncated product by 40",
        "two products and an addend, truncated",
        "narrow product, truncated",
        "truncate",
        "truncate by 40",
        "sign of 5 bits",
        "bit product",
        "bit to ring",
    ];
    let turned = OPERATIONS
        .into_iter()
        .filter(|(name, ..)| without_tree.contains(name));
    for (name, operation, model, ..) in turned {
        let model = model.expect("the operation has a model");
        is_same((name, operation, model), 1536, replicated);
    }
}

/// A rectified product, guarded: with a tree, and with rotated roles.
#[test]
fn rectified_products_are_the_model() {
    let sizes = [128, 1536, 1536, 1536];
    for ((name, operation, of_roles, two), n) in
        operations::rectified_products().into_iter().zip(sizes)
    {
        is_same((name, operation, of_roles), n, replicated);
        is_same((name, operation, two), 128, additive);
    }
    is_same(operations::rectified_by_all_bits(), 128, additive);
}

/// With a word of bits for each party, so that the dealer corrects each of them equally often in
/// products and in batches.
#[test]
fn additive_sharing_is_the_model() {
    for (name, operation, _, two, three) in OPERATIONS {
        is_same((name, operation, two), 128, additive);
        is_same((name, operation, three), 192, additive);
    }
}

#[test]
fn guarded_comparisons_are_the_model() {
    let (name, operation, of_roles, two, three) = operations::guarded_relu();
    is_same((name, operation, of_roles), 128, replicated);
    is_same((name, operation, two), 128, additive);
    is_same((name, operation, three), 192, additive);
}

/// Another truncation changes outputs and messages, and so does a product with masks in another
/// order.
#[test]
fn another_model_is_noticed() {
    let find = |wanted: &str| OPERATIONS.into_iter().find(|(name, ..)| *name == wanted);
    let (_, by_40, ..) = find("truncate by 40").expect("the operation is listed");
    let (_, _, of_roles, two, three) = find("truncate").expect("the operation is listed");
    let of_roles = of_roles.expect("the operation has a model");
    let different = [false; 2];
    assert_eq!(compare(by_40, of_roles, 128, replicated), different);
    assert_eq!(compare(by_40, of_roles, 1536, replicated), different);
    // Both open the same: the highest bits, or x + 2^62 + r.
    assert_eq!(compare(by_40, two, 128, additive), [false, true]);
    assert_eq!(compare(by_40, three, 192, additive), [false, true]);
    let (_, product, ..) = find("product").expect("the operation is listed");
    let turned: Model<2> = |w, on| vec![crate::model::additive::product(w, on.y, on.x)];
    assert_eq!(compare(product, turned, 128, additive), different);
}
