//! Targets for files of correlations, and for the demands that they are made from.

use crate::Target;
use crate::edits::edited;
use mpc::correlations::Demand;
use mpc::sealed::{Header, Reader, Writer};
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

/// A session's demand as text. A job is decoded as a dealer decodes it.
pub const DEMANDS: Target = Target {
    name: "demands",
    takes: takes_demand,
    seeds: demands,
};

/// A sealed file with changes. The reader must return only what was written.
pub const SEALED: Target = Target {
    name: "sealed",
    takes: takes_sealed,
    // As it was written, and with one changed record, behind four blocks.
    seeds: || vec![vec![], vec![0, 0x0a, 0x40, 0, 1]],
};

fn takes_demand(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else {
        return false;
    };
    let Ok(demand) = Demand::parse(text) else {
        return false;
    };
    let text = demand.to_text();
    let again = Demand::parse(&text).expect("it was written");
    assert_eq!(again.to_text(), text);
    true
}

/// Jobs as hexadecimal words. 0 is a batch, with its elements and kind; 1 is a product, with both
/// operands and its shape; 2 forgets a name.
const JOBS: [&str; 15] = [
    "0 40",
    "0 40 1",
    "0 40 2 1",
    "0 40 3",
    "0 40 4 20",
    "0 40 5 1 3f",
    "0 40 6 10",
    "0 40 7 10",
    "0 40 8",
    "0 40 9 10 20",
    "0 40 a",
    "1 0 0 1 7 0 4",
    "1 2 7 0 0 1 1 2 3 4",
    "1 0 0 0 0 2 1 1 1 1 4 4 3 3 1 1 0 0 1 1",
    "2 7",
];

fn demands() -> Vec<Vec<u8>> {
    let title = "tacit demand, version 2, ahead 64\n";
    let each = JOBS
        .iter()
        .map(|job| format!("{title}{job}\n").into_bytes());
    std::iter::once(title.into()).chain(each).collect()
}

const SECRET: &[u8] = b"the private key of party 1";

/// A file of two runs, and a place for a changed copy.
struct Sealed {
    right: Vec<u8>,
    place: PathBuf,
}

/// Returns the records of a run: descriptors and words.
fn records(run: u64) -> Vec<(Vec<u8>, Vec<u64>)> {
    (0..3_u64)
        .map(|record| {
            let words = (0..40 * record).map(|word| word << 8 | run).collect();
            (format!("record {record} of run {run}").into_bytes(), words)
        })
        .collect()
}

static SEALED_FILE: LazyLock<Sealed> = LazyLock::new(|| {
    // Each execution writes and syncs a file, so it is kept in memory if there is such a folder.
    let memory = PathBuf::from("/dev/shm");
    let folder = Some(memory).filter(|memory| memory.is_dir());
    let folder = folder.unwrap_or_else(std::env::temp_dir);
    let place = folder.join(format!("tacit-fuzz-{}.correlations", std::process::id()));
    // A file may be left from an earlier process with the same number.
    drop(fs::remove_file(&place));
    let header = Header {
        id: [3; 16],
        party: 1,
        parties: 3,
        runs: 2,
        content: 1,
        ahead: 64,
        note: "additive, dealer".into(),
    };
    let mut writer = Writer::create(&place, SECRET, &header).expect("a new file");
    for run in 0..2 {
        for (descriptor, words) in records(run) {
            writer.append(&descriptor, &words).expect("a small record");
        }
        writer.end_run().expect("a whole run");
    }
    writer.finish().expect("a whole file");
    let right = fs::read(&place).expect("it was written");
    Sealed { right, place }
});

fn takes_sealed(data: &[u8]) -> bool {
    let Sealed { right, place } = &*SEALED_FILE;
    fs::write(place, edited(right, data)).expect("a place for the file");
    let taken = reads_sealed(place);
    fs::remove_file(place).expect("it is there");
    taken
}

fn reads_sealed(place: &std::path::Path) -> bool {
    let Ok(mut reader) = Reader::open(place, SECRET) else {
        return false;
    };
    let used = reader.used();
    assert!(used <= 2 && reader.header().runs == 2);
    for run in used..2 {
        if reader.begin_run(run).is_err() {
            return false;
        }
        for written in records(run.into()) {
            match reader.next() {
                Ok(record) => assert_eq!(record, Some(written)),
                Err(_) => return false,
            }
        }
        match reader.next() {
            Ok(record) => assert_eq!(record, None),
            Err(_) => return false,
        }
        assert_eq!(reader.used(), run + 1);
    }
    true
}
