//! An inventory: the hosts of a fleet, from a file of ours or from one of Ansible.
//!
//! A file of ours is YAML with a list `hosts`. Of Ansible's forms, the JSON that `ansible-inventory --list` prints is
//! read. Its variables without a meaning here are named, and have no effect.

mod ansible;
mod ours;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use clap::Args;
use hopwise_lab::located::Document;
use hopwise_lab::{named, plain};

use hopwise_daemon::failure::{Failure, remark};
pub use ours::{is_accepted, json_schema};
use serde::Serialize;

/// No inventory comes near this.
const LARGEST: u64 = 16 << 20;

/// The inventory of a command, and the part of it that is meant.
#[derive(Args, Clone, Debug, Default)]
pub struct ChosenHosts {
    /// Inventory of hosts: a file of ours (`hopwise keys schema inventory`), or JSON of `ansible-inventory --list`
    #[arg(long, value_name = "FILE")]
    pub inventory: Option<PathBuf>,
    /// Name of a host or a group to take alone; repeatable
    #[arg(long, value_name = "NAME", requires = "inventory")]
    limit: Vec<String>,
}

impl ChosenHosts {
    /// The hosts of a file with one of these names or in one of these groups.
    pub fn of(inventory: &Path, limit: &[String]) -> ChosenHosts {
        ChosenHosts { inventory: Some(inventory.to_owned()), limit: limit.to_vec() }
    }

    /// The hosts that are meant; `None` without an inventory.
    pub fn hosts(&self) -> Result<Option<Vec<Host>>, Failure> {
        let Some(path) = &self.inventory else { return Ok(None) };
        let inventory = load(path)?;
        inventory.remarks.iter().for_each(|line| remark(line));
        inventory.limited(&self.limit).map(Some)
    }
}

/// The hosts of a file, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inventory {
    pub hosts: Vec<Host>,
    /// Sentences about what the file says without an effect here.
    pub(crate) remarks: Vec<String>,
}

impl Inventory {
    /// The hosts with one of these names or in one of these groups; all if none is given.
    fn limited(self, names: &[String]) -> Result<Vec<Host>, Failure> {
        let is_of = |host: &Host, name: &String| host.name == *name || host.groups.contains(name);
        if let Some(unknown) = names.iter().find(|name| !self.hosts.iter().any(|host| is_of(host, name))) {
            let all: Vec<_> = self.hosts.iter().map(|host| host.name.as_str()).collect();
            let problem = format_args!(
                "no host and no group is called `{unknown}`: expected one of {}, or one of their groups",
                all.join(", ")
            );
            return Err(Failure::refused("--limit", problem));
        }
        let is_meant = |host: &Host| names.is_empty() || names.iter().any(|name| is_of(host, name));
        Ok(self.hosts.into_iter().filter(is_meant).collect())
    }
}

/// Reads a file of either form.
pub(crate) fn load(path: &Path) -> Result<Inventory, Failure> {
    let text =
        named::read(path, LARGEST).map_err(|error| Failure::refused(path.display().to_string(), error))?;
    parse(path, &text)
}

/// Reads a text; the file's path gives the folder of relative paths.
pub(super) fn parse(path: &Path, text: &str) -> Result<Inventory, Failure> {
    let name = path.display().to_string();
    let inventory = match serde_json::from_str::<serde_json::Value>(text) {
        Ok(list) if list.get("_meta").is_some() => ansible::read(&name, list)?,
        _ => match Document::parse(&name, text) {
            Ok(document) if document.value_at("hosts").is_some_and(|hosts| !hosts.is_mapping()) => {
                ours::read(&document, path.parent().unwrap_or(Path::new("")))?
            }
            Err(refusal) if text.lines().any(|line| line.starts_with("hosts:")) => {
                return Err(Failure::Located(refusal));
            }
            _ => return Err(other_form(&name)),
        },
    };
    if inventory.hosts.is_empty() {
        return Err(Failure::refused(name, "it names no host: expected at least one"));
    }
    if let Some(problem) = inventory.hosts.iter().find_map(|host| plain::problem_of_name(&host.name)) {
        let problem = format_args!("the name of a host: {problem}; expected {}", plain::NAME);
        return Err(Failure::refused(name, problem));
    }
    Ok(inventory)
}

/// The refusal of a file that may be an inventory of Ansible in INI or YAML, or a program that prints one.
fn other_form(name: &str) -> Failure {
    let problem = format_args!(
        "this is no inventory of Hopwise: expected a list `hosts` in YAML (`hopwise keys schema inventory`). Of \
         Ansible's inventories, Hopwise reads the JSON of this command: \
         `ansible-inventory -i {name} --list > inventory.json`"
    );
    Failure::refused(name, problem)
}

#[cfg(test)]
mod tests;

// A host of a fleet, and the way to it.

/// The command on a host for which the inventory names none.
pub(crate) const COMMAND: &str = "hopwise";

/// A host as an inventory names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    pub name: String,
    /// Absent for this machine.
    pub ssh: Option<Destination>,
    /// The control sockets of its daemons; all in the usual folder if none is named.
    pub control: Vec<PathBuf>,
    /// The words with which its shell starts `hopwise`.
    pub command: String,
    pub groups: Vec<String>,
    /// Its address in the mesh, if the inventory says it.
    pub address: Option<Ipv4Addr>,
    /// Its place, in metres to the east and to the north.
    pub place_m: Option<[i32; 2]>,
}

#[cfg(test)]
impl Host {
    /// This machine, under a name and with another command.
    pub(crate) fn here(name: &str, command: &str) -> Host {
        let (name, command) = (name.to_owned(), command.to_owned());
        Host {
            name,
            ssh: None,
            control: Vec::new(),
            command,
            groups: Vec::new(),
            address: None,
            place_m: None,
        }
    }
}

/// The end of a connection by ssh. The user's own configuration has all that is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Destination {
    /// A name or address as ssh takes it, also with a user.
    pub host: String,
    pub user: Option<String>,
    pub port: Option<u16>,
    /// A file with a private key.
    pub identity: Option<PathBuf>,
    /// A configuration in place of the user's own.
    pub(crate) config: Option<PathBuf>,
    /// More words for ssh.
    pub(crate) options: Vec<String>,
}

impl Destination {
    /// The destination that ssh takes as one word.
    pub fn at(host: &str) -> Destination {
        Destination { host: host.to_owned(), ..Destination::default() }
    }
}

/// The problem of a word that ssh would take for an option, or that is none.
pub fn problem_of_destination(host: &str) -> Option<&'static str> {
    if host.is_empty() {
        return Some("it is empty");
    }
    if host.starts_with('-') {
        return Some("it begins like an option of ssh");
    }
    host.contains(|letter: char| letter.is_whitespace() || letter.is_control())
        .then_some("it has a space in it")
}
