//! Tests of valid files, and of mistakes in using them.

mod crashes;
mod tampering;

use super::blocks::{self, BLOCK, COUNTERS, DATA, FINISH};
use super::*;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

const SECRET: &[u8] = b"-----BEGIN PRIVATE KEY-----";

type Record = (Vec<u8>, Vec<u64>);
type Runs = Vec<Vec<Record>>;

/// Path in a folder of its own, which is removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tacit-sealed-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.join("correlations")
    }

    /// Returns the path of a file while it is being made.
    fn beside(&self) -> PathBuf {
        self.0.join("correlations.new")
    }

    fn is_empty(&self) -> bool {
        fs::read_dir(&self.0).unwrap().next().is_none()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn header(runs: usize) -> Header {
    Header {
        id: [7; 16],
        party: 1,
        parties: 3,
        runs: runs as u32,
        content: 5,
        ahead: 1 << 40,
        note: "additive, dealer ×".to_owned(),
    }
}

/// Returns three runs: of several records, of none, of one.
fn small() -> Runs {
    let record = |name: &str, words: &[u64]| (name.as_bytes().to_vec(), words.to_vec());
    vec![
        vec![
            record("triples 3", &[1, u64::MAX, 3]),
            record("", &[]),
            record("bits π", &[0, 5]),
        ],
        vec![],
        vec![record("triples 3", &[7, 8, 9])],
    ]
}

fn write(path: &Path, secret: &[u8], header: &Header, runs: &Runs) {
    let mut writer = Writer::create(path, secret, header).unwrap();
    for run in runs {
        for (descriptor, words) in run {
            writer.append(descriptor, words).unwrap();
        }
        writer.end_run().unwrap();
    }
    writer.finish().unwrap();
}

fn written(runs: &Runs) -> (Scratch, PathBuf) {
    let scratch = Scratch::new();
    let path = scratch.path();
    write(&path, SECRET, &header(runs.len()), runs);
    (scratch, path)
}

fn open(path: &Path) -> Reader {
    Reader::open(path, SECRET).unwrap()
}

fn text<T>(result: Result<T>) -> String {
    match result.err() {
        Some(error @ Error::Setup { .. }) => error.to_string(),
        Some(error) => panic!("not a set-up error: {error:?}"),
        None => panic!("the file was accepted"),
    }
}

fn misuse<T>(result: Result<T>) -> String {
    match result.err() {
        Some(Error::Misuse { reason }) => reason,
        Some(error) => panic!("not a misuse error: {error:?}"),
        None => panic!("the file was accepted"),
    }
}

/// Returns the error of opening this file.
fn refused(path: &Path) -> String {
    text(Reader::open(path, SECRET))
}

fn read_run(reader: &mut Reader, run: u32) -> Result<Vec<Record>> {
    reader.begin_run(run)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next()? {
        records.push(record);
    }
    assert!(
        reader.next()?.is_none(),
        "the reader continues after the end"
    );
    Ok(records)
}

fn read_all(path: &Path) -> Result<Runs> {
    let mut reader = Reader::open(path, SECRET)?;
    assert_eq!(reader.used(), 0);
    (0..reader.header().runs)
        .map(|run| read_run(&mut reader, run))
        .collect()
}

/// Returns the length on disk of a record of one chunk.
fn sealed_length((descriptor, words): &Record) -> usize {
    CHUNK_HEAD + 2 + descriptor.len() + 8 + 8 * words.len() + TAG
}

#[test]
fn what_was_written_is_read() {
    let many = (0..500)
        .map(|n| (format!("record {n}").into_bytes(), vec![n; n as usize % 40]))
        .collect();
    let mut runs = small();
    runs.push(many);
    let (_scratch, path) = written(&runs);
    assert_eq!(read_all(&path).unwrap(), runs);
    let reader = open(&path);
    assert_eq!(*reader.header(), header(4));
    assert_eq!((reader.used(), reader.sessions()), (4, 1));
}

#[test]
fn large_records_take_several_chunks() {
    let words = |count: u64| (0..count).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let full = (CHUNK - 10) as u64 / 8;
    let runs = vec![
        [5 << 20, full, full + 1, 2 * full + 1]
            .map(|count| (Vec::new(), words(count).collect()))
            .to_vec(),
    ];
    let (_scratch, path) = written(&runs);
    let same = read_all(&path).unwrap() == runs;
    assert!(same);
}

#[test]
fn limits_are_taken_and_not_exceeded() {
    let scratch = Scratch::new();
    let mut long = header(1);
    long.note = "n".repeat(LONGEST_NOTE);
    let mut writer = Writer::create(&scratch.path(), SECRET, &long).unwrap();
    let descriptor = vec![b'd'; LONGEST_DESCRIPTOR];
    writer.append(&descriptor, &[1]).unwrap();
    let reason = misuse(writer.append(&[b'd'; LONGEST_DESCRIPTOR + 1], &[]));
    assert_eq!(reason, "a descriptor of 4097 bytes; it has at most 4096");
    writer.end_run().unwrap();
    writer.finish().unwrap();
    let mut reader = open(&scratch.path());
    assert_eq!(*reader.header(), long);
    assert_eq!(read_run(&mut reader, 0).unwrap(), [(descriptor, vec![1])]);

    long.note.push('n');
    let mut foreign = header(1);
    foreign.party = 3;
    let other = scratch.0.join("other");
    for (header, reason) in [
        (long, "a note of 1025 bytes; it has at most 1024"),
        (foreign, "there is no party 3 among 3"),
        (header(0), "0 runs; a file has 1 to 1048576"),
    ] {
        let given = misuse(Writer::create(&other, SECRET, &header));
        assert_eq!(given, format!("correlations to make: {reason}"));
    }
    misuse(Writer::create(&other, b"", &header(1)));
    assert!(!other.exists());
}

#[test]
fn exactly_the_promised_runs_are_written() {
    let scratch = Scratch::new();
    let path = scratch.path();
    let mut writer = Writer::create(&path, SECRET, &header(2)).unwrap();
    writer.end_run().unwrap();
    let reason = misuse(writer.finish());
    assert_eq!(reason, "1 of 2 runs of correlations were written and ended");
    assert!(scratch.is_empty(), "a file was left behind");

    let mut writer = Writer::create(&path, SECRET, &header(1)).unwrap();
    writer.end_run().unwrap();
    let reason = "all 1 runs of correlations were written already";
    assert_eq!(misuse(writer.append(b"", &[])), reason);
    assert_eq!(misuse(writer.end_run()), reason);
    writer.finish().unwrap();
    open(&path);
}

#[test]
fn a_file_is_not_overwritten_and_is_the_owners_alone() {
    let (_scratch, path) = written(&small());
    let before = fs::read(&path).unwrap();
    let given = text(Writer::create(&path, SECRET, &header(1)));
    assert!(given.contains("exists already"), "{given}");
    assert_eq!(fs::read(&path).unwrap(), before);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn another_key_and_another_party_are_told() {
    let (_scratch, path) = written(&small());
    let given = text(Reader::open(&path, b"another key"));
    let file = path.display();
    assert_eq!(
        given,
        format!(
            "setup: {file}: sealed with another key; it says that it was made for party 1 of 3: \
             open \
             it with the private key that the party had then, or make new correlations"
        )
    );
    misuse(Reader::open(&path, b""));
    let reader = open(&path);
    reader.check_party(1, 3).unwrap();
    let given = text(reader.check_party(0, 3));
    assert!(given.contains("made for party 1, this is party 0"));
    let given = text(reader.check_party(1, 4));
    assert!(given.contains("made for 3 parties, these are 4"));
}

#[test]
fn each_run_is_used_once() {
    let (_scratch, path) = written(&small());
    let mut reader = open(&path);
    reader.begin_run(0).unwrap();
    assert_eq!(reader.used(), 1);
    let again = "run 0 is used already: each correlation is used once; the next is run 1";
    assert!(text(reader.begin_run(0)).ends_with(again));
    // The refusal ends the run that was being read.
    misuse(reader.next());
    drop(reader);

    let mut reader = open(&path);
    assert_eq!((reader.used(), reader.sessions()), (1, 1));
    misuse(reader.next());
    assert!(text(reader.begin_run(0)).ends_with(again));
    // Runs that are skipped are used, too.
    assert_eq!(read_run(&mut reader, 2).unwrap(), small()[2]);
    assert_eq!((reader.used(), reader.sessions()), (3, 2));
    assert!(text(reader.begin_run(1)).contains("used already"));
    let exhausted = "exhausted: all 3 runs are used; \
                     make new correlations with `tacit correlations make`";
    assert!(text(reader.begin_run(3)).ends_with(exhausted));
    assert!(text(reader.begin_run(u32::MAX)).ends_with(exhausted));
    drop(reader);
    assert!(text(open(&path).begin_run(3)).ends_with(exhausted));
}

#[test]
fn a_run_beyond_the_last_uses_nothing() {
    let (_scratch, path) = written(&small());
    let mut reader = open(&path);
    let given = text(reader.begin_run(3));
    assert!(given.contains("it has 3 runs, and run 3 is wanted"));
    assert_eq!(reader.used(), 0);
}

#[test]
fn one_opens_at_a_time() {
    let (_scratch, path) = written(&small());
    let reader = open(&path);
    assert!(refused(&path).contains("is in use by another process"));
    drop(reader);
    open(&path);
}

#[test]
fn a_file_is_there_whole_or_not_at_all() {
    let scratch = Scratch::new();
    let path = scratch.path();
    // What a killed process would leave.
    fs::write(scratch.beside(), "half a file").unwrap();
    let mut writer = Writer::create(&path, SECRET, &header(1)).unwrap();
    assert!(refused(&path).contains("cannot be opened"));
    let given = text(Writer::create(&path, SECRET, &header(1)));
    assert!(given.contains("is in use by another process"), "{given}");
    writer.append(b"", &vec![1; 1 << 16]).unwrap();
    writer.end_run().unwrap();
    drop(writer);
    assert!(scratch.is_empty(), "a file was left behind");
    // A file that another program has put there meanwhile stays.
    let mut writer = Writer::create(&path, SECRET, &header(1)).unwrap();
    writer.end_run().unwrap();
    fs::write(&path, "another").unwrap();
    assert!(text(writer.finish()).contains("exists already"));
    assert_eq!(fs::read(&path).unwrap(), b"another");
    fs::remove_file(&path).unwrap();
    assert!(scratch.is_empty(), "a file was left behind");
}

#[test]
fn what_was_not_finished_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.path();
    // All steps but the last were done.
    write(&path, SECRET, &header(3), &small());
    overwrite(&path, FINISH, &[0; BLOCK]);
    assert!(refused(&path).contains("was not finished"));
}

#[test]
fn other_files_are_told() {
    let scratch = Scratch::new();
    let path = scratch.path();
    assert!(refused(&path).contains("cannot be opened"));
    for content in [&b""[..], b"tacit", &[0; 1 << 15], b"party = 1\nand more\n"] {
        fs::write(&path, content).unwrap();
        assert!(refused(&path).contains("not a correlation file"));
    }
    refused(&scratch.0);
    let (_scratch, path) = written(&small());
    patch(&path, 16, &1_u32.to_le_bytes());
    let given = refused(&path);
    let expected = "a correlation file of version 1, but this release reads version 2";
    assert!(given.contains(expected), "{given}");
}

fn patch(path: &Path, offset: u64, bytes: &[u8]) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, offset).unwrap();
}

fn overwrite(path: &Path, number: u64, block: &[u8; BLOCK]) {
    patch(path, number * BLOCK as u64, block);
}

fn overwrite_counter(path: &Path, block: &[u8; BLOCK]) {
    for copy in COUNTERS {
        overwrite(path, copy, block);
    }
}

fn block(path: &Path, number: u64) -> [u8; BLOCK] {
    blocks::read_block(&mut fs::File::open(path).unwrap(), number).unwrap()
}

#[test]
fn a_fork_does_not_go_on() {
    let (_scratch, path) = written(&small());
    let mut reader = open(&path);
    reader.begin_run(0).unwrap();
    reader.process = net::Process::another();
    assert!(misuse(reader.next()).contains("was forked"));
    assert!(misuse(reader.begin_run(1)).contains("was forked"));
    assert_eq!(reader.used(), 1);
}
