//! A TCP/IP that does no I/O, reads no clock and knows no ACK policy.
//!
//! Everything that handles packets is a [`Machine`]; [`Endpoint`] is the one that hosts connections. When to
//! acknowledge and how much to send are decided by [agents](agent), which are given a view and return a value.
//!
//! The page of this room follows.
#![doc = include_str!("../README.md")]

pub mod agent;
pub mod endpoint;
pub mod impairment;
pub mod ip;
mod machine;
pub mod random;
pub mod secrets;
mod seq;
pub mod tcp;
mod time;
mod timer_heap;
pub mod trace;
pub mod wire;

pub use endpoint::Endpoint;
pub use machine::{Cast, LinkEvent, LinkId, Machine, NextHop, Payload, QueueClass, Rx, Transmit};
pub use seq::Seq;
pub use time::Instant;
pub(crate) use time::Moment;
