//! Commands for scenarios: runs, trials, reports, claims, and lists of agents and keys.

#![allow(missing_docs, reason = "parts of one command: what a name says needs no comment")]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod agents;
pub mod air;
pub mod claims;
pub mod keys;
pub mod live;
pub mod report;
pub mod run;
pub mod scenario;
mod serving;
pub mod trial;
