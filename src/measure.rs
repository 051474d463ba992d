//! What `hopwise send` and `hopwise recv` share: where they run, how they talk, and what they report.

pub(crate) mod carrier;
pub(crate) mod flow;
pub(crate) mod protocol;
pub(crate) mod report;
