//! The compared operations, each in the shipped protocols and in the model.

use super::elements::Operands;
use crate::model::additive::{self, Masked};
use crate::model::proven;
use crate::model::replicated;
use crate::model::tree::Join;
use crate::model::{Shared, Slot, World};
use mpc::{
    Addend, Affine, Bilinear, Bits, Compared, Operand, Protocol, Recipient, Result, Shift, Term,
};
use testkit::Shared as Sharing;

/// A party's components of the operands.
pub struct Mine {
    pub n: usize,
    pub x: Vec<Vec<u64>>,
    pub y: Vec<Vec<u64>>,
    pub b: Bits,
    pub c: Bits,
}

/// A party's components of one output, element by element.
pub type Position = Vec<Vec<u64>>;

/// An operation of all shipped protocols.
pub type Operation = fn(&mut dyn Protocol, &Mine) -> Result<Vec<Position>>;

/// An operation on one element in the model of one family.
pub type Model<const N: usize> = fn(&mut World, &Operands<N>) -> Vec<Shared<N>>;

/// Name; shipped operation; model of replicated sharing, if it has one; of additive sharing among
/// two, and among three.
type Entry = (
    &'static str,
    Operation,
    Option<Model<3>>,
    Model<2>,
    Model<3>,
);

macro_rules! in_each_family {
    ($name:literal, $operation:expr, $replicated:expr, $additive:expr) => {
        ($name, $operation, Some($replicated), $additive, $additive)
    };
}

