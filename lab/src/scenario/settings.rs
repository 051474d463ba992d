//! Every parameter in force: it answers "with which settings?" for any result.

use std::collections::BTreeMap;

use hopwise_agents::Profile;
use hopwise_agents::spec::InForce;
use hopwise_core::tcp::{BufferLimits, RecoveryStyle, RttMeasure, TcpConfig};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::check::Agents;
use super::schema::{
    ChannelConfig, GatewayConfig, Mac, Mobility, RadioConfig, RunConfig, SEGMENT_BYTES, ScenarioFile, Shape,
    Topology, Traffic,
};
use super::{flows, motion, nodes};
use crate::hex;
use crate::routing::RoutingConfig;
use crate::rules::Rule;
use crate::sim::RoutingPlan;
use crate::tcp::Tcp;
use crate::units::Time;
use crate::words::Word;
use crate::world::World;

/// The file with its defaults, without the keys that do not concern a single run.
#[derive(Serialize)]
struct InFile<'a> {
    world: Word<World>,
    topology: &'a Topology,
    mobility: Option<Mobility>,
    radio: &'a RadioConfig,
    channel: &'a ChannelConfig,
    mac: Mac,
    routing: RoutingConfig,
    tcp: Tcp,
    traffic: Vec<Traffic>,
    rules: &'a [Rule<String>],
    gateway: Option<&'a GatewayConfig>,
    run: Run,
}

#[derive(Serialize)]
struct Run {
    duration: Time,
    warmup: Time,
}

/// The settings as JSON; keys are in alphabetical order, and absent ones are left out.
pub(super) fn in_force(
    file: &ScenarioFile,
    agents: &Agents,
    (routing, routes): (&RoutingConfig, &RoutingPlan),
) -> Value {
    // Without `..`: the compiler then asks for every new key, or runs that differ in it would have one name.
    let ScenarioFile {
        title: _,
        claims: _,
        world,
        topology: _,
        mobility,
        radio,
        channel,
        mac,
        routing: _,
        tcp: own_tcp,
        traffic,
        rules,
        gateway,
        arms: _,
        run: RunConfig { duration, warmup, seeds: _, margin: _, stop: _, baseline: _, figure: _ },
        matrix: _,
        sweep: _,
    } = file;
    let topology = topology(file);
    let in_file = InFile {
        world: *world,
        topology: &topology,
        mobility: mobility.clone().map(|mobility| Mobility {
            width_m: mobility.width_m.or(topology.width_m),
            height_m: mobility.height_m.or(topology.height_m),
            ..mobility
        }),
        radio,
        channel,
        mac: *mac,
        routing: routing_of(*world, routing),
        tcp: *own_tcp,
        traffic: traffic.iter().map(|flow| sized(flow, own_tcp)).collect(),
        rules,
        gateway: gateway.as_ref(),
        run: Run { duration: *duration, warmup: *warmup },
    };
    let mut settings = serde_json::to_value(in_file).expect("nothing in it but texts and numbers");
    without_nulls(&mut settings);
    settings["arm"] = arm(agents, own_tcp.profile.0);
    set_tcp(&mut settings["tcp"], own_tcp, (agents, routes));
    if world.0.is_live() {
        // Kernels ask for each other's addresses.
        settings["radio"]["arp"] = true.into();
    }
    add_hashes(&mut settings, file);
    settings
}

/// A kernel has its own constants.
fn routing_of(world: Word<World>, routing: &RoutingConfig) -> RoutingConfig {
    let is_the_kernels = world.0.is_live() && routing.protocol.is_the_kernels();
    if is_the_kernels { routing.clone() } else { routing.in_force() }
}

/// A run depends on the content of its files, and not on their names.
fn add_hashes(settings: &mut Value, file: &ScenarioFile) {
    if let Some(hash) = file.topology.file.as_deref().and_then(hash_of) {
        settings["topology"]["file_sha256"] = hash.into();
    }
    if let Some(hash) = file.channel.trace.as_deref().and_then(hash_of) {
        settings["channel"]["trace_sha256"] = hash.into();
    }
}

fn set_tcp(settings: &mut Value, own_tcp: &Tcp, (agents, routes): (&Agents, &RoutingPlan)) {
    let segment_bytes = own_tcp.segment_bytes.unwrap_or(SEGMENT_BYTES);
    let config = flows::tcp_config(own_tcp, segment_bytes, routes);
    match agents.own {
        Some(_) => settings["in_force"] = tcp(&config, own_tcp.profile.0),
        // The kernel's TCP takes nothing else of it.
        None => *settings = json!({ "in_force": { "nagle": config.nagle } }),
    }
}

