//! Commands that inspect captures, traces and machines.

#![allow(missing_docs, reason = "parts of one command: what a name says needs no comment")]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod capture;
pub mod doctor;
mod pcapng;
mod trace;
