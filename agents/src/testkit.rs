//! Tools that test agents: a ledger that plays scripts, and a miniature connection for senders. Each kind
//! has an operation model, too, which every registered agent must survive.

pub(crate) mod base_station;
mod model;
pub(crate) mod receiver;
mod registered;
mod second_reading;
pub(crate) mod sender;
mod specs;
mod worked_cases;
