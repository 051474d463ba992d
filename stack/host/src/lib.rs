//! Drives machines on Linux: links over file descriptors, the clock, the poll loop, and streams for programs.
//!
//! A [`Link`] carries whole IP packets. A [`Driver`] moves them between links and one
//! [`Machine`](hopwise_core::Machine). A [`Stack`] is an endpoint with a driver on a thread of its own, and
//! [`TcpStream`] and [`TcpListener`] are tokio's traits over it. This is the only crate that reads a clock.
//!
//! The page of this crate follows.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod behind;
mod bpf;
mod bridge;
pub mod bringup;
mod capture;
mod clock;
#[cfg(feature = "confine")]
pub mod confine;
mod counters;
mod driver;
pub mod enclosure;
mod fault;
pub mod firewall;
mod first_links;
pub mod fork;
mod frames;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod journal;
mod kernel_tcp;
mod link;
mod namespace;
pub mod netlink;
mod nfqueue;
mod nft;
pub mod nl80211;
mod observer;
pub mod own_file;
#[cfg(feature = "pcap")]
mod pcap;
mod poller;
mod raw;
pub mod rfkill;
pub mod routing;
mod running;
mod shards;
pub mod signals;
mod stack;
mod stream;
mod sys;
mod tap;
#[cfg(test)]
mod testing;
pub mod transparent;
mod tun;
mod tun_fast;
mod vnet;
mod wire;

pub use behind::{Behind, run_behind};
pub use bridge::{BridgeConfig, Bridged};
pub use capture::{
    ArrivalFrames, Capture, CaptureCounts, CaptureError, CaptureSettings, CapturedLink, Comment, Comments,
    ConnNames, Explainer, Names, Tap, begin_pcapng, finish_checksum, numbered, pcapng_error,
};
pub use clock::{Clock, live_by_the_clock};
pub use counters::{LinkCounters, LinkDrop, LinkTally, Traffic};
pub use driver::{Answers, Driver, Iteration};
pub use fault::Fault;
pub use first_links::{FirstLinks, LinkTeller};
pub use frames::{EthernetHeader, Framing, KeptFrame};
pub use kernel_tcp::{KernelInfo, KernelTcp};
pub use link::{Arrived, Link, LinkError, LinkProperties, MAX_PACKET, Received, Sent, describe};
pub use namespace::{Namespace, NamespaceError, NamespaceId, set_switch};
pub use nfqueue::{AckQueue, Forward, ForwardConfig, left_queues, mtu_of, remove_left_queues};
pub use observer::{Direction, Observer, SeenPacket};
#[cfg(feature = "pcap")]
pub use pcap::{LiveCapture, Pace, Replay, check_filter};
pub use poller::{Interest, Poller, wait_for, wait_to_read, wait_until};
pub use raw::{Raw, RawConfig, holders};
pub use shards::{Shards, ShardsListener, shard_of};
pub use stack::{ConnectError, Drives, Stack, StackConfig, StackError, Stopped};
pub use stream::{OwnedReadHalf, OwnedWriteHalf, TcpListener, TcpStream};
pub use sys::bound_files;
pub use sys::driver_of;
pub use sys::{clock_is_synchronised, readable};
pub use tap::{TapConfig, TapDevice};
pub use tun::{TUN_CROSSINGS, Tun, TunConfig};
pub use tun_fast::TunFast;
pub use wire::Wire;

/// Random bytes for a key, from the kernel.
pub fn random_key() -> std::io::Result<[u8; 32]> {
    let mut key = [0; 32];
    getrandom::fill(&mut key)?;
    Ok(key)
}
