//! Public data that one party has and all need, such as the shape of what it shares.

use crate::{Error, Result};
use net::Channel;

/// Most bytes of one broadcast.
const LIMIT: usize = 1 << 20;

/// Sends the owner's bytes to all; returns them in every party. They are public, and hostile until
/// the caller has checked them.
///
/// # Errors
/// `Misuse` where the owner has nothing or more than 1 MiB, `Peer` where it announces more.
pub fn broadcast(channel: &mut Channel, owner: usize, payload: Option<&[u8]>) -> Result<Vec<u8>> {
    channel.begin(&format!("broadcast by party {owner}"));
    if channel.party() == owner {
        let payload =
            payload.ok_or_else(|| Error::misuse("the owner of a broadcast passes its bytes"))?;
        if payload.len() > LIMIT {
            return Err(Error::misuse(format!(
                "a broadcast has at most {LIMIT} bytes, not {}",
                payload.len()
            )));
        }
        let mut words = vec![payload.len() as u64];
        words.extend(net::bytes::to_words(payload));
        for to in (0..channel.parties()).filter(|to| *to != owner) {
            channel.send(to, words[..1].to_vec())?;
            if words.len() > 1 {
                channel.send(to, words[1..].to_vec())?;
            }
        }
        return Ok(payload.to_vec());
    }
    let announced = channel.receive(owner, 1)?[0];
    let Some(length) = usize::try_from(announced)
        .ok()
        .filter(|length| *length <= LIMIT)
    else {
        return Err(channel.accuse(
            owner,
            format!("it announced a broadcast of {announced} bytes; the limit is {LIMIT}"),
        ));
    };
    if length == 0 {
        return Ok(Vec::new());
    }
    let words = channel.receive(owner, length.div_ceil(8))?;
    Ok(net::bytes::from_words(&words, length))
}
