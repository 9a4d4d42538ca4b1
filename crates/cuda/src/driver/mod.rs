//! A card by NVIDIA's driver, compiler and library of products, all of them loaded at run time.
//!
//! The driver comes with the system; NVRTC and cublasLt come with PyTorch's wheel. Nothing is
//! linked, so that a build needs none of them, and a machine without them says what is missing.
//!
//! The context is the one that PyTorch uses too ([`context`]). A fork has none: everything is
//! refused there.

mod compiler;
mod context;
mod functions;
mod library;
mod products;

use crate::error::{Error, Result};
use crate::launch::{Launch, THREADS};
use crate::places::{Description, Places};
use crate::process::Process;
use crate::region::{Address, Region};
use crate::runtime::{Event, Product, Queue, Runtime, Staging, Tuning};
use compiler::Compiler;
use context::Current;
use functions::{Cuda, Handle};
#[cfg(test)]
pub use library::Library;
#[cfg(not(test))]
use library::Library;
use products::{Products, WORKSPACE};
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;

// Values of cuda.h.
const OUT_OF_MEMORY: c_int = 2;
const NOT_INITIALIZED: c_int = 3;
const NO_DEVICE: c_int = 100;
const CAPABILITY: [c_int; 2] = [75, 76];
const NON_BLOCKING: u32 = 1;
const WITHOUT_TIMES: u32 = 2;

/// The oldest compute capability: tensor units for bytes with sums of 32 bits, as cublasLt uses
/// them.
const OLDEST: [u32; 2] = [8, 0];

/// Words of a staging buffer: 8 MiB, which the bus takes some 200 µs for.
const STAGING: usize = 1 << 20;

/// A card.
pub struct Driver {
    functions: Cuda,
    products: Products,
    process: Process,
    device: c_int,
    context: Handle,
    module: Handle,
    kernels: [Handle; Launch::NAMES.len()],
    streams: [Handle; Queue::ALL.len()],
    events: [Handle; Event::COUNT],
    staging: [*mut u64; Staging::COUNT],
    /// The last copy from or to each staging buffer.
    copied: [Handle; Staging::COUNT],
    workspace: Region,
    /// Sizes for its owner.
    pub tuning: Tuning,
}

/// Estimates, until they are measured on a card: a product of 2^24 words takes the processor some
/// milliseconds, and copies as many.
const TUNING: Tuning = Tuning {
    band: 256 << 20,
    crossover: 1 << 24,
};

// SAFETY: the handles belong to the context, which any thread may use while [`Runtime::enter`]
// keeps it current there. One thread at a time has `&mut self`.
unsafe impl Send for Driver {}

