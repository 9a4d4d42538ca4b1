//! The card's context, and the thread that it is current in.
//!
//! PyTorch uses the same context of the first card, and others of other cards. Which one is current
//! in a thread is the thread's own: so it is pushed before calls, and popped after them.

use super::done;
use super::functions::{Cuda, Handle};
use crate::error::Result;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr;

/// Keeps a context current in this thread. What was current before is so again afterwards.
pub struct Current {
    pop: unsafe extern "C" fn(*mut Handle) -> c_int,
    /// Another thread has other contexts.
    thread: PhantomData<*const ()>,
}

impl Current {
    /// Makes a retained context current.
    pub fn push(functions: &Cuda, context: Handle) -> Result<Self> {
        // SAFETY: the context was retained; the driver refuses others.
        let status = unsafe { (functions.push_context)(context) };
        done(functions, "cuCtxPushCurrent", status)?;
        Ok(Self {
            pop: functions.pop_context,
            thread: PhantomData,
        })
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        let mut popped = ptr::null_mut();
        // SAFETY: the context is written. Whatever is pushed in this thread meanwhile is popped
        // before.
        unsafe { (self.pop)(&mut popped) };
    }
}
