//! Tests that no copy of a secret remains in memory that is freed.

use crate::answers::packed_places;
use crate::keys::evaluate;
use crate::residues::{SENT, basis};
use crate::sample::{masks, ternary};
use crate::waiting::PAIR;
use crate::{Layout, PublicKey, SecretKey, Tiling, tests, wire};
use kernels::memory::{Watched, copies};
use kernels::ntt::DEGREE;
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

/// Returns both ends of a session, with a key for packing.
fn ends() -> (SecretKey, PublicKey) {
    let (mut secret, message) = SecretKey::from_keys(&key(1), &key(2));
    let mut public = PublicKey::read(&message, &key(3)).unwrap();
    let keys = secret.packing_keys_from(&key(5), &[0]);
    public.read_packing_keys(&[0], &keys).unwrap();
    (secret, public)
}

/// Runs one product, from keys to shares.
fn product(layout: &Layout) -> [Vec<u64>; 2] {
    let (m, k, n) = SHAPE;
    let (mut secret, mut public) = ends();
    let scalars = secret.encrypt_from(&key(4), layout, &vec![3; m * k]);
    let received = tests::received(layout, &scalars).unwrap();
    public.multiply(&received, &tests::ready(layout, &vec![5; k * n], 0..1));
    let answer = public.answer(layout, 0..1, &mut vec![0; m * n]);
    let mut out = vec![0; m * n];
    secret.decrypt(layout, 0..1, &answer, &mut out).unwrap();
    [scalars, answer]
}

/// Returns the secrets of the same product, drawn again from the same streams.
fn secrets(layout: &Layout, [scalars, answer]: &[Vec<u64>; 2]) -> Vec<[u64; 2]> {
    let (_, k, n) = SHAPE;
    let (secret, mut public) = ends();
    let mut seed = [0; 2];
    Stream::new(&key(3), "lattice: answers")
        .reserve(2)
        .fill(0, &mut seed);
    let answers = || Stream::new(&Key::from_words(seed), "lattice: one answer");
    let places = packed_places(layout, &layout.blocks(0..1));

    let mut of_zero = ternary(&answers().reserve(DEGREE));
    evaluate(&mut of_zero);
    let received = tests::received(layout, scalars).unwrap();
    public.multiply(&received, &tests::ready(layout, &vec![5; k * n], 0..1));
    let mut first = public.blocks.take().to_vec();
    public.pack(&mut first, layout.depth());
    let packed = start(&first);
    let mut own = answers();
    public.add_zero(&mut first[..PAIR], &mut own);
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
        &packed,
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
    // Two blocks in one answer.
    let tiling = Tiling::all(m, k).find(|tiling| tiling.rows() == 2 && tiling.together() == 2);
    let layout = tests::matrices(tiling.unwrap(), m, k, n);
    let messages = product(&layout);
    let secrets = secrets(&layout, &messages);
    let (found, _) = copies(&secrets, || drop(secrets.clone()));
    assert_eq!(found, vec![1; secrets.len()], "a copy is noticed");
    let (found, again) = copies(&secrets, || product(&layout));
    assert!(again == messages, "the same product");
    assert_eq!(found, vec![0; secrets.len()]);
}
