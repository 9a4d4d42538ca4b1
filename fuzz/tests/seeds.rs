//! Tests that decoders accept the seeds of fuzzing, and do not accept all inputs.

use decoders::TARGETS;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn seeds_are_taken() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{}", target.name);
        for (number, seed) in seeds.iter().enumerate() {
            // The second sealed file is a changed one.
            let right = target.name != "sealed" || number == 0;
            assert_eq!(
                (target.takes)(seed),
                right,
                "seed {number} of {}",
                target.name
            );
        }
        assert!(
            !(target.takes)(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
            "{}",
            target.name
        );
    }
}

#[test]
fn every_target_has_a_binary() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets");
    let files = fs::read_dir(folder).expect("the binaries").map(|entry| {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("text");
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        assert!(text.contains(&format!("run(\"{name}\", data)")), "{name}");
        name
    });
    let names: BTreeSet<String> = TARGETS
        .iter()
        .map(|target| target.name.to_owned())
        .collect();
    assert_eq!(files.collect::<BTreeSet<_>>(), names);
}
