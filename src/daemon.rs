//! The common parts of the daemons: node, proxy and route.

use std::path::Path;

use crate::failure::{self, Failure};

pub(crate) mod confine;
pub(crate) mod control;
pub(crate) mod fuzzing;
pub(crate) mod log;
pub(crate) mod notify;
pub(crate) mod privileges;
pub(crate) mod reader;
pub(crate) mod state;
pub(crate) mod stations;

/// Message of `--check` for an accepted configuration.
pub(crate) fn accepted(path: &Path) -> Result<(), Failure> {
    failure::say(&format!("{}: accepted", path.display()))
}
