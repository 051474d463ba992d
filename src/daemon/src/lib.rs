//! The common parts of the daemons: node, proxy and route.

#![allow(missing_docs, reason = "parts of one command: what a name says needs no comment")]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use std::path::Path;
use std::thread;

use hopwise_host::netlink;
use hopwise_lab::located::{Document, YamlPath};

use crate::failure::Failure;

pub mod confine;
pub mod control;
pub mod failure;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod log;
pub mod notify;
pub mod numbers;
pub mod own_files;
pub mod privileges;
pub mod shell;
pub mod signals;
pub mod stations;
pub mod table;
pub mod talk;
pub mod thin;
pub mod watchdog;

/// Starts a thread that ends by itself.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map(drop).map_err(|error| Failure::failed("start a thread", error))
}

/// Message of `--check` for an accepted configuration.
pub fn accepted(path: &Path) -> Result<(), Failure> {
    failure::say(&format!("{}: accepted", path.display()))
}

/// The first of a file's interfaces that this machine does not have, where the file names it.
pub fn absent<'a>(
    document: &Document,
    mut interfaces: impl Iterator<Item = (YamlPath, &'a str)>,
) -> Option<Failure> {
    let (at, name) = interfaces.find(|(_, name)| netlink::index_of(name).is_err())?;
    let problem = format!("no interface is called `{name}` here; name one that `ip link` shows");
    Some(Failure::Unmet { place: document.pointing_at(&at), problem })
}
