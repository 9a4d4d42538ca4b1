//! The operations that are tested, for every protocol.

use kernels::convolution::Convolution;
use mpc::{
    Addend, Affine, Bilinear, Bits, Compared, Hold, Operand, OwnedFiber, PartsMut, Protocol,
    Result, Shift, Summands, Tally, Term,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::Shared;

/// The number of bits of residues.
pub const PRIME_BITS: u32 = 31;

/// The modulus of residues.
pub const PRIME: u64 = (1 << PRIME_BITS) - 1;

pub const SECRETS: [u64; 3] = [0, u64::MAX, 0x0123_4567_89ab_cdef >> 2];

/// Checks all items, on twice as many threads as there are processors, since parties wait for each
/// other most of the time.
pub fn side_by_side<T: Sync>(all: &[T], check: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            check(one);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 * std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
}

pub type Operation = fn(&mut dyn Protocol, &Inputs) -> Result<()>;

pub struct Inputs {
    pub owner: usize,
    pub secret: Vec<u64>,
    pub x: Shared,
    pub bit: Bits,
}

impl Inputs {
    /// Shares the secret of `owner` n times, and a bit for each.
    pub fn share(p: &mut dyn Protocol, owner: usize, secret: u64, n: usize) -> Result<Self> {
        let secret = vec![secret; n];
        let x = Shared::input(p, owner, &secret)?;
        let mine = (p.party() == owner).then_some(&secret[..n.div_ceil(64)]);
        let bit = p.share_bits(owner, mine, 1, n)?;
        Ok(Self {
            owner,
            secret,
            x,
            bit,
        })
    }

    fn n(&self) -> usize {
        self.secret.len()
    }

    /// Copies the first n elements to other memory, so that a protocol takes them for another value
    /// than x.
    fn first(&self, n: usize) -> Shared {
        Shared(self.x.0.iter().map(|part| part[..n].to_vec()).collect())
    }
}

pub const OPERATIONS: [(&str, Operation); 37] = [
    ("share", |p, inputs| {
        Shared::input(p, inputs.owner, &inputs.secret).map(drop)
    }),
    ("share bits", |p, inputs| {
        let mine = (p.party() == inputs.owner).then_some(&inputs.secret[..]);
        p.share_bits(inputs.owner, mine, 64, inputs.secret.len())
            .map(drop)
    }),
    ("multiply", |p, inputs| multiply(p, inputs, None)),
    ("multiply and truncate by 16", |p, inputs| {
        multiply(p, inputs, Shift::new(16))
    }),
    ("multiply and truncate by 40", |p, inputs| {
        multiply(p, inputs, Shift::new(40))
    }),
    ("multiply and truncate a narrow product", |p, inputs| {
        multiply(p, inputs, narrow())
    }),
    ("multiply and truncate by 16, for a check", |p, inputs| {
        for_a_check(p);
        multiply(p, inputs, Shift::new(16))
    }),
    ("square", |p, inputs| {
        let map = Bilinear::Elementwise { n: inputs.n() };
        inputs.x.bilinear(p, &map, &inputs.x, None).map(drop)
    }),
    ("matrix product", |p, inputs| {
        let (m, k) = (8, 2);
        let n = inputs.n() / m;
        map_of(p, inputs, &Bilinear::Matrix { batch: 1, m, k, n })
    }),
    ("square, for a check", |p, inputs| {
        for_a_check(p);
        let map = Bilinear::Elementwise { n: inputs.n() };
        inputs.x.bilinear(p, &map, &inputs.x, None).map(drop)
    }),
    // Operands of 64 elements for each party: what a dealer sends of their residues fills words.
    ("matrix product, for a check", |p, inputs| {
        for_a_check(p);
        // With more products in a sum, the sum of masks would look uniform without a mask.
        let k = 2;
        let m = inputs.n().min(64 * p.parties()) / k;
        map_of(
            p,
            inputs,
            &Bilinear::Matrix {
                batch: 1,
                m,
                k,
                n: m,
            },
        )
    }),
    ("inner products, for a check", |p, inputs| {
        for_a_check(p);
        let batch = inputs.n().min(64 * p.parties());
        let (m, k, n) = (1, 1, 1);
        map_of(p, inputs, &Bilinear::Matrix { batch, m, k, n })
    }),
    ("convolution", |p, inputs| {
        map_of(
            p,
            inputs,
            &Bilinear::Convolution(Convolution {
                batch: 1,
                groups: 1,
                in_channels: 1,
                out_channels: 4,
                input: [inputs.n() / 16, 4],
                kernel: [2, 1],
                stride: [1, 1],
                padding: [0, 0],
                dilation: [1, 1],
            }),
        )
    }),
    ("three products with a named operand", thrice),
    ("three fibers with a named operand", in_fibers),
    ("truncate", |p, inputs| inputs.x.truncated(p, 16).map(drop)),
    ("affine map of two terms and an addend", |p, inputs| {
        affine(p, inputs, 2, |p, sum, out| p.affine(sum, out))
    }),
    (
        "narrow affine map of two terms and an addend",
        |p, inputs| affine(p, inputs, 2, |p, sum, out| p.affine(&narrowed(sum), out)),
    ),
    ("narrow rectified affine map, guarded", |p, inputs| {
        let compared = Compared::guarded(24, 10)?;
        affine(p, inputs, 1, |p, sum, out| {
            p.rectified_affine(&narrowed(sum), compared, out).map(drop)
        })
    }),
    ("rectified affine map, guarded", |p, inputs| {
        let compared = Compared::guarded(24, 10)?;
        affine(p, inputs, 1, |p, sum, out| {
            p.rectified_affine(sum, compared, out).map(drop)
        })
    }),
    ("rectify, guarded", |p, inputs| {
        let compared = Compared::guarded(24, 10)?;
        made(p, inputs, |p, x, out| {
            p.rectify(x, None, compared, out).map(drop)
        })
    }),
    (
        "rectify, guarded, by a bit to one side or the other",
        |p, inputs| {
            let compared = Compared::guarded(24, 10)?;
            let below = Some(&inputs.bit);
            made(p, inputs, |p, x, out| {
                p.rectify(x, below, compared, out).map(drop)
            })
        },
    ),
    ("rectify, without low bits", |p, inputs| {
        let compared = Compared::proved(24).dropping(9)?;
        made(p, inputs, |p, x, out| {
            p.rectify(x, None, compared, out).map(drop)
        })
    }),
    (
        "rectified affine map, guarded and without low bits",
        |p, inputs| {
            let compared = Compared::guarded(24, 10)?.dropping(9)?;
            affine(p, inputs, 1, |p, sum, out| {
                p.rectified_affine(sum, compared, out).map(drop)
            })
        },
    ),
    ("look at guards", look),
    ("lift to integers", |p, inputs| {
        let checking = p.checking().expect("the protocol checks ranges");
        checking.lift(&[&inputs.x.slices()]).map(drop)
    }),
    ("multiply residues", |p, inputs| {
        // Parties that prove what they send know two of three summands of a residue, others one.
        let places = if p.threat_model().semi_honest { 1 } else { 2 };
        let parts = inputs.x.0[..places].iter();
        let factor = parts.map(|part| part.iter().map(|word| word % PRIME).collect());
        let factor: Summands = factor.collect();
        let checking = p.checking().expect("the protocol checks ranges");
        checking.multiply(&[factor], &[[0, 0]]).map(drop)
    }),
    ("hold to a range", |p, inputs| {
        let hold = Hold {
            x: &inputs.x.slices(),
            width: 24,
            group: 0,
        };
        let checking = p.checking().expect("the protocol checks ranges");
        checking.tallies(&[hold]).map(drop)
    }),
    ("AND", |p, inputs| p.and(&inputs.bit, &inputs.bit).map(drop)),
    ("sign", |p, inputs| p.sign(&inputs.x.slices(), 64).map(drop)),
    ("sign of 32 bits", |p, inputs| {
        p.sign(&inputs.x.slices(), 32).map(drop)
    }),
    ("sign of 5 bits", |p, inputs| {
        p.sign(&inputs.x.slices(), 5).map(drop)
    }),
    ("sign of 2 bits", |p, inputs| {
        p.sign(&inputs.x.slices(), 2).map(drop)
    }),
    // Components are one more, so that what is known of the sum is zero, and hides nothing.
    ("equal to zero", |p, inputs| {
        let mut x = inputs.first(inputs.n());
        for part in &mut x.0 {
            part.iter_mut()
                .for_each(|word| *word = word.wrapping_add(1));
        }
        p.equal_zero(&x.slices(), 64).map(drop)
    }),
    ("to binary", |p, inputs| {
        p.to_binary(&inputs.x.slices(), 64).map(drop)
    }),
    ("bit product", |p, inputs| {
        made(p, inputs, |p, x, out| p.bit_multiply(&inputs.bit, x, out))
    }),
    ("bit to ring", |p, inputs| {
        made(p, inputs, |p, _, out| p.bit_to_ring(&inputs.bit, out))
    }),
];

fn made(
    p: &mut dyn Protocol,
    inputs: &Inputs,
    operation: impl FnOnce(&mut dyn Protocol, mpc::Parts, mpc::PartsMut) -> Result<()>,
) -> Result<()> {
    Shared::made(p, inputs.n(), |p, out| {
        operation(p, &inputs.x.slices(), out)
    })
    .map(drop)
}

fn multiply(p: &mut dyn Protocol, inputs: &Inputs, truncate: Option<Shift>) -> Result<()> {
    let n = inputs.n();
    let map = Bilinear::Elementwise { n };
    inputs
        .x
        .bilinear(p, &map, &inputs.first(n), truncate)
        .map(drop)
}

fn narrow() -> Option<Shift> {
    Shift::new(16).and_then(Shift::of_narrow)
}

fn narrowed<'a>(sum: &Affine<'a>) -> Affine<'a> {
    Affine {
        shift: narrow().expect("a valid narrow shift"),
        ..*sum
    }
}

