//! Receiver, sender and base-station agents: one algorithm, one file.
//!
//! A *receiver* agent decides when to acknowledge. A *sender* agent decides how much may be in flight. A *base-station*
//! agent decides what happens to a flow while its link fades. A [spec] such as `delayed:d=3` or `[cubic, limit:4]`
//! names agents. The [registry] lists them, and [`StandardAgents`] makes them once per connection.
//!
//! Steps for a new receiver:
//!
//! 1. Write `receiver/NAME.rs` (`_` for `-`) after the example of `receiver/delayed.rs`: the header with source, rule
//!    and deviations, `params!`, the descriptor, the rule and a test. `testkit/receiver.rs` explains the language of
//!    tests. The rule implements [`Holds`](agent::Holds) (see `receiver/hold.rs`); its one required function decides
//!    until when an in-order segment waits. No hold is longer than [`LONGEST_MS`](agent::LONGEST_MS). An agent that
//!    uses the peer's window, the hops or the round trip says so in `needs`; its header says its rule while they are
//!    unknown. `receiver/dca.rs` uses all three. The hops that data crosses are `hops_from_peer.or(hops_to_peer)`.
//! 2. Add `pub mod NAME;` to `receiver.rs`, where `hopwise agents` should list it.
//! 3. Run `HOPWISE_WRITE_DOCS=1 cargo test -p hopwise-agents`: it tests all agents and writes the tables of
//!    `docs/agents.md`. `scripts/bench agents` measures the agent for the table of costs in
//!    `docs/notebook/performance.md`.
//!
//! A crate outside takes what it needs from [`agent`], and adds its agents to the [registry] of its program:
//! `docs/own-agent.md` shows these steps with a complete small agent, and the way from there into this crate.
//!
//! Specs, `hopwise agents`, the checks of scenarios and the tests over all agents then know the new agent. The steps
//! for senders and base stations are the same in their folders. Each agent there implements its contract in
//! `hopwise_core::agent` itself.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod base_station;
pub mod descriptor;
mod maker;
pub mod param;
pub mod receiver;
pub mod registry;
pub mod sender;
pub mod spec;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;

pub use descriptor::Descriptor;
pub use maker::StandardAgents;
pub use param::Profile;
pub use spec::{SpecError, validate_base_station, validate_receiver, validate_senders, validate_shadows};

/// All that the file of an agent uses: `use hopwise::agent::{…}` in a crate of one's own, `crate::agent` in this one.
///
/// `docs/own-agent.md` has a whole file. The contracts stand in `hopwise_core::agent`: a [`ReceiverAgent`] decides when
/// to acknowledge, and [`host`] makes one of a rule that [`Holds`]. A [`SenderAgent`] decides how much may be in
/// flight, a [`BaseStationAgent`] what happens to a flow while its link fades.
///
/// [`ReceiverAgent`]: agent::ReceiverAgent
/// [`host`]: agent::host
/// [`Holds`]: agent::Holds
/// [`SenderAgent`]: agent::SenderAgent
/// [`BaseStationAgent`]: agent::BaseStationAgent
pub mod agent {
    pub use hopwise_core::agent::*;
    pub use hopwise_core::{Instant, Seq, ignores};

    pub use crate::descriptor::{Descriptor, Make};
    pub use crate::param::{Args, Brief, Form, OFF, ON, Profile, Switch, choices, params};
    pub use crate::receiver::hold::{Decision, Holds, LONGEST_MS, host, since};
}

/// Floats as whole numbers: the fraction is cut off. Negative numbers and NaN become 0, and numbers that are too large
/// become the largest one. `hopwise_air::truncate` does this for worlds: the crate below both knows no float.
mod truncate {
    /// The whole part of a number.
    #[inline]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the ends are as the head of this module says")]
    pub(crate) const fn to_u64(number: f64) -> u64 {
        number as u64
    }

    /// The whole part of a number.
    #[inline]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the ends are as the head of this module says")]
    pub(crate) const fn to_u32(number: f64) -> u32 {
        number as u32
    }
}
