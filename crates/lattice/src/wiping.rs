//! Tests that no copy of a secret remains in memory that is freed.

use crate::keys::evaluate;
use crate::residues::{SENT, basis};
use crate::sample::{masks, ternary};
use crate::{PublicKey, SecretKey, Tiling, tests, wire};
use kernels::memory::{Watched, copies};
use kernels::ntt::{DEGREE, Evaluations};
use kernels::stream::{Key, Stream};

#[global_allocator]
static MEMORY: Watched = Watched;

/// Rows, depth and columns of a product of one block.
const SHAPE: (usize, usize, usize) = (3, 5, 7);

/// Returns a key that no other test uses.
fn key(byte: u8) -> Key {
    Key::from_bytes([0xa0 | byte; 16])
}

/// Returns the first two words.
fn start(words: &[u64]) -> [u64; 2] {
    [words[0], words[1]]
}

/// Runs one product, from keys to shares.
fn product(tiling: Tiling) -> [Vec<u64>; 2] {
    let (m, k, n) = SHAPE;
    let (mut secret, message) = SecretKey::from_keys(&key(1), &key(2));
    let mut public = PublicKey::read(&message, &key(3)).unwrap();
    let scalars = secret.encrypt_from(&key(4), tiling, &vec![3; m * k], k);
    let received = tests::received(tiling, m, k, &scalars).unwrap();
    let values = tests::ready(tiling, &vec![5; k * n], k, 0..1);
    let answer = public.answer(&received, &values, &mut vec![0; m * n]);
    let mut out = vec![0; m * n];
    secret
        .decrypt(tiling, (m, n), 0..1, &answer, &mut out)
        .unwrap();
    [scalars, answer]
}

/// Returns the secrets of the same product, drawn again from the same streams.
fn secrets(tiling: Tiling, [scalars, answer]: &[Vec<u64>; 2]) -> Vec<[u64; 2]> {
    let (m, k, n) = SHAPE;
    let (secret, message) = SecretKey::from_keys(&key(1), &key(2));
    let public = PublicKey::read(&message, &key(3)).unwrap();
    let mut seed = [0; 2];
    Stream::new(&key(3), "lattice: answers")
        .reserve(2)
        .fill(0, &mut seed);
    let answers = || Stream::new(&Key::from_words(seed), "lattice: one answer");
    let places = tiling.products(m, n, 0, 0);

    let mut of_zero = ternary(&answers().reserve(DEGREE));
    evaluate(&mut of_zero);
    let received = tests::received(tiling, m, k, scalars).unwrap();
    let mut products = Evaluations::default();
    received.times(
        &tests::ready(tiling, &vec![5; k * n], k, 0..1),
        &mut products,
    );
    let mut own = answers();
    let [first, _] = public.masked_by_zero(&products, 0, 0, &mut own);
    let unmasked = [first[places[0].0], first[places[1].0]];
    let (masks, words) = masks(&mut own, places.len());

    let opened = secret.open_block(&places, answer).unwrap();
    let mut sent = vec![0; SENT * places.len()];
    let first = &answer[wire::words(DEGREE, SENT)..];
    wire::read("a test", first, places.len(), &mut sent).unwrap();
    let mut by_secret = opened[..places.len()].to_vec();
    basis().moduli[0].subtract(&mut by_secret, &sent[..places.len()]);
    [
        &secret.secret[..2],
        &seed,
        &of_zero,
        &unmasked,
        &masks,
        &words,
        &opened,
        &by_secret,
    ]
    .map(start)
    .to_vec()
}

#[test]
fn keys_masks_and_what_tells_them_leave_no_copies() {
    let (m, k, n) = SHAPE;
    let tiling = Tiling::new(m, k, n);
    let messages = product(tiling);
    let secrets = secrets(tiling, &messages);
    let (found, _) = copies(&secrets, || drop(secrets.clone()));
    assert_eq!(found, vec![1; secrets.len()], "a copy is noticed");
    let (found, again) = copies(&secrets, || product(tiling));
    assert!(again == messages, "the same product");
    assert_eq!(found, vec![0; secrets.len()]);
}
