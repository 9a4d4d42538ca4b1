//! Products of bytes by cublasLt.

use super::functions::{Algorithm, CublasLt, Handle};
use super::library::Library;
use crate::error::{Error, Result};
use crate::region::Region;
use crate::runtime::{Bytes, Product};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::ptr;

/// cublasLt's file name, without a version.
const NAME: &str = "libcublasLt.so";

/// Bytes of working memory that algorithms may take. NVIDIA recommends as much for Hopper.
pub const WORKSPACE: usize = 32 << 20;

// Values of cublas_api.h, library_types.h and cublasLt.h.
const ALLOCATION_FAILED: c_int = 3;
const COMPUTE_32I: c_int = 72;
const R_8I: c_int = 3;
const R_32I: c_int = 10;
const OP_T: i32 = 1;
const TRANSPOSE_LEFT: c_int = 3;
const BATCH_COUNT: c_int = 5;
const BATCH_STRIDE: c_int = 6;
const MOST_WORKSPACE: c_int = 1;
/// Of the first factor, the second one, the sums that are read, and those that are written.
const LEAST_ALIGNMENT: [c_int; 4] = [5, 6, 7, 8];

/// What every operand of bytes is aligned to, and what sums are: panels begin at multiples of 16
/// bytes, and matrices of sums have multiples of 16 columns of 4 bytes. Without these, cublasLt
/// may choose an algorithm for 256 bytes, which it assumes.
const ALIGNMENT: [u32; 4] = [16, 16, 64, 64];

/// What an algorithm is chosen by.
type Sizes = [usize; 8];

/// cublasLt in one context.
pub struct Products {
    functions: CublasLt,
    handle: Handle,
    chosen: HashMap<Sizes, Prepared>,
}

/// Descriptions of a product, and its algorithm.
struct Prepared {
    product: Handle,
    layouts: [Handle; 3],
    algorithm: Algorithm,
}

impl Products {
    /// Loads cublasLt from one of some folders, for the current context and a driver of a version.
    pub fn load(folders: &[PathBuf], driver: u32) -> Result<Self> {
        let functions = CublasLt::load(&Library::find(NAME, folders)?)?;
        // SAFETY: the call has no arguments, and needs neither a card nor a handle.
        let built_for = unsafe { (functions.cuda_version)() };
        let needed = u32::try_from(built_for / 1000).unwrap_or(u32::MAX);
        if driver / 1000 < needed {
            let library = "cublasLt".into();
            return Err(Error::OldDriver {
                driver,
                library,
                needed,
            });
        }
        let mut handle = ptr::null_mut();
        // SAFETY: the handle is written.
        done("cublasLtCreate", unsafe { (functions.create)(&mut handle) })?;
        let chosen = HashMap::new();
        Ok(Self {
            functions,
            handle,
            chosen,
        })
    }

    /// Queues a product.
    pub fn multiply(&mut self, product: &Product, workspace: Region, stream: Handle) -> Result<()> {
        product.check();
        let sizes = [
            product.items,
            product.rows,
            product.columns,
            product.depth,
            product.left.row,
            product.left.item,
            product.right.row,
            product.right.item,
        ];
        if !self.chosen.contains_key(&sizes) {
            let prepared = self.prepare(product)?;
            self.chosen.insert(sizes, prepared);
        }
        let prepared = &self.chosen[&sizes];
        let (one, zero) = (1i32, 0i32);
        let [left, right] = [product.left, product.right].map(|bytes| bytes.region.address.0);
        let sums = product.sums.address.0;
        for (address, bytes) in [right, left, sums, sums].into_iter().zip(ALIGNMENT) {
            assert!(address % u64::from(bytes) == 0, "an operand's alignment");
        }
        let [of_right, of_left, of_sums] = prepared.layouts;
        // SAFETY: the descriptions were created for these sizes, and `check` found the operands
        // within their regions, which the card has allocated. Factors are read before the call
        // ends.
        let status = unsafe {
            (self.functions.multiply)(
                self.handle,
                prepared.product,
                ptr::from_ref(&one).cast(),
                right,
                of_right,
                left,
                of_left,
                ptr::from_ref(&zero).cast(),
                sums,
                of_sums,
                sums,
                of_sums,
                &prepared.algorithm,
                workspace.address.0,
                workspace.bytes,
                stream,
            )
        };
        done("cublasLtMatmul", status)
    }

