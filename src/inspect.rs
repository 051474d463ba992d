//! Commands that inspect captures, traces and machines.

pub(crate) mod capture;
pub(crate) mod doctor;
mod pcapng;
pub(crate) mod replay;
pub(crate) mod trace;
