//! Hopwise as a library: one crate for a program whose TCP should be its own.
//!
//! A [`Network`] is a TCP/IP on a device of its own, or on a wire within the machine. [`TcpStream`] and
//! [`TcpListener`] work like tokio's of the same names, and take the network as their first argument. An
//! [`AgentChoice`] names the agents of a network, of a listener or of one connection.
//!
//! The page of this crate follows.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod blocking;
mod network;

pub use hopwise_core::endpoint::{AgentChoice, ConnectOptions, ListenOptions};
pub use hopwise_core::tcp::{Info, TcpConfig};
pub use hopwise_host::fork;
pub use hopwise_host::{OwnedReadHalf, OwnedWriteHalf, Stack, Stopped, TcpListener, TcpStream};

pub use network::{Network, NetworkBuilder, NetworkError};

/// The examples of the user's page are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Library;