    /// Describes a product, and chooses its algorithm.
    ///
    /// cublasLt's matrices are column-major. So a K-major matrix is a transposed one, and the sums
    /// are those of the transposed product: right operand times left operand.
    fn prepare(&self, product: &Product) -> Result<Prepared> {
        let f = &self.functions;
        let mut prepared = Prepared {
            product: ptr::null_mut(),
            layouts: [ptr::null_mut(); 3],
            algorithm: Algorithm::NONE,
        };
        let result = self.describe(product, &mut prepared).and_then(|()| {
            let mut preference = ptr::null_mut();
            // SAFETY: the preference is written.
            done("cublasLtMatmulPreferenceCreate", unsafe {
                (f.create_preference)(&mut preference)
            })?;
            let chosen = self.choose(&mut prepared, preference);
            // SAFETY: the preference was created, and is not used any more.
            unsafe { (f.destroy_preference)(preference) };
            chosen
        });
        if result.is_err() {
            self.forget(&prepared);
        }
        result.map(|()| prepared)
    }

    fn describe(&self, product: &Product, prepared: &mut Prepared) -> Result<()> {
        let f = &self.functions;
        // SAFETY: the description is written.
        let status = unsafe { (f.create_product)(&mut prepared.product, COMPUTE_32I, R_32I) };
        done("cublasLtMatmulDescCreate", status)?;
        self.set(f.set_product, prepared.product, TRANSPOSE_LEFT, &OP_T)?;
        let Product {
            items,
            rows,
            columns,
            depth,
            ..
        } = *product;
        let of = |rows: usize, bytes: &Bytes| (R_8I, [depth, rows, bytes.row, bytes.item]);
        let layouts = [
            of(columns, &product.right),
            of(rows, &product.left),
            (R_32I, [columns, rows, columns, rows * columns]),
        ];
        for (layout, (kind, [rows, columns, leading, stride])) in
            prepared.layouts.iter_mut().zip(layouts)
        {
            // SAFETY: the layout is written.
            let status = unsafe {
                (f.create_layout)(layout, kind, rows as u64, columns as u64, leading as i64)
            };
            done("cublasLtMatrixLayoutCreate", status)?;
            if items > 1 {
                let count = i32::try_from(items).expect("matrices of one product");
                self.set(f.set_layout, *layout, BATCH_COUNT, &count)?;
                self.set(f.set_layout, *layout, BATCH_STRIDE, &(stride as i64))?;
            }
        }
        Ok(())
    }

    fn choose(&self, prepared: &mut Prepared, preference: Handle) -> Result<()> {
        let f = &self.functions;
        self.set(
            f.set_preference,
            preference,
            MOST_WORKSPACE,
            &(WORKSPACE as u64),
        )?;
        for (attribute, bytes) in LEAST_ALIGNMENT.into_iter().zip(ALIGNMENT) {
            self.set(f.set_preference, preference, attribute, &bytes)?;
        }
        let [of_right, of_left, of_sums] = prepared.layouts;
        let mut found = 0;
        // SAFETY: all descriptions were created. One algorithm and a number are written.
        let status = unsafe {
            (f.choose)(
                self.handle,
                prepared.product,
                of_right,
                of_left,
                of_sums,
                of_sums,
                preference,
                1,
                &mut prepared.algorithm,
                &mut found,
            )
        };
        done("cublasLtMatmulAlgoGetHeuristic", status)?;
        match (found, prepared.algorithm.state) {
            (0, _) => Err(Error::Failed {
                call: "cublasLtMatmulAlgoGetHeuristic",
                cause: "no algorithm for these sizes".into(),
            }),
            (_, state) => done("cublasLtMatmulAlgoGetHeuristic", state),
        }
    }

    /// Sets an attribute of a description.
    fn set<T>(
        &self,
        set: unsafe extern "C" fn(Handle, c_int, *const c_void, usize) -> c_int,
        description: Handle,
        attribute: c_int,
        value: &T,
    ) -> Result<()> {
        // SAFETY: the description was created, and the value is read before the call ends.
        let status = unsafe {
            set(
                description,
                attribute,
                ptr::from_ref(value).cast(),
                size_of::<T>(),
            )
        };
        done("cublasLt's description of a product", status)
    }

    fn forget(&self, prepared: &Prepared) {
        let f = &self.functions;
        for layout in prepared.layouts.iter().filter(|layout| !layout.is_null()) {
            // SAFETY: the layout was created, and is not used any more.
            unsafe { (f.destroy_layout)(*layout) };
        }
        if !prepared.product.is_null() {
            // SAFETY: as above.
            unsafe { (f.destroy_product)(prepared.product) };
        }
    }

    /// Gives everything back.
    pub fn close(&mut self) {
        for (_, prepared) in std::mem::take(&mut self.chosen) {
            self.forget(&prepared);
        }
        // SAFETY: the handle was created, and no product is queued.
        unsafe { (self.functions.destroy)(self.handle) };
    }
}

fn done(call: &'static str, status: c_int) -> Result<()> {
    match status {
        0 => Ok(()),
        ALLOCATION_FAILED => Err(Error::Exhausted { call }),
        _ => Err(Error::Failed {
            call,
            cause: format!("cublasLt's status {status}"),
        }),
    }
}