pub const OPERATIONS: [Entry; 28] = [
    in_each_family!(
        "share",
        |p, mine| made(p, mine, |p, out| {
            let values = (p.party() == 0).then_some(&mine.x[0][..]);
            p.share(0, values, mine.n, out)
        }),
        |w, on| vec![replicated::share(w, on.x[0], Slot::word)],
        |w, on| vec![additive::share(w, 0, on.x[0], Slot::word(0))]
    ),
    in_each_family!(
        "share bits",
        |p, mine| {
            let values = (p.party() == 0).then(|| &mine.b.parts()[0][..]);
            p.share_bits(0, values, 1, mine.n).map(planes)
        },
        |w, on| vec![replicated::share(w, on.b[0], Slot::plane)],
        |w, on| vec![additive::share(w, 0, on.b[0], Slot::plane(0))]
    ),
    in_each_family!(
        "reveal",
        |p, mine| {
            let opened = p.reveal(&slices(&mine.x), Recipient::All)?;
            Ok(vec![vec![opened.expect("opened to all"); p.parts()]])
        },
        |w, on| vec![[replicated::reveal(w, on.x, &[0, 1, 2]); 3]],
        |w, on| reveal(w, on.x, Slot::word(0))
    ),
    in_each_family!(
        "reveal bits",
        |p, mine| {
            let opened = p
                .reveal_bits(&mine.b, Recipient::All)?
                .expect("opened to all");
            Ok(planes(Bits::new(1, mine.n, vec![opened; p.parts()])))
        },
        |w, on| vec![[replicated::reveal(w, on.b, &[0, 1, 2]); 3]],
        |w, on| reveal(w, on.b, Slot::plane(0))
    ),
    in_each_family!(
        "product",
        |p, mine| multiply(p, mine, None),
        |w, on| vec![replicated::product(w, on.x, on.y)],
        |w, on| vec![additive::product(w, on.x, on.y)]
    ),
    in_each_family!(
        "square",
        |p, mine| made(p, mine, |p, out| {
            let (map, x) = (Bilinear::Elementwise { n: mine.n }, slices(&mine.x));
            p.bilinear(&map, Operand::once(&x), Operand::once(&x), None, out)
        }),
        |w, on| vec![replicated::product(w, on.x, on.x)],
        |w, on| vec![additive::square(w, on.x)]
    ),
    in_each_family!(
        "truncated product",
        |p, mine| multiply(p, mine, Shift::new(16)),
        |w, on| vec![replicated::truncated_product(w, on.x, on.y, 16).0],
        |w, on| truncated_product(w, on, 16)
    ),
    in_each_family!(
        "truncated product by 40",
        |p, mine| multiply(p, mine, Shift::new(40)),
        |w, on| vec![replicated::truncated_product(w, on.x, on.y, 40).0],
        |w, on| truncated_product(w, on, 40)
    ),
    in_each_family!(
        "two products and an addend, truncated",
        |p, mine| made(p, mine, |p, out| {
            let (map, x, y) = (
                Bilinear::Elementwise { n: mine.n },
                slices(&mine.x),
                slices(&mine.y),
            );
            let terms = [(&x, &y), (&y, &x)].map(|(x, y)| Term {
                map,
                x: Operand::once(x),
                y: Operand::once(y),
            });
            let sum = Affine {
                terms: &terms,
                addends: &[Addend::whole(&x)],
                shift: Shift::new(16).expect("a valid shift"),
            };
            p.affine(&sum, out)
        }),
        |w, on| {
            let terms = [[on.x, on.y], [on.y, on.x]];
            vec![replicated::truncated_affine(w, &terms, on.x, [16, 0]).0]
        },
        |w, on| {
            let sum = additive::summed(w, &[[on.x, on.y], [on.y, on.x]], on.x, 16);
            vec![truncated_afresh(w, sum, 16)]
        }
    ),
    in_each_family!(
        "narrow product, truncated",
        |p, mine| multiply(p, mine, narrow()),
        |w, on| {
            let none = [0, 1, 2].map(|_| w.public(0));
            let terms = [[on.x, on.y]];
            vec![replicated::truncated_affine(w, &terms, none, [16, 13]).0]
        },
        |w, on| truncated_product(w, on, 16)
    ),
    (
        "two products with a named operand",
        |p, mine| {
            let first = named(p, mine, &mine.y)?;
            let second = named(p, mine, &mine.x)?;
            Ok([first, second].concat())
        },
        None,
        two_products,
        two_products,
    ),
    in_each_family!(
        "truncate",
        |p, mine| truncate(p, mine, 16),
        |w, on| vec![replicated::truncate(w, on.x, 16).0],
        |w, on| vec![additive::truncate(w, on.x, 16).0]
    ),
    in_each_family!(
        "truncate by 40",
        |p, mine| truncate(p, mine, 40),
        |w, on| vec![replicated::truncate(w, on.x, 40).0],
        |w, on| vec![additive::truncate(w, on.x, 40).0]
    ),
    in_each_family!(
        "AND",
        |p, mine| p.and(&mine.b, &mine.c).map(planes),
        |w, on| replicated::join(w, &and(on)),
        |w, on| additive::join(w, &and(on))
    ),
    in_each_family!(
        "joined ANDs",
        |p, mine| {
            let (b, c) = (&mine.b, &mine.c);
            let joins = [(b, vec![c, b]), (c, vec![b]), (c, vec![c, b])];
            let products = p.and_all(&joins.map(|(left, rights)| mpc::Join::new(left, rights)))?;
            Ok(products.into_iter().flat_map(planes).collect())
        },
        |w, on| replicated::join(w, &joins(on)),
        |w, on| additive::join(w, &joins(on))
    ),
    in_each_family!(
        "sign",
        |p, mine| p.sign(&slices(&mine.x), 64).map(planes),
        |w, on| vec![replicated::sign(w, on.x, 64)],
        |w, on| vec![additive::sign(w, on.x, 64)]
    ),
    in_each_family!(
        "sign of 32 bits",
        |p, mine| p.sign(&slices(&mine.x), 32).map(planes),
        |w, on| vec![replicated::sign(w, on.x, 32)],
        |w, on| vec![additive::sign(w, on.x, 32)]
    ),
    in_each_family!(
        "sign of 5 bits",
        |p, mine| p.sign(&slices(&mine.x), 5).map(planes),
        |w, on| vec![replicated::sign(w, on.x, 5)],
        |w, on| vec![additive::sign(w, on.x, 5)]
    ),
    in_each_family!(
        "sign of 2 bits",
        |p, mine| p.sign(&slices(&mine.x), 2).map(planes),
        |w, on| vec![replicated::sign(w, on.x, 2)],
        |w, on| vec![additive::sign(w, on.x, 2)]
    ),
    in_each_family!(
        "ReLU of 20 bits without 7",
        |p, mine| {
            let compared = Compared::proved(20).dropping(7)?;
            made(p, mine, |p, out| {
                p.rectify(&slices(&mine.x), None, compared, out).map(drop)
            })
        },
        |w, on| {
            let negative = replicated::sign_without(w, on.x, 20, 7);
            vec![replicated::rectified(w, negative, on.x)]
        },
        |w, on| {
            // Each of three shares drops fewer bits.
            let dropped = 9 - on.x.len() as u32;
            let negative = additive::sign_without(w, on.x, 20, dropped);
            let part = additive::bit_multiply(w, negative, on.x);
            vec![crate::model::subtract(on.x, part)]
        }
    ),
    in_each_family!(
        "ReLU of 20 bits, or what is below zero",
        |p, mine| {
            let compared = Compared::proved(20);
            made(p, mine, |p, out| {
                p.rectify(&slices(&mine.x), Some(&mine.b), compared, out)
                    .map(drop)
            })
        },
        |w, on| {
            let negative = replicated::sign(w, on.x, 20);
            let left_out = std::array::from_fn(|at| negative[at] + on.b[at]);
            vec![replicated::rectified(w, left_out, on.x)]
        },
        |w, on| {
            let negative = additive::sign(w, on.x, 20);
            let left_out = std::array::from_fn(|at| negative[at] + on.b[at]);
            let part = additive::bit_multiply(w, left_out, on.x);
            vec![crate::model::subtract(on.x, part)]
        }
    ),
    in_each_family!(
        "equal to zero",
        |p, mine| p.equal_zero(&slices(&mine.x), 64).map(planes),
        |w, on| vec![replicated::equal_zero(w, on.x, 64)],
        |w, on| vec![additive::equal_zero(w, on.x, 64)]
    ),
    in_each_family!(
        "equal to zero, 27 bits",
        |p, mine| p.equal_zero(&slices(&mine.x), 27).map(planes),
        |w, on| vec![replicated::equal_zero(w, on.x, 27)],
        |w, on| vec![additive::equal_zero(w, on.x, 27)]
    ),
    in_each_family!(
        "to binary",
        |p, mine| p.to_binary(&slices(&mine.x), 64).map(planes),
        |w, on| replicated::to_binary(w, on.x, 64),
        |w, on| additive::to_binary(w, on.x, 64)
    ),
    in_each_family!(
        "to binary, 7 bits",
        |p, mine| p.to_binary(&slices(&mine.x), 7).map(planes),
        |w, on| replicated::to_binary(w, on.x, 7),
        |w, on| additive::to_binary(w, on.x, 7)
    ),
    in_each_family!(
        "bit product",
        |p, mine| made(p, mine, |p, out| p.bit_multiply(
            &mine.b,
            &slices(&mine.x),
            out
        )),
        |w, on| vec![replicated::bit_multiply(w, on.b, on.x)],
        |w, on| vec![additive::bit_multiply(w, on.b, on.x)]
    ),
    in_each_family!(
        "bit to ring",
        |p, mine| made(p, mine, |p, out| p.bit_to_ring(&mine.b, out)),
        |w, on| vec![replicated::bit_to_ring(w, on.b)],
        |w, on| vec![additive::bit_to_ring(w, on.b)]
    ),
    in_each_family!(
        "ReLU, revealed",
        |p, mine| {
            let negative = p.sign(&slices(&mine.x), 64)?;
            let part = Sharing::made(p, mine.n, |p, out| {
                p.bit_multiply(&negative, &slices(&mine.x), out)
            })?;
            let opened = p.reveal(&part.slices(), Recipient::All)?;
            Ok(vec![vec![opened.expect("opened to all"); p.parts()]])
        },
        |w, on| {
            let negative = replicated::sign(w, on.x, 64);
            let part = replicated::bit_multiply(w, negative, on.x);
            vec![[replicated::reveal(w, part, &[0, 1, 2]); 3]]
        },
        |w, on| {
            let negative = additive::sign(w, on.x, 64);
            let part = additive::bit_multiply(w, negative, on.x);
            reveal(w, part, Slot::word(0))
        }
    ),
];

