//! Known answers: what comes from streams, and all messages.

use crate::keys::Mutation;
use crate::sample::{error, ternary};
use crate::secrecy::{ends, key, uniform_of};
use crate::{Layout, Tiling, tests};
use kernels::ntt::DEGREE;
use kernels::stream::Stream;

#[test]
fn streams_give_the_same_polynomials_everywhere() {
    let mut stream = Stream::new(&key(8), "test");
    let hash = |words: &[u64]| digest(&[words]);
    assert_eq!(
        [
            hash(&ternary(&stream.reserve(DEGREE))),
            hash(&error(&stream.reserve(DEGREE))),
            hash(&uniform_of(&mut stream)),
        ],
        ["90f3656ceaecf57b", "9cd9bb390d340e4c", "7cd667d8ae36e780"]
    );
}

/// Returns the start of a hash.
fn digest(messages: &[&[u64]]) -> String {
    let mut hasher = blake3::Hasher::new();
    messages.iter().copied().flatten().for_each(|word| {
        hasher.update(&word.to_le_bytes());
    });
    hasher.finalize().to_hex()[..16].to_owned()
}

#[test]
fn messages_are_known() {
    let (m, k, n) = (5, 120, 70);
    let (mut secret, mut public, message) = ends(Mutation::None);
    let keys = secret.packing_keys_from(&key(11), &[1, 4]);
    let mut digests = vec![digest(&[&message]), digest(&[&keys])];
    let mut words = vec![0; 10_000];
    Stream::new(&key(9), "test")
        .reserve(words.len())
        .fill(0, &mut words);
    // Several depths, where the last blocks are not full; and images.
    let tilings = Tiling::all(m, k).filter(|tiling| tiling.rows() == 4);
    let mut layouts: Vec<Layout> = (tilings.step_by(3))
        .map(|tiling| tests::matrices(tiling, m, k, n))
        .collect();
    layouts.push(Layout::Images(tests::images()));
    for layout in layouts {
        let all = 0..layout.columns();
        let (scalars, values) = words.split_at(layout.scalars_len());
        let values = &values[..layout.values_len(&(0..layout.columns()))];
        let encrypted = secret.encrypt_from(&key(4), &layout, scalars);
        let received = tests::received(&layout, &encrypted).unwrap();
        let [mut one, mut other] = [(); 2].map(|()| vec![0; layout.results_len()]);
        public.multiply(&received, &tests::ready(&layout, values, all.clone()));
        let answer = public.answer(&layout, all.clone(), &mut one);
        secret.decrypt(&layout, all, &answer, &mut other).unwrap();
        digests.push(digest(&[&encrypted]));
        digests.push(digest(&[&answer, &one, &other]));
    }
    assert_eq!(
        digests,
        [
            "98e245b9e00e806b",
            "566a9528f5144a42",
            "cc5aca16f0668704",
            "0b015f440f56fb32",
            "71ee1111a2e0bbb0",
            "bbcd586c5bd00a86",
            "c74225fc7bbac735",
            "c3ce4e62a8f2dfc0",
            "d2699472b3c1b844",
            "a1009961669441fb",
            "b163a7817dfafc83",
            "ea4910ac80376d68",
            "66e5283dc8a983f1",
            "fa553e280c4063fb",
        ]
    );
}
