//! A TCP/IP stack without I/O, without a clock and without an ACK policy of its own.
//!
//! Everything that handles packets is a [`Machine`]; [`Endpoint`] is the one that hosts connections. [Agents](agent)
//! decide when to acknowledge and how much to send. Each is given a view and returns a value.
//!
//! The README of this folder follows.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod agent;
pub mod endpoint;
pub mod impairment;
pub mod ip;
mod link_facts;
mod machine;
mod named;
pub mod narrow;
pub mod queue;
pub mod random;
pub mod secrets;
mod seq;
pub mod tcp;
mod time;
mod timer_heap;
pub mod trace;
pub mod wire;

pub use endpoint::Endpoint;
pub use link_facts::{LinkChange, LinkFacts, NoStationAddress, StationAddress};
pub use machine::{Cast, LinkEvent, LinkId, Machine, NextHop, Payload, QueueClass, Rx, Transmit};
pub use seq::Seq;
pub use time::{Instant, Millis, Moment, micros, millis, nanos};
