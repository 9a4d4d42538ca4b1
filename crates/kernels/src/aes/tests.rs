use super::*;
use crate::dispatch::backends;

/// Returns a different byte at every place.
fn bytes(n: usize) -> Vec<u8> {
    (0..n as u64)
        .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8)
        .collect()
}

fn blocks(n: usize) -> Vec<u128> {
    let block = |bytes: &[u8]| u128::from_le_bytes(bytes.try_into().unwrap());
    bytes(16 * n).chunks_exact(16).map(block).collect()
}

/// Returns the same key for every kernel, the portable one first.
fn engines(key: &[u8; 16]) -> Vec<Aes128> {
    backends()
        .map(|backend| Aes128::with(backend, key))
        .collect()
}

fn encrypted(aes: &Aes128, text: u128) -> u128 {
    let mut blocks = [u128::from_be_bytes(text.to_be_bytes()).swap_bytes()];
    aes.encrypt(&mut blocks);
    blocks[0].swap_bytes()
}

/// FIPS 197, appendices B and C.1.
#[test]
fn known_answers_of_fips_197() {
    let cases: [(u128, u128, u128); 2] = [
        (
            0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c,
            0x3243_f6a8_885a_308d_3131_98a2_e037_0734,
            0x3925_841d_02dc_09fb_dc11_8597_196a_0b32,
        ),
        (
            0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f,
            0x0011_2233_4455_6677_8899_aabb_ccdd_eeff,
            0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a,
        ),
    ];
    for (key, text, expected) in cases {
        for aes in engines(&key.to_be_bytes()) {
            assert_eq!(encrypted(&aes, text), expected);
        }
    }
}

/// NIST SP 800-38A, F.1.1 (ECB), and the output blocks of F.5.1 (CTR).
#[test]
fn known_answers_of_sp_800_38a() {
    let key: u128 = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c;
    let cases: [(u128, u128); 8] = [
        (
            0x6bc1_bee2_2e40_9f96_e93d_7e11_7393_172a,
            0x3ad7_7bb4_0d7a_3660_a89e_caf3_2466_ef97,
        ),
        (
            0xae2d_8a57_1e03_ac9c_9eb7_6fac_45af_8e51,
            0xf5d3_d585_03b9_699d_e785_895a_96fd_baaf,
        ),
        (
            0x30c8_1c46_a35c_e411_e5fb_c119_1a0a_52ef,
            0x43b1_cd7f_598e_ce23_881b_00e3_ed03_0688,
        ),
        (
            0xf69f_2445_df4f_9b17_ad2b_417b_e66c_3710,
            0x7b0c_785e_27e8_ad3f_8223_2071_0472_5dd4,
        ),
        (
            0xf0f1_f2f3_f4f5_f6f7_f8f9_fafb_fcfd_feff,
            0xec8c_df73_9860_7cb0_f2d2_1675_ea9e_a1e4,
        ),
        (
            0xf0f1_f2f3_f4f5_f6f7_f8f9_fafb_fcfd_ff00,
            0x362b_7c3c_6773_5163_18a0_77d7_fc50_73ae,
        ),
        (
            0xf0f1_f2f3_f4f5_f6f7_f8f9_fafb_fcfd_ff01,
            0x6a2c_c378_7889_374f_beb4_c81b_17ba_6c44,
        ),
        (
            0xf0f1_f2f3_f4f5_f6f7_f8f9_fafb_fcfd_ff02,
            0xe89c_399f_f0f1_98c6_d40a_31db_156c_abfe,
        ),
    ];
    for aes in engines(&key.to_be_bytes()) {
        for (text, expected) in cases {
            assert_eq!(encrypted(&aes, text), expected);
        }
        // All at once: one full register and a partial one.
        let mut texts = cases.map(|(text, _)| text.swap_bytes());
        aes.encrypt(&mut texts[..7]);
        aes.encrypt(&mut texts[7..]);
        assert_eq!(texts.map(u128::swap_bytes), cases.map(|(_, block)| block));
    }
}

