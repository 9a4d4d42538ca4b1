//! Declared rounds and bits, over all links, if all that is sent is proven. Verification comes on
//! top: see [`super::verification`].

use super::guard;
use super::sign::{Comparison, Forms};
use crate::replicated::cost::{self, as_size, of_levels};
use crate::replicated::inputs::HASH;
use crate::replicated::roles;
use crate::tree::{prefix_levels, top_carry_levels};
use crate::{Compared, Cost, Operation, Recipient};

/// Returns the cost of an operation.
pub fn of(operation: Operation) -> Cost {
    match operation {
        Operation::Reveal { to, .. } | Operation::RevealBits { to, .. } => {
            let hash = 64 * HASH as u64;
            let hashes = Cost {
                rounds: 0,
                bits: hash * if to == Recipient::All { 3 } else { 1 },
            };
            cost::of(operation) + hashes
        }
        Operation::Bilinear {
            left,
            right,
            n,
            truncate: Some(shift),
        }
        | Operation::Affine {
            left,
            right,
            n,
            shift,
        } => {
            let product = cost::of(Operation::Bilinear {
                left,
                right,
                n,
                truncate: None,
            });
            product + of(Operation::Truncate { n, shift })
        }
        Operation::RectifiedAffine {
            left,
            right,
            n,
            shift,
            compared,
        } => {
            let sum = Operation::Affine {
                left,
                right,
                n,
                shift,
            };
            of(sum) + of(Operation::Rectify { n, compared })
        }
        Operation::Truncate { n, shift } => Cost {
            rounds: 2,
            bits: (71 + 5 * u64::from(shift.bits())) * n,
        },
        Operation::Rectify { n, compared } => {
            of_sign(n, compared) + of(Operation::BitMultiply { n })
        }
        Operation::Sign { n, width } => of_sign(n, Compared::proved(as_size(width))),
        Operation::EqualZero { n, width } => {
            let forms = Forms::of_zero(as_size(width));
            let spans = forms.spans() as u64;
            let conjunction = Cost {
                rounds: u64::from(spans.next_power_of_two().ilog2()),
                bits: 3 * (spans - 1) * n,
            };
            of_forms(n, forms) + conjunction
        }
        Operation::ToBinary { n, width } => {
            of_carries(n, width) + of_generate(n, width) + of_levels(&prefix_levels(width - 1), n)
        }
        Operation::InRange { n } => Cost {
            rounds: 6,
            bits: 3 * 63 * (n + 1),
        },
        Operation::Share { .. }
        | Operation::ShareBits { .. }
        | Operation::Bilinear { truncate: None, .. }
        | Operation::And { .. }
        | Operation::BitMultiply { .. }
        | Operation::BitToRing { .. } => cost::of(operation),
    }
}

fn of_sign(n: u64, compared: Compared) -> Cost {
    let Comparison { forms, guard, .. } = Comparison::of(compared);
    let mut sign = of_forms(n, forms) + of_levels(&top_carry_levels(forms.spans()), n);
    if guard.is_some() {
        let runs = roles::thirds(as_size(n)).map(|run| guard::elements(run.len()));
        sign.bits += 2 * 64 * runs.iter().sum::<usize>() as u64;
    }
    sign
}

fn of_forms(n: u64, forms: Forms) -> Cost {
    let outputs = forms.outputs() as u64;
    let opened = of_carries(n, forms.layout.width as u64).bits + forms.layout.pairs as u64 * n;
    Cost {
        rounds: 2 * u64::from(outputs > 0),
        bits: opened + 2 * outputs * n,
    }
}

/// Cost of the carries of x0 + x1.
fn of_carries(n: u64, width: u64) -> Cost {
    Cost {
        rounds: u64::from(width > 1),
        bits: (width - 1) * n,
    }
}

/// Cost of the generate bits of all positions but the highest.
fn of_generate(n: u64, width: u64) -> Cost {
    Cost {
        rounds: u64::from(width > 1),
        bits: 3 * (width - 1) * n,
    }
}
