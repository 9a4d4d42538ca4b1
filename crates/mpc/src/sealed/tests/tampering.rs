//! Tests that alterations, exchanges and truncations are noticed.

use super::*;
use proptest::prelude::*;

#[test]
fn records_and_runs_cannot_be_exchanged() {
    // Two runs of two records each, all of the same length.
    let record = |word| (b"same".to_vec(), vec![word; 4]);
    let runs = vec![vec![record(1), record(2)], vec![record(3), record(4)]];
    let (_scratch, path) = written(&runs);
    let original = fs::read(&path).unwrap();
    let length = sealed_length(&record(0));
    let place = |n: usize| DATA as usize + n * length..DATA as usize + (n + 1) * length;
    let (_other_scratch, other) = written(&runs);
    let other = fs::read(other).unwrap();
    let mut cases = vec![];
    for (to, from) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 3), (3, 1), (1, 2)] {
        let mut bytes = original.clone();
        bytes.copy_within(place(from), place(to).start);
        cases.push((bytes, to));
    }
    for n in 0..4 {
        let mut bytes = original.clone();
        bytes[place(n)].copy_from_slice(&other[place(n)]);
        cases.push((bytes, n));
        // The flag "last" is removed, or the length is changed.
        for bit in [31, 0, 3, 30] {
            let mut bytes = original.clone();
            bytes[place(n).start + bit / 8] ^= 1 << (bit % 8);
            cases.push((bytes, n));
        }
    }
    for (bytes, at) in cases {
        fs::write(&path, &bytes).unwrap();
        let mut reader = open(&path);
        let run = at / 2;
        let given = text(read_run(&mut reader, run as u32));
        let expected = format!("damaged or tampered with at record {} of run {run}", at % 2);
        assert!(given.contains(&expected), "{given}");
        misuse(reader.next());
        drop(reader);
        if run == 0 {
            let other = read_run(&mut open(&path), 1).unwrap();
            assert_eq!(other, runs[1]);
        }
    }
}

#[test]
fn a_shortened_run_is_noticed_before_any_is_used() {
    let runs = small();
    let (_scratch, path) = written(&runs);
    let all: usize = runs.iter().flatten().map(sealed_length).sum();
    let index = DATA + all as u64;
    // Run 0 is said to end before its last record, which is given to run 1.
    let kept: usize = runs[0][..2].iter().map(sealed_length).sum();
    patch(&path, index + 8, &2_u64.to_le_bytes());
    patch(&path, index + 16, &(DATA + kept as u64).to_le_bytes());
    patch(&path, index + 24, &1_u64.to_le_bytes());
    assert!(refused(&path).contains("damaged or tampered with in its index"));
    // Writing the right values back proves that the index is here.
    patch(&path, index + 8, &3_u64.to_le_bytes());
    let end: usize = runs[0].iter().map(sealed_length).sum();
    patch(&path, index + 16, &(DATA + end as u64).to_le_bytes());
    patch(&path, index + 24, &0_u64.to_le_bytes());
    assert_eq!(read_all(&path).unwrap(), runs);
}

#[test]
fn chunks_of_a_large_record_cannot_be_exchanged_or_dropped() {
    let runs = vec![vec![(Vec::new(), (0..(6 << 20)).collect())]];
    let (_scratch, path) = written(&runs);
    let bytes = fs::read(&path).unwrap();
    let first = DATA as usize..DATA as usize + CHUNK_HEAD + CHUNK + TAG - 6;
    let second = first.end..first.end + CHUNK_HEAD + CHUNK + TAG;
    let head = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!(head(first.start) as usize, first.len() - CHUNK_HEAD);
    assert_eq!(head(second.start) as usize, second.len() - CHUNK_HEAD);
    let mut exchanged = bytes[..first.start].to_vec();
    exchanged.extend_from_slice(&bytes[second.clone()]);
    exchanged.extend_from_slice(&bytes[first.clone()]);
    exchanged.extend_from_slice(&bytes[second.end..]);
    let mut ended = bytes.clone();
    ended[second.start + 3] ^= 0x80;
    let mut altered = bytes.clone();
    altered[second.end - 1] ^= 1;
    for bytes in [exchanged, ended, altered] {
        fs::write(&path, bytes).unwrap();
        let given = text(read_all(&path));
        assert!(given.contains("damaged or tampered with at record 0 of run 0"));
    }
}

#[test]
fn every_altered_byte_is_noticed_or_harmless() {
    let (_scratch, path) = written(&small());
    let original = fs::read(&path).unwrap();
    let data = DATA as usize;
    // All bytes that hold something, and some of the zeros between.
    let dense = |start: usize| (start..start + 130).chain(start + BLOCK - 70..start + BLOCK);
    let positions = (0..data)
        .step_by(BLOCK)
        .flat_map(dense)
        .chain((0..data).step_by(97))
        .chain(data..original.len());
    for position in positions {
        for mask in [1, 0x80, 0xff] {
            let mut bytes = original.clone();
            bytes[position] ^= mask;
            fs::write(&path, &bytes).unwrap();
            let in_counter = COUNTERS.contains(&((position / BLOCK) as u64));
            match read_all(&path) {
                Ok(runs) => assert!(in_counter && runs == small(), "byte {position}"),
                Err(error) => assert!(!in_counter, "byte {position}: {error}"),
            }
        }
    }
}

#[test]
fn every_truncation_and_every_appended_byte_is_noticed() {
    let (_scratch, path) = written(&small());
    let original = fs::read(&path).unwrap();
    let data = DATA as usize;
    for length in (0..data)
        .step_by(61)
        .chain(data - 1..original.len())
        .chain([MAGIC_LENGTH, MAGIC_LENGTH - 1])
    {
        fs::write(&path, &original[..length]).unwrap();
        let given = refused(&path);
        let expected = match length {
            0..MAGIC_LENGTH => "not a correlation file",
            _ if length < data => "was not finished",
            _ => "damaged or tampered with in its index or its length",
        };
        assert!(given.contains(expected), "{length} bytes: {given}");
    }
    let mut longer = original.clone();
    longer.push(0);
    fs::write(&path, longer).unwrap();
    assert!(refused(&path).contains("its length"));
}

const MAGIC_LENGTH: usize = blocks::MAGIC.len();

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn garbage_gives_an_error_or_what_was_written(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<[u8; 8]>()), 1..6),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let (_scratch, path) = written(&small());
        let mut bytes = fs::read(&path).unwrap();
        for (place, new) in changes {
            let start = place.index(bytes.len() - 8);
            bytes[start..start + 8].copy_from_slice(&new);
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        fs::write(&path, bytes).unwrap();
        if let Ok(runs) = read_all(&path) {
            prop_assert!(runs == small());
        }
    }
}
