//! Tools that test agents: a ledger that plays scripts, and a miniature connection for senders. Each kind
//! has an operation model, too, which every registered agent must survive.
//!
//! The function [`of`](fn@of) begins the tests of an agent that no registry knows. It is the part for crates outside,
//! by the feature `testkit`.

#[cfg(test)]
pub(crate) mod base_station;
#[cfg(test)]
mod book;
#[cfg(test)]
mod every_receiver;
#[cfg(test)]
mod fields;
mod kit;
mod model;
pub(crate) mod receiver;
#[cfg(test)]
mod registered;
#[cfg(test)]
mod second_reading;
#[cfg_attr(not(test), expect(dead_code, reason = "tests of our own agents ask for more than the model does"))]
pub(crate) mod sender;
#[cfg_attr(not(test), expect(dead_code, reason = "tests of our own agents draw specs of all of them"))]
mod specs;

pub use kit::{Kit, of};
