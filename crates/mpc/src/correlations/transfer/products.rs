//! Products of masks under bilinear maps, by transfers of one operand's bits.
//!
//! **Idea.** A product of matrices is, row by row, a sum of scalars of the one times rows of the other. The
//! transfers of a scalar's bits serve as keys that expand to rows of any length ([`ot::products`]), so
//! their number is that of the scalars, not of the multiplications; what travels is 8 to 17 words for
//! each multiplication and ordered pair of parties. A convolution is a product of its weights with the
//! unfolded images.
//!
//! **Masks that are kept** keep their transfers too: every further product expands new words of the same
//! keys, and nothing of the set-up is done again.

use super::{Transfer, blame, is_kept};
use crate::correlations::job::{Mask, Name};
use crate::group::Group;
use crate::{Bilinear, Error, Result};
use ot::products::{self, ScalarKeys, Scalars};
use ring::convolution::Convolution;
use std::ops::Range;
use std::sync::Arc;

/// Bits of a scalar that are looked at together, for rows of n values: with more of them less travels and
/// more keys are expanded, which takes long rows to be fast.
fn digit(n: usize) -> usize {
    if n < 64 { 2 } else { 4 }
}

/// Words of one message, roughly.
const MESSAGE: usize = 1 << 21;

/// Scalars of one set: bounds the memory of its keys, 2 KiB a scalar and pair of parties.
const SET: usize = 1 << 16;

/// Scalars of all sets that are kept: about 4 KiB each and peer.
const ALL_SETS: usize = 1 << 18;

/// A mask that is used again.
pub(super) struct Kept {
    share: Arc<Vec<u64>>,
    /// The transfers of its bits, where it was the scalar operand, in that layout.
    set: Option<(Layout, Set)>,
}

/// How an operand is laid out as a matrix of scalars: whether it is the left one, rows and columns of it
/// as it lies.
type Layout = (bool, usize, usize);

/// The transfers of the bits of a matrix of scalars, with every other party in both directions.
struct Set {
    ends: Vec<(Scalars, ScalarKeys)>,
}

/// A product of a matrix of scalars with a matrix of values, as part of a map.
struct Piece {
    /// Rows of all scalars.
    rows: Range<usize>,
    /// This party's values, k×n.
    values: Vec<u64>,
}

/// A map as pieces: which operand gives the scalars, and how results are put together.
struct Plan {
    layout: Layout,
    /// Row-major, k to a row.
    scalars: Vec<u64>,
    k: usize,
    n: usize,
    pieces: Vec<Piece>,
}

impl Transfer {
    pub(super) fn bilinear(&mut self, map: &Bilinear, x: Mask, y: Mask) -> Result<Vec<Vec<u64>>> {
        let (left, right, n) = map.lengths();
        let mut columns = Vec::with_capacity(3);
        let a = self.mask(x, left, &mut columns)?;
        let b = self.mask(y, right, &mut columns)?;
        let product = match map {
            Bilinear::Elementwise { .. } if is_kept(x).is_some() && is_kept(x) == is_kept(y) => {
                self.square_each(&a)?
            }
            Bilinear::Elementwise { .. } => self.multiply_each(&a, &b)?,
            _ => {
                let mut product = vec![0; n];
                map.evaluate(&mut product, &[(&a, &b)]);
                let plan = Plan::new(map, &a, &b, [x, y].map(|mask| is_kept(mask).is_some()));
                let name = is_kept(if plan.layout.0 { x } else { y });
                let rows = self.cross_rows(&plan, name)?;
                plan.collect(map, &rows, &mut product);
                product
            }
        };
        columns.push(product);
        Ok(columns)
    }

    /// This party's share of an operand's mask; a new one is a column of the result.
    fn mask(&mut self, mask: Mask, n: usize, columns: &mut Vec<Vec<u64>>) -> Result<Arc<Vec<u64>>> {
        match mask {
            Mask::Kept(name) => {
                let kept = self.kept.get(&name).filter(|kept| kept.share.len() == n);
                kept.map(|kept| Arc::clone(&kept.share))
                    .ok_or_else(|| Error::misuse("a product with a mask that is not kept"))
            }
            Mask::Fresh | Mask::Keep(_) => {
                let share = Arc::new(self.uniform(n));
                columns.push(share.to_vec());
                if let Mask::Keep(name) = mask {
                    let share = Arc::clone(&share);
                    self.kept.insert(name, Kept { share, set: None });
                }
                Ok(share)
            }
        }
    }