#[test]
fn all_kernels_agree() {
    let key = bytes(16).try_into().unwrap();
    let engines = engines(&key);
    let (input, tweak) = (blocks(1010), 0x1234_5678_9abc_def0_ffff_ffff_ffff_fe00);
    for n in 0..1000 {
        let (offset, first) = (n * 7 % 11, u64::MAX - (n as u64) / 2);
        let input = &input[offset..offset + n];
        let results: Vec<_> = engines
            .iter()
            .map(|aes| {
                let mut out: [Vec<u128>; 6] = std::array::from_fn(|_| vec![0; offset + n]);
                aes.permute(input, tweak, &mut out[0][offset..]);
                aes.feed_forward(input, tweak, &mut out[1][offset..]);
                aes.feed_forward_counted(
                    input,
                    (tweak >> 64) as u64,
                    tweak as u64,
                    &mut out[2][offset..],
                );
                out[3][offset..].copy_from_slice(input);
                aes.encrypt(&mut out[3][offset..]);
                out[4][offset..].copy_from_slice(input);
                let (others, nodes) = out[4..].split_at_mut(1);
                nodes[0].copy_from_slice(&others[0]);
                let sum = aes.children(&mut nodes[0][offset..], &mut others[0][offset..]);
                let mut words = vec![0; offset + n];
                aes.key_stream(first, &mut words[offset..]);
                (out, words, sum)
            })
            .collect();
        assert!(
            results.windows(2).all(|pair| pair[0] == pair[1]),
            "{n} blocks"
        );
    }
}

/// Compares with the definitions, block by block.
#[test]
fn what_surrounds_the_cipher_is_as_defined() {
    let key = bytes(16).try_into().unwrap();
    let (n, tweak, input) = (77, (5 << 64) | (u64::MAX as u128 - 9), blocks(77));
    let (high, low) = ((tweak >> 64) as u64, tweak as u64);
    for aes in engines(&key) {
        let one = |block: u128| {
            let mut blocks = [block];
            aes.encrypt(&mut blocks);
            blocks[0]
        };
        let counted = |i: usize| u128::from(high) << 64 | u128::from(low.wrapping_add(i as u64));
        let mut out = vec![0; n];
        aes.permute(&input, tweak, &mut out);
        assert!((0..n).all(|i| out[i] == one(input[i] ^ tweak)));
        aes.feed_forward(&input, tweak, &mut out);
        assert!((0..n).all(|i| out[i] == one(input[i] ^ tweak) ^ input[i]));
        aes.feed_forward_counted(&input, high, low, &mut out);
        assert!((0..n).all(|i| out[i] == one(input[i] ^ counted(i)) ^ input[i]));
        let mut words = vec![0; 2 * n - 1];
        aes.key_stream(low, &mut words);
        for (i, words) in words.chunks(2).enumerate() {
            let block = one(counted(i) & u128::from(u64::MAX));
            assert_eq!(words[0], block as u64);
            assert!(
                words
                    .get(1)
                    .is_none_or(|word| *word == (block >> 64) as u64)
            );
        }
    }
}

#[test]
fn several_streams_are_those_of_their_keys() {
    for backend in backends() {
        for (keys, len) in [(0, 0), (1, 5), (3, 0), (4, 16), (7, 16), (15, 16), (5, 33)] {
            let keys: Vec<_> = (0..keys)
                .map(|i| Aes128::with(backend, &[i as u8; 16]))
                .collect();
            let (mut all, mut one) = (vec![0; keys.len() * len], vec![0; len]);
            Aes128::key_streams(&keys, 1 << 40, &mut all);
            for (i, key) in keys.iter().enumerate() {
                key.key_stream(1 << 40, &mut one);
                assert!(all[i * len..][..len] == one, "{i} of {} keys", keys.len());
            }
        }
    }
}

