//! The common parts of the daemons: node, proxy and route.

use std::path::Path;

use hopwise_host::netlink;
use hopwise_lab::located::{Document, YamlPath};

use crate::failure::{self, Failure};

pub(crate) mod confine;
pub(crate) mod control;
pub(crate) mod fuzzing;
pub(crate) mod log;
pub(crate) mod notify;
pub(crate) mod privileges;
pub(crate) mod reader;
pub(crate) mod routes;
pub(crate) mod state;
pub(crate) mod stations;
pub(crate) mod watchdog;

/// Message of `--check` for an accepted configuration.
pub(crate) fn accepted(path: &Path) -> Result<(), Failure> {
    failure::say(&format!("{}: accepted", path.display()))
}

/// The first of a file's interfaces that this machine does not have, where the file names it.
pub(crate) fn absent<'a>(
    document: &Document,
    mut interfaces: impl Iterator<Item = (YamlPath, &'a str)>,
) -> Option<Failure> {
    let (at, name) = interfaces.find(|(_, name)| netlink::index_of(name).is_err())?;
    let problem = format!("no interface is called `{name}` here; name one that `ip link` shows");
    Some(Failure::Unmet { place: document.pointing_at(&at), problem })
}
