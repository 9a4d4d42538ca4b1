//! Broadcasts of public data that one party has and all need, such as the shape of a shared tensor.

use crate::{Error, Result};
use net::Channel;

/// The most bytes of one broadcast.
const LIMIT: usize = 1 << 20;

/// Sends the owner's bytes to all parties, and returns them in every party. The bytes are public,
/// and untrusted until the caller has checked them.
///
/// # Errors
/// `Misuse` if the owner passes no bytes or more than 1 MiB. `Peer` if the owner announces more.
pub fn broadcast(channel: &mut Channel, owner: usize, payload: Option<&[u8]>) -> Result<Vec<u8>> {
    channel.begin(&format!("broadcast by party {owner}"));
    if channel.party() == owner {
        let payload =
            payload.ok_or_else(|| Error::misuse("the owner of a broadcast passes its bytes"))?;
        announce(channel, payload)?;
        return Ok(payload.to_vec());
    }
    announced(channel, owner)
}

/// Sends each party's bytes to all parties in one round. Returns the bytes of every party, which
/// are as untrusted as those of a [`broadcast`].
///
/// These messages also begin the comparison of the public values that were noted before.
///
/// # Errors
/// `Misuse` for more than 1 MiB. `Peer` for a party that announces more.
pub fn gather(channel: &mut Channel, payload: &[u8]) -> Result<Vec<Vec<u8>>> {
    channel.begin_comparing("gather");
    announce(channel, payload)?;
    let me = channel.party();
    let all = 0..channel.parties();
    all.map(|party| match party == me {
        true => Ok(payload.to_vec()),
        false => announced(channel, party),
    })
    .collect()
}

/// Sends the length, then the bytes.
fn announce(channel: &mut Channel, payload: &[u8]) -> Result<()> {
    if payload.len() > LIMIT {
        return Err(Error::misuse(format!(
            "a broadcast has at most {LIMIT} bytes, not {}",
            payload.len()
        )));
    }
    let mut words = vec![payload.len() as u64];
    words.extend(net::bytes::to_words(payload));
    let me = channel.party();
    let others = (0..channel.parties()).filter(|to| *to != me);
    channel.send_equal(others.clone(), &words[..1])?;
    if words.len() > 1 {
        channel.send_equal(others, &words[1..])?;
    }
    Ok(())
}

fn announced(channel: &mut Channel, owner: usize) -> Result<Vec<u8>> {
    let bytes = channel.receive(owner, 1)?[0];
    let Some(length) = usize::try_from(bytes)
        .ok()
        .filter(|length| *length <= LIMIT)
    else {
        return Err(channel.accuse(
            owner,
            format!("it announced a broadcast of {bytes} bytes; the limit is {LIMIT}"),
        ));
    };
    if length == 0 {
        return Ok(Vec::new());
    }
    let words = channel.receive(owner, length.div_ceil(8))?;
    Ok(net::bytes::from_words(&words, length))
}
