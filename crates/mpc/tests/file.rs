//! Tests of correlations from files: made ahead by another source, used once, and refused if they
//! do not fit.

use kernels::convolution::Convolution;
use mpc::correlations::Demand;
use mpc::correlations::file::Place;
use mpc::{Bilinear, Operand, Protocol, Recipient, Result, Settings};
use net::Mesh;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use testkit::{Dealing, Random, Shared, deal, run_opened};

const PARTIES: usize = 2;

/// A separate folder, which is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tacit-file-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn place(&self, party: usize) -> Place {
        Place {
            path: self.0.join(format!("party-{party}.correlations")),
            secret: format!("the private key of party {party}"),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed is left to the system.
        drop(fs::remove_dir_all(&self.0));
    }
}

fn settings(source: &str) -> Settings {
    Settings {
        protocol: "additive".to_owned(),
        source: Some(source.to_owned()),
        ..Settings::default()
    }
}

/// Runs comparisons, a product with a named matrix twice and a convolution with it, and a
/// truncation. n must be a multiple of 4.
fn program(p: &mut dyn Protocol, n: usize) -> Result<()> {
    let mut random = Random::new(n as u64);
    let values: Vec<u64> = (0..n).map(|_| random.signed(40) as u64).collect();
    let x = Shared::input(p, 0, &values)?;
    let negative = p.sign(&x.slices(), 64)?;
    let positive =
        Shared::made(p, n, |p, out| p.bit_multiply(&negative, &x.slices(), out))?.open(p)?;
    assert!(
        values
            .iter()
            .zip(&positive)
            .all(|(x, y)| *y == if (*x as i64) < 0 { *x } else { 0 })
    );
    let matrix: Vec<u64> = random.words(n);
    let weights = Shared::input(p, 1, &matrix)?;
    let matrix_product = Bilinear::Matrix {
        batch: 1,
        m: n / 4,
        k: 4,
        n: n / 4,
    };
    let convolution = Bilinear::Convolution(Convolution {
        batch: 1,
        groups: 1,
        in_channels: n / 4,
        out_channels: 4,
        input: [2, 2],
        kernel: [1, 1],
        stride: [1, 1],
        padding: [0, 0],
        dilation: [1, 1],
    });
    for map in [matrix_product, matrix_product, convolution] {
        let mut expected = vec![0; map.lengths().2];
        map.evaluate(&mut expected, &[(&values, &matrix)]);
        let product = Shared::made(p, expected.len(), |p, out| {
            let (x, weights) = (x.slices(), weights.slices());
            let named = Operand {
                parts: &weights,
                name: Some(7),
            };
            p.bilinear(&map, Operand::once(&x), named, None, out)
        })?;
        assert!(product.open(p)? == expected, "{map:?}");
    }
    // Freed values are forgotten, but not at the same time in all sessions and parties.
    let recorded = p.correlated().and_then(|of| of.demand()).is_some();
    let early = !recorded && p.party() == 0;
    if early {
        p.forget(7);
    }
    let short = x.truncated(p, 8)?;
    if !early {
        p.forget(7);
    }
    p.reveal(&short.slices(), Recipient::One(0)).map(drop)
}

fn recorded(n: usize) -> Demand {
    let settings = Settings {
        record: true,
        ..settings("dealer")
    };
    let open = |mesh: &Mesh| mpc::open(&settings, mesh, &testkit::device(), true);
    let demands = run_opened(PARTIES, Some(&deal), open, |p| {
        program(&mut **p, n)?;
        let demand = p.correlated().and_then(|of| of.demand());
        Ok(demand.expect("the demand is recorded").to_text())
    });
    assert_eq!(demands[0], demands[1], "the parties have different demands");
    Demand::parse(&demands[0]).unwrap()
}

fn made(folder: &Folder, demand: &Demand, source: &str, runs: u32) {
    let open = |mesh: &Mesh| {
        let place = folder.place(mesh.party());
        let mut heard = 0;
        mpc::preprocessing::make(
            &settings(source),
            mesh,
            &testkit::device(),
            demand,
            runs,
            &place,
            |done, _| heard = done,
        )?;
        assert_eq!(heard, demand.len() * runs as usize);
        Ok(())
    };
    run_opened(
        PARTIES,
        (source == "dealer").then_some(&deal as Dealing),
        open,
        |()| Ok(()),
    );
}

