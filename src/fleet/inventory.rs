//! An inventory: the hosts of a fleet, from a file of ours or from one of Ansible.
//!
//! The file's form is found by its name and its first lines, as Ansible does: YAML has the ending `.yaml`, `.yml` or
//! `.json`, or begins with a key of YAML. All else is INI. YAML with a list `hosts` is ours. The words and
//! variables of Ansible without a meaning here are named, and have no effect.

mod ansible;
mod ini;
mod ours;
mod yaml;

use std::path::Path;

use clap::Args;
use hopwise_lab::located::Document;
use hopwise_lab::named;

use super::host::Host;
use crate::failure::{Failure, remark};
#[cfg(test)]
pub(crate) use ours::is_accepted;
pub(crate) use ours::json_schema;

/// No inventory comes near this.
const LARGEST: u64 = 16 << 20;

/// The inventory of a command, and the part of it that is meant.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Chosen {
    /// Inventory with the hosts: a file of ours (`hopwise schema inventory`), or one of Ansible (INI or YAML)
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<std::path::PathBuf>,
    /// Name of a host or a group to take alone; repeatable
    #[arg(long, value_name = "NAME", requires = "inventory")]
    limit: Vec<String>,
}

impl Chosen {
    /// The hosts of a file with one of these names or in one of these groups.
    pub(crate) fn of(inventory: &Path, limit: &[String]) -> Chosen {
        Chosen { inventory: Some(inventory.to_owned()), limit: limit.to_vec() }
    }

    /// The hosts that are meant; `None` without an inventory.
    pub(crate) fn hosts(&self) -> Result<Option<Vec<Host>>, Failure> {
        let Some(path) = &self.inventory else { return Ok(None) };
        let inventory = load(path)?;
        inventory.remarks.iter().for_each(|line| remark(line));
        inventory.limited(&self.limit).map(Some)
    }
}

/// The hosts of a file, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inventory {
    pub(crate) hosts: Vec<Host>,
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

/// Reads a file of any form.
pub(crate) fn load(path: &Path) -> Result<Inventory, Failure> {
    let name = path.display().to_string();
    let refused = |problem: &dyn std::fmt::Display| Failure::refused(name.clone(), problem);
    let text = named::read(path, LARGEST).map_err(|error| refused(&error))?;
    if text.starts_with("#!") {
        return Err(refused(
            &"a program: expected a file, such as what `ansible-inventory --list --yaml` prints of it",
        ));
    }
    parse(path, &text)
}

/// Reads a text; the file's path gives the form and the folder of relative paths.
pub(super) fn parse(path: &Path, text: &str) -> Result<Inventory, Failure> {
    let name = path.display().to_string();
    let inventory = if is_yaml(path, text) {
        let document = Document::parse(&name, text).map_err(Failure::Located)?;
        if document.value_at("hosts").is_some_and(|hosts| !hosts.is_mapping()) {
            ours::read(&document, path.parent().unwrap_or(Path::new("")))
        } else {
            yaml::read(&document).map(|groups| groups.inventory(&name)).map_err(Failure::Located)?
        }
    } else {
        ini::read(&name, text)?.inventory(&name)
    }?;
    if inventory.hosts.is_empty() {
        return Err(Failure::refused(name, "it names no host: expected at least one"));
    }
    Ok(inventory)
}

/// Returns whether the file is YAML by its name or its first line with a content.
fn is_yaml(path: &Path, text: &str) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    if ending.is_some_and(|ending| ["yaml", "yml", "json"].contains(&ending.as_str())) {
        return true;
    }
    let mut lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    let first = lines.next().unwrap_or_default();
    // A host of INI has no colon at its end: `name:2222` has a port behind it.
    first == "---" || first.split(" #").next().is_some_and(|key| key.trim_end().ends_with(':'))
}

#[cfg(test)]
mod tests;
