//! Refusals of keys that a live world cannot carry out, and of arms that the simulation cannot.

use hopwise_mesh::constants::OnlySimulated;
use hopwise_mesh::{LiveRouter, WhenFull};

use crate::live::air::SHORTEST_QUEUE;
use crate::located::{Checked, Document, YamlPath, either};
use crate::routing::names;
use crate::scenario::host::changes_hosts;
use crate::scenario::schema::{ArmConfig, ScenarioFile, TrafficFlows, TrafficKind};
use crate::world;
use crate::world::World;

/// Linux takes a maximum segment size of 88 bytes or more, of which timestamps take 12.
const SHORTEST_SEGMENT: u16 = 76;

/// Refuses the keys of a scenario that its live world cannot carry out.
pub(super) fn check(document: &Document, file: &ScenarioFile) -> Checked {
    let world = file.world.0;
    if !world.is_live() {
        return Ok(());
    }
    let root = YamlPath::root();
    let refuse = |at: &YamlPath, problem: &str, accepted: &str| {
        let problem = format!("{problem} in the world {}", world.name());
        Err(document.refuse(at, problem, &format!("{accepted}, or world: sim")))
    };
    if world == World::Mesh && file.routing.protocol().live != LiveRouter::Nobody {
        let at = root.key("routing").key("protocol");
        return refuse(&at, "hosts route by themselves, such as by `hopwise route`,", "static");
    }
    if let Some((at, problem, accepted)) = not_routed(file) {
        return refuse(&at, problem, &accepted);
    }
    if let (World::Hwsim | World::Mesh, Some(_)) = (world, &file.topology.wired) {
        let problem = format!("radios have no wires beside them in the world {}", world.name());
        let accepted = "a topology without it, or world: netns";
        return Err(document.refuse_key(&root.key("topology").key("wired"), problem, accepted));
    }
    if let (World::Hwsim | World::Mesh, Some(key)) = (world, left_to_driver(file)) {
        let problem = format!("no `{key}` of a scenario reaches the driver in the world {}", world.name());
        return Err(document.refuse_key(&root.key("radio").key(key), problem, "no such key, or world: sim"));
    }
    if file.radio.when_full.0 == WhenFull::Hold {
        let at = root.key("radio").key("when_full");
        return refuse(&at, "a kernel's queue does not hold packets back", "drop");
    }
    if let (World::Netns, Some(at)) = (world, short_queue(file)) {
        let accepted = format!("{SHORTEST_QUEUE} or more");
        return refuse(&at, "devices of the kernel have longer queues", &accepted);
    }
    if let (World::Hwsim | World::Mesh, Some(_)) = (world, &file.gateway) {
        let problem = format!("no gateway runs in the world {}", world.name());
        let accepted = "a scenario without a gateway, or world: netns or sim";
        return Err(document.refuse_key(&root.key("gateway"), problem, accepted));
    }
    if !file.rules.is_empty() {
        let problem =
            format!("nodes have other addresses in the world {}, and no rule meets them", world.name());
        return Err(document.refuse_key(
            &root.key("rules"),
            problem,
            "a scenario without rules, or world: sim",
        ));
    }
    flows(document, file)
}

/// Refuses the flows that programs of a live world cannot send.
fn flows(document: &Document, file: &ScenarioFile) -> Checked {
    let world = file.world.0.name();
    for (nth, traffic) in file.traffic.iter().enumerate() {
        let at = YamlPath::root().key("traffic").index(nth);
        if traffic.dscp.is_some() {
            let problem = format!("programs do not mark their packets in the world {world}");
            return Err(document.refuse_key(
                &at.key("dscp"),
                problem,
                "a flow without `dscp`, or world: sim",
            ));
        }
        if traffic.kind == TrafficKind::Saturated {
            let problem = format!("a program does not see whether the radio has room in the world {world}");
            return Err(document.refuse(&at.key("kind"), problem, "cbr with a rate, or world: sim"));
        }
    }
    Ok(())
}

/// A key of the radios that a driver decides about.
fn left_to_driver(file: &ScenarioFile) -> Option<&'static str> {
    let radio = &file.radio;
    let given = [radio.rates.is_some(), radio.mcs.is_some(), radio.amsdu.is_some(), radio.cts_to_self];
    let mut keys = ["rates", "mcs", "amsdu", "cts_to_self"].into_iter().zip(given);
    keys.find(|(_, is_given)| *is_given).map(|(key, _)| key)
}

/// The queue of radios or of a wire that is too short for a device.
fn short_queue(file: &ScenarioFile) -> Option<YamlPath> {
    let wire = file.topology.wired.as_ref().and_then(|wired| wired.queue_packets);
    let (radio, root) = (file.radio.queue_packets, YamlPath::root());
    match (radio < SHORTEST_QUEUE, wire.is_some_and(|wire| wire < SHORTEST_QUEUE)) {
        (true, _) => Some(root.key("radio").key("queue_packets")),
        (false, true) => Some(root.key("topology").key("wired").key("queue_packets")),
        (false, false) => None,
    }
}