/// Truncations whose messages are proven.
pub fn proven_truncations() -> [(&'static str, Operation, Model<3>); 3] {
    [
        (
            "truncate by 16",
            |p, mine| truncate(p, mine, 16),
            |w, on| vec![proven::truncate(w, on.x, 16).0],
        ),
        (
            "truncate by 40",
            |p, mine| truncate(p, mine, 40),
            |w, on| vec![proven::truncate(w, on.x, 40).0],
        ),
        (
            "product, truncated",
            |p, mine| multiply(p, mine, Shift::new(16)),
            |w, on| vec![proven::truncated_product(w, on.x, on.y, 16)],
        ),
    ]
}

/// Guarded ReLU, for replicated sharing, and for additive sharing among two and three.
pub fn guarded_relu() -> (&'static str, Operation, Model<3>, Model<2>, Model<3>) {
    fn of_shares<const N: usize>(w: &mut World, on: &Operands<N>) -> Vec<Shared<N>> {
        let negative = additive::sign(w, on.x, 20);
        let (part, ..) = additive::guarded_bit_multiply(w, negative, on.x, [18, 9]);
        vec![crate::model::subtract(on.x, part)]
    }
    (
        "ReLU of 20 bits, guarded",
        |p, mine| {
            let compared = Compared::guarded(20, 9)?;
            made(p, mine, |p, out| {
                p.rectify(&slices(&mine.x), None, compared, out).map(drop)
            })
        },
        |w, on| {
            let (negative, _) = replicated::guarded_sign(w, on.x, [20, 9, 0]);
            vec![replicated::rectified(w, negative, on.x)]
        },
        of_shares,
        of_shares,
    )
}

/// Rectified products by 20 bits, by 5, and by the upper 5 of 20, for replicated sharing, and for
/// additive sharing between two.
pub fn rectified_products() -> [(&'static str, Operation, Model<3>, Model<2>); 4] {
    [
        (
            "rectified product",
            |p, mine| rectified_product(p, mine, Compared::guarded(20, 9)?),
            |w, on| {
                vec![replicated::rectified_product(
                    w,
                    on.x,
                    on.y,
                    [16, 0],
                    [20, 9, 0],
                )]
            },
            |w, on| between_two(w, on, [20, 16], Some([18, 9])),
        ),
        (
            "rectified product of 5 bits",
            |p, mine| rectified_product(p, mine, Compared::guarded(5, 40)?),
            |w, on| {
                vec![replicated::rectified_product(
                    w,
                    on.x,
                    on.y,
                    [16, 0],
                    [5, 40, 0],
                )]
            },
            |w, on| between_two(w, on, [5, 16], Some([3, 40])),
        ),
        (
            "rectified product of 20 bits without 15",
            |p, mine| rectified_product(p, mine, Compared::guarded(20, 9)?.dropping(15)?),
            |w, on| {
                vec![replicated::rectified_product(
                    w,
                    on.x,
                    on.y,
                    [16, 0],
                    [20, 9, 15],
                )]
            },
            |w, on| between_two(w, on, [5, 31], Some([18, 9])),
        ),
        (
            "rectified narrow product",
            |p, mine| {
                let shift = narrow().expect("a valid narrow shift");
                rectified(p, mine, shift, Compared::guarded(5, 20)?)
            },
            |w, on| {
                vec![replicated::rectified_product(
                    w,
                    on.x,
                    on.y,
                    [16, 13],
                    [5, 20, 0],
                )]
            },
            |w, on| between_two(w, on, [5, 16], Some([3, 20])),
        ),
    ]
}

/// A rectified product of additive sharing with more bits than the truncation leaves, so that all
/// bits are compared.
pub fn rectified_by_all_bits() -> (&'static str, Operation, Model<2>) {
    (
        "rectified product of 60 bits",
        |p, mine| rectified_product(p, mine, Compared::guarded(60, 4)?),
        |w, on| between_two(w, on, [64, 0], None),
    )
}

/// Rectified products by 20 bits, and by the upper 5 of 20.
pub fn products_rectified_without_guard() -> [(&'static str, Operation); 2] {
    [
        ("rectified product", |p, mine| {
            rectified_product(p, mine, Compared::proved(20))
        }),
        ("rectified product of 20 bits without 15", |p, mine| {
            rectified_product(p, mine, Compared::proved(20).dropping(15)?)
        }),
    ]
}

fn between_two(
    w: &mut World,
    on: &Operands<2>,
    compared: [u32; 2],
    guard: Option<[u32; 2]>,
) -> Vec<Shared<2>> {
    let product = additive::product(w, on.x, on.y);
    let [x, negative] = additive::begun_sum(w, product, 16, compared);
    let part = match guard {
        Some(guard) => additive::guarded_bit_multiply(w, negative, x, guard).0,
        None => additive::bit_multiply(w, negative, x),
    };
    vec![crate::model::subtract(x, part)]
}

fn narrow() -> Option<Shift> {
    Shift::new(16).and_then(Shift::of_narrow)
}

fn rectified_product(
    p: &mut dyn Protocol,
    mine: &Mine,
    compared: Compared,
) -> Result<Vec<Position>> {
    rectified(p, mine, Shift::new(16).expect("a valid shift"), compared)
}

fn rectified(
    p: &mut dyn Protocol,
    mine: &Mine,
    shift: Shift,
    compared: Compared,
) -> Result<Vec<Position>> {
    made(p, mine, |p, out| {
        let (x, y) = (slices(&mine.x), slices(&mine.y));
        let terms = [Term {
            map: Bilinear::Elementwise { n: mine.n },
            x: Operand::once(&x),
            y: Operand::once(&y),
        }];
        let sum = Affine {
            terms: &terms,
            addends: &[],
            shift,
        };
        p.rectified_affine(&sum, compared, out).map(drop)
    })
}

fn slices(parts: &[Vec<u64>]) -> Vec<&[u64]> {
    parts.iter().map(Vec::as_slice).collect()
}

fn made(
    p: &mut dyn Protocol,
    mine: &Mine,
    operation: impl FnOnce(&mut dyn Protocol, mpc::PartsMut) -> Result<()>,
) -> Result<Vec<Position>> {
    let made = Sharing::made(p, mine.n, operation)?;
    Ok(vec![made.0])
}

fn truncate(p: &mut dyn Protocol, mine: &Mine, bits: u32) -> Result<Vec<Position>> {
    let x = Sharing(mine.x.clone()).truncated(p, bits)?;
    Ok(vec![x.0])
}

/// Converts each plane to a position.
pub fn planes(bits: Bits) -> Vec<Position> {
    let (n, width) = (bits.len(), bits.width());
    let plane = |at: usize| {
        let planes = bits.planes(at..at + 1).into_parts().into_iter();
        let expand = |plane: Vec<u64>| {
            let bit = |i: usize| plane[i / 64] >> (i % 64) & 1;
            (0..n).map(bit).collect()
        };
        planes.map(expand).collect()
    };
    (0..width).map(plane).collect()
}

fn multiply(p: &mut dyn Protocol, mine: &Mine, truncate: Option<Shift>) -> Result<Vec<Position>> {
    made(p, mine, |p, out| {
        let (map, x, y) = (
            Bilinear::Elementwise { n: mine.n },
            slices(&mine.x),
            slices(&mine.y),
        );
        p.bilinear(&map, Operand::once(&x), Operand::once(&y), truncate, out)
    })
}

/// Multiplies x, which has a name, by another operand.
fn named(p: &mut dyn Protocol, mine: &Mine, other: &[Vec<u64>]) -> Result<Vec<Position>> {
    made(p, mine, |p, out| {
        let (map, x, other) = (
            Bilinear::Elementwise { n: mine.n },
            slices(&mine.x),
            slices(other),
        );
        let kept = Operand {
            parts: &x,
            name: Some(1),
        };
        p.bilinear(&map, kept, Operand::once(&other), None, out)
    })
}

fn two_products<const N: usize>(w: &mut World, on: &Operands<N>) -> Vec<Shared<N>> {
    let mut kept: Option<Masked<N>> = None;
    let first = additive::named_product(w, on.x, &mut kept, on.y);
    vec![first, additive::named_product(w, on.x, &mut kept, on.x)]
}

fn truncated_product<const N: usize>(w: &mut World, on: &Operands<N>, f: u32) -> Vec<Shared<N>> {
    let product = additive::product(w, on.x, on.y);
    vec![truncated_afresh(w, product, f)]
}

/// Truncates a freshly shared value.
fn truncated_afresh<const N: usize>(w: &mut World, x: Shared<N>, f: u32) -> Shared<N> {
    if N == 2 {
        additive::truncate_between_two(w, x, f)
    } else {
        additive::truncate_with_pair(w, x, f).0
    }
}

fn reveal<const N: usize>(w: &mut World, x: Shared<N>, slot: Slot) -> Vec<Shared<N>> {
    let all: [usize; N] = std::array::from_fn(|party| party);
    vec![[additive::reveal(w, x, &all, slot); N]]
}

fn and<const N: usize>(on: &Operands<N>) -> [Join<N>; 1] {
    [Join {
        left: on.b,
        rights: vec![on.c],
    }]
}

/// Joins of both classes, mixed.
fn joins<const N: usize>(on: &Operands<N>) -> [Join<N>; 3] {
    let (b, c) = (on.b, on.c);
    [(b, vec![c, b]), (c, vec![b]), (c, vec![c, b])].map(|(left, rights)| Join { left, rights })
}