/// Runs a session with the files, and returns the first error of any party.
fn used(folder: &Folder, n: usize) -> std::result::Result<(), String> {
    let outcomes: Vec<Result<()>> = std::thread::scope(|scope| {
        let parties: Vec<_> = net::in_process::mesh(PARTIES, Duration::from_secs(20))
            .into_iter()
            .map(|mesh| {
                scope.spawn(move || {
                    let settings = Settings {
                        file: Some(folder.place(mesh.party())),
                        ..settings("file")
                    };
                    let outcome = mpc::open(&settings, &mesh, &testkit::device(), true)
                        .and_then(|mut protocol| program(&mut *protocol, n));
                    match &outcome {
                        Ok(()) => mesh.close(),
                        Err(error) => {
                            mesh.abort(&error.to_string());
                            outcome
                        }
                    }
                })
            })
            .collect();
        parties
            .into_iter()
            .map(|party| party.join().expect("no party panics"))
            .collect()
    });
    let failed = |outcome: &Result<()>| outcome.as_ref().err().map(ToString::to_string);
    let errors: Vec<String> = outcomes.iter().filter_map(failed).collect();
    // The party that found the error reports it; the other repeats it.
    let own = errors
        .iter()
        .find(|error| !error.contains("failed in step"));
    own.or(errors.first())
        .map_or(Ok(()), |error| Err(error.clone()))
}

fn copy(folder: &Folder, party: usize, to: &Path) {
    fs::copy(folder.place(party).path, to).unwrap();
}

#[test]
fn each_run_is_used_once_and_then_they_are_exhausted() {
    for source in ["dealer", "ot", "he"] {
        let (folder, demand) = (Folder::new(), recorded(100));
        made(&folder, &demand, source, 2);
        used(&folder, 100).unwrap();
        used(&folder, 100).unwrap();
        let message = used(&folder, 100).unwrap_err();
        assert!(message.contains("exhausted"), "{message}");
    }
}

#[test]
fn a_program_that_asks_for_something_else_is_told() {
    let (folder, demand) = (Folder::new(), recorded(100));
    made(&folder, &demand, "dealer", 1);
    let message = used(&folder, 5000).unwrap_err();
    assert!(
        message.contains("another program or other shapes"),
        "{message}"
    );
}

#[test]
fn a_file_that_was_put_back_skips_what_another_counts() {
    let (folder, demand) = (Folder::new(), recorded(64));
    made(&folder, &demand, "dealer", 4);
    let old = folder.0.join("copy");
    copy(&folder, 0, &old);
    used(&folder, 64).unwrap();
    used(&folder, 64).unwrap();
    fs::copy(&old, folder.place(0).path).unwrap();
    used(&folder, 64).unwrap();
    used(&folder, 64).unwrap();
    let message = used(&folder, 64).unwrap_err();
    assert!(message.contains("exhausted"), "{message}");
    // The file is put back after the other party's file is used up.
    fs::copy(&old, folder.place(0).path).unwrap();
    let message = used(&folder, 64).unwrap_err();
    assert!(message.contains("exhausted"), "{message}");
}

#[test]
fn files_of_two_makings_do_not_go_together() {
    let (one, other, demand) = (Folder::new(), Folder::new(), recorded(64));
    made(&one, &demand, "dealer", 1);
    made(&other, &demand, "dealer", 1);
    copy(&other, 1, &one.place(1).path);
    let message = used(&one, 64).unwrap_err();
    assert!(
        message.contains("was not made together with this one"),
        "{message}"
    );
}

#[test]
fn tampering_with_any_record_is_noticed_before_it_is_used() {
    let (folder, demand) = (Folder::new(), recorded(64));
    made(&folder, &demand, "dealer", 20);
    let path = folder.place(1).path;
    let mut bytes = fs::read(&path).unwrap();
    // One byte of the last run, and then one byte of every run.
    let step = bytes.len() / 40;
    for at in (4 * 4096..bytes.len()).step_by(step) {
        bytes[at] ^= 1;
    }
    fs::write(&path, &bytes).unwrap();
    let message = used(&folder, 64).unwrap_err();
    assert!(message.contains("damaged or tampered with"), "{message}");
}
