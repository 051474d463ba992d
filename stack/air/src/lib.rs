//! An 802.11 world in discrete events. It drives [machines](hopwise_core::Machine) and knows nothing above them.
//!
//! The page of this room follows.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod airtime;
mod arp;
pub mod channel;
pub mod dcf;
mod deadlines;
mod frame;
pub mod frames;
mod live;
pub mod medium;
pub mod motion;
mod outside;
pub mod phy;
mod radio;
pub mod radiotap;
pub mod random;
#[doc(hidden)]
pub mod saturated;
pub mod truncate;
pub mod waits;
mod whole;
mod world;

pub use arp::Arp;
pub use live::{Lateness, Live, LiveProgress};
pub use outside::{FrameRefusal, OutsideDevices, name_of};
pub use whole::WholeRadio;
pub use world::{
    CategoryOf, EndingSink, FrameSink, MoreOf, RadioNews, RadioSink, RadioWorld, SpentOf, StationConfig,
    TraceSink, WireConfig, WorldConfig,
};
