//! The driver's runtime by a library that stands for NVIDIA's three (`kernels/fake_driver.c`).

use super::maps::agrees;
use crate::card::Card;
use crate::driver::Library;
use crate::driver::{Driver, compile_with};
use crate::error::Error;
use crate::opening::{self, open};
use crate::places::Places;
use crate::runtime::{Runtime, Staging};
use kernels::bilinear::Bilinear;
use kernels::convolution::Convolution;
use kernels::device::{Device, DeviceError, Name, Operand, Term};
use std::ffi::{CStr, c_void};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed in the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tacit-cuda-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a new folder");
        Self(path)
    }
}

impl Folder {
    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the fake library, as bytes.
fn library() -> &'static [u8] {
    static LIBRARY: OnceLock<Vec<u8>> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let folder = Folder::new();
        let target = env!("TACIT_CUDA_TARGET");
        let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
        let compiler = cc::Build::new()
            .target(target)
            .host(target)
            .opt_level(3)
            .cargo_metadata(false)
            .out_dir(&folder.0)
            .get_compiler();
        let library = folder.0.join("fake.so");
        let status = compiler
            .to_command()
            .args([
                "-std=gnu11",
                "-shared",
                "-fPIC",
                "-Wno-unknown-pragmas",
                "-o",
            ])
            .args([&library, &kernels.join("fake_driver.c")])
            .arg("-ldl")
            .status();
        assert!(
            status.expect("the C compiler starts").success(),
            "the fake driver compiles"
        );
        fs::read(&library).expect("the library")
    })
}

/// Places a driver, NVRTC and cublasLt that follow a script.
pub fn places(folder: &Folder, script: &str) -> Places {
    let library = library();
    for name in ["libcuda.so.1", "libnvrtc.so.13", "libcublasLt.so.13"] {
        fs::write(folder.0.join(name), library).expect("a copy of the library");
    }
    fs::write(folder.0.join("script"), script).expect("a script");
    Places {
        driver: folder.0.join("libcuda.so.1"),
        libraries: vec![folder.0.join("nowhere"), folder.0.clone()],
        cache: folder.0.join("cache"),
        card: 0,
        crossover: None,
    }
}

fn opened(script: &str) -> (Folder, Result<Box<dyn Device>, DeviceError>) {
    let folder = Folder::new();
    let device = open(&places(&folder, script));
    (folder, device)
}

/// Opens a card without the self-test, for errors that come while it computes.
fn untested(script: &str) -> (Folder, Card<Driver>) {
    let folder = Folder::new();
    let (driver, _) = Driver::open(&places(&folder, script)).expect("a card");
    (folder, Card::new(driver))
}

/// Returns what is missing, and what to do about it.
fn unavailable(result: Result<Box<dyn Device>, DeviceError>) -> (String, String) {
    match result.map(|_| ()) {
        Err(DeviceError::Unavailable { what, remedy }) => (what, remedy),
        other => panic!("unavailable, not {other:?}"),
    }
}

/// A product that the card computes and does not leave to the processor.
const LARGE: Bilinear = Bilinear::Matrix {
    batch: 1,
    m: 130,
    k: 400,
    n: 333,
};

#[test]
fn a_card_computes_what_the_processor_computes() {
    let (_folder, device) = opened("");
    let device = device.expect("a card");
    assert_eq!(device.kind(), "cuda");
    agrees(&*device, &LARGE, 1, 1);
    let convolution = Convolution {
        batch: 5,
        groups: 2,
        in_channels: 16,
        out_channels: 32,
        input: [31, 33],
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1],
        dilation: [1, 1],
    };
    agrees(&*device, &Bilinear::Convolution(convolution), 2, 2);
    let batch = Bilinear::ByTransposed {
        batch: 9,
        m: 64,
        k: 500,
        n: 65,
    };
    agrees(&*device, &batch, 1, 3);
    assert_eq!(device.counters().products, 3);
}

#[test]
fn small_products_are_left_to_the_processor() {
    let (_folder, device) = opened("");
    let device = device.expect("a card");
    let small = Bilinear::Matrix {
        batch: 1,
        m: 20,
        k: 20,
        n: 20,
    };
    agrees(&*device, &small, 1, 1);
    assert_eq!(
        (device.counters().products, device.counters().bytes_copied),
        (0, 0)
    );
}

