//! Commands for scenarios: runs, trials, reports, claims, and lists of agents and keys.

pub(crate) mod agents;
pub(crate) mod certify;
pub(crate) mod claims;
pub(crate) mod explain;
pub(crate) mod live;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod trial;
