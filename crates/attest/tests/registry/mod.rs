//! Where published evidence is: crates ship it as their test data, in the registry's folder of this
//! machine.

use std::path::PathBuf;
use std::process::Command;

/// Returns the folder of a crate that this one is built or tested with.
pub fn folder_of(name: &str) -> PathBuf {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline"])
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let of = packages.iter().find(|package| package["name"] == name);
    let manifest = of.expect(name)["manifest_path"].as_str().expect("a path");
    let manifest = PathBuf::from(manifest);
    manifest.parent().expect("a folder").to_path_buf()
}