#[test]
fn what_is_missing_is_named_with_a_remedy() {
    let folder = Folder::new();
    let absent = Places {
        driver: folder.0.join("libcuda.so.1"),
        ..places(&folder, "")
    };
    fs::remove_file(&absent.driver).expect("the driver");
    let (what, remedy) = unavailable(open(&absent));
    assert!(what.starts_with("no NVIDIA driver: "), "{what}");
    assert!(remedy.starts_with("install NVIDIA's driver"), "{remedy}");

    let folder = Folder::new();
    let mut without = places(&folder, "");
    without.libraries = vec![folder.0.join("a"), folder.0.join("b")];
    let (what, remedy) = unavailable(open(&without));
    let expected = format!(
        "libnvrtc.so was not found in {0}/a, {0}/b",
        folder.0.display()
    );
    assert_eq!(what, expected);
    assert!(
        remedy.starts_with("install PyTorch's build for CUDA"),
        "{remedy}"
    );
    without.libraries = Vec::new();
    let (what, _) = unavailable(open(&without));
    assert_eq!(
        what,
        "libnvrtc.so was not found in any folder: none was given"
    );

    let folder = Folder::new();
    let places = places(&folder, "");
    fs::remove_file(folder.0.join("libcublasLt.so.13")).expect("cublasLt");
    let (what, _) = unavailable(open(&places));
    assert!(
        what.starts_with("libcublasLt.so was not found in "),
        "{what}"
    );
    fs::write(folder.0.join("libcublasLt.so.13"), "text").expect("a file");
    let (what, _) = unavailable(open(&places));
    assert!(
        what.contains("libcublasLt.so.13 cannot be loaded: "),
        "{what}"
    );
    // A library that has none of the functions.
    let other = Places {
        driver: "libc.so.6".into(),
        ..places
    };
    let (what, _) = unavailable(open(&other));
    assert_eq!(what, "libc.so.6 has no cuInit");
}

#[test]
fn cards_and_drivers_that_do_not_suffice_are_named() {
    let cases = [
        ("cuInit 0 100", "the NVIDIA driver finds no card"),
        ("cards 0 0", "the NVIDIA driver finds no card"),
        (
            "cuInit 0 3",
            "this process was forked from one that uses a card, which does not survive a fork",
        ),
        ("cuInit 0 999", "no NVIDIA driver: CUDA_ERROR_OF_A_TEST"),
        (
            "driver 12080 0",
            "the NVIDIA driver supports CUDA 12.8, and NVRTC 13.0 needs CUDA 13.0",
        ),
        (
            "driver 12090 0 nvrtc 12 0",
            "the NVIDIA driver supports CUDA 12.9, and cublasLt needs CUDA 13.0",
        ),
        (
            "major 7 0 minor 5 0",
            "Fake card 0 has compute capability 7.5, and 8.0 is needed",
        ),
        (
            "nvrtcCompileProgram 0 6",
            "NVRTC 13.0 does not compile tacit's kernels for sm_90: tacit.cu(1): error: of a test",
        ),
    ];
    for (script, expected) in cases {
        let (_folder, device) = opened(script);
        let (what, remedy) = unavailable(device);
        assert_eq!(what, expected);
        assert!(remedy.len() > 20, "{expected}: {remedy}");
    }
    let folder = Folder::new();
    let second = Places {
        card: 1,
        ..places(&folder, "")
    };
    let (what, _) = unavailable(open(&second));
    assert_eq!(what, "there is no card 1: the driver finds 1");
}

#[test]
fn every_call_that_fails_while_a_card_is_opened_is_named() {
    let calls = [
        "cuDeviceGetCount",
        "cuDeviceGet",
        "cuDeviceGetName",
        "cuDeviceGetAttribute",
        "cuDriverGetVersion",
        "nvrtcVersion",
        "nvrtcCreateProgram",
        "nvrtcGetCUBIN",
        "cuDevicePrimaryCtxRetain",
        "cuCtxPushCurrent_v2",
        "cublasLtCreate",
        "cuModuleLoadData",
        "cuModuleGetFunction",
        "cuStreamCreate",
        "cuEventCreate",
        "cuMemHostAlloc",
    ];
    for call in calls {
        let (_folder, device) = opened(&format!("{call} 0 46"));
        match device.map(|_| ()) {
            Err(DeviceError::Failed { operation, cause }) => {
                assert_eq!(operation, "opening the card");
                let call = call.replace("_v2", "");
                assert!(cause.starts_with(&format!("{call}: ")), "{call}: {cause}");
            }
            other => panic!("{call}: {other:?}"),
        }
    }
}

