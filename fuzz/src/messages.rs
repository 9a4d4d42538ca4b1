//! Targets for messages of two-party computation: oblivious transfer, and homomorphic encryption.

use crate::Target;
use crate::edits::{bytes, edited, words};
use kernels::stream::random_key;
use lattice::{Ciphertexts, Layout, Prices, PublicKey, SecretKey, Tiling, Values};
use ot::products::{self, Scalars};
use ot::{Chosen, Pair, Setup};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Messages of a setup, of extensions and of products. The first byte selects one; changes follow.
pub const TRANSFERS: Target = Target {
    name: "transfers",
    takes: takes_transfer,
    seeds: || (0..TRANSFER_MESSAGES).map(|which| vec![which]).collect(),
};

/// A public key, encrypted scalars, and an answer. The first byte selects one; changes follow.
pub const CIPHERTEXTS: Target = Target {
    name: "ciphertexts",
    takes: takes_ciphertext,
    seeds: || (0..3).map(|which| vec![which]).collect(),
};

const TRANSFER_MESSAGES: u8 = 9;

const CONTEXT: &[u8] = b"session 1, parties 0 and 1";

/// The number of words of choices, and of scalars.
const N: usize = 3;

const SCALARS: [u64; N] = [1, u64::MAX, 1 << 63];

/// Both ends of a setup.
static PAIRS: LazyLock<Mutex<(Pair, Pair)>> = LazyLock::new(|| {
    let begin = |first| Setup::with_depth(CONTEXT, first, 1).expect("randomness");
    let ((one, first), (two, second)) = (begin(true), begin(false));
    let (one, for_two) = one.reply(&second).expect("a point");
    let (two, for_one) = two.reply(&first).expect("a point");
    let (one, after) = one.correct(&for_one).expect("points");
    let (two, other) = two.correct(&for_two).expect("points");
    let pair = "corrections";
    Mutex::new((
        one.finish(&other).expect(pair),
        two.finish(&after).expect(pair),
    ))
});

fn takes_transfer(data: &[u8]) -> bool {
    let Some((&which, edits)) = data.split_first() else {
        return false;
    };
    let change = |right: &[u64]| words(&edited(&bytes(right), edits));
    match which % TRANSFER_MESSAGES {
        which @ 0..3 => takes_set_up(which, change),
        which => {
            // The first panic is the finding; later executions begin again.
            let mut pairs = PAIRS.lock().unwrap_or_else(PoisonError::into_inner);
            takes_extended(which, &mut pairs, change)
        }
    }
}

fn takes_set_up(which: u8, change: impl Fn(&[u64]) -> Vec<u64>) -> bool {
    let begin = |first| Setup::with_depth(CONTEXT, first, 1).expect("randomness");
    let ((one, first), (two, second)) = (begin(true), begin(false));
    if which == 0 {
        return one.reply(&change(&second)).is_ok();
    }
    let (one, for_two) = one.reply(&second).expect("a point");
    let (two, for_one) = two.reply(&first).expect("a point");
    if which == 1 {
        return one.correct(&change(&for_one)).is_ok();
    }
    let (one, _) = one.correct(&for_one).expect("points");
    let (_, other) = two.correct(&for_two).expect("points");
    one.finish(&change(&other)).is_ok()
}

fn takes_extended(
    which: u8,
    (one, two): &mut (Pair, Pair),
    change: impl Fn(&[u64]) -> Vec<u64>,
) -> bool {
    let mut chosen = |choices: &[u64]| -> Chosen { one.receiver.extend(choices).1 };
    let zeros = |words: usize| change(&vec![0; words]);
    let transfers = 64 * N;
    match which {
        3 => {
            let (message, _) = one.receiver.extend(&SCALARS);
            let offered = two.sender.extend(N, &change(&message));
            offered.is_ok_and(|offered| offered.random().0.len() == transfers)
        }
        4 => chosen(&SCALARS).receive(&zeros(2 * transfers)).is_ok(),
        5 => {
            let message = zeros(ot::correlate_words(transfers, 2, 17));
            let shares = chosen(&SCALARS).correlate(2, 17, &message);
            shares.is_ok_and(|shares| shares.iter().flatten().all(|share| share >> 16 <= 1))
        }
        6 => chosen(&SCALARS).correlate_bits(5, &zeros(5 * N)).is_ok(),
        7 => {
            let message = zeros(products::message_words(N));
            products::receive(chosen(&products::choices(&SCALARS)), N, &message).is_ok()
        }
        _ => {
            let message = zeros(products::digit_words(N, 3));
            let scalars = Scalars::new(chosen(&products::choices(&SCALARS)), &SCALARS);
            let Ok(mut scalars) = scalars.in_digits(3, &message) else {
                return false;
            };
            let mut out = [0; 2];
            let rows = zeros(scalars.rows_words(N, 1, 2));
            scalars.multiply_rows(N, 0..1, 2, &mut out, &rows).is_ok()
        }
    }
}

/// Rows, depth and columns of a product.
const SHAPE: (usize, usize, usize) = (3, 5, 7);

/// Returns how the product lies in blocks. No answers are packed, which would take keys.
fn layout() -> Layout {
    let (m, k, n) = SHAPE;
    let tiling = Tiling::new(m, k, n, &Prices::of(None));
    let tiling = Tiling::with(tiling.rows(), tiling.deepest(), false).expect("a tiling");
    Layout::Matrices(tiling, [m, k, n])
}

/// A party that encrypts, and the three messages.
struct Encrypted {
    secret: SecretKey,
    messages: [Vec<u8>; 3],
}

static ENCRYPTED: LazyLock<Encrypted> = LazyLock::new(|| {
    let (m, k, n) = SHAPE;
    let layout = layout();
    let numbers = |n: usize| -> Vec<u64> { (0..n as u64).map(|i| i << 55 | i).collect() };
    let (mut secret, key) = SecretKey::new().expect("randomness");
    let scalars = secret
        .encrypt(&layout, &numbers(m * k))
        .expect("randomness");
    let mut public = PublicKey::read(&key, &random_key().expect("randomness")).expect("a key");
    let (mut received, mut ready) = (Ciphertexts::default(), Values::default());
    received.read(&layout, &scalars).expect("ciphertexts");
    ready.read(&layout, &numbers(k * n), 0..layout.columns());
    public.multiply(&received, &ready);
    let answer = public.answer(&layout, 0..layout.columns(), &mut vec![0; m * n]);
    Encrypted {
        secret,
        messages: [key, scalars, answer].map(|message| bytes(&message)),
    }
});

fn takes_ciphertext(data: &[u8]) -> bool {
    let Some((&which, edits)) = data.split_first() else {
        return false;
    };
    let ((m, _, n), layout) = (SHAPE, layout());
    let which = usize::from(which % 3);
    let message = words(&edited(&ENCRYPTED.messages[which], edits));
    match which {
        0 => PublicKey::read(&message, &random_key().expect("randomness")).is_ok(),
        1 => Ciphertexts::default().read(&layout, &message).is_ok(),
        _ => {
            let mut out = vec![0; m * n];
            ENCRYPTED
                .secret
                .decrypt(&layout, 0..layout.columns(), &message, &mut out)
                .is_ok()
        }
    }
}
