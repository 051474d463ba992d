//! A host of a fleet, and the way to it.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::Serialize;

/// The command on a host, unless the inventory says otherwise.
pub(crate) const COMMAND: &str = "hopwise";

/// A host as an inventory names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// Absent for this machine.
    pub(crate) ssh: Option<Destination>,
    /// The control sockets of its daemons; all in the usual folder if none is named.
    pub(crate) control: Vec<PathBuf>,
    /// The words with which its shell starts `hopwise`.
    pub(crate) command: String,
    pub(crate) groups: Vec<String>,
    /// Its address in the mesh, if the inventory says it.
    pub(crate) address: Option<Ipv4Addr>,
}

#[cfg(test)]
impl Host {
    /// This machine, under a name and with another command.
    pub(crate) fn here(name: &str, command: &str) -> Host {
        let (name, command) = (name.to_owned(), command.to_owned());
        Host { name, ssh: None, control: Vec::new(), command, groups: Vec::new(), address: None }
    }
}

/// The end of a connection by ssh. The user's own configuration has all that is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Destination {
    /// A name or address as ssh takes it, also with a user.
    pub(crate) host: String,
    pub(crate) user: Option<String>,
    pub(crate) port: Option<u16>,
    /// A file with a private key.
    pub(crate) identity: Option<PathBuf>,
    /// A configuration in place of the user's own.
    pub(crate) config: Option<PathBuf>,
    /// More words for ssh.
    pub(crate) options: Vec<String>,
}

impl Destination {
    /// The destination that ssh takes as one word.
    pub(crate) fn at(host: &str) -> Destination {
        Destination { host: host.to_owned(), ..Destination::default() }
    }
}

/// The problem of a word that ssh would take for an option, or that is none.
pub(crate) fn problem_of_destination(host: &str) -> Option<&'static str> {
    if host.is_empty() {
        return Some("it is empty");
    }
    if host.starts_with('-') {
        return Some("it begins like an option of ssh");
    }
    host.contains(|letter: char| letter.is_whitespace() || letter.is_control())
        .then_some("it has a space in it")
}
