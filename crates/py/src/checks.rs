//! Checks of operations already carried out, before a value that depends on them is opened.

use crate::buffer::Words;
use crate::errors::{misuse, raise};
use crate::flags::Flag;
use crate::kept::{Kept, Residues};
use crate::local::{Shape, expect_length};
use crate::operands::length;
use crate::session::Session;
use ::session::limits::{Truncation, truncation_of_product};
use mpc::checks::{Addend, Group, Product, Term, settle_keeping};
use mpc::{Bilinear, Parts};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// A sum of products, in this order: its terms, each as the places of two tensors and a shape
/// (`None` for an elementwise product); the addends, each as a place and the number of consecutive
/// elements that take the same number; the place of the result; the bits that a truncation drops;
/// whether the product is narrow; and what the operation kept.
#[derive(FromPyObject)]
struct Checked<'py>(
    Vec<(usize, usize, Option<Shape<'py>>)>,
    Vec<(usize, usize)>,
    usize,
    Truncation,
    Option<PyRef<'py, Kept>>,
);

/// A tensor's components, and the place of its residues, if they are kept.
type Tensor<'py> = (Vec<Words>, Option<PyRef<'py, Residues>>);

/// Places of tensors, with the widths that they are checked against.
type Holds = Vec<(usize, usize)>;

/// The claim of one operator: its flag, its products, and the widths that it is checked against, by
/// guards and exactly.
type Claim<'py> = (PyRef<'py, Flag>, Vec<Checked<'py>>, Holds, Holds);

#[pymethods]
impl Session {
    /// Checks, in secret, whether operators computed correctly; their flags then hold the result.
    fn settle(&self, py: Python<'_>, tensors: Vec<Tensor>, claims: Vec<Claim>) -> PyResult<()> {
        let mut operation = self.operation();
        let kept = tensors.iter().enumerate();
        let kept: HashMap<usize, Arc<mpc::checks::Residues>> = kept
            .filter_map(|(at, (_, residues))| Some((at, Arc::clone(&residues.as_ref()?.0))))
            .collect();
        let tensors: Vec<Vec<Words>> = tensors.into_iter().map(|(words, _)| words).collect();
        let sizes: Vec<usize> = tensors
            .iter()
            .map(|tensor| length("a tensor", tensor))
            .collect::<PyResult<_>>()?;
        for (tensor, n) in tensors.iter().zip(&sizes) {
            operation = operation.words("a tensor", tensor, *n)?;
        }
        let groups = claims
            .iter()
            .map(|(_, products, holds, exact)| group(&sizes, products, holds, exact))
            .collect::<PyResult<Vec<_>>>()?;
        let flags = claims
            .iter()
            .map(|(flag, ..)| flag.shared())
            .collect::<Vec<_>>();
        operation.apart(py, |protocol, operands| {
            let tensors: Vec<Parts> = (0..sizes.len()).map(|at| operands.words(at)).collect();
            let bits = settle_keeping(protocol, &tensors, &kept, &groups)?;
            for (at, flag) in flags.iter().enumerate() {
                flag.keep(bits.at(at));
            }
            Ok(())
        })
    }
}

fn group<'a>(
    sizes: &[usize],
    products: &'a [Checked],
    holds: &[(usize, usize)],
    exact: &[(usize, usize)],
) -> PyResult<Group<'a>> {
    let known = |place: usize| {
        sizes
            .get(place)
            .copied()
            .ok_or_else(|| misuse("a check names a tensor that does not exist"))
    };
    for (place, width) in holds.iter().chain(exact) {
        known(*place)?;
        if !(4..=64).contains(width) {
            return Err(misuse(format!(
                "a width to check numbers against is 4 to 64 bits, not {width}"
            )));
        }
    }
    let product = |Checked(terms, addends, out, truncate, kept): &'a Checked| {
        let n = known(*out)?;
        let term = |(x, y, shape): &(usize, usize, Option<Shape>)| {
            let elementwise = || Ok(Bilinear::Elementwise { n });
            let map = shape.as_ref().map_or_else(elementwise, Shape::map)?;
            let (left, right, results) = map.lengths();
            expect_length("the left operand", known(*x)?, left)?;
            expect_length("the right operand", known(*y)?, right)?;
            expect_length("the result", n, results)?;
            Ok(Term { map, x: *x, y: *y })
        };
        let addend = |(x, run): &(usize, usize)| {
            let round = known(*x)?.checked_mul(*run).filter(|round| *round > 0);
            if round.is_none_or(|round| n % round != 0) {
                return Err(misuse("the length of an addend does not fit the result"));
            }
            Ok(Addend { x: *x, run: *run })
        };
        let kept = kept.as_ref().and_then(|kept| kept.get());
        let (rest, factors) = kept.map_or((&[][..], &[][..]), |kept| (&kept.rest, &kept.factors));
        for summands in rest {
            expect_length("what was dropped", summands.len(), n)?;
        }
        Ok(Product {
            terms: terms.iter().map(term).collect::<PyResult<_>>()?,
            addends: addends.iter().map(addend).collect::<PyResult<_>>()?,
            out: *out,
            shift: truncation_of_product(*truncate).map_err(raise)?,
            rest,
            factors,
        })
    };
    Ok(Group {
        products: products.iter().map(product).collect::<PyResult<_>>()?,
        holds: holds.to_vec(),
        exact: exact.to_vec(),
    })
}
