//! Runs of a scenario in real time: processes on the nodes of a field, and the trial that directs them.

pub(crate) mod part;

mod busy;
mod children;
mod field;
mod kernel;
mod run;

pub(crate) use run::{Directed, direct};
