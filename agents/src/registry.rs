//! Every agent by name: the one table that specs, `hopwise agents` and the README are made from.

mod descriptor;
mod standard;

pub use descriptor::{Descriptor, Kind, Make};
pub use standard::{Profile, StandardAgents};

use crate::{receiver, sender};

/// What runs where a rule names no receiver.
pub const DEFAULT_RECEIVER: &str = "delayed";
/// What runs where a rule names no senders.
pub const DEFAULT_SENDERS: &str = "[cubic]";

/// Adding an agent is its file and its line here.
static ALL: [&Descriptor; 5] = [
    &receiver::immediate::DESCRIPTOR,
    &receiver::delayed::DESCRIPTOR,
    &receiver::dup_count::DESCRIPTOR,
    &sender::newreno::DESCRIPTOR,
    &sender::limit::DESCRIPTOR,
];

/// Every registered agent, receivers first.
pub fn all() -> &'static [&'static Descriptor] {
    &ALL
}

pub fn find(name: &str) -> Option<&'static Descriptor> {
    ALL.iter().copied().find(|descriptor| descriptor.name == name)
}

/// The names that are accepted where an agent of this kind is wanted.
pub fn names(kind: Kind) -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(move |descriptor| descriptor.kind() == kind).map(|descriptor| descriptor.name)
}
