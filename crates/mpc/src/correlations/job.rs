//! Jobs of a source: the same sequence at every party, since all run the same program.

use super::Comparisons;
use super::encoding::{MOST, decode_kind, decode_map, encode_kind, encode_map};
use super::kind::{Kind, Shape};
use crate::operand::Resident;
use crate::{Bilinear, Error, Name, Result};
use kernels::device;
use std::ops::{Range, RangeInclusive};

/// Versions of the encoding. Demands and files of correlations say which one they hold, by how the
/// parties compare. [`Comparisons::of_version`] reads it.
pub(crate) const VERSIONS: RangeInclusive<u32> = 1..=3;

impl Comparisons {
    /// Returns the version of demands and files of sessions that compare like this.
    pub(crate) fn version(self) -> u32 {
        match self {
            Self::Masked => 1,
            Self::Guarded => 2,
            Self::LookedUp => 3,
        }
    }

    /// Returns how sessions with a demand or file of this version compare, if it is one of
    /// [`VERSIONS`].
    pub(crate) fn of_version(version: u32) -> Option<Self> {
        let all = [Self::Masked, Self::Guarded, Self::LookedUp];
        all.into_iter().find(|one| one.version() == version)
    }
}

/// Words of an encoded job.
pub(crate) const ENCODED: usize = 24;

/// Shape of a column with its number of elements.
pub(crate) type SizedColumn = (Shape, usize);

/// Origin of an operand's mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// Uniform, for this product alone.
    Fresh,
    /// Uniform, and kept under this name.
    Keep(Name),
    /// The mask that was kept under this name.
    Kept(Name),
}

/// One piece of work of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Job {
    /// Makes n correlations of a kind; n is a multiple of 64.
    Batch { kind: Kind, n: usize },
    /// Makes masks a and b of two operands, and map(a, b). If `is_checked`, also residues of each
    /// new mask: those of r = −a, and those of the highest bit of r.
    Product {
        map: Bilinear,
        x: Origin,
        y: Origin,
        is_checked: bool,
    },
    /// Forgets a kept mask that is no longer needed.
    Forget { name: Name },
}

/// Returns the largest number of correlations of a kind in one job, a multiple of 64.
pub(crate) fn most_at_once(kind: Kind) -> usize {
    let words = |columns: Vec<Shape>| columns.into_iter().map(|column| column.words(64) as u64);
    let longest = words(kind.free()).max().unwrap_or(1);
    let message = words(kind.derived()).sum();
    (MOST / longest.max(message) * 64).min(MOST) as usize
}

impl Origin {
    /// Returns the name that the source keeps the mask under.
    pub fn kept(self) -> Option<Name> {
        match self {
            Self::Fresh => None,
            Self::Keep(name) | Self::Kept(name) => Some(name),
        }
    }

    /// Returns the mask as a device takes it, which may keep it as long as the source does.
    pub fn operand(self, mask: &[u64]) -> device::Operand<'_> {
        device::Operand::of(mask).named(Resident::MaskOfSource.of(self.kept()))
    }

    /// Returns whether the source makes the mask now.
    pub fn is_new(self) -> bool {
        !matches!(self, Self::Kept(_))
    }

    fn encode(self) -> [u64; 2] {
        match self {
            Self::Fresh => [0, 0],
            Self::Keep(name) => [1, name],
            Self::Kept(name) => [2, name],
        }
    }

    fn decode(words: &[u64]) -> Option<Self> {
        match *words {
            [0, 0] => Some(Self::Fresh),
            [1, name] => Some(Self::Keep(name)),
            [2, name] => Some(Self::Kept(name)),
            _ => None,
        }
    }
}

impl Job {
    /// Makes the job of a product. Only new masks have residues to make, and only if all of them
    /// fit a message: otherwise the check of the product lifts its operands.
    pub fn product(map: &Bilinear, [x, y]: [Origin; 2], is_checked: bool) -> Self {
        let job = |is_checked| Self::Product {
            map: *map,
            x,
            y,
            is_checked,
        };
        let checked = job(true);
        if is_checked && (x.is_new() || y.is_new()) && checked.fits() {
            checked
        } else {
            job(false)
        }
    }

