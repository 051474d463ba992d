//! `hopwise mesh hosts`: the hosts that an inventory names, and how each is reached.

use std::path::PathBuf;

use clap::Args;

use crate::failure::{Failure, say};
use crate::fleet::host::{Destination, Host};
use crate::fleet::inventory::Chosen;
use crate::table::{self, known};

/// List the hosts of an inventory, and how each is reached; no host is asked
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise mesh hosts --inventory configs/inventory.yaml
  hopwise mesh hosts --inventory /etc/ansible/hosts --limit roof --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    chosen: Chosen,
    /// Print a JSON list
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Some(hosts) = arguments.chosen.hosts()? else {
        return Err(Failure::refused("--inventory", "expected the file that names the hosts"));
    };
    if arguments.json {
        let text = serde_json::to_string(&hosts).map_err(|error| Failure::failed("write JSON", error))?;
        return say(&text);
    }
    let columns = ["host", "ssh", "user", "port", "identity", "control", "command", "groups", "address"];
    say(&table::lines(&columns, &hosts.iter().map(cells).collect::<Vec<_>>()).join("\n"))
}

fn cells(host: &Host) -> Vec<String> {
    let here = Destination::at("this machine");
    let Destination { host: destination, user, port, identity, .. } = host.ssh.as_ref().unwrap_or(&here);
    let paths = |paths: &[PathBuf]| {
        let all: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        known((!all.is_empty()).then(|| all.join(", ")))
    };
    vec![
        host.name.clone(),
        destination.clone(),
        known(user.as_ref()),
        known(*port),
        known(identity.as_ref().map(|path| path.display())),
        paths(&host.control),
        host.command.clone(),
        known((!host.groups.is_empty()).then(|| host.groups.join(", "))),
        known(host.address),
    ]
}
