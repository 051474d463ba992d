//! The hosts, groups and variables of an inventory of Ansible, from INI or YAML, and what they mean here.
//!
//! A variable of a host counts before those of its groups, one of a group before those of its parents, and that of
//! `all` last. Groups of the same depth count in the order of their names, the last of them first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::Inventory;
use crate::failure::Failure;
use crate::fleet::host::{COMMAND, Destination, Host, problem_of_destination};

/// The group of all hosts, and that of hosts without another one.
pub(super) const ALL: &str = "all";
const UNGROUPED: &str = "ungrouped";

/// The variables with a meaning here, those with an older name of Ansible last.
const KNOWN: [&str; 15] = [
    "ansible_host",
    "ansible_user",
    "ansible_port",
    "ansible_ssh_private_key_file",
    "ansible_connection",
    "ansible_become",
    "ansible_ssh_common_args",
    "ansible_ssh_extra_args",
    "hopwise_command",
    "hopwise_control",
    "hopwise_address",
    "ansible_ssh_host",
    "ansible_ssh_user",
    "ansible_ssh_port",
    "ansible_private_key_file",
];

/// The place of a text in a file, for errors.
pub(super) type Line = usize;

/// A variable's value, and the line that sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Set {
    pub(super) value: String,
    pub(super) line: Line,
}

pub(super) type Variables = BTreeMap<String, Set>;

#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) hosts: Vec<String>,
    /// Groups within it, each with the line that names it.
    pub(super) children: Vec<(String, Line)>,
    pub(super) variables: Variables,
}

/// All that an inventory says.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    pub(super) groups: BTreeMap<String, Group>,
    /// The hosts in the order of the file.
    pub(super) hosts: Vec<(String, Variables)>,
    /// Words of the file, other than variables, without a meaning.
    pub(super) unknown: BTreeSet<String>,
}

impl Groups {
    /// Adds a host to a group; its variables add to those that it has.
    pub(super) fn add(&mut self, group: &str, host: &str, variables: Variables) {
        let known = self.hosts.iter().position(|(name, _)| name == host);
        let at = known.unwrap_or_else(|| {
            self.hosts.push((host.to_owned(), Variables::new()));
            self.hosts.len() - 1
        });
        self.hosts[at].1.extend(variables);
        let of = &mut self.groups.entry(group.to_owned()).or_default().hosts;
        if !of.iter().any(|name| name == host) {
            of.push(host.to_owned());
        }
    }

    /// The meaning of it all.
    pub(super) fn inventory(&self, file: &str) -> Result<Inventory, Failure> {
        let depths = self.depths(file)?;
        let mut hosts = Vec::new();
        for (name, own) in &self.hosts {
            let of = self.groups_of(name, &depths);
            let mut variables = Variables::new();
            for group in &of {
                variables.extend(self.groups[*group].variables.clone());
            }
            variables.extend(own.clone());
            let is_meant = |group: &&&str| ![ALL, UNGROUPED].contains(*group);
            let groups = of.iter().filter(is_meant).map(|group| (*group).to_owned()).collect();
            hosts.push(Reader { file, name, variables: &variables }.host(groups)?);
        }
        Ok(Inventory { hosts, remarks: self.remarks(file) })
    }

    /// The groups of a host, the outermost first.
    fn groups_of<'a>(&'a self, host: &str, depths: &BTreeMap<&'a str, usize>) -> Vec<&'a str> {
        let has = |group: &Group| group.hosts.iter().any(|name| name == host);
        let mut found: BTreeSet<&str> =
            self.groups.iter().filter(|(_, group)| has(group)).map(|(name, _)| name.as_str()).collect();
        loop {
            let is_parent =
                |group: &Group| group.children.iter().any(|(child, _)| found.contains(child.as_str()));
            let more: Vec<_> = self
                .groups
                .iter()
                .filter(|(name, group)| !found.contains(name.as_str()) && is_parent(group))
                .map(|(name, _)| name.as_str())
                .collect();
            if more.is_empty() {
                break;
            }
            found.extend(more);
        }
        if let Some((all, _)) = self.groups.get_key_value(ALL) {
            found.insert(all);
        }
        let mut found: Vec<_> = found.into_iter().collect();
        // Sorting is stable: names decide among groups of one depth.
        found.sort_by_key(|name| if *name == ALL { 0 } else { depths.get(name).copied().unwrap_or(1) });
        found
    }

    /// The longest way from an outermost group to each; a group that is not there, or within itself, is refused.
    fn depths(&self, file: &str) -> Result<BTreeMap<&str, usize>, Failure> {
        let mut depths: BTreeMap<&str, usize> = self.groups.keys().map(|name| (name.as_str(), 1)).collect();
        for round in 0..=self.groups.len() {
            let mut has_changed = false;
            for (name, group) in &self.groups {
                let below = depths[name.as_str()] + 1;
                for (child, line) in &group.children {
                    let place = || format!("{file}:{line}");
                    let Some(depth) = depths.get_mut(child.as_str()) else {
                        let problem = format_args!("no group is called `{child}`: expected the name of one");
                        return Err(Failure::refused(place(), problem));
                    };
                    if *depth < below {
                        if round == self.groups.len() {
                            let problem = format_args!("the group `{child}` is within itself");
                            return Err(Failure::refused(place(), problem));
                        }
                        (*depth, has_changed) = (below, true);
                    }
                }
            }
            if !has_changed {
                break;
            }
        }
        Ok(depths)
    }

