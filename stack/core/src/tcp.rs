//! One TCP connection and its parts.

mod config;
pub(crate) mod connection;
pub(crate) mod cx;
mod ledger;
mod mtu;
mod progress;
mod ranges;
mod recovery;
mod recv_buffer;
mod ring;
mod rtt;
mod scoreboard;
mod send_buffer;
mod senders;
mod timers;

pub use config::{
    AckMerge, BufferLimits, HopCounting, KeepAlive, RecoveryStyle, RtoConfig, RttMeasure, TcpConfig,
};
pub use connection::{CloseReason, ConnectionStats, Flow, Info, Options};
pub use progress::BusyTime;
