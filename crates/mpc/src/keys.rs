//! Agreement on keys when a session opens. Every party that shares a key contributes to it, so it
//! is random if at least one of them draws at random.

use crate::Result;
use kernels::stream::{Key, random_key};
use net::Channel;

/// Agrees on a key with each other party. Returns the keys by party; the own entry is `None`.
pub(crate) fn pairs(channel: &mut Channel) -> Result<Vec<Option<Key>>> {
    let mine = halves(channel)?;
    let theirs = exchange(channel, |peer| mine[peer].to_words().to_vec())?;
    Ok(combined(&mine, &theirs))
}

/// Agrees on a key with each other party, which neither of the two can choose: each sends the hash
/// of its half before it hears of the other's. `None` if another party deviated.
pub(crate) fn tossed_pairs(channel: &mut Channel) -> Result<Option<Vec<Option<Key>>>> {
    let me = channel.party();
    let mine = halves(channel)?;
    let hash_of = |half: &Key, from: usize, to: usize| {
        hash(half, &format!("half of party {from} for party {to}"))
    };
    let hashes = exchange(channel, |peer| hash_of(&mine[peer], me, peer))?;
    let theirs = exchange(channel, |peer| mine[peer].to_words().to_vec())?;
    let mut told = theirs.iter().zip(hashes);
    let is_right = told.all(|((peer, half), (_, told))| hash_of(&key(half), *peer, me) == told);
    Ok(is_right.then(|| combined(&mine, &theirs)))
}

/// Draws a half for each party.
fn halves(channel: &Channel) -> Result<Vec<Key>> {
    (0..channel.parties()).map(|_| Ok(random_key()?)).collect()
}

/// Returns the keys of both halves, by party.
fn combined(mine: &[Key], theirs: &[(usize, Vec<u64>)]) -> Vec<Option<Key>> {
    let mut keys = vec![None; mine.len()];
    for (peer, half) in theirs {
        keys[*peer] = Some(xor(&mine[*peer], &key(half)));
    }
    keys
}

/// Agrees on a key that all parties know. `mine` is this party's contribution, which it has just
/// drawn.
pub(crate) fn common(channel: &mut Channel, mine: Key) -> Result<Key> {
    let theirs = exchange(channel, |_| mine.to_words().to_vec())?;
    Ok(theirs
        .iter()
        .fold(mine, |sum, (_, told)| xor(&sum, &key(told))))
}

/// Agrees on a key that all parties know and none can choose. Each sends the hash of its
/// contribution before it hears of the others', and in the end the hash of the key, since a party
/// could have told two others different contributions. `None` if one deviated.
///
/// The hash is BLAKE3, taken for a random oracle: it says nothing about 128 random bits.
pub(crate) fn tossed(channel: &mut Channel, mine: Key) -> Result<Option<Key>> {
    let hash_of = |key: &Key, party: usize| hash(key, &format!("contribution of party {party}"));
    let own = hash_of(&mine, channel.party());
    let hashes = exchange(channel, |_| own.clone())?;
    let contributions = exchange(channel, |_| mine.to_words().to_vec())?;
    let (mut sum, mut is_right) = (mine, true);
    for ((peer, words), (_, told)) in contributions.iter().zip(hashes) {
        let contribution = key(words);
        is_right &= hash_of(&contribution, *peer) == told;
        sum = xor(&sum, &contribution);
    }
    let agreed = hash(&sum, "key");
    for (_, told) in exchange(channel, |_| agreed.clone())? {
        is_right &= told == agreed;
    }
    Ok(is_right.then_some(sum))
}

/// Sends words to each other party. Returns what each sent, which is as long, in the order of the
/// parties.
pub(crate) fn exchange(
    channel: &mut Channel,
    mine: impl Fn(usize) -> Vec<u64>,
) -> Result<Vec<(usize, Vec<u64>)>> {
    let (me, parties) = (channel.party(), channel.parties());
    let others = (0..parties).filter(|peer| *peer != me);
    let mut lengths = Vec::new();
    for peer in others {
        let words = mine(peer);
        lengths.push((peer, words.len()));
        channel.send(peer, words)?;
    }
    let heard = lengths.into_iter();
    heard
        .map(|(peer, length)| Ok((peer, channel.receive(peer, length)?)))
        .collect()
}

fn hash(key: &Key, of: &str) -> Vec<u64> {
    let mut hasher = blake3::Hasher::new_derive_key("tacit coins, version 1");
    hasher.update(of.as_bytes()).update(key.as_bytes());
    net::bytes::to_words(hasher.finalize().as_bytes())
}

fn key(words: &[u64]) -> Key {
    Key::from_words([words[0], words[1]])
}