fn arm(agents: &Agents, profile: Profile) -> Value {
    let is_transparent = agents.arm.transparent;
    let Some(agents) = &agents.own else {
        return json!({ "receiver": agents.arm.receiver, "sender": [agents.arm.senders] });
    };
    let mut arm = json!({
        "receiver": agents.receiver.to_string(),
        "sender": agents.senders.each(),
        "parameters": {
            "receiver": parameters(agents.receiver.parameters(profile)),
            "sender": parameters(agents.senders.parameters(profile)),
        },
    });
    let shadows = agents.shadows.each();
    if !shadows.is_empty() {
        arm["shadows"] = json!(shadows);
    }
    if is_transparent {
        arm["transparent"] = true.into();
    }
    if let Some(base_station) = &agents.base_station {
        arm["base_station"] = base_station.to_string().into();
        arm["parameters"]["base_station"] = json!(parameters(base_station.parameters(profile)));
    }
    arm
}

fn sized(flow: &Traffic, tcp: &Tcp) -> Traffic {
    Traffic { segment_bytes: Some(flow.segment_bytes_under(tcp)), ..flow.clone() }
}

fn topology(file: &ScenarioFile) -> Topology {
    let mut topology = file.topology.clone();
    if matches!(topology.kind, Shape::Chain | Shape::Cross | Shape::Grid) {
        topology.spacing_m.get_or_insert(nodes::SPACING_M);
    }
    topology
}

/// The content of a file determines the run as well as its name.
fn hash_of(name: &str) -> Option<String> {
    motion::read_text(name).ok().map(|text| hex(&Sha256::digest(text.as_bytes())))
}

fn parameters(all: Vec<InForce>) -> BTreeMap<String, String> {
    all.into_iter().map(|one| (format!("{}.{}", one.agent, one.name), one.value)).collect()
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            *map = std::mem::take(map).into_iter().filter(|(_, value)| !value.is_null()).collect();
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// All settings of a TCP that are not an agent's; a flow's segment size stands with the flow.
fn tcp(config: &TcpConfig, profile: Profile) -> Value {
    let TcpConfig { segment_bytes: _, sack, timestamps, window_scale, ecn, rack, recovery, undo, .. } =
        *config;
    let seconds = |time: std::time::Duration| Value::from(time.as_secs_f64());
    let buffer = |limits: BufferLimits| json!({ "initial": limits.initial, "max": limits.max });
    let entries = [
        ("profile_of_agents", Value::from(format!("{profile:?}").to_lowercase())),
        ("sack", sack.into()),
        ("timestamps", timestamps.into()),
        ("window_scale", window_scale.into()),
        ("ecn", ecn.into()),
        ("rack", rack.into()),
        (
            "recovery",
            match recovery {
                RecoveryStyle::Prr => "prr".into(),
                RecoveryStyle::Inflate { per_ack } => json!({ "inflate": { "per_ack": per_ack } }),
            },
        ),
        ("undo", undo.into()),
        ("limited_transmit", config.limited_transmit.into()),
        ("nagle", config.nagle.into()),
        ("path_mtu_discovery", config.path_mtu_discovery.into()),
        ("send_buffer", buffer(config.send_buffer)),
        ("recv_buffer", buffer(config.recv_buffer)),
        ("rto_min_s", seconds(config.rto.min)),
        ("rto_max_s", seconds(config.rto.max)),
        ("rto_initial_s", seconds(config.rto.initial)),
        (
            "rtt_tick_s",
            match config.rto.measure {
                RttMeasure::EveryAck => Value::Null,
                RttMeasure::OneTimed { tick } => seconds(tick),
            },
        ),
        ("keep_alive", config.keep_alive.is_some().into()),
        ("user_timeout_s", seconds(config.user_timeout)),
        ("syn_timeout_s", seconds(config.syn_timeout)),
        ("hop_limit", config.hop_limit.into()),
        ("dscp", config.dscp.into()),
        ("ack_merge", format!("{:?}", config.ack_merge).to_lowercase().into()),
        ("ack_ceiling_s", seconds(config.ack_ceiling)),
    ];
    let entries = entries.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(entries.map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}
