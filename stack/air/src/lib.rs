//! An 802.11 world in discrete events. It drives [machines](hopwise_core::Machine) and knows nothing above them.

pub mod dcf;
mod deadlines;
pub mod medium;
pub mod phy;
pub mod random;
mod wire;
mod world;

pub use wire::WireConfig;
pub use world::{Seat, TraceSink, World, WorldConfig};