fn xor(a: &Key, b: &Key) -> Key {
    let (a, b) = (a.to_words(), b.to_words());
    Key::from_words([a[0] ^ b[0], a[1] ^ b[1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Returns all keys that the parties of one mesh agree on.
    fn agree(parties: usize) -> Vec<(Vec<Option<Key>>, Key)> {
        let meshes = net::in_process::mesh(parties, Duration::from_secs(60));
        std::thread::scope(|scope| {
            let agreeing = |mesh: net::Mesh| {
                move || {
                    let mut channel = mesh.channel(0);
                    channel.begin("agree on keys");
                    let pairs = pairs(&mut channel).unwrap();
                    let common = common(&mut channel, random_key().unwrap()).unwrap();
                    mesh.close().unwrap();
                    (pairs, common)
                }
            };
            let threads: Vec<_> = meshes
                .into_iter()
                .map(|mesh| scope.spawn(agreeing(mesh)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        })
    }

    #[test]
    fn parties_share_what_they_should_and_nothing_else() {
        let agreed = agree(3);
        let mut seen = vec![*agreed[0].1.as_bytes()];
        for (me, (pairs, common)) in agreed.iter().enumerate() {
            assert_eq!(common.as_bytes(), agreed[0].1.as_bytes());
            assert!(pairs[me].is_none());
            for peer in me + 1..3 {
                let key = pairs[peer].as_ref().unwrap();
                let theirs = agreed[peer].0[me].as_ref().unwrap();
                assert_eq!(key.as_bytes(), theirs.as_bytes());
                seen.push(*key.as_bytes());
            }
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 4);
    }

    /// A party must not give two others the same half. Otherwise they could compute the key that it
    /// does not share with them: two of three pair keys would give the third.
    #[test]
    fn no_key_follows_from_others() {
        for parties in [3, 4] {
            let agreed = agree(parties);
            let mut keys = vec![agreed[0].1.to_words()];
            for (me, (pairs, _)) in agreed.iter().enumerate() {
                let others = pairs[me + 1..].iter().flatten();
                keys.extend(others.map(Key::to_words));
            }
            for some in 1_u32..1 << keys.len() {
                let named = (0..keys.len()).filter(|at| some >> at & 1 == 1);
                let sum = named.fold([0; 2], |sum, at| [0, 1].map(|i| sum[i] ^ keys[at][i]));
                assert_ne!(sum, [0, 0], "{some:b} of the keys of {parties} parties");
            }
        }
    }

    /// A party that tells another half than that of the hash is found.
    #[test]
    fn halves_are_fixed_before_the_other_s_is_known() {
        for changed in [None, Some(0), Some(1)] {
            let meshes = net::in_process::mesh(2, Duration::from_secs(60));
            let agreed: Vec<Option<Key>> = std::thread::scope(|scope| {
                let agreeing = |mesh: net::Mesh| {
                    move || {
                        let mut channel = mesh.channel(0);
                        let mut at = 0;
                        let is_changed = mesh.party() == 0;
                        channel.set_tap(Box::new(move |_, _, words| {
                            // The hash, then the half.
                            words[0] ^= u64::from(is_changed && changed == Some(at));
                            at += 1;
                        }));
                        channel.begin("agree on keys");
                        let keys = tossed_pairs(&mut channel).unwrap();
                        mesh.close().unwrap();
                        keys.and_then(|keys| keys.into_iter().flatten().next())
                    }
                };
                let threads: Vec<_> = meshes
                    .into_iter()
                    .map(|mesh| scope.spawn(agreeing(mesh)))
                    .collect();
                let agreed = threads.into_iter().map(|thread| thread.join());
                agreed.map(|agreed| agreed.unwrap()).collect()
            });
            let words = |key: &Option<Key>| key.as_ref().map(Key::to_words);
            assert_eq!(agreed[0].is_none(), changed.is_some());
            assert!(agreed[1].is_some());
            assert!(changed.is_some() || words(&agreed[0]) == words(&agreed[1]));
        }
    }

    /// Agrees with a peer that contributes `sent`. Returns the agreed key and the other
    /// contribution.
    fn beside(sent: [u64; 2], agree: impl Fn(&mut Channel) -> Key + Sync) -> ([u64; 2], [u64; 2]) {
        let [first, second]: [net::Mesh; 2] = net::in_process::mesh(2, Duration::from_secs(60))
            .try_into()
            .ok()
            .unwrap();
        std::thread::scope(|scope| {
            let agreed = scope.spawn(|| {
                let mut channel = first.channel(0);
                channel.begin("agree on keys");
                agree(&mut channel).to_words()
            });
            let mut channel = second.channel(0);
            channel.begin("agree on keys");
            channel.send(0, sent.to_vec()).unwrap();
            let contributed = channel.receive(0, 2).unwrap();
            (agreed.join().unwrap(), [contributed[0], contributed[1]])
        })
    }

    #[test]
    fn each_end_contributes() {
        let pair = |channel: &mut Channel| pairs(channel).unwrap().swap_remove(1).unwrap();
        let all = |channel: &mut Channel| common(channel, random_key().unwrap()).unwrap();
        for agree in [&pair as &(dyn Fn(&mut Channel) -> Key + Sync), &all] {
            let (key, contributed) = beside([3, 5], agree);
            assert_ne!(contributed, [0, 0]);
            assert_eq!(key, [contributed[0] ^ 3, contributed[1] ^ 5]);
        }
    }
}
