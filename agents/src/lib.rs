//! Receiver, sender and base-station agents: one algorithm, one file.
//!
//! A *receiver* agent decides when to acknowledge, a *sender* agent how much may be in flight, and a *base-station*
//! agent what is done for a link that fades. A [spec] such as `delayed:d=3` or `[cubic, limit:4]` names an agent, the
//! [registry] lists it, and [`StandardAgents`] makes it once per connection.
//!
//! Steps for a new receiver:
//!
//! 1. Write `receiver/NAME.rs`, as `receiver/delayed.rs` shows: the header with source, rule and deviations, `params!`,
//!    the descriptor, the rule, and a test in the text that `testkit/receiver.rs` explains. The rule is an `impl Holds`
//!    (see `receiver/hold.rs`), whose one needed function says until when an in-order segment waits.
//! 2. Add `pub mod NAME;` to `receiver.rs`.
//! 3. Run `HOPWISE_WRITE_README=1 cargo test -p hopwise-agents`: it tests all agents, and writes the README's table.
//!
//! Specs, `hopwise agents`, the checks of scenarios and the tests over all agents follow. The steps for a sender or a
//! base station are the same in their folders; each implements its contract in `hopwise_core::agent` itself.

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