impl Driver {
    /// Opens a card.
    ///
    /// # Errors
    /// What is missing, or too old, or what failed.
    pub fn open(places: &Places) -> Result<(Self, Description)> {
        let library = Library::open(&places.driver).map_err(Error::NoDriver)?;
        let functions = Cuda::load(&library)?;
        let device = find(&functions, places.card)?;
        let description = describe(&functions, device)?;
        let compiler = Compiler::load(&places.libraries)?;
        let description = Description {
            compiler: compiler.version,
            ..description
        };
        let [major, minor] = compiler.version;
        if description.driver / 1000 < major {
            return Err(Error::OldDriver {
                driver: description.driver,
                library: format!("NVRTC {major}.{minor}"),
                needed: major,
            });
        }
        let cubin = compiler.cubin(description.capability, &places.cache)?;
        let mut context = ptr::null_mut();
        // SAFETY: the context is written. It stays the device's until it is released.
        let status = unsafe { (functions.retain_context)(&mut context, device) };
        done(&functions, "cuDevicePrimaryCtxRetain", status)?;
        let opened = Current::push(&functions, context).and_then(|current| {
            let products = Products::load(&places.libraries, description.driver)?;
            Ok((current, products))
        });
        let (current, products) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                // SAFETY: the context was retained, is current no more, and nothing is left in it.
                unsafe { (functions.release_context)(device) };
                return Err(error);
            }
        };
        let mut driver = Self {
            functions,
            products,
            process: Process::this(),
            device,
            context,
            module: ptr::null_mut(),
            kernels: [ptr::null_mut(); Launch::NAMES.len()],
            streams: [ptr::null_mut(); Queue::ALL.len()],
            events: [ptr::null_mut(); Event::COUNT],
            staging: [ptr::null_mut(); Staging::COUNT],
            copied: [ptr::null_mut(); Staging::COUNT],
            workspace: Region {
                address: Address(0),
                bytes: 0,
            },
            tuning: Tuning {
                crossover: places.crossover.unwrap_or(TUNING.crossover),
                ..TUNING
            },
        };
        // What was made before a failure is given back by `drop`.
        let made = driver.make(&cubin);
        drop(current);
        made.map(|()| (driver, description))
    }

    /// Makes everything that the driver holds in its context.
    fn make(&mut self, cubin: &[u8]) -> Result<()> {
        self.load_kernels(cubin)?;
        self.make_queues()?;
        self.workspace = self.allocate(WORKSPACE)?;
        Ok(())
    }

    fn load_kernels(&mut self, cubin: &[u8]) -> Result<()> {
        let f = &self.functions;
        // SAFETY: the image is a whole one: NVRTC made it, or the folder's digest was right.
        let status = unsafe { (f.load_module)(&mut self.module, cubin.as_ptr().cast()) };
        done(f, "cuModuleLoadData", status)?;
        for (kernel, name) in self.kernels.iter_mut().zip(Launch::NAMES) {
            let name = CString::new(name).expect("a kernel's name");
            // SAFETY: the module was loaded, and the name ends with a zero.
            let status = unsafe { (f.function)(kernel, self.module, name.as_ptr()) };
            done(f, "cuModuleGetFunction", status)?;
        }
        Ok(())
    }

    fn make_queues(&mut self) -> Result<()> {
        let f = &self.functions;
        for stream in &mut self.streams {
            // SAFETY: the stream is written.
            let status = unsafe { (f.create_stream)(stream, NON_BLOCKING) };
            done(f, "cuStreamCreate", status)?;
        }
        for event in self.events.iter_mut().chain(&mut self.copied) {
            // SAFETY: the event is written.
            let status = unsafe { (f.create_event)(event, WITHOUT_TIMES) };
            done(f, "cuEventCreate", status)?;
        }
        for staging in &mut self.staging {
            let mut memory: *mut c_void = ptr::null_mut();
            // SAFETY: the pointer is written.
            let status = unsafe { (f.allocate_host)(&mut memory, STAGING * size_of::<u64>(), 0) };
            done(f, "cuMemHostAlloc", status)?;
            // SAFETY: as many bytes were allocated. They are written once, so that they are a
            // slice.
            unsafe { ptr::write_bytes(memory.cast::<u8>(), 0, STAGING * size_of::<u64>()) };
            *staging = memory.cast();
        }
        Ok(())
    }

    fn stream(&self, queue: Queue) -> Handle {
        self.streams[queue as usize]
    }

    fn done(&self, call: &'static str, status: c_int) -> Result<()> {
        done(&self.functions, call, status)
    }

    fn wipe_staging(&mut self) {
        for staging in self.staging.iter().filter(|staging| !staging.is_null()) {
            for word in 0..STAGING {
                // SAFETY: the buffer has as many words, and nothing else refers to them.
                unsafe { staging.add(word).write_volatile(0) };
            }
        }
    }

    /// Makes the context one that cannot be used.
    #[cfg(test)]
    pub fn lose_context(&mut self) {
        self.context = ptr::null_mut();
    }

    /// Notes that a staging buffer is in use until what is queued is done.
    fn in_use(&mut self, staging: Staging, queue: Queue) -> Result<()> {
        let (event, stream) = (self.copied[staging.index()], self.stream(queue));
        // SAFETY: both belong to the context.
        let status = unsafe { (self.functions.record)(event, stream) };
        self.done("cuEventRecord", status)
    }
}

impl Runtime for Driver {
    const KIND: &'static str = "cuda";

    type Current = Current;

    fn tuning(&self) -> Tuning {
        self.tuning
    }

    fn enter(&self) -> Result<Current> {
        Current::push(&self.functions, self.context)
    }

