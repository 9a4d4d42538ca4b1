//! Tests that runs of files are used once, whatever fails or is restored, as long as one party
//! keeps its own file.

use super::*;
use crate::correlations::job::most_at_once;
use crate::correlations::kind::Kind;
use crate::sealed::{Header, MOST_WORDS};
use std::collections::HashSet;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const PARTIES: usize = 3;
const RUNS: u32 = 24;

/// Job of every run.
const JOB: Job = Job::Batch {
    kind: Kind::Squares,
    n: 64,
};

/// Folder with files that were made together, whose words are all different.
struct Files(PathBuf);

/// How far a party gets when it starts a session.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    /// The party dies after comparing.
    Compared,
    /// The party dies after counting.
    Counted,
    /// The party completes all steps.
    Reads,
}

fn header(party: usize, runs: u32) -> Header {
    Header {
        id: [7; 16],
        party: party as u32,
        parties: PARTIES as u32,
        runs,
        content: 1,
        ahead: 0,
        note: String::new(),
    }
}

impl Files {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tacit-runs-{}-{number}", std::process::id());
        let files = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&files.0).unwrap();
        for party in 0..PARTIES {
            files.write(party, RUNS);
        }
        files
    }

    fn place(&self, party: usize) -> Place {
        Place {
            path: self.0.join(format!("{party}")),
            secret: format!("the private key of party {party}"),
        }
    }

    fn write(&self, party: usize, runs: u32) {
        let header = header(party, runs);
        let place = self.place(party);
        let mut writer = Writer::create(&place.path, place.secret.as_bytes(), &header).unwrap();
        for run in 0..u64::from(runs) {
            let column = |at: u64| (0..64).map(|i| (run << 16) + (at << 8) + i).collect();
            append(&mut writer, &JOB, &[column(0), column(1)]).unwrap();
            writer.end_run().unwrap();
        }
        writer.finish().unwrap();
    }

    /// Runs a session in which each party gets that far. Returns the run that each has read from.
    fn session(&self, ends: [End; PARTIES]) -> [Option<u64>; PARTIES] {
        let meshes = net::in_process::mesh(PARTIES, Duration::from_secs(20));
        let party = |mesh: net::Mesh, end| {
            let place = self.place(mesh.party());
            let mut stored = Stored::open(mesh.channel(1), &place).unwrap();
            let run = stored.compare().ok()?;
            if end == End::Compared {
                return None;
            }
            stored.reader.begin_run(run).ok()?;
            if end == End::Counted {
                return None;
            }
            stored.confirm(run).ok()?;
            let columns = stored.make(&JOB).unwrap();
            assert_eq!(columns[0][0], u64::from(run) << 16);
            Some(u64::from(run))
        };
        std::thread::scope(|scope| {
            let threads = meshes.into_iter().zip(ends);
            let threads: Vec<_> = threads
                .map(|(mesh, end)| scope.spawn(move || party(mesh, end)))
                .collect();
            let read: Vec<_> = threads.into_iter().map(|one| one.join().unwrap()).collect();
            read.try_into().unwrap()
        })
    }

    fn copy(&self, party: usize) -> Vec<u8> {
        fs::read(self.place(party).path).unwrap()
    }

    fn put_back(&self, party: usize, copy: &[u8]) {
        fs::write(self.place(party).path, copy).unwrap();
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What cannot be removed is left to the system.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Small reproducible generator of numbers below `n`.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

#[test]
fn failed_starts_in_a_row_leave_the_rest_usable() {
    let files = Files::new();
    // Party 0 counts, the others do not: its file is five runs ahead.
    for _ in 0..5 {
        let ends = [End::Counted, End::Compared, End::Compared];
        assert_eq!(files.session(ends), [None; PARTIES]);
    }
    for run in 5..u64::from(RUNS) {
        assert_eq!(files.session([End::Reads; PARTIES]), [Some(run); PARTIES]);
    }
    assert_eq!(files.session([End::Reads; PARTIES]), [None; PARTIES]);
}

#[test]
fn nothing_is_read_of_a_run_that_a_party_has_not_counted() {
    let files = Files::new();
    let old = files.copy(0);
    // Party 1 dies before it counts. If party 0 had used the run by then, restoring its file would
    // repeat the run.
    let ends = [End::Reads, End::Compared, End::Reads];
    assert_eq!(files.session(ends), [None; PARTIES]);
    files.put_back(0, &old);
    files.put_back(2, &files.copy(2));
    let read = files.session([End::Reads; PARTIES]);
    assert!(read.iter().all(|run| *run == read[0]), "{read:?}");
}

#[test]
fn no_run_is_read_twice_while_one_party_keeps_its_file() {
    let mut random = Random(3);
    for keeper in 0..PARTIES {
        let files = Files::new();
        let mut copies: Vec<Vec<Vec<u8>>> = (0..PARTIES).map(|at| vec![files.copy(at)]).collect();
        let mut used = HashSet::new();
        for _ in 0..16 {
            let ends = [0; PARTIES].map(|_| match random.below(12) {
                0 => End::Compared,
                1 => End::Counted,
                _ => End::Reads,
            });
            let read: HashSet<u64> = files.session(ends).into_iter().flatten().collect();
            assert!(read.len() <= 1, "the parties read different runs");
            assert!(used.is_disjoint(&read), "{read:?} after {used:?}");
            used.extend(read);
            for party in (0..PARTIES).filter(|party| *party != keeper) {
                copies[party].push(files.copy(party));
                if random.below(2) == 0 {
                    let at = random.below(copies[party].len());
                    files.put_back(party, &copies[party][at]);
                }
            }
        }
        assert!(used.len() > 3, "too few runs were read");
    }
}

#[test]
fn where_all_put_their_files_back_nobody_can_tell() {
    let files = Files::new();
    let copies = [0, 1, 2].map(|party| files.copy(party));
    let first = files.session([End::Reads; PARTIES]);
    for (party, copy) in copies.iter().enumerate() {
        files.put_back(party, copy);
    }
    assert_eq!(files.session([End::Reads; PARTIES]), first);
}

#[test]
fn a_count_beyond_the_file_is_its_owners_fault() {
    let files = Files::new();
    let mut meshes = net::in_process::mesh(PARTIES, Duration::from_secs(20));
    let mut peers = meshes.split_off(1);
    let mut liar = peers[0].channel(1);
    let mut other = peers.pop().unwrap().channel(1);
    for channel in [&mut liar, &mut other] {
        channel.begin("compare correlation files");
    }
    let mut claim = net::bytes::to_words(&[7; 16]);
    claim.push(u64::from(RUNS) + 1);
    liar.send(0, claim.clone()).unwrap();
    claim[2] = 0;
    other.send(0, claim).unwrap();
    let error = Stored::new(meshes[0].channel(1), &files.place(0)).map(drop);
    let Err(Error::Peer {
        party: 1, fault, ..
    }) = error
    else {
        panic!("{error:?}")
    };
    assert_eq!(
        fault.to_string(),
        "claims 25 used runs of a file that has 24"
    );
    let place = files.place(0);
    let reader = Reader::open(&place.path, place.secret.as_bytes()).unwrap();
    assert_eq!(reader.used(), 0);
}

#[test]
fn records_of_another_version_are_refused() {
    let files = Files::new();
    let place = files.place(0);
    let refused = |content: u32| {
        let mut header = header(0, 1);
        header.content = content;
        drop(fs::remove_file(&place.path));
        let mut writer = Writer::create(&place.path, place.secret.as_bytes(), &header).unwrap();
        writer.end_run().unwrap();
        writer.finish().unwrap();
        let mesh = net::in_process::mesh(PARTIES, Duration::from_secs(20)).remove(0);
        let error = Stored::new(mesh.channel(1), &place).map(drop).unwrap_err();
        error.to_string()
    };
    for (content, expected) in [
        (
            4,
            "its records are of version 4, but this release reads 1 to 3",
        ),
        (3, "its records are of a program of two parties"),
    ] {
        let text = refused(content);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_job_larger_than_a_record_takes_several() {
    let files = Files::new();
    let place = files.place(0);
    fs::remove_file(&place.path).unwrap();
    let header = header(0, 1);
    let job = Job::Batch {
        kind: Kind::Selections,
        n: 640,
    };
    let (free, derived) = job.columns();
    let sizes = free
        .iter()
        .chain(&derived)
        .map(|(shape, n)| shape.words(*n));
    let columns: Vec<Vec<u64>> = sizes.map(|words| vec![words as u64; words]).collect();
    let mut writer = Writer::create(&place.path, place.secret.as_bytes(), &header).unwrap();
    writer.limit(640);
    append(&mut writer, &job, &columns).unwrap();
    assert!(append(&mut writer, &job, &[columns.concat()]).is_err());
    writer.end_run().unwrap();
    writer.finish().unwrap();
    let mut reader = Reader::open(&place.path, place.secret.as_bytes()).unwrap();
    reader.begin_run(0).unwrap();
    for (at, column) in columns.into_iter().enumerate() {
        let expected = Some((descriptor(&job, at), column));
        assert!(reader.next().unwrap() == expected, "column {at}");
    }
    assert!(reader.next().unwrap().is_none());
}

/// Whatever a live session may ask of a source at once fits into the records of a file: each column
/// is one record.
#[test]
fn whatever_may_be_asked_for_at_once_may_be_recorded() {
    let mut kinds = vec![
        Kind::Triples,
        Kind::Squares,
        Kind::RingBits,
        Kind::Selections,
    ];
    kinds.extend([1, 2].map(|rights| Kind::BitTriples { rights }));
    for width in 1..=64 {
        kinds.push(Kind::RingWithBits { width });
        let wanted = crate::leaves::Wanted::Propagate;
        let positions = width;
        kinds.push(Kind::RingWithMonomials { wanted, positions });
    }
    kinds.extend((1..=61).map(|bits| Kind::Truncations { bits }));
    let mut beyond_one_record = 0;
    for kind in kinds {
        let n = most_at_once(kind);
        let (free, derived) = Job::Batch { kind, n }.columns();
        let words = free
            .iter()
            .chain(&derived)
            .map(|(shape, n)| shape.words(*n));
        let words: Vec<usize> = words.collect();
        assert!(words.iter().all(|words| *words <= MOST_WORDS), "{kind:?}");
        beyond_one_record += usize::from(words.iter().sum::<usize>() > MOST_WORDS);
    }
    // Such jobs were refused when all columns of a job were one record.
    assert!(beyond_one_record > 0);
}
