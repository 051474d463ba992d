//! `hopwise send` and `hopwise recv`, and their common parts: their carriers, their protocol, and their reports.

pub(crate) mod carrier;
pub(crate) mod flow;
pub(crate) mod output;
pub(crate) mod protocol;
pub(crate) mod recv;
pub(crate) mod report;
pub(crate) mod send;