    fn memory(&mut self) -> Result<(u64, u64)> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both are written.
        let status = unsafe { (self.functions.memory)(&mut free, &mut total) };
        self.done("cuMemGetInfo", status)?;
        Ok((free as u64, total as u64))
    }

    fn allocate(&mut self, bytes: usize) -> Result<Region> {
        let mut address = 0;
        // SAFETY: the address is written.
        let status = unsafe { (self.functions.allocate)(&mut address, bytes) };
        if status == OUT_OF_MEMORY {
            let (free, _) = self.memory()?;
            let needed = bytes as u64;
            return Err(Error::Memory { needed, free });
        }
        self.done("cuMemAlloc", status)?;
        let address = Address(address);
        Ok(Region { address, bytes })
    }

    fn free(&mut self, region: Region) -> Result<()> {
        // SAFETY: the region was allocated, and the caller does not use it any more. The driver
        // refuses other addresses.
        let status = unsafe { (self.functions.free)(region.address.0) };
        self.done("cuMemFree", status)
    }

    fn staging(&mut self, buffer: Staging) -> Result<&mut [u64]> {
        let at = buffer.index();
        // SAFETY: the event belongs to the context.
        let status = unsafe { (self.functions.await_event)(self.copied[at]) };
        self.done("cuEventSynchronize", status)?;
        // SAFETY: the buffer has as many words, all of which were written. The last copy from or to
        // it has ended, and copies are queued by `&mut self`, which this borrows.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.staging[at], STAGING) })
    }

    fn copy_in(&mut self, from: Staging, words: usize, to: Region) -> Result<()> {
        let bytes = words * size_of::<u64>();
        assert!(words <= STAGING && bytes <= to.bytes, "a copy to the card");
        let (source, stream) = (self.staging[from.index()], self.stream(Queue::In));
        // SAFETY: both have as many bytes. `staging` waits for the copy, before Rust writes there.
        let status =
            unsafe { (self.functions.copy_in)(to.address.0, source.cast(), bytes, stream) };
        self.done("cuMemcpyHtoDAsync", status)?;
        self.in_use(from, Queue::In)
    }

    fn copy_out(&mut self, from: Region, words: usize, to: Staging) -> Result<()> {
        let bytes = words * size_of::<u64>();
        assert!(
            words <= STAGING && bytes <= from.bytes,
            "a copy from the card"
        );
        let (target, stream) = (self.staging[to.index()], self.stream(Queue::Out));
        // SAFETY: as in `copy_in`.
        let status =
            unsafe { (self.functions.copy_out)(target.cast(), from.address.0, bytes, stream) };
        self.done("cuMemcpyDtoHAsync", status)?;
        self.in_use(to, Queue::Out)
    }

    fn clear(&mut self, region: Region) -> Result<()> {
        let stream = self.stream(Queue::Compute);
        // SAFETY: the region was allocated.
        let status = unsafe { (self.functions.clear)(region.address.0, 0, region.bytes, stream) };
        self.done("cuMemsetD8Async", status)
    }

    fn launch(&mut self, launch: &Launch) -> Result<()> {
        let raw = launch.raw(|region| region.address.0);
        let mut arguments = [raw.words().as_ptr().cast_mut().cast::<c_void>()];
        let kernel = self.kernels[launch.index()];
        let (blocks, stream) = (launch.blocks(), self.stream(Queue::Compute));
        // SAFETY: `raw` checked that the kernel stays within regions that were allocated. The
        // structure has the kernel's layout (a test compares the two), and is read before the call
        // ends.
        let status = unsafe {
            let (arguments, none) = (arguments.as_mut_ptr(), ptr::null_mut());
            (self.functions.launch)(
                kernel, blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, none,
            )
        };
        self.done("cuLaunchKernel", status)
    }

    fn multiply(&mut self, product: &Product) -> Result<()> {
        let stream = self.stream(Queue::Compute);
        self.products.multiply(product, self.workspace, stream)
    }

    fn record(&mut self, event: Event, queue: Queue) -> Result<()> {
        let (event, stream) = (self.events[event.index()], self.stream(queue));
        // SAFETY: both belong to the context.
        let status = unsafe { (self.functions.record)(event, stream) };
        self.done("cuEventRecord", status)
    }

    fn wait(&mut self, queue: Queue, event: Event) -> Result<()> {
        let (event, stream) = (self.events[event.index()], self.stream(queue));
        // SAFETY: both belong to the context.
        let status = unsafe { (self.functions.wait)(stream, event, 0) };
        self.done("cuStreamWaitEvent", status)
    }

    fn synchronise(&mut self) -> Result<()> {
        // All were made, unless opening the card failed.
        for stream in self.streams.iter().filter(|stream| !stream.is_null()) {
            // SAFETY: the stream belongs to the context.
            let status = unsafe { (self.functions.synchronise)(*stream) };
            self.done("cuStreamSynchronize", status)?;
        }
        Ok(())
    }
}

