//! The arguments of `hopwise air`.

use clap::Args;
use hopwise_lab::units::Time;

use crate::scenario::OfRun;

/// Run real programs over a scenario's radios in real time: a network namespace with a TAP device for each
/// node
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise air configs/chain.yaml --set topology.hops=3
  ip netns exec chain-n0 ping 10.0.0.4          # meanwhile; the nodes are 10.0.0.1, 10.0.0.2, …
  ip netns exec chain-n3 iperf3 -s
  hopwise air configs/chain.yaml -- ip netns exec chain-n0 ping -c 3 10.0.0.3      # ends with its command
  hopwise air configs/chain.yaml --capture --for 60s --json

Frames that a node sends on its device air0 go over the scenario's radio: 802.11 with its collisions, losses, movement
and outages, as in `hopwise run`. The kernels of the nodes forward. With `routing: { protocol: static }` they have the
shortest routes; otherwise they have none until a routing program finds some. Flows and agents of the scenario are
ignored. It needs root, ends on SIGTERM, SIGINT, SIGQUIT or SIGHUP, and then removes its namespaces. The namespaces of
a killed one are removed by the next one with the same prefix.

Radios of 802.11n take packets by their DSCP, as Linux does (EDCA): EF and CS6 are voice, CS3 to CS5 video, and CS1 is
background. `ping -Q 0xb8` and `iperf3 -S 0xb8` mark theirs with EF.

COMMAND runs once the radios are there. They end with it, a signal ends both, and its status becomes ours. Where another
`hopwise air` has the names, it does not run.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) of: OfRun,
    /// Arm whose settings apply, if arms change settings (default: the first arm)
    #[arg(long, value_name = "A")]
    pub(super) arm: Option<String>,
    /// Prefix of the namespaces' names, before the node's name (default: the name of the scenario)
    #[arg(long, value_name = "P")]
    pub(super) prefix: Option<String>,
    /// Time after which it ends (default: until SIGTERM or SIGINT)
    #[arg(long = "for", value_name = "TIME")]
    pub(super) lasts: Option<Time>,
    /// Command to run beside the nodes' namespaces, in place of a wait; `ip netns exec NAME` runs one on a node
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "lasts")]
    pub(super) command: Vec<String>,
    /// Print one JSON object on standard output at the end and nothing else
    #[arg(long)]
    pub(super) json: bool,
    /// Write what each radio sends and decodes to NODE.pcapng, for Wireshark
    #[arg(long)]
    pub(super) capture: bool,
    /// Write how every radio saw every frame to frames.csv
    #[arg(long)]
    pub(super) frames: bool,
}