/// Computes x·x' for each term, with each x' in separate memory, and adds x.
fn affine(
    p: &mut dyn Protocol,
    inputs: &Inputs,
    terms: usize,
    work: impl FnOnce(&mut dyn Protocol, &Affine, PartsMut) -> Result<()>,
) -> Result<()> {
    let n = inputs.n();
    let others = [inputs.first(n), inputs.first(n)];
    made(p, inputs, |p, x, out| {
        let others = others.each_ref().map(Shared::slices);
        let all = others.each_ref().map(|other| Term {
            map: Bilinear::Elementwise { n },
            x: Operand::once(x),
            y: Operand::once(other),
        });
        let sum = Affine {
            terms: &all[..terms],
            addends: &[Addend::whole(x)],
            shift: Shift::new(16).expect("a valid shift"),
        };
        work(p, &sum, out)
    })
}

/// Inspects tallies of numbers out of range, or in range. Including the result for all, there are
/// as many results as elements if correlations are made for these.
fn look(p: &mut dyn Protocol, inputs: &Inputs) -> Result<()> {
    if !p.guards() {
        return Ok(());
    }
    let sums = std::array::from_fn(|at| inputs.x.0[0][at % inputs.n()]);
    let n = if p.correlated().is_some() {
        inputs.n().min(64 * p.parties()) - 1
    } else {
        2
    };
    let tallies: Vec<Tally> = (0..n).map(|_| Tally::of(10, sums)).collect();
    p.in_range(&tallies.iter().collect::<Vec<_>>()).map(drop)
}

