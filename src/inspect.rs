//! Commands that inspect captures, traces and machines.

pub(crate) mod capture;
pub(crate) mod doctor;
pub(crate) mod replay;
pub(crate) mod trace;
