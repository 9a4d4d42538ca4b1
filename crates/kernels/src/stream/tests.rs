use super::*;

fn stream(byte: u8, domain: &str) -> Stream {
    Stream::new(&Key::from_bytes([byte; 16]), domain)
}

fn words(reserved: &Reserved) -> Vec<u64> {
    let mut out = vec![0; reserved.len()];
    reserved.fill(0, &mut out);
    out
}

#[test]
fn keys_survive_the_way_through_words() {
    let bytes = std::array::from_fn(|i| i as u8);
    assert_eq!(
        Key::from_words(Key::from_bytes(bytes).to_words()).as_bytes(),
        &bytes
    );
}

#[test]
fn random_keys_differ() {
    assert_ne!(
        random_key().unwrap().as_bytes(),
        random_key().unwrap().as_bytes()
    );
}

/// With this many draws, a bit stays the same by chance only once in 2^56.
#[test]
fn every_bit_of_a_random_key_is_random() {
    let (mut ones, mut zeros) = ([0; 2], [0; 2]);
    for _ in 0..64 {
        for (at, word) in random_key().unwrap().to_words().into_iter().enumerate() {
            ones[at] |= word;
            zeros[at] |= !word;
        }
    }
    assert_eq!((ones, zeros), ([u64::MAX; 2], [u64::MAX; 2]));
}

#[test]
fn domains_and_keys_separate_streams() {
    let mut starts: Vec<_> = [
        stream(1, "a"),
        stream(1, "b"),
        stream(1, ""),
        stream(2, "a"),
    ]
    .iter_mut()
    .map(|stream| words(&stream.reserve(2)))
    .collect();
    starts.sort();
    starts.dedup();
    assert_eq!(starts.len(), 4);
}

#[test]
fn both_holders_of_a_key_get_the_same_words() {
    let (mut ours, mut theirs) = (stream(7, "mask"), stream(7, "mask"));
    for len in [0, 1, 2, 3, 128, 129, 1000] {
        assert_eq!(words(&ours.reserve(len)), words(&theirs.reserve(len)));
    }
}

#[test]
fn no_range_is_handed_out_twice() {
    let mut stream = stream(3, "once");
    let mut blocks = std::collections::HashSet::new();
    let mut next = 0;
    for len in [0, 1, 2, 3, 64, 0, 7, 1, 1, 300] {
        let reserved = stream.reserve(len);
        assert_eq!(reserved.len(), len);
        assert_eq!(reserved.is_empty(), len == 0);
        assert_eq!(reserved.first_block, next);
        next += len.div_ceil(2) as u64;
        assert!(words(&reserved).into_iter().all(|word| blocks.insert(word)));
    }
    assert_eq!(stream.next_block, next);
}

#[test]
fn pieces_equal_the_whole() {
    for n in [1, 2, 63, 64, 65, 129, 1000, 3 * parallel::GRAIN + 5] {
        let reserved = stream(9, "pieces").reserve(n);
        let whole = words(&reserved);
        for piece in [2, 6, 62, 64, 130, 4096] {
            let mut out = vec![0; n];
            // From the end to the start, since any order must work.
            for (i, out) in out.chunks_mut(piece).enumerate().rev() {
                reserved.fill(i * piece, out);
            }
            assert!(out == whole, "{n} words in pieces of {piece}");
        }
    }
}

#[test]
#[should_panic(expected = "a stream is entered at an even word, not 1")]
fn an_odd_offset_is_refused() {
    stream(0, "").reserve(4).fill(1, &mut [0]);
}

#[test]
#[should_panic(expected = "3 words at 2 exceed the range of 4")]
fn more_than_reserved_is_refused() {
    stream(0, "").reserve(4).fill(2, &mut [0; 3]);
}

#[test]
#[should_panic(expected = "exceed the range")]
fn an_overflowing_offset_is_refused() {
    stream(0, "").reserve(4).fill(usize::MAX - 1, &mut [0; 3]);
}

#[test]
fn blocks_are_those_of_aes_128() {
    // NIST's AESAVS, appendices D (first and 64th text under the zero key) and E (first key, zero
    // text), and the key of FIPS 197, appendix C.1, with texts encrypted by OpenSSL.
    let counting = std::array::from_fn(|i| i as u8);
    let mut first = [0; 16];
    first[0] = 0x80;
    let cases: [([u8; 16], u64, u128); 6] = [
        ([0; 16], 0x80, 0x3ad7_8e72_6c1e_c02b_7ebf_e92b_23d9_ec34),
        ([0; 16], u64::MAX, 0xf807_c3e7_985f_e0f5_a50e_2cdb_25c5_109e),
        ([0; 16], 0, 0x66e9_4bd4_ef8a_2c3b_884c_fa59_ca34_2b2e),
        (first, 0, 0x0edd_33d3_c621_e546_455b_d8ba_1418_bec8),
        (counting, 0, 0xc6a1_3b37_878f_5b82_6f4f_8162_a1c8_d879),
        (counting, 1, 0xe37c_d363_dd7c_87a0_9aff_0e3e_60e0_9c82),
    ];
    for (key, block, expected) in cases {
        let mut words = [0; 2];
        Aes128::new(&key).key_stream(block, &mut words);
        let bytes = words.map(u64::to_le_bytes).concat();
        assert_eq!(
            bytes,
            expected.to_be_bytes(),
            "block {block} of key {key:02x?}"
        );
    }
}