impl Drop for Driver {
    /// Wipes what may hold shares, and gives everything back. In a context that cannot be used,
    /// this process's own buffers alone are wiped. A fork has nothing to give back.
    fn drop(&mut self) {
        if self.process.check().is_err() {
            return;
        }
        let current = self.enter();
        // Nothing writes to the buffers afterwards: a context that failed works no more.
        let _ = self.synchronise();
        self.wipe_staging();
        let Ok(current) = current else {
            return;
        };
        if self.workspace.bytes > 0 {
            let workspace = self.workspace;
            let _ = self
                .clear(workspace)
                .and_then(|()| self.synchronise())
                .and_then(|()| self.free(workspace));
        }
        self.products.close();
        let f = &self.functions;
        // SAFETY: everything belongs to the context, was made once, and is not used any more.
        unsafe {
            for staging in self.staging.iter().filter(|staging| !staging.is_null()) {
                (f.free_host)(staging.cast());
            }
            for event in self
                .events
                .iter()
                .chain(&self.copied)
                .filter(|event| !event.is_null())
            {
                (f.destroy_event)(*event);
            }
            for stream in self.streams.iter().filter(|stream| !stream.is_null()) {
                (f.destroy_stream)(*stream);
            }
            if !self.module.is_null() {
                (f.unload_module)(self.module);
            }
        }
        // A context that is current is not to be released.
        drop(current);
        // SAFETY: the context was retained, and nothing is left in it.
        unsafe { (self.functions.release_context)(self.device) };
    }
}

/// Starts the driver, and returns the card of a number.
fn find(functions: &Cuda, card: u32) -> Result<c_int> {
    // SAFETY: the call has no pointers.
    match unsafe { (functions.init)(0) } {
        NOT_INITIALIZED => return Err(Error::AfterFork),
        NO_DEVICE => return Err(Error::NoCard),
        0 => {}
        status => return Err(Error::NoDriver(error_name(functions, status))),
    }
    let mut found = 0;
    // SAFETY: the number is written.
    let status = unsafe { (functions.device_count)(&mut found) };
    done(functions, "cuDeviceGetCount", status)?;
    let found = u32::try_from(found).unwrap_or(0);
    match card {
        _ if found == 0 => return Err(Error::NoCard),
        asked if asked >= found => return Err(Error::NoSuchCard { asked, found }),
        _ => {}
    }
    let mut device = 0;
    // SAFETY: the device is written.
    let status = unsafe { (functions.device)(&mut device, card as c_int) };
    done(functions, "cuDeviceGet", status)?;
    Ok(device)
}

/// Describes a card, and refuses one that is too old.
fn describe(functions: &Cuda, device: c_int) -> Result<Description> {
    let mut name = [0u8; 128];
    // SAFETY: at most as many bytes are written, the last of them a zero.
    let status =
        unsafe { (functions.device_name)(name.as_mut_ptr().cast(), name.len() as c_int, device) };
    done(functions, "cuDeviceGetName", status)?;
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let mut capability = [0; 2];
    for (number, attribute) in capability.iter_mut().zip(CAPABILITY) {
        let mut value = 0;
        // SAFETY: the number is written.
        let status = unsafe { (functions.device_attribute)(&mut value, attribute, device) };
        done(functions, "cuDeviceGetAttribute", status)?;
        *number = u32::try_from(value).unwrap_or(0);
    }
    let mut driver = 0;
    // SAFETY: the number is written.
    let status = unsafe { (functions.driver_version)(&mut driver) };
    done(functions, "cuDriverGetVersion", status)?;
    if capability < OLDEST {
        let [major, minor] = capability;
        let card = name;
        return Err(Error::Capability { card, major, minor });
    }
    Ok(Description {
        name,
        capability,
        driver: u32::try_from(driver).unwrap_or(0),
        compiler: [0; 2],
    })
}

fn done(functions: &Cuda, call: &'static str, status: c_int) -> Result<()> {
    match status {
        0 => Ok(()),
        OUT_OF_MEMORY => Err(Error::Exhausted { call }),
        _ => Err(Error::Failed {
            call,
            cause: error_name(functions, status),
        }),
    }
}

/// Returns the driver's name of an error.
fn error_name(functions: &Cuda, status: c_int) -> String {
    let mut name = ptr::null();
    // SAFETY: the pointer is written, and what it points to stays.
    unsafe {
        if (functions.error_name)(status, &mut name) != 0 || name.is_null() {
            return format!("the driver's error {status}");
        }
        CStr::from_ptr(name).to_string_lossy().into_owned()
    }
}

/// Compiles the kernels by NVRTC from one of some folders, without a driver.
#[cfg(test)]
pub fn compile_with(folders: &[std::path::PathBuf], capability: [u32; 2]) -> Result<Vec<u8>> {
    Compiler::load(folders)?.compile(capability)
}
