//! Every parameter in force: it answers "with which settings?" for any result. Two results are compared by the paths
//! and values of their settings.

use std::collections::BTreeMap;

use hopwise_agents::Profile;
use hopwise_agents::spec::InForce;
use hopwise_core::tcp::{BufferLimits, RecoveryStyle, RttMeasure, TcpConfig};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::hex;
use crate::routing::RoutingConfig;
use crate::rules::Rule;
use crate::scenario::check::Agents;
use crate::scenario::point::plain;
use crate::scenario::schema::{
    ChannelConfig, GatewayConfig, HostConfig, Mac, Mobility, RadioConfig, RunConfig, SEGMENT_BYTES,
    ScenarioFile, Shape, Topology, TrafficFlows,
};
use crate::scenario::{flows, motion, nodes};
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
    traffic: Vec<TrafficFlows>,
    rules: &'a [Rule<String>],
    gateway: Option<&'a GatewayConfig>,
    host: Option<&'a HostConfig>,
    run: RunSettings,
}

#[derive(Serialize)]
struct RunSettings {
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
        host,
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
        host: host.as_ref(),
        run: RunSettings { duration: *duration, warmup: *warmup },
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
    let is_the_kernels = world.0.is_live() && routing.protocol().live.is_kernel();
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
    let mut arm = match &agents.own {
        None => json!({ "receiver": agents.arm.receiver, "sender": [agents.arm.senders] }),
        Some(own) => json!({
            "receiver": own.receiver.to_string(),
            "sender": own.senders.each(),
            "parameters": {
                "receiver": parameters(own.receiver.parameters(profile)),
                "sender": parameters(own.senders.parameters(profile)),
            },
        }),
    };
    let shadows = agents.own.as_ref().map_or_else(Vec::new, |own| own.shadows.each());
    if !shadows.is_empty() {
        arm["shadows"] = json!(shadows);
    }
    if let Some(thin) = &agents.thin {
        arm["thin"] = thin.to_string().into();
        arm["parameters"]["thin"] = json!(parameters(thin.parameters(profile)));
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

fn sized(flow: &TrafficFlows, tcp: &Tcp) -> TrafficFlows {
    TrafficFlows { segment_bytes: Some(flow.segment_bytes_under(tcp)), ..flow.clone() }
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

/// The most differences in a message; settings with more of them belong to another trial.
const MOST_LINES: usize = 3;

/// Every path with its value, in the form that people write.
pub(crate) fn flatten(value: &Value) -> Vec<(String, String)> {
    let mut flat = Vec::new();
    collect("", value, &mut flat);
    flat
}

fn collect(path: &str, value: &Value, into: &mut Vec<(String, String)>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            entries.iter().for_each(|(key, value)| collect(&below(key), value, into));
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            items.iter().enumerate().for_each(|(nth, item)| collect(&below(&nth.to_string()), item, into));
        }
        Value::Array(items) => {
            into.push((path.to_owned(), items.iter().map(plain).collect::<Vec<_>>().join(", ")));
        }
        other => into.push((path.to_owned(), plain(other))),
    }
}

/// Differences between two settings: `run.duration is 10s here and 20s there`. None if there are none. The time grows
/// with the number of values, and not with its square: somebody else may have written the settings.
pub(crate) fn difference(here: &Value, there: &Value) -> Option<String> {
    if here == there {
        return None;
    }
    let (here, there) = (flatten(here), flatten(there));
    let (by_path_here, by_path_there) = (by_path(&here), by_path(&there));
    let mut lines = Vec::new();
    for (path, _) in here.iter().chain(&there) {
        let of =
            |all: &BTreeMap<&str, &str>| all.get(path.as_str()).map_or("nothing", |value| *value).to_owned();
        let (one, other) = (of(&by_path_here), of(&by_path_there));
        let line = format!("{path} is {one} here and {other} there");
        if one != other && !lines.contains(&line) {
            lines.push(line);
        }
        if lines.len() > MOST_LINES {
            break;
        }
    }
    let more = if lines.len() > MOST_LINES { ", and more" } else { "" };
    lines.truncate(MOST_LINES);
    (!lines.is_empty()).then(|| format!("{}{more}", lines.join(", ")))
}

/// The value at each path. Of a path that stands twice, since a key may have a dot, the first value counts.
fn by_path(flat: &[(String, String)]) -> BTreeMap<&str, &str> {
    flat.iter().rev().map(|(path, value)| (path.as_str(), value.as_str())).collect()
}

/// The number of values in settings, however deep they stand; maps, lists and keys count.
pub(crate) fn count(value: &Value) -> usize {
    match value {
        Value::Object(entries) => 1 + entries.values().map(|value| 1 + count(value)).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// About the bytes that a value takes, and the paths of all that is in it, flat and in a table. A map has nodes of up
/// to eleven entries, and most are half full.
pub(crate) fn memory(value: &Value) -> usize {
    memory_at(0, value)
}

fn memory_at(path: usize, value: &Value) -> usize {
    const NODE: usize = 640;
    /// The number of an item, and a dot.
    const NUMBER: usize = 8;
    size_of::<Value>()
        + match value {
            Value::Object(entries) => {
                let below = |key: &String| path.saturating_add(key.len() + 1);
                let own: usize =
                    entries.iter().map(|(key, value)| key.len() + memory_at(below(key), value)).sum();
                own + entries.len().div_ceil(6) * NODE
            }
            Value::Array(items) => items.iter().map(|item| memory_at(path + NUMBER, item)).sum(),
            Value::String(text) => 2 * path + text.len(),
            _ => 2 * path,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_name_counts_for_each_value_below_it() {
        let below = |name: &str| memory(&json!({ name: { "a": 1, "b": [2, "c"] } }));
        assert_eq!(below(&"x".repeat(1001)) - below("x"), 1000 * (1 + 2 * 3));
    }

    #[test]
    fn what_differs_is_told_by_its_path_and_both_values() {
        let one = json!({ "run": { "duration": "10s" }, "traffic": [{ "to": "n8" }], "same": [1, 2] });
        let other = json!({ "run": { "duration": "20s" }, "traffic": [{ "to": "n8", "start": "1s" }], "same": [1, 2] });
        assert_eq!(
            difference(&one, &other).as_deref(),
            Some("run.duration is 10s here and 20s there, traffic.0.start is nothing here and 1s there")
        );
        assert_eq!(difference(&one, &one), None);
    }

    #[test]
    fn settings_of_many_values_are_compared_in_one_pass() {
        let list = |last: u32| {
            let mut items = vec![json!(0); 300_000];
            items.push(json!({ "last": last }));
            json!(items)
        };
        let said = difference(&list(1), &list(2));
        assert_eq!(said.as_deref(), Some("300000.last is 1 here and 2 there"));
        assert_eq!(count(&json!({ "a": [1, 2, {}], "b": "text" })), 8);
    }

    #[test]
    fn of_many_differences_the_first_are_told() {
        let many = |value: u32| json!({ "a": value, "b": value, "c": value, "d": value, "e": value });
        let lines = difference(&many(1), &many(2)).expect("they differ");
        assert_eq!(
            lines,
            "a is 1 here and 2 there, b is 1 here and 2 there, c is 1 here and 2 there, and more"
        );
    }
}
