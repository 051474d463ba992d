//! An inventory of ours: a list of hosts.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use hopwise_lab::keys;
use hopwise_lab::located::{Checked, Document, YamlPath};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Inventory;
use crate::fleet::inventory::{COMMAND, Destination, Host, problem_of_destination};
use hopwise_daemon::failure::Failure;

/// The hosts of a fleet.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InventoryFile {
    /// Hosts of the fleet.
    hosts: Vec<HostEntry>,
    /// Command that starts `hopwise` on the hosts, as their shell reads it.
    #[serde(default = "command")]
    command: String,
    /// Configuration file that ssh reads (default: the user's own).
    #[schemars(with = "Option<String>")]
    ssh_config: Option<PathBuf>,
}

/// A host.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HostEntry {
    /// Name of the host in tables and records.
    name: String,
    /// Destination as ssh takes it, with the user's own configuration (default: the name).
    ssh: Option<String>,
    /// Port of its ssh (default: that of ssh's configuration, or 22).
    #[schemars(extend("x-range" = "1 to 65535"))]
    port: Option<u16>,
    /// File with the private key for it (default: those of ssh's configuration).
    #[schemars(with = "Option<String>")]
    identity: Option<PathBuf>,
    /// The host is this machine, and is reached without ssh.
    #[serde(default)]
    local: bool,
    /// Control sockets of its daemons (default: all in /run/hopwise).
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    control: Vec<PathBuf>,
    /// Command that starts `hopwise` on this host (default: that of the file).
    command: Option<String>,
    /// Groups of hosts that it belongs to, for `--limit` (default: none).
    #[serde(default)]
    groups: Vec<String>,
    /// Address of this host in the mesh (default: that of its routing daemon).
    #[schemars(with = "Option<String>")]
    address: Option<Ipv4Addr>,
    /// Place of this host as `[x, y]`, in whole metres to the east and to the north of any point (default: not told).
    /// `hopwise doctor --fleet` compares distances with coverage classes.
    #[schemars(extend("x-range" = "-10000000 to 10000000"))]
    place_m: Option<[i32; 2]>,
}

fn command() -> String {
    COMMAND.to_owned()
}

hopwise_lab::schema_of!(InventoryFile);

/// The hosts of a document. Relative paths of files are those from its folder.
pub(super) fn read(document: &Document, folder: &Path) -> Result<Inventory, Failure> {
    checked(document, folder).map_err(Failure::Located)
}

fn checked(document: &Document, folder: &Path) -> Checked<Inventory> {
    keys::check(document, json_schema())?;
    let file: InventoryFile = document.read()?;
    let root = YamlPath::root();
    check_command(document, &root.key("command"), &file.command)?;
    let mut names = BTreeSet::new();
    let mut hosts = Vec::new();
    for (nth, entry) in file.hosts.iter().enumerate() {
        let at = root.key("hosts").index(nth);
        check(document, &at, entry)?;
        if !names.insert(&entry.name) {
            let problem = format_args!("`{}` is there already", entry.name);
            return Err(document.refuse(&at.key("name"), problem, "a name of its own for each host"));
        }
        hosts.push(host(&file, entry, folder));
    }
    Ok(Inventory { hosts, remarks: Vec::new() })
}

fn host(file: &InventoryFile, entry: &HostEntry, folder: &Path) -> Host {
    let HostEntry { name, ssh, port, identity, local, control, command, groups, address, place_m } =
        entry.clone();
    let destination = || Destination {
        host: ssh.unwrap_or_else(|| name.clone()),
        port,
        identity: identity.map(|path| resolved(folder, &path)),
        config: file.ssh_config.as_deref().map(|path| resolved(folder, path)),
        ..Destination::default()
    };
    let ssh = (!local).then(destination);
    let command = command.unwrap_or_else(|| file.command.clone());
    Host { name, ssh, control, command, groups, address, place_m }
}

/// A path from the folder; ssh itself knows what `~` means.
fn resolved(folder: &Path, path: &Path) -> PathBuf {
    if path.starts_with("~") { path.to_owned() } else { folder.join(path) }
}

fn check(document: &Document, at: &YamlPath, entry: &HostEntry) -> Checked {
    let refuse = |key: &str, what: &str, problem: &str, accepted: &str| {
        document.refuse(&at.key(key), format_args!("`{what}` is no {key} of a host: {problem}"), accepted)
    };
    if let Some(problem) = problem_of_destination(&entry.name) {
        return Err(refuse("name", &entry.name, problem, "one word, such as n1"));
    }
    if let Some(ssh) = &entry.ssh
        && let Some(problem) = problem_of_destination(ssh)
    {
        return Err(refuse("ssh", ssh, problem, "a host as ssh takes it, such as pi@10.0.0.7"));
    }
    if let Some(command) = &entry.command {
        check_command(document, &at.key("command"), command)?;
    }
    let of_ssh = [("ssh", entry.ssh.is_some()), ("port", entry.port.is_some())];
    let mut of_ssh = of_ssh.into_iter().chain([("identity", entry.identity.is_some())]);
    if entry.local
        && let Some((key, _)) = of_ssh.find(|(_, is_given)| *is_given)
    {
        let problem = format_args!("`{key}` has no effect: the host is this machine");
        return Err(document.refuse_key(&at.key(key), problem, "no such key beside `local: true`"));
    }
    Ok(())
}

fn check_command(document: &Document, at: &YamlPath, command: &str) -> Checked {
    if command.trim().is_empty() || command.contains(char::is_control) {
        let accepted = "words for the shell of the host, such as `sudo -n hopwise`";
        return Err(document.refuse(at, "this is no command", accepted));
    }
    Ok(())
}

pub fn is_accepted(document: &Document) -> Checked {
    checked(document, Path::new("")).map(drop)
}