/// Without this check, the comparisons above might compare less than they claim.
#[test]
#[cfg(all(avx512, target_os = "linux"))]
fn vector_instructions_are_used_where_the_processor_has_them() {
    let text = std::fs::read_to_string("/proc/cpuinfo").expect("/proc/cpuinfo is readable");
    let flags = text.lines().find_map(|line| line.strip_prefix("flags"));
    let flags = flags.expect("/proc/cpuinfo lists flags");
    let vector_aes = flags.split_whitespace().any(|flag| flag == "vaes");
    if Backend::Avx512.is_available() {
        let aes = Aes128::with(Backend::Avx512, &[0; 16]);
        assert_eq!(matches!(aes.0, Engine::Vaes512(_)), vector_aes);
    }
    let aes = Aes128::with(Backend::Portable, &[0; 16]);
    assert!(matches!(aes.0, Engine::Portable(_)));
}

#[test]
#[should_panic(expected = "3 blocks make as many, not 2")]
fn other_lengths_are_refused() {
    Aes128::new(&[0; 16]).permute(&[0; 3], 0, &mut [0; 2]);
}

#[test]
#[should_panic(expected = "streams of one length")]
fn streams_of_two_lengths_are_refused() {
    let key = || Aes128::new(&[0; 16]);
    Aes128::key_streams(&[key(), key()], 0, &mut [0; 3]);
}

/// Compares with the definition, key by key, each lane of the 64 bits separately.
#[test]
fn sums_of_streams_are_as_defined() {
    let key = bytes(16).try_into().unwrap();
    let engines = engines(&key);
    let (all, scalars) = (blocks(256 * 9), 9_usize);
    let keys: Vec<_> = all.chunks_exact(scalars).collect();
    let signs = bytes(scalars);
    for (case, count) in [2, 1, 4, 3, 8, 7, 16, 15, 32, 63, 128, 256, 255]
        .into_iter()
        .enumerate()
    {
        let (keys, first) = (&keys[..count], count.next_power_of_two().max(2) - count);
        for (lane, n) in [(8, 40), (16, 16), (32, 1), (64, 19), (64, 0)] {
            // Long pieces of one key, and short pieces of several keys.
            let piece = 1 + (case * 11 + n) % 37;
            let places: Vec<Place> = (0..n)
                .map(|i| Place {
                    key: (i / piece % scalars) as u32,
                    counter: (i * i) as u32,
                })
                .collect();
            let mut expected = [vec![], vec![]];
            for place in &places {
                let (mut total, mut weighted) = ([0_u64; 16], [0_u64; 16]);
                for (weight, keys) in (first..).zip(keys) {
                    let mut block = [0];
                    let own = [keys[place.key as usize]];
                    engines[0].feed_forward(&own, place.counter.into(), &mut block);
                    let sign = signs[place.key as usize];
                    for at in 0..128 / lane {
                        let word = (block[0] >> (at * lane)) as u64;
                        total[at] = total[at].wrapping_add(word);
                        for bit in (0..8).filter(|bit| weight >> bit & 1 == 1) {
                            weighted[at] = match sign >> bit & 1 {
                                1 => weighted[at].wrapping_add(word << bit),
                                _ => weighted[at].wrapping_sub(word << bit),
                            };
                        }
                    }
                }
                for (expected, sums) in expected.iter_mut().zip([total, weighted]) {
                    let block = (0..128 / lane).fold(0, |block, at| {
                        let low = u128::from(sums[at] & (u64::MAX >> (64 - lane)));
                        block | low << (at * lane)
                    });
                    expected.extend([block as u64, (block >> 64) as u64]);
                }
            }
            for aes in &engines {
                let [mut total, mut weighted] = [0, 1].map(|_| vec![0; 2 * n]);
                let sums = [total.as_mut_slice(), weighted.as_mut_slice()];
                aes.sum_streams(keys, &signs, lane as u32, &places, sums);
                assert!(
                    [total, weighted] == expected,
                    "{count} keys, lanes of {lane}, {n} places"
                );
            }
        }
    }
}

#[test]
#[should_panic(expected = "keys of all weights, or of all but 0, not 5")]
fn keys_of_some_weights_are_refused() {
    Aes128::new(&[0; 16]).sum_streams(&[&[][..]; 5], &[], 8, &[], [&mut [], &mut []]);
}