    /// The cross terms of all pieces, one after another.
    fn cross_rows(&mut self, plan: &Plan, name: Option<u64>) -> Result<Vec<u64>> {
        let rows = plan.scalars.len() / plan.k;
        let mut out = vec![
            0;
            plan.pieces
                .iter()
                .map(|piece| piece.rows.len())
                .sum::<usize>()
                * plan.n
        ];
        if plan.scalars.len() <= SET {
            let kept = name.and_then(|name| self.kept.get_mut(&name));
            let mut set = match kept.and_then(|kept| kept.set.take()) {
                Some((layout, set)) if layout == plan.layout => set,
                _ => self.set(&plan.scalars, digit(plan.n))?,
            };
            self.multiply(plan, &mut set, 0, 0..rows, &mut out)?;
            if let Some(name) = name {
                if let Some(kept) = self.kept.get_mut(&name) {
                    kept.set = Some((plan.layout, set));
                }
                self.let_go(name, plan.scalars.len());
            }
            return Ok(out);
        }
        // Too many keys to hold: as many rows at a time as fit.
        let step = (SET / plan.k).max(1);
        let mut start = 0;
        while start < rows {
            let now = start..rows.min(start + step);
            let mut set = self.set(
                &plan.scalars[now.start * plan.k..now.end * plan.k],
                digit(plan.n),
            )?;
            self.multiply(plan, &mut set, start, now.clone(), &mut out)?;
            start = now.end;
        }
        Ok(out)
    }

    /// Lets go of the sets that were not used for longest, once there are too many with this one. Parties
    /// forget masks at different times and must still agree on what is kept, so a set counts until its turn
    /// has come, forgotten or not.
    fn let_go(&mut self, name: Name, scalars: usize) {
        self.sets.retain(|(other, _)| *other != name);
        self.sets.push_back((name, scalars));
        let mut all: usize = self.sets.iter().map(|(_, scalars)| scalars).sum();
        while all > ALL_SETS {
            let Some((oldest, scalars)) = self.sets.pop_front() else {
                return;
            };
            all -= scalars;
            if let Some(kept) = self.kept.get_mut(&oldest) {
                kept.set = None;
            }
        }
    }

    /// The transfers of these scalars' bits.
    fn set(&mut self, scalars: &[u64], digit: usize) -> Result<Set> {
        let peers: Vec<usize> = self.peers().collect();
        let choices = products::choices(scalars);
        let (mut chosen, mut keys) = (Vec::new(), Vec::new());
        for peer in &peers {
            chosen.push(self.choose(*peer, &choices)?);
        }
        for peer in &peers {
            let offered = self.offer(*peer, choices.len())?;
            let (ours, message) = ScalarKeys::new(offered, scalars.len()).in_digits(digit);
            self.channel.send(*peer, message)?;
            keys.push(ours);
        }
        let mut ends = Vec::with_capacity(peers.len());
        for ((peer, chosen), keys) in peers.iter().zip(chosen).zip(keys) {
            let length = products::digit_words(scalars.len(), digit);
            let message = self.channel.receive(*peer, length)?;
            let ours = Scalars::new(chosen, scalars).in_digits(digit, &message);
            ends.push((blame(&self.channel, *peer, ours)?, keys));
        }
        Ok(Set { ends })
    }

    /// Adds the cross terms of those rows of scalars, of which the set's first is row `first`.
    fn multiply(
        &mut self,
        plan: &Plan,
        set: &mut Set,
        first: usize,
        rows: Range<usize>,
        out: &mut [u64],
    ) -> Result<()> {
        let peers: Vec<usize> = self.peers().collect();
        let (k, n) = (plan.k, plan.n);
        let most = MESSAGE / (33 / digit(n));
        let columns = (most / k).clamp(1, n);
        let together = (most / (k * columns)).max(1);
        let mut done = 0;
        for piece in &plan.pieces {
            let within = piece.rows.start.max(rows.start)..piece.rows.end.min(rows.end);
            let mut start = within.start;
            while start < within.end {
                let now = start..within.end.min(start + together);
                start = now.end;
                let of_set = now.start - first..now.end - first;
                let place = done + (now.start - piece.rows.start) * n;
                let mut column = 0;
                while column < n {
                    let width = columns.min(n - column);
                    let values = block(&piece.values, k, n, column, width);
                    let mut sum = vec![0; now.len() * width];
                    for (peer, (_, keys)) in peers.iter().zip(&mut set.ends) {
                        let message =
                            keys.multiply_rows(k, of_set.clone(), &values, width, &mut sum);
                        self.channel.send(*peer, message)?;
                    }
                    for (peer, (scalars, _)) in peers.iter().zip(&mut set.ends) {
                        let length = scalars.rows_words(k, now.len(), width);
                        let message = self.channel.receive(*peer, length)?;
                        let theirs =
                            scalars.multiply_rows(k, of_set.clone(), width, &mut sum, &message);
                        blame(&self.channel, *peer, theirs)?;
                    }
                    for (row, sum) in sum.chunks_exact(width).enumerate() {
                        let to = &mut out[place + row * n + column..][..width];
                        Group::Additive.add(to, sum);
                    }
                    column += width;
                }
            }
            done += piece.rows.len() * n;
        }
        Ok(())
    }
}

