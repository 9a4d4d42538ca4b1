//! Sets `cfg(avx512)` if the compiler has the AVX-512 intrinsics: x86-64, rustc 1.89 or later.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(avx512)");
    let x86_64 = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|target| target == "x86_64");
    if x86_64 && compiler_minor_version().is_some_and(|minor| minor >= 89) {
        println!("cargo::rustc-cfg=avx512");
    }
}

/// Returns the y of "rustc x.y.z (...)", if x = 1.
fn compiler_minor_version() -> Option<u32> {
    let output = Command::new(env::var_os("RUSTC")?)
        .arg("--version")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let version = text.strip_prefix("rustc 1.")?;
    version.split('.').next()?.parse().ok()
}
