//! `hopwise send` and `hopwise recv`, and what they share: where they run, how they talk, and what they report.

pub(crate) mod carrier;
pub(crate) mod flow;
pub(crate) mod protocol;
pub(crate) mod recv;
pub(crate) mod report;
pub(crate) mod send;
