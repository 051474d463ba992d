//! Brings interfaces into the state that a mesh needs, and back into the one that they had.
//!
//! A [`Plan`] is a list of steps, made from what a file wants and from what the kernel has. Each step is a change of
//! one interface, with the changes that undo it. These are on disk ([`Record`]) before the step is made. They are
//! undone in reverse order, whoever does it: the process that made them, `hopwise mesh down`, or `hopwise doctor`.

mod change;
mod line;
mod managers;
mod plan;
mod record;
mod wanted;

pub use change::StepError;
pub use plan::{Plan, PlanError, Step, interface_with};
pub use record::{Config, Phase, Record, Undone, left_bringups, record_in};
pub use wanted::{Network, Wanted, WantedInterface};