    /// Returns whether no column and no answer is larger than a message.
    fn fits(&self) -> bool {
        let (free, derived) = self.columns();
        let words = |(column, n): &SizedColumn| column.words(*n) as u64;
        // The derived columns travel as one message.
        let message: u64 = derived.iter().map(words).sum();
        message <= MOST && free.iter().all(|column| words(column) <= MOST)
    }

    /// Returns whether sessions that compare like this ask for the job.
    pub fn belongs_to(&self, comparisons: Comparisons) -> bool {
        match self {
            Self::Batch {
                kind:
                    Kind::GuardedSelections { .. }
                    | Kind::Guards { .. }
                    | Kind::CrossWords { .. }
                    | Kind::CheckedTruncations { .. }
                    | Kind::CheckedTriples
                    | Kind::CheckedSquares
                    | Kind::ResidueTriples
                    | Kind::Lifts,
                ..
            }
            | Self::Product {
                is_checked: true, ..
            } => comparisons == Comparisons::Guarded,
            Self::Batch {
                kind: Kind::LookUps { .. } | Kind::CrossSelections,
                ..
            } => comparisons == Comparisons::LookedUp,
            _ => true,
        }
    }

    /// Returns the shapes of the job's columns with their numbers of elements: uniform ones, then
    /// derived ones.
    pub fn columns(&self) -> (Vec<SizedColumn>, Vec<SizedColumn>) {
        match self {
            Self::Batch { kind, n } => {
                let sized = |columns: Vec<Shape>| columns.into_iter().map(|c| (c, *n)).collect();
                (sized(kind.free()), sized(kind.derived()))
            }
            Self::Product {
                map,
                x,
                y,
                is_checked,
            } => {
                let (left, right, out) = map.lengths();
                let masks = [(x, left), (y, right)];
                let new = masks.into_iter().filter(|(mask, _)| mask.is_new());
                let mut derived = vec![(Shape::Words(64), out)];
                if *is_checked {
                    derived.extend(new.clone().flat_map(|(_, n)| [(Shape::Residues, n); 2]));
                }
                (new.map(|(_, n)| (Shape::Words(64), n)).collect(), derived)
            }
            Self::Forget { .. } => (Vec::new(), Vec::new()),
        }
    }

    /// Returns whether the job needs the mask that was kept under this name.
    pub fn takes_mask(&self, name: Name) -> bool {
        matches!(self, Self::Product { x, y, .. } if [x, y].contains(&&Origin::Kept(name)))
    }

    /// Returns the names of the masks that this job begins to keep.
    pub fn kept(&self) -> Vec<Name> {
        let Self::Product { x, y, .. } = self else {
            return Vec::new();
        };
        let kept = |origin: &Origin| match origin {
            Origin::Keep(name) => Some(*name),
            _ => None,
        };
        [x, y].into_iter().filter_map(kept).collect()
    }

    /// Returns the words of all columns of the job in memory.
    pub fn words(&self) -> usize {
        let (free, derived) = self.columns();
        let columns = free.into_iter().chain(derived);
        columns.map(|(shape, n)| shape.words(n)).sum()
    }

    /// Returns the elements of a derived column of n in which a dealer corrects this party's share.
    /// Each party gets as many, except for rounding: to whole words of bits in a batch, and to
    /// whole elements in a product.
    pub fn corrected(&self, n: usize, party: usize, parties: usize) -> Range<usize> {
        let unit = match self {
            Self::Batch { .. } => 64,
            Self::Product { .. } | Self::Forget { .. } => 1,
        };
        let from = |party: usize| n / unit * party / parties * unit;
        from(party)..from(party + 1)
    }

    /// Describes the job for people, and names its step: what is made, and how many. Files use the
    /// encoding instead.
    pub fn describe(&self) -> String {
        match self {
            Self::Batch { kind, n } => format!("{n} {kind}"),
            Self::Product {
                map,
                x,
                y,
                is_checked,
            } => {
                let (left, right, out) = map.lengths();
                let kept = |origin: &Origin| if origin.is_new() { "" } else { " kept" };
                let (x, y) = (kept(x), kept(y));
                let more = if *is_checked { ", with residues" } else { "" };
                format!(
                    "masks for {}: {left}{x} by {right}{y} to {out}{more}",
                    map.name()
                )
            }
            Self::Forget { name } => format!("forget mask {name}"),
        }
    }

