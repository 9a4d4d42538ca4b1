//! The functions of NVIDIA's libraries that are used, as their headers declare them (cuda.h,
//! nvrtc.h and cublasLt.h of CUDA 13; these functions are the same in CUDA 12).

use super::library::Library;
use crate::error::Result;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// A context, a module, a function, a stream, an event, a program, a handle or a description.
pub type Handle = *mut c_void;

/// What a function returns: a status, unless it says otherwise.
macro_rules! returned {
    () => {
        c_int
    };
    ($result:ty) => {
        $result
    };
}

macro_rules! functions {
    ($(#[$note:meta])* $table:ident {
        $($field:ident $symbol:literal ($($argument:ty),*) $(-> $result:ty)?;)*
    }) => {
        $(#[$note])*
        pub struct $table {
            $(pub $field: unsafe extern "C" fn($($argument),*) -> returned!($($result)?),)*
        }

        impl $table {
            /// Finds all functions.
            pub fn load(library: &Library) -> Result<Self> {
                Ok(Self {
                    // SAFETY: the header declares the function with these arguments, and as its
                    // result this one, or an enum, which is an int. The library stays loaded.
                    $($field: unsafe {
                        std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($argument),*) -> returned!($($result)?),
                        >(library.symbol($symbol)?)
                    },)*
                })
            }
        }
    };
}

functions! {
    /// The driver's.
    Cuda {
        init c"cuInit" (c_uint);
        driver_version c"cuDriverGetVersion" (*mut c_int);
        device_count c"cuDeviceGetCount" (*mut c_int);
        device c"cuDeviceGet" (*mut c_int, c_int);
        device_name c"cuDeviceGetName" (*mut c_char, c_int, c_int);
        device_attribute c"cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
        retain_context c"cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
        release_context c"cuDevicePrimaryCtxRelease_v2" (c_int);
        push_context c"cuCtxPushCurrent_v2" (Handle);
        pop_context c"cuCtxPopCurrent_v2" (*mut Handle);
        memory c"cuMemGetInfo_v2" (*mut usize, *mut usize);
        allocate c"cuMemAlloc_v2" (*mut u64, usize);
        free c"cuMemFree_v2" (u64);
        allocate_host c"cuMemHostAlloc" (*mut *mut c_void, usize, c_uint);
        free_host c"cuMemFreeHost" (*mut c_void);
        copy_in c"cuMemcpyHtoDAsync_v2" (u64, *const c_void, usize, Handle);
        copy_out c"cuMemcpyDtoHAsync_v2" (*mut c_void, u64, usize, Handle);
        clear c"cuMemsetD8Async" (u64, u8, usize, Handle);
        load_module c"cuModuleLoadData" (*mut Handle, *const c_void);
        unload_module c"cuModuleUnload" (Handle);
        function c"cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
        launch c"cuLaunchKernel" (
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle,
            *mut *mut c_void, *mut *mut c_void
        );
        create_stream c"cuStreamCreate" (*mut Handle, c_uint);
        destroy_stream c"cuStreamDestroy_v2" (Handle);
        synchronise c"cuStreamSynchronize" (Handle);
        wait c"cuStreamWaitEvent" (Handle, Handle, c_uint);
        create_event c"cuEventCreate" (*mut Handle, c_uint);
        destroy_event c"cuEventDestroy_v2" (Handle);
        record c"cuEventRecord" (Handle, Handle);
        await_event c"cuEventSynchronize" (Handle);
        error_name c"cuGetErrorName" (c_int, *mut *const c_char);
    }
}

functions! {
    /// The compiler's.
    Nvrtc {
        version c"nvrtcVersion" (*mut c_int, *mut c_int);
        create c"nvrtcCreateProgram" (
            *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char,
            *const *const c_char
        );
        compile c"nvrtcCompileProgram" (Handle, c_int, *const *const c_char);
        destroy c"nvrtcDestroyProgram" (*mut Handle);
        log_size c"nvrtcGetProgramLogSize" (Handle, *mut usize);
        log c"nvrtcGetProgramLog" (Handle, *mut c_char);
        cubin_size c"nvrtcGetCUBINSize" (Handle, *mut usize);
        cubin c"nvrtcGetCUBIN" (Handle, *mut c_char);
    }
}

/// An algorithm of a product, as cublasLt chose it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Algorithm {
    /// What only cublasLt understands.
    pub opaque: [u64; 8],
    /// The bytes of working memory that it needs.
    pub workspace: usize,
    /// 0 if the algorithm can be used.
    pub state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

impl Algorithm {
    /// No algorithm yet.
    pub const NONE: Self = Self {
        opaque: [0; 8],
        workspace: 0,
        state: -1,
        waves: 0.0,
        reserved: [0; 4],
    };
}

functions! {
    /// Those for products of matrices.
    CublasLt {
        cuda_version c"cublasLtGetCudartVersion" () -> usize;
        create c"cublasLtCreate" (*mut Handle);
        destroy c"cublasLtDestroy" (Handle);
        create_product c"cublasLtMatmulDescCreate" (*mut Handle, c_int, c_int);
        destroy_product c"cublasLtMatmulDescDestroy" (Handle);
        set_product c"cublasLtMatmulDescSetAttribute" (Handle, c_int, *const c_void, usize);
        create_layout c"cublasLtMatrixLayoutCreate" (*mut Handle, c_int, u64, u64, i64);
        destroy_layout c"cublasLtMatrixLayoutDestroy" (Handle);
        set_layout c"cublasLtMatrixLayoutSetAttribute" (Handle, c_int, *const c_void, usize);
        create_preference c"cublasLtMatmulPreferenceCreate" (*mut Handle);
        destroy_preference c"cublasLtMatmulPreferenceDestroy" (Handle);
        set_preference c"cublasLtMatmulPreferenceSetAttribute" (
            Handle, c_int, *const c_void, usize
        );
        choose c"cublasLtMatmulAlgoGetHeuristic" (
            Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut Algorithm,
            *mut c_int
        );
        multiply c"cublasLtMatmul" (
            Handle, Handle, *const c_void, u64, Handle, u64, Handle, *const c_void, u64, Handle,
            u64, Handle, *const Algorithm, u64, usize, Handle
        );
    }
}
