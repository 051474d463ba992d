//! Receiver, sender and base-station agents: one algorithm, one file.
//!
//! A *receiver* agent decides when to acknowledge, a *sender* agent how much may be in flight, and a
//! *base-station* agent what is done for a link that fades. Each is named
//! by a [spec], such as `delayed:d=3` or `[cubic, limit:4]`, listed in the [registry], and made by
//! [`StandardAgents`] once per connection. To add one: write its file and add its line in `registry.rs`.

pub mod base_station;
pub mod descriptor;
mod maker;
pub mod param;
pub mod receiver;
pub mod registry;
pub mod sender;
pub mod spec;
#[cfg(test)]
mod testkit;

pub use descriptor::Descriptor;
pub use maker::StandardAgents;
pub use param::Profile;
pub use spec::{SpecError, validate_base_station, validate_receiver, validate_senders, validate_shadows};