    /// Encodes the job as words. All sizes are public.
    pub fn encode(&self) -> Vec<u64> {
        let mut words = Vec::with_capacity(ENCODED);
        match *self {
            Self::Batch { kind, n } => {
                let (tag, parameters) = encode_kind(kind);
                words.extend([0, n as u64, tag]);
                words.extend(parameters);
            }
            Self::Product {
                map,
                x,
                y,
                is_checked,
            } => {
                words.push(if is_checked { 3 } else { 1 });
                words.extend(x.encode());
                words.extend(y.encode());
                words.extend(encode_map(&map).into_iter().map(|size| size as u64));
            }
            Self::Forget { name } => words.extend([2, name]),
        }
        words.resize(ENCODED, 0);
        words
    }

    /// Decodes a job from another party's words, which may be malformed.
    pub fn decode(words: &[u64]) -> Result<Self> {
        let malformed = || Error::misuse("asked for correlations that are malformed or too large");
        let job = match words.first() {
            Some(0) => Self::Batch {
                kind: decode_kind(&words[2..5]).ok_or_else(malformed)?,
                n: Some(words[1])
                    .filter(|n| *n > 0 && *n <= MOST && n % 64 == 0)
                    .ok_or_else(malformed)? as usize,
            },
            Some(tag @ (1 | 3)) => Self::Product {
                is_checked: *tag == 3,
                x: Origin::decode(&words[1..3]).ok_or_else(malformed)?,
                y: Origin::decode(&words[3..5]).ok_or_else(malformed)?,
                map: decode_map(&words[5..]).ok_or_else(malformed)?,
            },
            Some(2) => Self::Forget { name: words[1] },
            _ => return Err(malformed()),
        };
        if let Self::Product { map, .. } = job {
            let (left, right, out) = map.lengths();
            if left == 0 || right == 0 || out == 0 {
                return Err(malformed());
            }
        }
        if job.fits() {
            Ok(job)
        } else {
            Err(malformed())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaves::Wanted;
    use kernels::convolution::Convolution;

    #[test]
    fn jobs_are_read_as_they_were_written() {
        let shape = Convolution {
            batch: 2,
            groups: 2,
            in_channels: 4,
            out_channels: 6,
            input: [9, 7],
            kernel: [3, 2],
            stride: [2, 1],
            padding: [1, 2],
            dilation: [1, 2],
        };
        let monomials = |wanted, positions| Kind::RingWithMonomials { wanted, positions };
        let look_ups = |wanted, positions| Kind::LookUps { wanted, positions };
        let guarded = |below, reach| Kind::GuardedSelections { below, reach };
        let kinds = [
            Kind::Triples,
            Kind::Squares,
            Kind::BitTriples { rights: 2 },
            Kind::RingBits,
            Kind::RingWithBits { width: 64 },
            monomials(Wanted::Carry, 63),
            monomials(Wanted::Propagate, 1),
            Kind::Truncations { bits: 61 },
            Kind::CheckedTruncations { bits: 61 },
            Kind::ResidueTriples,
            Kind::CheckedTriples,
            Kind::CheckedSquares,
            Kind::CrossBits { bits: 1 },
            Kind::Selections,
            Kind::Lifts,
            Kind::CrossResidues,
            Kind::CrossWords { bits: 63 },
            Kind::CrossSelections,
            look_ups(Wanted::Carry, 63),
            look_ups(Wanted::Propagate, 64),
            Kind::Guards {
                below: 2,
                reach: 62,
            },
            guarded(2, 62),
            guarded(22, 10),
            guarded(62, 2),
        ];
        let mut jobs: Vec<Job> = kinds.map(|kind| Job::Batch { kind, n: 128 }).into();
        for map in [
            Bilinear::Elementwise { n: 7 },
            Bilinear::Matrix {
                batch: 2,
                m: 3,
                k: 4,
                n: 5,
            },
            Bilinear::ByTransposed {
                batch: 2,
                m: 3,
                k: 4,
                n: 5,
            },
            Bilinear::Convolution(shape),
        ] {
            let (x, y) = (Origin::Keep(3), Origin::Kept(u64::MAX));
            jobs.extend([false, true].map(|checked| Job::product(&map, [x, y], checked)));
        }
        jobs.push(Job::Forget { name: 9 });
        for job in jobs {
            let read = Job::decode(&job.encode()).expect("an encoded job can be decoded");
            assert_eq!(read, job);
        }
    }

    #[test]
    fn as_many_as_may_be_are_accepted_and_no_more() {
        let mut kinds = vec![
            Kind::Triples,
            Kind::Squares,
            Kind::RingBits,
            Kind::Selections,
            Kind::CrossSelections,
            Kind::CrossResidues,
            Kind::Lifts,
            Kind::ResidueTriples,
            Kind::CheckedTriples,
            Kind::CheckedSquares,
        ];
        kinds.extend([1, 2].map(|rights| Kind::BitTriples { rights }));
        for width in 1..=64 {
            kinds.push(Kind::RingWithBits { width });
            let wanted = Wanted::Propagate;
            let positions = width;
            kinds.push(Kind::RingWithMonomials { wanted, positions });
            kinds.push(Kind::LookUps { wanted, positions });
        }
        for bits in 1..=61 {
            kinds.extend([Kind::Truncations { bits }, Kind::CrossBits { bits }]);
            kinds.push(Kind::CheckedTruncations { bits });
            let (below, reach) = (bits + 1, 63 - bits);
            kinds.push(Kind::GuardedSelections { below, reach });
            kinds.push(Kind::Guards { below, reach });
            kinds.push(Kind::CrossWords { bits });
            let (wanted, positions) = (Wanted::Carry, bits as usize + 2);
            kinds.push(Kind::RingWithMonomials { wanted, positions });
            kinds.push(Kind::LookUps { wanted, positions });
        }
        for kind in kinds {
            let accepted = |n| Job::decode(&Job::Batch { kind, n }.encode()).is_ok();
            let most = most_at_once(kind);
            assert!(accepted(most), "{most} of {kind:?}");
            assert!(!accepted(2 * most), "{} of {kind:?}", 2 * most);
        }
    }

    #[test]
    fn corrections_go_to_all_parties_alike() {
        let batch = |n| Job::Batch {
            kind: Kind::Selections,
            n,
        };
        let product = |n| Job::product(&Bilinear::Elementwise { n }, [Origin::Fresh; 2], true);
        for parties in [2, 3, 5, 32] {
            for n in [64, 128, 1024, 20_032] {
                for (job, unit) in [(batch(n), 64), (product(n), 1), (product(n - 1), 1)] {
                    let elements = job.columns().1[0].1;
                    let mut next = 0;
                    for party in 0..parties {
                        let corrected = job.corrected(elements, party, parties);
                        assert_eq!(
                            corrected.start, next,
                            "an element is corrected twice, or never"
                        );
                        next = corrected.end;
                        assert_eq!((corrected.start % unit, corrected.end % unit), (0, 0));
                        assert!(corrected.len() < elements.div_ceil(parties) + unit);
                        assert!(corrected.len() + unit > elements / parties);
                    }
                    assert_eq!(next, elements);
                }
            }
        }
    }

    #[test]
    fn guards_look_at_no_more_bits_than_there_are() {
        let decoded = |below, reach| {
            let mut words = [0, 64, 9, below, reach].to_vec();
            words.resize(ENCODED, 0);
            Job::decode(&words).is_ok()
        };
        for (below, reach, fits) in [
            (2, 62, true),
            (2, 63, false),
            (1, 10, false),
            (62, 2, true),
            (62, 1, false),
            (63, 2, false),
            (22, 10, true),
            (u64::MAX, 2, false),
        ] {
            assert_eq!(decoded(below, reach), fits, "{reach} bits above {below}");
        }
    }

    #[test]
    fn whatever_words_come_nothing_panics() {
        let mut state = 1_u64;
        for _ in 0..200_000 {
            let words: Vec<u64> = (0..ENCODED)
                .map(|at| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(99);
                    let small = state >> 33;
                    match small % 4 {
                        0 => state,
                        1 => small % (1 << 28),
                        _ if at == 1 => small % 64 * 64,
                        _ => small % 20,
                    }
                })
                .collect();
            drop(Job::decode(&words));
        }
    }
}
