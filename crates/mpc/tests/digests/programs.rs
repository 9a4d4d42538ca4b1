//! What parties compute: every bilinear operation alone, and a training step.

use kernels::convolution::Convolution;
use mpc::{Addend, Affine, Bilinear, Compared, Operand, Protocol, Result, Shift, Term};
use std::cell::RefCell;
use testkit::Random;

/// A party's part of a program.
pub type Program = fn(&mut dyn Protocol, &Held) -> Result<()>;

/// The components that a party holds, by their numbers, and its components of all results so far.
pub struct Held {
    components: Vec<usize>,
    results: RefCell<Vec<u64>>,
}

/// A sharing, as one party holds it.
struct Shares(Vec<Vec<u64>>);

impl Held {
    pub fn new(components: Vec<usize>) -> Self {
        Self {
            components,
            results: RefCell::default(),
        }
    }

    /// Returns this party's components of all results.
    pub fn results(self) -> Vec<u64> {
        self.results.into_inner()
    }

    /// Keeps this party's components of a result.
    fn keep(&self, result: &Shares) {
        self.results.borrow_mut().extend(result.0.concat());
    }

    /// Returns this party's components of operand `which`: words of all magnitudes, and edges.
    fn shares(&self, which: u64, n: usize) -> Shares {
        let component = |component: &usize| {
            let mut random = Random::new(1000 * which + *component as u64);
            let mut words = random.words(n);
            for (word, edge) in words.iter_mut().step_by(7).zip([u64::MAX, 1 << 63, 0, 1]) {
                *word = edge;
            }
            words
        };
        Shares(self.components.iter().map(component).collect())
    }

    fn zeros(&self, n: usize) -> Shares {
        Shares(vec![vec![0; n]; self.components.len()])
    }
}

impl Shares {
    fn slices(&self) -> Vec<&[u64]> {
        self.0.iter().map(Vec::as_slice).collect()
    }

    fn slices_mut(&mut self) -> Vec<&mut [u64]> {
        self.0.iter_mut().map(Vec::as_mut_slice).collect()
    }
}

const fn image(batch: usize, channels: [usize; 2], groups: usize, size: usize) -> Convolution {
    Convolution {
        batch,
        groups,
        in_channels: channels[0],
        out_channels: channels[1],
        input: [size, size],
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1],
        dilation: [1, 1],
    }
}

/// Applies a map to two operands, exactly, then truncated, then truncated as a narrow product.
fn all_ways(p: &mut dyn Protocol, held: &Held, map: Bilinear) -> Result<()> {
    let (left, right, n) = map.lengths();
    let (x, y) = (held.shares(1, left), held.shares(2, right));
    let (x, y) = (x.slices(), y.slices());
    let shift = Shift::new(16);
    for truncate in [None, shift, shift.and_then(Shift::of_narrow)] {
        let mut out = held.zeros(n);
        let [x, y] = [&x, &y].map(|parts| Operand::once(parts));
        p.bilinear(&map, x, y, truncate, &mut out.slices_mut())?;
        held.keep(&out);
    }
    Ok(())
}

macro_rules! maps {
    ($($name:literal: $map:expr),* $(,)?) => {
        pub const PROGRAMS: &[(&str, Program)] = &[
            $(($name, |p, held| all_ways(p, held, $map)),)*
            ("sum of named products", named_sum),
            ("training step of a small CNN", training_step),
        ];
    };
}

maps! {
    "elementwise": Bilinear::Elementwise { n: 300 },
    "matrix": Bilinear::Matrix { batch: 1, m: 17, k: 70, n: 33 },
    "matrix, batch": Bilinear::Matrix { batch: 3, m: 9, k: 5, n: 8 },
    "matrix, few rows": Bilinear::Matrix { batch: 1, m: 2, k: 130, n: 40 },
    "matrix, one column": Bilinear::Matrix { batch: 1, m: 40, k: 130, n: 1 },
    "inner product": Bilinear::Matrix { batch: 1, m: 1, k: 700, n: 1 },
    "by transposed": Bilinear::ByTransposed { batch: 2, m: 11, k: 64, n: 13 },
    "convolution": Bilinear::Convolution(image(2, [3, 8], 1, 9)),
    "convolution, groups": Bilinear::Convolution(image(1, [8, 16], 4, 7)),
    "convolution, depthwise": Bilinear::Convolution(image(1, [6, 6], 6, 8)),
    "convolution, strided": Bilinear::Convolution(Convolution {
        stride: [2, 3],
        padding: [0, 2],
        kernel: [2, 4],
        ..image(3, [4, 5], 1, 10)
    }),
    "convolution, gradient of images": Bilinear::Convolution(Convolution {
        padding: [2, 2],
        ..image(2, [8, 3], 1, 7)
    }),
    "convolution, gradient of filters": Bilinear::Convolution(Convolution {
        kernel: [7, 7],
        dilation: [2, 2],
        padding: [3, 3],
        ..image(3, [2, 8], 1, 15)
    }),
}

