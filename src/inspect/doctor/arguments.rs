//! The arguments of `hopwise doctor`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use hopwise_lab::units::{Rate, Time};

/// Find faults of this machine or of a fleet that keep a node from working or spoil a trial, each with its remedy
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise doctor
  hopwise doctor --interface 10.66.0.1                            # the one with that address
  hopwise doctor --interface eth1 --captures /var/lib/hopwise    # before a trial
  hopwise doctor --config configs/node.yaml     # also checks its links
  hopwise doctor --repair                       # restores what a killed daemon left changed
  hopwise doctor --json | jq '.findings[] | select(.verdict != \"ok\")'
  hopwise doctor --answer-acks 10.0.0.2:4715                      # on one host, and on the other:
  hopwise doctor --acks-to 10.0.0.2:4715
  hopwise doctor --fleet configs/inventory.yaml --limit roof --acks

docs/doctor.md lists all faults. Without --repair it changes nothing; --captures writes a file and removes it. Exit
status 1 means that a fault would keep a node or a trial from working, or that a host gave no answer.")]
pub(crate) struct Arguments {
    /// Configuration of a node, whose links are checked too
    #[arg(long, value_name = "FILE", conflicts_with = "fleet")]
    pub(super) config: Option<PathBuf>,
    /// Interface of the mesh, by its name or its address (default: all radios, without those that are down beside one
    /// that is up); repeatable
    #[arg(long = "interface", value_name = "IF")]
    pub(super) interfaces: Vec<String>,
    /// Folder for captures, whose disk is tried out: some MiB are written there, and removed
    #[arg(long, value_name = "FOLDER")]
    pub(super) captures: Option<PathBuf>,
    /// Rate at which captures grow: that of all links together
    #[arg(long, value_name = "RATE", default_value = "50mbit")]
    pub(super) capture_rate: Rate,
    /// Time to look at each radio; with traffic on it, a longer look finds rates that change
    #[arg(long, value_name = "TIME", default_value = "150ms")]
    pub(super) look: Time,
    /// Undo changes of killed daemons: restore kernel settings and TUN devices that were there before, and remove
    /// routes to hosts (`hopwise route`), rules of routing and rules of netfilter queues (`hopwise proxy`). Restore
    /// interfaces that a killed `hopwise mesh up` left
    #[arg(long, conflicts_with = "fleet")]
    pub(super) repair: bool,
    /// Folder of the daemons' state files
    #[arg(long, value_name = "FOLDER", default_value = "/run/hopwise")]
    pub(super) state: PathBuf,
    /// Inventory: examine all its hosts by ssh, and compare them
    #[arg(long, value_name = "FILE")]
    pub(super) fleet: Option<PathBuf>,
    /// Name of a host or a group of the inventory to take alone; repeatable
    #[arg(long, value_name = "NAME", requires = "fleet")]
    pub(super) limit: Vec<String>,
    /// Count ACKs from each host of the inventory to the one before it, too
    #[arg(long, requires = "fleet")]
    pub(super) acks: bool,
    /// Count ACKs alone: send data there, and compare the ACKs that come with those that were sent
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["fleet", "answer_acks"], value_parser = address)]
    pub(super) acks_to: Option<SocketAddr>,
    /// Answer one `--acks-to` at this address and port, and end
    #[arg(long, value_name = "ADDRESS", conflicts_with = "fleet", value_parser = address)]
    pub(super) answer_acks: Option<SocketAddr>,
    /// Longest time to wait for a host
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(super) within: Time,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
    /// End with status 0 whatever is found
    #[arg(long)]
    pub(super) exit_zero: bool,
    /// List all faults that it knows, as a page of Markdown
    #[arg(long)]
    pub(super) faults: bool,
    /// Tell the time of day alone
    #[arg(long, hide = true)]
    pub(super) tell_time: bool,
    /// Folder with the files of a machine in place of `/`, as they were recorded
    #[arg(long, value_name = "FOLDER", default_value = "/", hide = true)]
    pub(super) root: PathBuf,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an address and a port, such as 10.0.0.2:4715".to_owned())
}
