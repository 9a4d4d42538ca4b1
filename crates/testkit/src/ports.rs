//! Ports for tests whose programs are told beforehand where to listen.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Below those that the system gives to connections by itself, on every system that is tested on:
/// such a connection would be in the way when the program comes to listen.
const LOWEST: usize = 10_000;

/// Ports that one process of tests goes through, one after another.
const STRETCH: usize = 200;

/// Stretches that there are.
const STRETCHES: usize = 110;

/// An address of this machine where nobody listens; another call gives another one.
///
/// # Panics
/// If all are in use.
#[must_use]
pub fn free_address() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let first = LOWEST + std::process::id() as usize % STRETCHES * STRETCH;
    (0..STRETCH)
        .map(|_| first + NEXT.fetch_add(1, Ordering::Relaxed) % STRETCH)
        .map(|port| format!("127.0.0.1:{port}"))
        .find(|address| TcpListener::bind(address).is_ok())
        .expect("a port where nobody listens")
}