/// Columns of a row-major matrix.
fn block(values: &[u64], k: usize, n: usize, column: usize, width: usize) -> Vec<u64> {
    if width == n {
        return values.to_vec();
    }
    (0..k)
        .flat_map(|row| values[row * n + column..][..width].iter().copied())
        .collect()
}

impl Plan {
    /// The scalars are the operand that is kept, or else the one with fewer elements; of a convolution the
    /// weights.
    fn new(map: &Bilinear, x: &[u64], y: &[u64], [keep_x, keep_y]: [bool; 2]) -> Self {
        match *map {
            Bilinear::Matrix { batch, m, k, n }
                if keep_x && !keep_y || keep_x == keep_y && m <= n =>
            {
                Self {
                    layout: (true, m, k),
                    scalars: x.to_vec(),
                    k,
                    n,
                    pieces: (0..batch)
                        .map(|at| Piece {
                            rows: at * m..(at + 1) * m,
                            values: y[at * k * n..(at + 1) * k * n].to_vec(),
                        })
                        .collect(),
                }
            }
            Bilinear::Matrix { batch, m, k, n } => Self {
                layout: (false, k, n),
                scalars: y
                    .chunks_exact(k * n)
                    .flat_map(|y| turned(y, k, n))
                    .collect(),
                k,
                n: m,
                pieces: (0..batch)
                    .map(|at| Piece {
                        rows: at * n..(at + 1) * n,
                        values: turned(&x[at * m * k..(at + 1) * m * k], m, k),
                    })
                    .collect(),
            },
            Bilinear::Convolution(shape) => {
                let out = shape.out_channels / shape.groups;
                Self {
                    layout: (false, 1, 1),
                    scalars: y.to_vec(),
                    k: shape.weight_len() / shape.out_channels,
                    n: shape.output_len() / shape.out_channels,
                    pieces: (0..shape.groups)
                        .map(|group| Piece {
                            rows: group * out..(group + 1) * out,
                            values: unfolded(&shape, x, group),
                        })
                        .collect(),
                }
            }
            Bilinear::Elementwise { .. } => unreachable!("handled without a plan"),
        }
    }

    /// Adds the pieces' rows where they belong.
    fn collect(&self, map: &Bilinear, rows: &[u64], out: &mut [u64]) {
        match *map {
            Bilinear::Matrix { .. } if self.layout.0 => Group::Additive.add(out, rows),
            Bilinear::Matrix { m, n, .. } => {
                for (out, rows) in out.chunks_exact_mut(m * n).zip(rows.chunks_exact(m * n)) {
                    Group::Additive.add(out, &turned(rows, n, m));
                }
            }
            Bilinear::Convolution(shape) => {
                let positions = self.n / shape.batch;
                for (at, row) in rows.chunks_exact(positions).enumerate() {
                    let (channel, image) = (at / shape.batch, at % shape.batch);
                    let place = (image * shape.out_channels + channel) * positions;
                    Group::Additive.add(&mut out[place..][..positions], row);
                }
            }
            Bilinear::Elementwise { .. } => unreachable!("handled without a plan"),
        }
    }
}

/// The transpose of a row-major matrix.
fn turned(matrix: &[u64], rows: usize, columns: usize) -> Vec<u64> {
    let mut out = vec![0; matrix.len()];
    for (row, words) in matrix.chunks_exact(columns).enumerate() {
        for (column, word) in words.iter().enumerate() {
            out[column * rows + row] = *word;
        }
    }
    out
}

/// A group's images by kernel place: a row for each channel and place in the kernel, a column for each
/// image and place in the output.
fn unfolded(shape: &Convolution, x: &[u64], group: usize) -> Vec<u64> {
    let channels = shape.in_channels / shape.groups;
    let ([height, width], [rows, columns]) = (shape.input, shape.output());
    let mut out = Vec::with_capacity(
        channels * shape.kernel[0] * shape.kernel[1] * shape.batch * rows * columns,
    );
    for channel in group * channels..(group + 1) * channels {
        for (ky, kx) in places(shape.kernel) {
            for image in 0..shape.batch {
                let plane =
                    &x[(image * shape.in_channels + channel) * height * width..][..height * width];
                for (row, column) in places([rows, columns]) {
                    let y = row * shape.stride[0] + ky * shape.dilation[0];
                    let x = column * shape.stride[1] + kx * shape.dilation[1];
                    let inside = |at: usize, padding: usize, size: usize| {
                        at.checked_sub(padding).filter(|at| *at < size)
                    };
                    let place =
                        inside(y, shape.padding[0], height).zip(inside(x, shape.padding[1], width));
                    out.push(place.map_or(0, |(y, x)| plane[y * width + x]));
                }
            }
        }
    }
    out
}

fn places(sizes: [usize; 2]) -> impl Iterator<Item = (usize, usize)> {
    (0..sizes[0]).flat_map(move |a| (0..sizes[1]).map(move |b| (a, b)))
}