#[test]
fn memory_that_does_not_suffice_is_named_and_the_card_stays_usable() {
    let (_folder, device) = untested("memory 40000000 0");
    let map = Bilinear::Matrix {
        batch: 1,
        m: 1000,
        k: 400,
        n: 333,
    };
    let (x, y, out) = map.lengths();
    let (x, y, mut out) = (vec![1; x], vec![1; y], vec![0; out]);
    match device.bilinear(&map, &mut out, &[Term::of(&x, &y)]) {
        Err(DeviceError::Memory {
            operation,
            needed,
            free,
        }) => {
            assert_eq!(operation, "the matrix product of 1 × 1000×400 by 400×333");
            assert!(needed > free, "{needed} of {free}");
        }
        other => panic!("memory, not {other:?}"),
    }
    // Buffers of the product that failed are free for another one.
    let smaller = Bilinear::Matrix {
        batch: 1,
        m: 256,
        k: 256,
        n: 256,
    };
    agrees(&device, &smaller, 1, 1);
    assert_eq!(device.counters().products, 1);
}

#[test]
fn a_card_that_failed_computes_nothing_more() {
    for call in [
        "cuLaunchKernel",
        "cublasLtMatmul",
        "cuMemcpyDtoHAsync_v2",
        "cuEventSynchronize",
    ] {
        let (_folder, device) = untested(&format!("{call} 2 719"));
        let (x, y, out) = LARGE.lengths();
        let (x, y, mut out) = (vec![1; x], vec![1; y], vec![0; out]);
        let mut product = || device.bilinear(&LARGE, &mut out, &[Term::of(&x, &y)]);
        let first = (0..3).find_map(|_| product().err()).expect("a failure");
        let DeviceError::Failed { operation, cause } = &first else {
            panic!("failed, not {first:?}");
        };
        assert_eq!(operation, "the matrix product of 1 × 130×400 by 400×333");
        let status = match call {
            "cublasLtMatmul" => "cublasLt's status 719",
            _ => "CUDA_ERROR_LAUNCH_FAILED",
        };
        assert_eq!(cause, &format!("{call}: {status}").replace("_v2", ""));
        assert_eq!(product(), Err(first.clone()));
        assert_eq!(device.memory(), Err(first));
    }
}

#[test]
fn memory_is_named_as_the_cause_wherever_it_lacks() {
    for (call, status) in [
        ("cuDevicePrimaryCtxRetain", 2),
        ("cuModuleLoadData", 2),
        ("cuStreamCreate", 2),
        ("cuMemHostAlloc", 2),
        ("cublasLtCreate", 3),
    ] {
        let (_folder, device) = opened(&format!("{call} 0 {status}"));
        let operation = "opening the card".into();
        let expected = DeviceError::Exhausted { operation, call };
        assert_eq!(device.map(|_| ()), Err(expected));
    }
    // While it computes, such an error does not end the card's use.
    for (call, status) in [("cuLaunchKernel", 2), ("cublasLtMatmul", 3)] {
        let (_folder, device) = untested(&format!("{call} 30 {status}"));
        let (x, y, out) = LARGE.lengths();
        let (x, y, mut out) = (vec![1; x], vec![1; y], vec![0; out]);
        let mut product = || device.bilinear(&LARGE, &mut out, &[Term::of(&x, &y)]);
        let error = (0..20).find_map(|_| product().err()).expect("a failure");
        let operation = "the matrix product of 1 × 130×400 by 400×333".into();
        assert_eq!(error, DeviceError::Exhausted { operation, call });
        assert!(device.memory().is_ok());
    }
}

/// The fake driver ends the process if memory is left, or freed before it was wiped.
#[test]
fn a_card_that_failed_is_wiped() {
    for call in ["cublasLtMatmul 3 14", "cuMemcpyHtoDAsync_v2 1 719"] {
        let (_folder, device) = untested(call);
        let (x, y, out) = LARGE.lengths();
        let (x, y, mut out) = (vec![1; x], vec![1; y], vec![0; out]);
        let name = |operand| Some(Name { operand, part: 0 });
        let term = Term {
            x: Operand::of(&x).named(name(1)),
            y: Operand::of(&y).named(name(2)),
        };
        let error = device.bilinear(&LARGE, &mut out, &[term]);
        assert!(
            matches!(error, Err(DeviceError::Failed { .. })),
            "{error:?}"
        );
    }
}