/// Applies a map to operands cut to its size.
/// Makes the next operation keep what its check needs.
fn for_a_check(p: &mut dyn Protocol) {
    p.checking().expect("the protocol checks ranges").keep();
}

fn map_of(p: &mut dyn Protocol, inputs: &Inputs, map: &Bilinear) -> Result<()> {
    let (left, right, _) = map.lengths();
    inputs
        .first(left)
        .bilinear(p, map, &inputs.first(right), None)
        .map(drop)
}

/// The second and the third fiber use an operand that the first is just opening.
fn in_fibers(p: &mut dyn Protocol, inputs: &Inputs) -> Result<()> {
    const NAME: mpc::Name = 1;
    let n = inputs.n();
    let fiber = |x: Shared| -> OwnedFiber {
        Box::new(move |mut p| {
            let (kept, other) = (x.slices(), x.slices());
            let kept = Operand {
                parts: &kept,
                name: Some(NAME),
            };
            let map = Bilinear::Elementwise { n };
            Shared::made(&mut *p, n, |p, out| {
                p.bilinear(&map, kept, Operand::once(&other), None, out)
            })
            .map(drop)
        })
    };
    p.owned_fibers((0..3).map(|_| fiber(inputs.first(n))).collect())?;
    p.forget(NAME);
    Ok(())
}

fn thrice(p: &mut dyn Protocol, inputs: &Inputs) -> Result<()> {
    const NAME: mpc::Name = 1;
    let map = Bilinear::Elementwise { n: inputs.n() };
    for _ in 0..3 {
        made(p, inputs, |p, x, out| {
            let kept = Operand {
                parts: x,
                name: Some(NAME),
            };
            p.bilinear(&map, kept, Operand::once(x), None, out)
        })?;
    }
    p.forget(NAME);
    Ok(())
}
