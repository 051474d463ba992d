//! The JSON that `ansible-inventory --list` prints: hosts with all their variables, and the groups that they are in.
//!
//! Ansible itself reads its INI and YAML forms, expands ranges of names, and gives each host its groups' variables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Inventory;
use crate::fleet::inventory::{COMMAND, Destination, Host, problem_of_destination};
use hopwise_daemon::failure::Failure;

/// The groups that every inventory of Ansible has.
const IMPLICIT_GROUPS: [&str; 2] = ["all", "ungrouped"];

/// The variables with a meaning here; the last four are older names of Ansible.
const VARIABLES: [&str; 16] = [
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
    "hopwise_place_m",
    "ansible_ssh_host",
    "ansible_ssh_user",
    "ansible_ssh_port",
    "ansible_private_key_file",
];

/// The most metres of a place, as in a file of ours.
const FARTHEST_M: u32 = 10_000_000;

type Variables = Map<String, Value>;

#[derive(Deserialize)]
struct HostList {
    #[serde(rename = "_meta")]
    meta: Meta,
    #[serde(flatten)]
    groups: BTreeMap<String, Group>,
}

#[derive(Deserialize)]
struct Meta {
    /// The variables of each host that has some.
    hostvars: BTreeMap<String, Variables>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Group {
    hosts: Vec<String>,
    children: Vec<String>,
    /// Variables that Ansible has not given to the hosts, which `--export` makes it do.
    vars: Variables,
}

/// Reads the list of a file. Hosts come in the order of their groups' names, then in the order within a group.
pub(super) fn read(file: &str, list: Value) -> Result<Inventory, Failure> {
    let list: HostList = serde_json::from_value(list).map_err(|error| {
        Failure::refused(
            file,
            format_args!("{error}: expected the JSON that `ansible-inventory --list` prints"),
        )
    })?;
    if let Some((name, _)) = list.groups.iter().find(|(_, group)| !group.vars.is_empty()) {
        let problem = format_args!(
            "the group `{name}` has `vars`: expected variables of hosts alone, as `ansible-inventory --list` prints \
             them without `--export`"
        );
        return Err(Failure::refused(file, problem));
    }
    let in_groups = list.groups.values().flat_map(|group| &group.hosts);
    let mut names = BTreeSet::new();
    let mut hosts = Vec::new();
    for name in in_groups.chain(list.meta.hostvars.keys()).filter(|name| names.insert(name.as_str())) {
        let variables = list.meta.hostvars.get(name).cloned().unwrap_or_default();
        hosts.push(HostReader { file, name, variables }.host(list.groups_of(name))?);
    }
    Ok(Inventory { hosts, remarks: list.remarks(file) })
}

impl HostList {
    /// The groups with a host, and the groups with these groups in them, in the order of their names.
    fn groups_of(&self, host: &str) -> Vec<String> {
        let mut groups = BTreeSet::new();
        let direct = self.groups.iter().filter(|(_, group)| group.hosts.iter().any(|name| name == host));
        let mut queue: Vec<&str> = direct.map(|(name, _)| name.as_str()).collect();
        while let Some(group) = queue.pop() {
            if groups.insert(group) {
                let parents = self
                    .groups
                    .iter()
                    .filter(|(_, parent)| parent.children.iter().any(|child| child == group));
                queue.extend(parents.map(|(name, _)| name.as_str()));
            }
        }
        groups.into_iter().filter(|group| !IMPLICIT_GROUPS.contains(group)).map(str::to_owned).collect()
    }

    /// One sentence about all variables without a meaning here.
    fn remarks(&self, file: &str) -> Vec<String> {
        let all = self.meta.hostvars.values().flat_map(Map::keys);
        let ignored: BTreeSet<_> = all.filter(|name| !VARIABLES.contains(&name.as_str())).collect();
        if ignored.is_empty() {
            return Vec::new();
        }
        let names: Vec<_> = ignored.iter().map(|name| format!("`{name}`")).collect();
        vec![format!("{file}: without effect here: {}", names.join(", "))]
    }
}

/// The variables of one host.
struct HostReader<'a> {
    file: &'a str,
    name: &'a str,
    variables: Variables,
}

impl HostReader<'_> {
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
        let (name, address) = (self.name.to_owned(), address.transpose()?);
        Ok(Host { name, ssh, control, command, groups, address, place_m: self.place_m()? })
    }

    fn place_m(&self) -> Result<Option<[i32; 2]>, Failure> {
        let names = ["hopwise_place_m"];
        let Some(value) = self.variables.get(names[0]) else { return Ok(None) };
        let place = serde_json::from_value::<[i32; 2]>(value.clone()).ok();
        let place = place.filter(|place| place.iter().all(|metres| metres.unsigned_abs() <= FARTHEST_M));
        let problem = format_args!(
            "{value} is no place: expected two whole numbers of metres, such as [0, 1200], -{FARTHEST_M} to \
             {FARTHEST_M}"
        );
        place.map(Some).ok_or_else(|| self.refused(&names, problem))
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
        let Some(words) = words(&text) else { return refused("a quote does not end") };
        let mut each = words.iter();
        while let Some(word) = each.next() {
            let is_option = ["-o", "-F", "-J", "-i"].iter().any(|option| word.starts_with(option));
            if !is_option || (word.len() == 2 && each.next().is_none()) {
                return refused(&format!("`{word}` is no option with a value"));
            }
        }
        Ok(words)
    }

    /// The value of the first of these variables that is set. A list is its texts with spaces between them.
    fn text(&self, names: &[&str]) -> Result<Option<String>, Failure> {
        let Some(value) = names.iter().find_map(|name| self.variables.get(*name)) else { return Ok(None) };
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            Value::Null | Value::Object(_) => String::new(),
        };
        if text.contains("{{") {
            let problem = "only Ansible reads templates: expected the value itself";
            return Err(self.refused(names, problem));
        }
        Ok(Some(text))
    }

    fn refused(&self, names: &[&str], problem: impl Display) -> Failure {
        let host = self.name;
        match names.iter().find(|name| self.variables.contains_key(**name)) {
            Some(name) => Failure::refused(self.file, format_args!("`{name}` of {host}: {problem}")),
            None => Failure::refused(self.file, format_args!("{host}: {problem}")),
        }
    }
}

/// The words of a text, as a shell cuts them. `None` if a quote does not end.
fn words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in text.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => word.get_or_insert_default().push(letter),
            None if letter == '"' || letter == '\'' => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
