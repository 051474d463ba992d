//! The compiled part of the package `hopwise_sockets`: networks, streams and listeners whose calls never wait.
//!
//! Python waits itself, by a descriptor and `select.poll`. Its threads, signals and timeouts are then those of its own
//! sockets. Calls here let other threads of Python run.

mod networks;
mod open;
mod sockets;

use pyo3::pymodule;

/// Networks, streams and listeners whose calls never wait.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::networks::Network;
    #[pymodule_export]
    use crate::sockets::{Listener, Stream};
}
