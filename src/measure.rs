//! `hopwise send` and `hopwise recv`, and their common parts: carriers, protocol, and what an end tells of its side.

pub(crate) mod carrier;
pub(crate) mod flow;
pub mod fuzzing;
pub(crate) mod output;
pub(crate) mod protocol;
pub(crate) mod rate;
pub(crate) mod recv;
pub(crate) mod send;
pub(crate) mod side;
