//! Ports for tests whose programs are configured with an address before they listen.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The lowest port. The ports lie below those that any tested system assigns to outgoing
/// connections: such a connection could occupy a port before the program listens on it.
const LOWEST: usize = 10_000;

/// The number of ports that one test process goes through, one after another.
const STRETCH: usize = 200;

/// The number of stretches.
const STRETCHES: usize = 110;

/// Returns an address of this machine where nothing listens. Each call returns another address.
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
