//! Tests that no copy of a seed or key remains in memory that is freed.

use crate::base::{self, COUNT, POINT_WORDS};
use crate::binding::{Binding, Direction, Secrets};
use crate::hash::{Family, Purpose};
use crate::secrecy::begin_batch;
use crate::{Pair, Setup, tree};
use kernels::memory::{Watched, copies};

#[global_allocator]
static MEMORY: Watched = Watched;

fn words(secret: u128) -> [u64; 2] {
    [secret as u64, (secret >> 64) as u64]
}

/// Returns secrets that no other test uses.
fn secrets(byte: u8) -> Secrets {
    Secrets::from_seed(&[0xa0 | byte; 32])
}

fn binding() -> Binding {
    Binding::new(b"wiping", Direction::FromFirst)
}

/// Checks that `work` leaves no copies of these secrets, and that a copy would be noticed.
#[track_caller]
fn leaves_none(secrets: &[u128], work: impl FnOnce()) {
    let needles: Vec<[u64; 2]> = secrets.iter().map(|secret| words(*secret)).collect();
    let (found, ()) = copies(&needles, || drop(secrets.to_vec()));
    assert_eq!(found, vec![1; secrets.len()], "a copy is noticed");
    let (found, ()) = copies(&needles, work);
    assert_eq!(found, vec![0; secrets.len()]);
}

#[test]
fn trees_leave_no_seeds() {
    let permutation = Family::new(&binding(), "test").permutation(Purpose::Tree, 0, 0);
    let trees = 3;
    let key = |level: u128, side: u128, tree: u128| {
        (level << 8 | side << 4 | tree).wrapping_mul(u128::MAX / 0x1357_9bdf)
    };
    let keys: Vec<[Vec<u128>; 2]> = (1..=4)
        .map(|level| [1, 2].map(|side| (1..=trees).map(|tree| key(level, side, tree)).collect()))
        .collect();
    let both: Vec<[&[u128]; 2]> = keys
        .iter()
        .map(|keys| keys.each_ref().map(Vec::as_slice))
        .collect();
    // The path goes right at every level.
    let chosen: Vec<&[u128]> = both.iter().map(|[left, _]| *left).collect();
    let puncture = |depth: usize, corrections: &[u64]| {
        tree::puncture(
            &permutation,
            &chosen[..depth],
            |_, _| u128::MAX,
            corrections,
        )
    };
    let mut seeds = Vec::new();
    for depth in 2..=4 {
        let (all, corrections) = tree::grow(&permutation, &both[..depth]);
        seeds.extend([all[0], all[all.len() - 1]]);
        let most = puncture(depth, &corrections);
        seeds.extend([most[0], most[most.len() - 1]]);
    }
    leaves_none(&seeds, || {
        let (_, corrections) = tree::grow(&permutation, &both);
        drop(puncture(4, &corrections));
    });
}

#[test]
fn base_transfers_leave_no_keys() {
    let sender = || base::Sender::new(&mut secrets(1));
    let choices = 0x0123_4567_89ab_cdef_u128;
    let choose =
        || base::choose(&binding(), &mut secrets(2), choices, &sender().message()).unwrap();
    let (chosen, reply) = choose();
    let both = sender().keys(&binding(), &reply).unwrap();
    for at in 0..COUNT {
        assert_eq!(chosen[at], both[at][(choices >> at & 1) as usize]);
    }
    let last = both[COUNT - 1];
    leaves_none(&[both[0][0], both[0][1], last[0], last[1]], || {
        drop(sender().keys(&binding(), &choose().1));
    });
    // The message is refused after most keys were made.
    let mut wrong = reply.clone();
    wrong[COUNT * POINT_WORDS - 1] = u64::MAX;
    leaves_none(&[both[0][0], both[0][1], both[1][0]], || {
        assert!(sender().keys(&binding(), &wrong).is_err());
    });
}

/// Returns both ends of a set-up with known secrets, from this byte and the next.
fn set_up(byte: u8) -> (Pair, Pair) {
    let with = |first, byte| Setup::with_secrets(b"wiping", first, 4, secrets(byte));
    let ((one, first), (two, second)) = (with(true, byte), with(false, byte + 1));
    let ((one, first), (two, second)) = (one.reply(&second).unwrap(), two.reply(&first).unwrap());
    let ((one, first), (two, second)) =
        (one.correct(&second).unwrap(), two.correct(&first).unwrap());
    (one.finish(&second).unwrap(), two.finish(&first).unwrap())
}

#[test]
fn set_ups_leave_no_secret() {
    let (one, two) = set_up(3);
    let deltas = [&one, &two].map(|pair| pair.sender.secret());
    leaves_none(&deltas, || drop(set_up(3)));
}

#[test]
fn silent_transfers_leave_no_seed() {
    let run = || {
        let (mut one, mut two) = set_up(3);
        begin_batch(&mut two.sender, &mut one.receiver);
        two
    };
    let secrets = run().sender.silent_secrets();
    leaves_none(&secrets, || drop(run()));
}

#[test]
fn tables_leave_no_secret() {
    let (mut one, mut two) = set_up(7);
    let delta = two.sender.secret();
    let (message, _) = one.receiver.extend_random(16);
    leaves_none(&[delta], || {
        let offered = two.sender.extend_random(16, &message).unwrap();
        drop(offered.tables(2, 1));
    });
}