#[test]
fn staging_is_wiped_in_a_context_that_cannot_be_used() {
    let folder = Folder::new();
    let (mut driver, _) = Driver::open(&places(&folder, "")).expect("a card");
    let current = driver.enter().expect("a usable context");
    let staging = driver.staging(Staging::In(0)).expect("a buffer");
    staging.fill(7);
    let (words, len) = (staging.as_ptr(), staging.len());
    drop(current);
    driver.lose_context();
    drop(driver);
    // SAFETY: the driver cannot free the buffer in this context.
    let words = unsafe { std::slice::from_raw_parts(words, len) };
    assert!(words.iter().all(|word| *word == 0));
}

#[test]
fn sizes_without_an_algorithm_are_an_error() {
    let (_folder, device) = untested("algorithms 0 0");
    let (x, y, out) = LARGE.lengths();
    let (x, y, mut out) = (vec![1; x], vec![1; y], vec![0; out]);
    let error = device.bilinear(&LARGE, &mut out, &[Term::of(&x, &y)]);
    let Err(DeviceError::Failed { cause, .. }) = error else {
        panic!("failed, not {error:?}");
    };
    assert_eq!(
        cause,
        "cublasLtMatmulAlgoGetHeuristic: no algorithm for these sizes"
    );
}

#[test]
fn compiled_kernels_are_kept_in_a_folder_of_the_user_alone() {
    let folder = Folder::new();
    let places = places(&folder, "nvrtcCompileProgram 1 6");
    drop(open(&places).expect("a card"));
    // NVRTC fails from here on: the kernels are those of the folder.
    drop(open(&places).expect("a card again"));
    let mode = |path: &Path| {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode(&places.cache), 0o700);
    let file = fs::read_dir(&places.cache)
        .expect("a folder")
        .next()
        .expect("a file");
    let file = file.expect("a file").path();
    assert_eq!(mode(&file), 0o600);
    // A damaged file is compiled again, which fails here.
    let mut bytes = fs::read(&file).expect("kernels");
    *bytes.last_mut().expect("bytes") ^= 1;
    fs::write(&file, &bytes).expect("damaged kernels");
    let (what, _) = unavailable(open(&places));
    assert!(what.starts_with("NVRTC 13.0 does not compile"), "{what}");

    fs::set_permissions(&places.cache, fs::Permissions::from_mode(0o750)).expect("permissions");
    let (what, remedy) = unavailable(open(&places));
    let cache = places.cache.display();
    let expected =
        format!("compiled kernels cannot be kept in {cache}: other users may enter it (mode 750)");
    assert_eq!(what, expected);
    assert!(remedy.contains("chmod 700"), "{remedy}");
    fs::remove_dir_all(&places.cache).expect("the folder");
    let elsewhere = folder.0.join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    std::os::unix::fs::symlink(&elsewhere, &places.cache).expect("a link");
    let (what, _) = unavailable(open(&places));
    assert!(what.ends_with("it is no folder"), "{what}");
}

/// What is not whole yet has a name that nobody can take before.
#[test]
fn kernels_are_written_to_no_file_that_was_there() {
    let folder = Folder::new();
    let places = places(&folder, "");
    drop(open(&places).expect("a card"));
    let files = || fs::read_dir(&places.cache).expect("a folder");
    let file = files().next().expect("a file").expect("a file").path();
    fs::remove_file(&file).expect("the file");
    let victim = folder.0.join("victim");
    fs::write(&victim, "text").expect("a file");
    let taken = file.with_extension(format!("{}.new", std::process::id()));
    std::os::unix::fs::symlink(&victim, &taken).expect("a link");
    drop(open(&places).expect("a card"));
    assert_eq!(fs::read(&victim).expect("a file"), b"text");
    assert!(file.is_file());
    assert_eq!(files().count(), 2, "the kernels and the link");
}

#[test]
fn a_card_that_computes_something_wrong_is_not_opened() {
    let (_folder, device) = opened("wrong 8 1");
    let (what, remedy) = unavailable(device);
    let expected = "the card's self-test failed: party 0's third of the matrix product of \
        1 × 33×70 by 70×18 differs from the processor's";
    assert_eq!(what, expected);
    assert!(remedy.contains("tacit device"), "{remedy}");
    // `tacit device` shows it.
    let folder = Folder::new();
    let (driver, description) = Driver::open(&places(&folder, "wrong 0 1")).expect("a card");
    let report = opening::report(&Card::new(driver), description, &[20]).expect("a report");
    let first = "the matrix product of 1 × 33×70 by 70×18";
    assert_eq!(report.wrong.as_deref(), Some(first));
}