/// The part of `routing:` that daemons beside a kernel do not obey, with the problem and what would be accepted.
fn not_routed(file: &ScenarioFile) -> Option<(YamlPath, &'static str, String)> {
    let (routing, at) = (&file.routing, YamlPath::root().key("routing"));
    let is_kernel = routing.protocol().live.is_kernel();
    if file.world.0 == World::Hwsim && is_kernel {
        let problem = "the kernel's own protocol has its own constants";
        return (!routing.given().is_empty())
            .then(|| (routing.place(&at), problem, "no such key".to_owned()));
    }
    let (what, at) = routing.only_simulated(&at)?;
    let routed = names(|protocol| protocol.live == LiveRouter::Nobody || protocol.daemon.is_some());
    let (problem, accepted) = match what {
        OnlySimulated::Protocol if is_kernel => (
            "kernels speak this protocol over Wi-Fi alone, and there is none",
            format!("{}, world: hwsim", routed.join(", ")),
        ),
        OnlySimulated::Protocol => ("this protocol is only for simulations", either(&routed)),
        OnlySimulated::Rules => ("AODV does not follow the rules of ns-2", "rfc3561".to_owned()),
        OnlySimulated::Signed => ("messages are not signed", "false".to_owned()),
        OnlySimulated::HopLimit => {
            ("endpoints and kernels set the hop limit of their packets", "no such key".to_owned())
        }
        OnlySimulated::Forwarding => ("the kernel forwards packets and queues them", "false".to_owned()),
    };
    Some((at, problem, accepted))
}

/// True if the arm names the kernel's TCP at one of its ends.
pub(in crate::scenario) fn is_kernels(config: &ArmConfig) -> bool {
    config.sender.as_deref().and_then(world::kernel_algorithm).is_some()
        || config.receiver.as_deref().is_some_and(world::is_kernel_receiver)
}

/// The algorithm of an arm that runs the kernel's TCP; none for an arm with our agents.
pub(super) fn kernel_arm(
    document: &Document,
    file: &ScenarioFile,
    (at, config): (&YamlPath, &ArmConfig),
) -> Checked<Option<String>> {
    let receiver = config.receiver.as_deref().unwrap_or_default();
    let sender = config.sender.as_deref().unwrap_or_default();
    thinned_arm(document, file, (at, config))?;
    if !is_kernels(config) {
        return Ok(None);
    }
    let algorithm = world::kernel_algorithm(sender);
    let both = [at.key("receiver"), at.key("sender")];
    let (Some(algorithm), true) = (algorithm, world::is_kernel_receiver(receiver)) else {
        let problem = "the kernel's TCP has both ends of a connection";
        return Err(document.refuse_among(&both, problem, "receiver: kernel with sender: kernel:cubic"));
    };
    if !world::is_algorithm(algorithm) {
        let problem = format!("`{algorithm}` is no name of an algorithm");
        let accepted =
            "a name that sysctl net.ipv4.tcp_available_congestion_control lists, such as kernel:cubic";
        return Err(document.refuse(&at.key("sender"), problem, accepted));
    }
    let is_short = |traffic: &TrafficFlows| {
        traffic.is_over_tcp() && traffic.segment_bytes_under(&file.tcp) < SHORTEST_SEGMENT
    };
    if let Some(nth) = file.traffic.iter().position(is_short) {
        let problem = "the kernel's TCP does not cut its data into segments as short as this";
        let traffic = YamlPath::root().key("traffic").index(nth).key("segment_bytes");
        let accepted = format!("{SHORTEST_SEGMENT} or more");
        return Err(document.refuse_among(&[at.key("receiver"), traffic], problem, &accepted));
    }
    if file.world.0 == World::Sim {
        let problem = "the simulation has no kernel";
        return Err(document.refuse_among(&both, problem, "agents of Hopwise, or world: netns"));
    }
    for (key, is_given) in [("shadows", config.shadows.is_some()), ("transparent", config.transparent)] {
        if is_given {
            let problem = "the kernel's TCP has no agents";
            return Err(document.refuse_key(&at.key(key), problem, "an arm without this key"));
        }
    }
    Ok(Some(algorithm.to_owned()))
}

/// Refuses an arm that has no ACKs of a kernel to thin.
fn thinned_arm(document: &Document, file: &ScenarioFile, (at, config): (&YamlPath, &ArmConfig)) -> Checked {
    let (problem, accepted) = match (&config.thin, file.world.0) {
        (None, _) => return Ok(()),
        (_, World::Sim) => (
            "the simulation has no kernel whose ACKs `thin` could hold",
            "world: netns, hwsim or mesh, or no such key",
        ),
        _ if !is_kernels(config) => (
            "`thin` holds ACKs of the kernel's TCP, and this arm has ours",
            "receiver: kernel with sender: kernel:cubic, or no such key",
        ),
        _ if !file.traffic.iter().any(TrafficFlows::is_over_tcp) => {
            ("`thin` holds ACKs of TCP, and no flow is over TCP", "a flow over TCP, or no such key")
        }
        _ => return Ok(()),
    };
    Err(document.refuse_key(&at.key("thin"), problem.to_owned(), accepted))
}

/// Refuses an arm whose transparent nodes cannot be, or would carry nothing.
pub(super) fn transparent_arm(
    document: &Document,
    file: &ScenarioFile,
    (at, config): (&YamlPath, &ArmConfig),
) -> Checked {
    if !config.transparent {
        return Ok(());
    }
    let worlds = "false, or world: netns or hwsim";
    let (key, problem, accepted) = match file.world.0 {
        World::Sim => ("transparent", "the simulation has no kernel", worlds),
        World::Mesh => ("transparent", "hosts of a mesh have nodes of their own", worlds),
        _ if !file.traffic.iter().any(TrafficFlows::is_over_tcp) => {
            ("transparent", "no flow is over TCP", "false, or a flow over TCP")
        }
        _ if config.shadows.is_some() => {
            ("shadows", "the agents of a node have no shadows", "an arm without this key")
        }
        _ if file.host.as_ref().is_some_and(changes_hosts) => {
            let problem = "its programs run on a host behind the node, and `host` would change that host";
            ("transparent", problem, "false, or a `host` with rts_threshold alone")
        }
        _ => return Ok(()),
    };
    Err(document.refuse_key(&at.key(key), problem.to_owned(), accepted))
}
