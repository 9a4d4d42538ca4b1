//! Products of masks under bilinear maps.
//!
//! A product of shared masks is the sum of what each party multiplies locally and of a cross term
//! for every ordered pair of parties. In a cross term, one party's share gives scalars and the
//! other's gives values ([`Plan`]). Cross terms come from transfers of the scalars' bits (module
//! `rows`), or from encryption of the scalars (module `encrypted`) if the session has it and it
//! costs less. A convolution is a product of its weights with the unfolded images, unless the
//! images are encrypted.
//!
//! **Kept masks** keep the messages that were sent for their scalars, by transfer or by encryption.

use super::Transfer;
use super::encrypted::{Encrypted, windows};
use super::plan::{Layout, Plan};
use super::rows::Set;
use crate::correlations::job::Origin;
use crate::{Bilinear, Error, Name, Result};
use kernels::device;
use std::sync::Arc;

/// Memory for what is kept of all masks, with each peer.
const ALL_KIB: usize = 1 << 20;

/// Mask that is used again.
pub(super) struct KeptMask {
    share: Arc<Vec<u64>>,
    /// Messages sent and received for its scalars, in this layout, if it was the scalar operand.
    sent: Option<(Layout, Sent)>,
}

/// Scalars as other parties have them.
enum Sent {
    Transfers(Set),
    Encrypted(Encrypted),
}

impl Transfer {
    pub(super) fn bilinear(
        &mut self,
        map: &Bilinear,
        x: Origin,
        y: Origin,
    ) -> Result<Vec<Vec<u64>>> {
        let (left, right, n) = map.lengths();
        let mut columns = Vec::with_capacity(3);
        let a = self.mask(x, left, &mut columns)?;
        let b = self.mask(y, right, &mut columns)?;
        let product = match map {
            Bilinear::Elementwise { .. } if x.kept().is_some() && x.kept() == y.kept() => {
                self.square_each(&a)?
            }
            Bilinear::Elementwise { .. } => self.multiply_each(&a, &b)?,
            _ => {
                let mut product = vec![0; n];
                let terms = [device::Term {
                    x: x.operand(&a),
                    y: y.operand(&b),
                }];
                let computed = self.device.bilinear(map, &mut product, &terms);
                computed.map_err(|error| self.channel.device_failed(error))?;
                let plan = Plan::new(map, &a, &b, [x, y].map(|mask| mask.kept().is_some()));
                let windows = match (map, &self.keys) {
                    (Bilinear::Convolution(shape), Some(keys)) => {
                        windows(shape, &plan, &keys.prices).map(|windows| (windows, shape.groups))
                    }
                    _ => None,
                };
                if let Some((windows, groups)) = windows {
                    self.cross_windows(&windows, groups, &a, &b, &mut product)?;
                } else {
                    let name = if plan.scalars_are_left { x } else { y }.kept();
                    let rows = self.cross(&plan, name)?;
                    plan.collect(map, &rows, &mut product);
                }
                product
            }
        };
        columns.push(product);
        Ok(columns)
    }

    /// Returns this party's share of an operand's mask. A new mask is also added to the columns of
    /// the result.
    fn mask(
        &mut self,
        origin: Origin,
        n: usize,
        columns: &mut Vec<Vec<u64>>,
    ) -> Result<Arc<Vec<u64>>> {
        match origin {
            Origin::Kept(name) => {
                let kept = self.kept.get(&name).filter(|kept| kept.share.len() == n);
                kept.map(|kept| Arc::clone(&kept.share))
                    .ok_or_else(|| Error::misuse("a product with a mask that is not kept"))
            }
            Origin::Fresh | Origin::Keep(_) => {
                let share = Arc::new(self.uniform(n));
                columns.push(share.to_vec());
                if let Origin::Keep(name) = origin {
                    let share = Arc::clone(&share);
                    // A device may have kept an earlier mask of that name.
                    self.device.forget(name);
                    self.kept.insert(name, KeptMask { share, sent: None });
                }
                Ok(share)
            }
        }
    }

    /// Computes the cross terms of all pieces, one after another. `name` is that of kept scalars.
    fn cross(&mut self, plan: &Plan, name: Option<Name>) -> Result<Vec<u64>> {
        let kept = name.and_then(|name| self.kept.get_mut(&name));
        let sent = kept.and_then(|kept| kept.sent.take());
        let sent = sent.filter(|(layout, _)| *layout == plan.layout);
        let (out, sent) = match sent.map(|(_, sent)| sent) {
            Some(Sent::Transfers(set)) => self.by_transfer(plan, Some(set))?,
            Some(Sent::Encrypted(encrypted)) => self.by_encryption(plan, encrypted, name)?,
            None => {
                match (self.keys.as_ref()).and_then(|keys| Encrypted::cheaper(plan, &keys.prices)) {
                    Some(encrypted) => self.by_encryption(plan, encrypted, name)?,
                    None => self.by_transfer(plan, None)?,
                }
            }
        };
        if let (Some(name), Some((sent, kib))) = (name, sent) {
            if let Some(kept) = self.kept.get_mut(&name) {
                kept.sent = Some((plan.layout, sent));
            }
            self.evict(name, kib);
        }
        Ok(out)
    }

    fn by_transfer(&mut self, plan: &Plan, kept: Option<Set>) -> Result<(Vec<u64>, Kib)> {
        let (out, set) = self.cross_by_transfer(plan, kept)?;
        let kept = set.map(|set| {
            let kib = set.kib();
            (Sent::Transfers(set), kib)
        });
        Ok((out, kept))
    }

    fn by_encryption(
        &mut self,
        plan: &Plan,
        mut sent: Encrypted,
        name: Option<Name>,
    ) -> Result<(Vec<u64>, Kib)> {
        let keep = name.is_some() && sent.kib() <= ALL_KIB;
        let out = self.cross_encrypted(plan, &mut sent, keep)?;
        let kib = sent.kib();
        Ok((out, keep.then_some((Sent::Encrypted(sent), kib))))
    }

    /// Drops what was not used for longest, if this mask brings the total above the limit. Parties
    /// forget masks at different times and must still agree on what is kept. So a mask counts until
    /// its turn has come, forgotten or not.
    fn evict(&mut self, name: Name, kib: usize) {
        self.sent.retain(|(other, _)| *other != name);
        self.sent.push_back((name, kib));
        let mut all: usize = self.sent.iter().map(|(_, kib)| kib).sum();
        while all > ALL_KIB {
            let Some((oldest, kib)) = self.sent.pop_front() else {
                return;
            };
            all -= kib;
            if let Some(kept) = self.kept.get_mut(&oldest) {
                kept.sent = None;
            }
        }
    }
}

/// Messages that may be kept, with the memory that they take.
type Kib = Option<(Sent, usize)>;
