//! Builds the kernels as C, for the simulated device.

fn main() {
    for file in ["device.h", "decompose.cu", "recompose.cu", "simulated.c"] {
        println!("cargo::rerun-if-changed=kernels/{file}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    let target = std::env::var("TARGET").expect("Cargo sets TARGET");
    println!("cargo::rustc-env=TACIT_CUDA_TARGET={target}");
    cc::Build::new()
        .file("kernels/simulated.c")
        .std("c11")
        .flag_if_supported("-Wno-unknown-pragmas")
        // The simulated device is slow enough without the checks of a debug build.
        .opt_level(2)
        .compile("tacit_cuda_simulated");
}