/// What another library that uses the card in this thread, such as PyTorch, finds there.
struct Another(Library);

impl Another {
    fn call(&self, symbol: &'static CStr, context: *mut u64) -> i32 {
        type Call = unsafe extern "C" fn(*mut u64) -> i32;
        let address = self.0.symbol(symbol).expect("a function");
        // SAFETY: the fake driver declares these functions with a pointer, or with a context, which
        // is one.
        unsafe { std::mem::transmute::<*mut c_void, Call>(address)(context) }
    }

    /// Makes its context current.
    fn push(&self) {
        let status = self.call(c"cuCtxPushCurrent_v2", Self::CONTEXT as *mut u64);
        assert_eq!(status, 0);
    }

    const CONTEXT: u64 = 1 << 60 | 8;

    /// Returns the context that is current, or 0.
    fn current(&self) -> u64 {
        let mut found = 1;
        assert_eq!(self.call(c"cuCtxGetCurrent", &raw mut found), 0);
        found
    }
}

#[test]
fn another_librarys_context_stays_current() {
    let folder = Folder::new();
    let places = places(&folder, "memory 60000000 0");
    let another = Another(Library::open(&places.driver).expect("the driver"));
    for is_used in [true, false] {
        let expected = if is_used { Another::CONTEXT } else { 0 };
        if is_used {
            another.push();
        }
        let stays = |after: &str| assert_eq!(another.current(), expected, "{after}");
        let device = open(&places).expect("a card");
        stays("the card was opened");
        agrees(&*device, &LARGE, 1, 1);
        stays("a product");
        assert!(device.memory().is_ok());
        device.forget(1);
        stays("an operand was forgotten");
        let large = Bilinear::Matrix {
            batch: 1,
            m: 2000,
            k: 400,
            n: 1000,
        };
        let (x, y, out) = large.lengths();
        let (x, y, mut out) = (vec![1; x], vec![1; y], vec![0; out]);
        let error = device.bilinear(&large, &mut out, &[Term::of(&x, &y)]);
        assert!(
            matches!(error, Err(DeviceError::Memory { .. })),
            "{error:?}"
        );
        stays("a product failed");
        // A thread that nobody used the card in.
        std::thread::scope(|scope| scope.spawn(|| agrees(&*device, &LARGE, 1, 2)).join())
            .expect("a product");
        drop(device);
        stays("the card was closed");
        if is_used {
            let mut popped = 0;
            another.call(c"cuCtxPopCurrent_v2", &raw mut popped);
            assert_eq!(popped, Another::CONTEXT);
        }
    }
}

#[test]
fn another_librarys_context_stays_current_after_errors_of_opening() {
    for script in ["cublasLtCreate 0 1", "cuMemHostAlloc 2 719", "wrong 0 1"] {
        let folder = Folder::new();
        let places = places(&folder, script);
        let another = Another(Library::open(&places.driver).expect("the driver"));
        another.push();
        assert!(open(&places).is_err());
        assert_eq!(another.current(), Another::CONTEXT, "{script}");
    }
}

/// NVRTC itself, which needs no driver. `make test-rust` passes its folder.
#[test]
fn nvrtc_compiles_every_kernel() {
    let Some(folder) = std::env::var_os("TACIT_NVRTC").filter(|path| !path.is_empty()) else {
        eprintln!("skipped: TACIT_NVRTC names no folder with NVRTC");
        return;
    };
    for capability in [[8, 0], [9, 0], [10, 0]] {
        let cubin = compile_with(&[PathBuf::from(&folder)], capability).expect("a cubin");
        assert_eq!(&cubin[..4], b"\x7fELF");
        for name in crate::launch::Launch::NAMES {
            let name = name.as_bytes();
            assert!(
                cubin.windows(name.len()).any(|bytes| bytes == name),
                "{name:?}"
            );
        }
    }
    let error = compile_with(&[PathBuf::from(&folder)], [1, 0]).expect_err("no such architecture");
    assert!(matches!(error, Error::Compilation { .. }), "{error:?}");
}