    /// One sentence about all variables and words without a meaning here.
    fn remarks(&self, file: &str) -> Vec<String> {
        let of_groups = self.groups.values().map(|group| &group.variables);
        let all = self.hosts.iter().map(|(_, own)| own).chain(of_groups);
        let mut ignored: BTreeSet<&str> =
            all.flat_map(BTreeMap::keys).map(String::as_str).filter(|name| !KNOWN.contains(name)).collect();
        ignored.extend(self.unknown.iter().map(String::as_str));
        if ignored.is_empty() {
            return Vec::new();
        }
        let names: Vec<_> = ignored.iter().map(|name| format!("`{name}`")).collect();
        vec![format!("{file}: without effect here: {}", names.join(", "))]
    }
}

/// The variables of one host.
struct Reader<'a> {
    file: &'a str,
    name: &'a str,
    variables: &'a Variables,
}

impl Reader<'_> {
    fn host(&self, groups: Vec<String>) -> Result<Host, Failure> {
        let ssh = if self.is_local()? { None } else { Some(self.destination()?) };
        let command = self.text(&["hopwise_command"])?.unwrap_or_else(|| COMMAND.to_owned());
        let command = if self.becomes_root()? { format!("sudo -n {command}") } else { command };
        let control = self.text(&["hopwise_control"])?.unwrap_or_default();
        let control = control.split([',', ' ']).filter(|path| !path.is_empty()).map(PathBuf::from).collect();
        let address = self.text(&["hopwise_address"])?.map(|text| {
            let problem = format_args!("`{text}` is no address of IPv4: expected one such as 10.66.0.1");
            text.parse().map_err(|_| self.refused(&["hopwise_address"], problem))
        });
        Ok(Host { name: self.name.to_owned(), ssh, control, command, groups, address: address.transpose()? })
    }

    fn destination(&self) -> Result<Destination, Failure> {
        let hosts = ["ansible_host", "ansible_ssh_host"];
        let host = self.text(&hosts)?.unwrap_or_else(|| self.name.to_owned());
        if let Some(problem) = problem_of_destination(&host) {
            let problem = format_args!("`{host}` is no host: {problem}: expected a name or an address");
            return Err(self.refused(&hosts, problem));
        }
        let ports = ["ansible_port", "ansible_ssh_port"];
        let port = self.text(&ports)?.map(|text| {
            let port = text.parse::<u16>().ok().filter(|port| *port > 0);
            port.ok_or_else(|| self.refused(&ports, format_args!("`{text}` is no port: expected 1 to 65535")))
        });
        let mut options = Vec::new();
        for name in ["ansible_ssh_common_args", "ansible_ssh_extra_args"] {
            options.extend(self.options(name)?);
        }
        let identity = self.text(&["ansible_ssh_private_key_file", "ansible_private_key_file"])?;
        Ok(Destination {
            host,
            user: self.text(&["ansible_user", "ansible_ssh_user"])?,
            port: port.transpose()?,
            identity: identity.map(PathBuf::from),
            config: None,
            options,
        })
    }

    fn is_local(&self) -> Result<bool, Failure> {
        let names = ["ansible_connection"];
        match self.text(&names)?.as_deref() {
            None | Some("ssh" | "smart" | "paramiko" | "ansible.builtin.ssh") => Ok(false),
            Some("local" | "ansible.builtin.local") => Ok(true),
            Some(other) => {
                let problem = format_args!("hosts by `{other}` are not reached: expected ssh or local");
                Err(self.refused(&names, problem))
            }
        }
    }

    fn becomes_root(&self) -> Result<bool, Failure> {
        let names = ["ansible_become"];
        match self.text(&names)?.map(|text| text.to_lowercase()).as_deref() {
            None | Some("false" | "no" | "off" | "0" | "") => Ok(false),
            Some("true" | "yes" | "on" | "1") => Ok(true),
            Some(other) => Err(self.refused(&names, format_args!("`{other}`: expected true or false"))),
        }
    }

    /// Words for ssh: options with a value, which Ansible hands on as they are.
    fn options(&self, name: &'static str) -> Result<Vec<String>, Failure> {
        let Some(text) = self.text(&[name])? else { return Ok(Vec::new()) };
        let refused = |problem: &str| {
            let accepted = "expected `-o NAME=VALUE`, `-F FILE`, `-J HOST` or `-i FILE`";
            Err(self.refused(&[name], format_args!("{problem}: {accepted}")))
        };
        let Some(words) = super::ini::words(&text) else { return refused("a quote does not end") };
        let mut each = words.iter();
        while let Some(word) = each.next() {
            let is_known = ["-o", "-F", "-J", "-i"].iter().any(|option| word.starts_with(option));
            if !is_known || (word.len() == 2 && each.next().is_none()) {
                return refused(&format!("`{word}` is no option with a value"));
            }
        }
        Ok(words)
    }

    /// The value of the first of these variables that is set.
    fn text(&self, names: &[&str]) -> Result<Option<String>, Failure> {
        let Some(set) = names.iter().find_map(|name| self.variables.get(*name)) else { return Ok(None) };
        if set.value.contains("{{") {
            let problem = "only Ansible reads templates: expected the value itself";
            return Err(self.refused(names, problem));
        }
        Ok(Some(set.value.clone()))
    }

    fn refused(&self, names: &[&str], problem: impl std::fmt::Display) -> Failure {
        let (file, host) = (self.file, self.name);
        match names.iter().find_map(|name| Some((name, self.variables.get(*name)?))) {
            Some((name, set)) => Failure::refused(
                format!("{file}:{}", set.line),
                format_args!("`{name}` of {host}: {problem}"),
            ),
            None => Failure::refused(file, format_args!("{host}: {problem}")),
        }
    }
}
