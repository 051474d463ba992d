//! What agents are tested with: a seat of the ledger that plays scripts, a miniature connection for senders,
//! and one operation model of each, which every registered agent has to survive.

pub(crate) mod base_station;
mod model;
pub(crate) mod receiver;
mod registered;
mod second_reading;
pub(crate) mod sender;
mod specs;
mod worked_cases;
