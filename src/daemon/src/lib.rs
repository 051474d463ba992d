//! The common parts of the daemons: node, proxy and route.

#![allow(missing_docs, reason = "parts of one command: what a name says needs no comment")]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use std::path::Path;
use std::thread;

use hopwise_host::netlink;
use hopwise_lab::located::{Checked, Document, YamlPath};

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
    spawned.map(drop).map_err(Failure::during("start a thread"))
}

/// Gives this thread, and its threads to come, a priority in real time, if this user may.
pub fn live_by_the_clock() {
    if let Err(error) = hopwise_host::live_by_the_clock() {
        tracing::warn!(%error, "no real-time priority: on a busy machine this falls behind");
    }
}

/// Message of `--check` for an accepted configuration.
pub fn accepted(path: &Path) -> Result<(), Failure> {
    failure::say(&format!("{}: accepted", path.display()))
}

/// Checks the name of a network interface in a file. `all` and `default` stand for every interface where the kernel's
/// switches are, the kernel makes a number of `%d`, and programs take a name that begins with `-` for an option.
pub fn check_interface(document: &Document, at: &YamlPath, name: &str) -> Checked {
    let is_letter = |letter: char| letter.is_ascii_graphic() && !"/:%\"\\*".contains(letter);
    let is_reserved = [".", "..", "all", "default"].contains(&name) || name.starts_with('-');
    if (1..=15).contains(&name.len()) && name.chars().all(is_letter) && !is_reserved {
        return Ok(());
    }
    let problem = format!("`{name}` is no name of an interface");
    let accepted =
        "1 to 15 letters and digits, such as wlan0; not `all` or `default`, and no `-` at the beginning";
    Err(document.refuse(at, problem, accepted))
}

/// Checks the names of interfaces in a list, where each stands once.
pub fn check_interfaces(document: &Document, at: &YamlPath, names: &[String]) -> Checked {
    for (nth, name) in names.iter().enumerate() {
        check_interface(document, &at.index(nth), name)?;
        if names[..nth].contains(name) {
            return Err(document.refuse(&at.index(nth), format!("`{name}` is there twice"), "each once"));
        }
    }
    Ok(())
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
