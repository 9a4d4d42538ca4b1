//! Tests of what crashes and failing disks leave.

use super::*;

/// Returns a file whose run 0 was begun, and the copies of its counter before and after.
fn begun() -> (Scratch, PathBuf, [[u8; BLOCK]; 2]) {
    let (scratch, path) = written(&small());
    let before = block(&path, COUNTERS[0]);
    open(&path).begin_run(0).unwrap();
    let after = block(&path, COUNTERS[0]);
    assert_eq!(block(&path, COUNTERS[1]), after);
    (scratch, path, [before, after])
}

#[test]
fn a_crash_at_any_instant_of_the_mark_never_lowers_it() {
    let (_scratch, path, [before, after]) = begun();
    // The mark of run 1 overwrites the copies one after the other, each from nothing to all of it.
    // A torn write may have written any part first.
    open(&path).begin_run(1).unwrap();
    let next = block(&path, COUNTERS[0]);
    assert_ne!(before, after);
    for [first, second] in [[0, 1], [1, 0]] {
        for written in (0..=BLOCK).step_by(8).chain([BLOCK - 1, 1, 3]) {
            for from_the_front in [true, false] {
                let mut torn = after;
                let part = if from_the_front {
                    0..written
                } else {
                    BLOCK - written..BLOCK
                };
                torn[part.clone()].copy_from_slice(&next[part]);
                overwrite(&path, COUNTERS[first], &torn);
                overwrite(&path, COUNTERS[second], &after);
                let used = open(&path).used();
                assert!(used == if torn == next { 2 } else { 1 });
                // The first copy is durable before the second is touched.
                overwrite(&path, COUNTERS[first], &next);
                overwrite(&path, COUNTERS[second], &torn);
                assert_eq!(open(&path).used(), 2);
            }
        }
    }
}

#[test]
fn after_a_torn_mark_the_torn_copy_is_written_first() {
    for torn in [0, 1] {
        let (_scratch, path, [_, after]) = begun();
        overwrite(&path, COUNTERS[torn], &[0xff; BLOCK]);
        let file = fs::OpenOptions::new().read(true).write(true).open(&path);
        let mut file = file.unwrap();
        let head = block(&path, blocks::HEAD);
        let (_, keys) = blocks::decode_head(SECRET, &head, &path).unwrap();
        let counter = counter::Counter::read(&mut file, &keys).unwrap().unwrap();
        assert_eq!(counter.behind, torn);
        drop(file);
        open(&path).begin_run(1).unwrap();
        for copy in COUNTERS {
            assert_ne!(block(&path, copy), after);
        }
        assert_eq!(block(&path, COUNTERS[0]), block(&path, COUNTERS[1]));
        assert_eq!(open(&path).used(), 2);
    }
}

#[test]
fn a_lost_counter_is_an_error_and_an_old_copy_counts_nothing() {
    let (_scratch, path, [before, after]) = begun();
    let mut flipped = after;
    flipped[0] ^= 1;
    for lost in [[0; BLOCK], [0xff; BLOCK], flipped] {
        overwrite_counter(&path, &lost);
        assert!(refused(&path).contains("in its counter"));
    }
    for copy in COUNTERS {
        overwrite_counter(&path, &after);
        overwrite(&path, copy, &before);
        assert_eq!(open(&path).used(), 1);
    }
    // The counter of another file with the same key, identifier and header.
    let (_other_scratch, other) = written(&small());
    let foreign = block(&other, COUNTERS[0]);
    overwrite_counter(&path, &foreign);
    assert!(refused(&path).contains("in its counter"));
}

/// Opens the file so that writing fails, as on a disk that went read-only.
fn read_only(path: &Path) -> fs::File {
    fs::File::open(path).unwrap()
}

#[test]
fn a_mark_that_cannot_be_written_gives_no_run() {
    let (_scratch, path) = written(&small());
    let mut reader = open(&path);
    reader.file = std::io::BufReader::new(read_only(&path));
    let given = text(reader.begin_run(0));
    assert!(
        given.contains("cannot record that run 0 is used"),
        "{given}"
    );
    misuse(reader.next());
    // The mark may be on the disk or not, so this session does not try the run again.
    assert_eq!(reader.used(), 1);
    assert!(text(reader.begin_run(0)).contains("used already"));
}

#[test]
fn where_the_disk_is_full_it_is_named_and_nothing_is_left() {
    let scratch = Scratch::new();
    let path = scratch.path();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let mut writer = Writer::create(&path, SECRET, &header(1)).unwrap();
    writer.file = std::io::BufWriter::with_capacity(0, full());
    let given = text(writer.append(b"", &[1]));
    let file = path.display();
    let said = format!("setup: {file}: cannot be written: the disk is full (mounted at /");
    assert!(given.starts_with(&said), "{given}");
    let remedy = " bytes are free); no part of it is left: make room on that disk, or give a path \
                  on another one";
    assert!(given.ends_with(remedy), "{given}");
    assert!(scratch.is_empty(), "a file was left behind");
    // A full disk is also reported at the end, when buffered data are written.
    let mut writer = Writer::create(&path, SECRET, &header(1)).unwrap();
    writer.file = std::io::BufWriter::new(full());
    writer.append(b"", &[1]).unwrap();
    writer.end_run().unwrap();
    assert!(text(writer.finish()).contains("the disk is full"));
    assert!(scratch.is_empty(), "a file was left behind");
}

#[test]
fn a_writer_that_failed_does_not_go_on() {
    let scratch = Scratch::new();
    let path = scratch.path();
    let mut writer = Writer::create(&path, SECRET, &header(1)).unwrap();
    writer.file = std::io::BufWriter::with_capacity(0, read_only(&scratch.beside()));
    let given = text(writer.append(b"", &[1]));
    assert!(given.contains("cannot be written"), "{given}");
    assert!(scratch.is_empty(), "a file was left behind");
    let given = "could not be written; no part of it is left: make it again";
    assert!(text(writer.append(b"", &[1])).ends_with(given));
    assert!(text(writer.end_run()).ends_with(given));
    assert!(text(writer.finish()).ends_with(given));
}