/// Multiplies by one named operand again and again, also in sums, and after its name stands for
/// another value.
fn named_sum(p: &mut dyn Protocol, held: &Held) -> Result<()> {
    let map = Bilinear::Matrix {
        batch: 1,
        m: 8,
        k: 30,
        n: 12,
    };
    let convolution = Bilinear::Convolution(image(1, [4, 6], 1, 4));
    let (left, right, n) = map.lengths();
    let (images, filters, _) = convolution.lengths();
    let shift = Shift::new(16).expect("16 bits can be dropped");
    for value in 0..2 {
        let (x, w) = (
            held.shares(10 + value, left),
            held.shares(20 + value, right),
        );
        let (a, f) = (held.shares(30, images), held.shares(40 + value, filters));
        let bias = held.shares(50, n);
        let (x, w, a, f) = (x.slices(), w.slices(), a.slices(), f.slices());
        let bias = bias.slices();
        let named = |parts, name| Operand {
            parts,
            name: Some(name),
        };
        for _ in 0..2 {
            let terms = [
                Term {
                    map,
                    x: Operand::once(&x),
                    y: named(&w, 1),
                },
                Term {
                    map: convolution,
                    x: Operand::once(&a),
                    y: named(&f, 2),
                },
            ];
            let sum = Affine {
                terms: &terms,
                addends: &[Addend::whole(&bias)],
                shift,
            };
            let mut out = held.zeros(n);
            p.affine(&sum, &mut out.slices_mut())?;
            held.keep(&out);
        }
        p.forget(1);
        p.forget(2);
    }
    Ok(())
}

/// Computes the products of one step of a network: a convolution with a ReLU, a matrix, and the
/// gradients of both by their operands. All layouts are those of the forward pass.
fn training_step(p: &mut dyn Protocol, held: &Held) -> Result<()> {
    let shift = Shift::new(16).expect("16 bits can be dropped");
    let shape = image(4, [1, 6], 1, 8);
    let forward = Bilinear::Convolution(shape);
    let (pixels, filters, hidden) = forward.lengths();
    let (batch, classes) = (4, 10);
    let features = hidden / batch;
    let fully = Bilinear::Matrix {
        batch: 1,
        m: batch,
        k: features,
        n: classes,
    };
    let (x, w) = (held.shares(1, pixels), held.shares(2, filters));
    let fc = held.shares(3, features * classes);
    let (x, w, fc) = (x.slices(), w.slices(), fc.slices());
    let named = |parts, name| Operand {
        parts,
        name: Some(name),
    };
    let mut h = held.zeros(hidden);
    let terms = [Term {
        map: forward,
        x: Operand::once(&x),
        y: named(&w, 1),
    }];
    let sum = Affine {
        terms: &terms,
        addends: &[],
        shift,
    };
    p.rectified_affine(&sum, Compared::proved(64), &mut h.slices_mut())?;
    let h = h.slices();
    let mut logits = held.zeros(batch * classes);
    let (y, weights) = (Operand::once(&h), named(&fc, 2));
    p.bilinear(&fully, y, weights, Some(shift), &mut logits.slices_mut())?;
    let logits = logits.slices();
    // The gradient of the hidden numbers, and that of the matrix.
    let by_hidden = Bilinear::ByTransposed {
        batch: 1,
        m: batch,
        k: classes,
        n: features,
    };
    let mut of_hidden = held.zeros(hidden);
    let g = Operand::once(&logits);
    p.bilinear(
        &by_hidden,
        g,
        weights,
        Some(shift),
        &mut of_hidden.slices_mut(),
    )?;
    let by_matrix = Bilinear::Matrix {
        batch: 1,
        m: features,
        k: batch,
        n: classes,
    };
    let mut of_matrix = held.zeros(features * classes);
    p.bilinear(&by_matrix, y, g, Some(shift), &mut of_matrix.slices_mut())?;
    held.keep(&of_matrix);
    // The gradient of the filters: each channel of images with each of the gradients.
    let by_filters = Bilinear::Convolution(Convolution {
        kernel: shape.output(),
        ..image(1, [batch, 6], 1, 8)
    });
    let (_, kernels, n) = by_filters.lengths();
    assert_eq!((kernels, n), (hidden, filters), "the filters' gradient");
    let of_hidden = of_hidden.slices();
    let (images, g) = (Operand::once(&x), Operand::once(&of_hidden));
    let mut of_filters = held.zeros(n);
    p.bilinear(
        &by_filters,
        images,
        g,
        Some(shift),
        &mut of_filters.slices_mut(),
    )?;
    held.keep(&of_filters);
    Ok(())
}
