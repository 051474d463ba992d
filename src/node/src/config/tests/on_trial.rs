//! The TCP and agent settings of a node's file also hold in a scenario, unchanged.

use hopwise_core::Instant;
use hopwise_core::tcp::{CloseReason, HopCounting, Info, TcpConfig};
use hopwise_lab::programs::ProgramFlow;
use hopwise_lab::scenario::{Scenario, json_schema};
use hopwise_lab::sim::{Plan, Simulation, TrafficPlan};
use serde_yaml::Value;

use super::parsed;

/// Every key of the block, each with a value that no profile has.
const NODE: &str = "\
node: { name: a, address: 10.7.0.2/24 }
links: [{ kind: tun, name: hw0 }]
tcp:
  profile: ns2
  segment_bytes: 536
  least_path_mtu: 600
  sack: true
  timestamps: true
  window_scale: false
  ecn: true
  nagle: true
  send_buffer: 16KiB
  recv_buffer: 32KiB
  rto_min: 300ms
  keep_alive: 1min
  user_timeout: 3s
  ack_merge: read
  hops: 7
  peers_hop_limit: 128
rules:
  - match: { direction: in, port: 5001, from: 10.0.0.0/8 }
    receiver: \"delayed:d=3,hold=80ms\"
  - match: { direction: out, to: 10.0.0.3 }
    sender: [newreno, \"limit:8\"]
    shadows: [immediate]
";

/// No frame comes through from the sixth second on.
const WORLD: &str = "\
topology: { kind: chain, hops: 2 }
channel: { outages: [{ from: n0, to: n1, begins: 6s, ends: 60s }] }
traffic: [{ from: first, to: last, kind: bulk }]
arms: { x: {} }
run: { duration: 30s }
";

/// A scenario with the unchanged blocks of the node's file.
fn on_trial(node: &str) -> Scenario {
    let whole: Value = serde_yaml::from_str(node).expect("it is YAML");
    let blocks: serde_yaml::Mapping = ["tcp", "rules"]
        .into_iter()
        .filter_map(|key| Some((Value::from(key), whole.get(key)?.clone())))
        .collect();
    let blocks = serde_yaml::to_string(&blocks).expect("it can be written");
    Scenario::parse("trial.yaml", &format!("{WORLD}{blocks}"), &[]).expect("it is read")
}

fn plan(node: &str) -> Plan {
    on_trial(node).plan(Some("x"), 1).expect("it is accepted").plan
}

/// The state of the flow's end at a node, while it exists.
fn info(simulation: &mut Simulation, node: usize, seconds: u64) -> Option<Info> {
    let now = Instant::from_secs(seconds);
    simulation.run_until(now);
    let host = &simulation.world().machines()[node];
    let conn = host.flows().first().and_then(ProgramFlow::conn)?;
    host.node().endpoint().info(now, conn).ok()
}

#[test]
fn a_nodes_tcp_and_rules_run_in_a_scenario_as_they_stand() {
    let of_node = parsed(NODE).expect("a node's file");
    let plan = plan(NODE);
    assert_eq!(plan.rules, of_node.core_rules());
    assert_eq!(plan.profile, of_node.tcp.profile.0);
    let TrafficPlan::Tcp(flow) = &plan.flows[0].traffic else { panic!("the flow is TCP") };
    // A scenario's peers are its own nodes.
    let hops = HopCounting { configured: Some(7), peers_hop_limit: 64 };
    assert_eq!(*flow.tcp, TcpConfig { hops, ..of_node.tcp.config() });

    let mut simulation = Simulation::new(&plan).expect("it can be built");
    let (sender, receiver) = (info(&mut simulation, 0, 5), info(&mut simulation, 2, 5));
    let (sender, receiver) = (sender.expect("it is open"), receiver.expect("it is open"));
    for end in [&sender, &receiver] {
        assert!(end.has_sack && end.has_timestamps && end.has_ecn);
        assert_eq!((end.snd_mss, end.window_scales), (536, None));
        assert!(end.send_buffer_bytes <= 16 << 10 && end.recv_buffer_bytes <= 32 << 10);
    }
    assert!(receiver.stats.bytes_received > 100_000, "{:?}", receiver.stats);
    assert_eq!(receiver.receiver, "delayed:d=3,hold=80ms");
    assert_eq!((&*sender.senders, &*sender.shadows), ("[newreno, limit:8]", "[immediate]"));
    // The user timeout expires in the outage.
    let sender = info(&mut simulation, 0, 25).expect("its program has not closed it");
    assert_eq!(sender.closed, Some(CloseReason::TimedOut));
}

#[test]
fn the_blocks_of_a_node_that_this_test_takes_have_every_key() {
    let whole: Value = serde_yaml::from_str(NODE).expect("it is YAML");
    let schema = json_schema();
    let known = schema["$defs"]["Tcp"]["properties"].as_object().expect("the keys");
    for key in known.keys() {
        assert!(whole["tcp"].get(key).is_some(), "{key}");
    }
}

#[test]
fn the_example_of_a_node_can_be_put_on_trial() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/node.yaml");
    let text = std::fs::read_to_string(path).expect("the example is there");
    assert_eq!(plan(&text).rules.len(), 2);
}

#[test]
fn both_refuse_the_same_values_with_the_same_words() {
    for (block, wanted) in [
        ("tcp: { hops: 0 }", "hops: 0 is out of range"),
        ("tcp: { recv_buffer: 1KiB }", "recv_buffer: 1KiB is out of range"),
        ("tcp: { ack_merge: on }", "`on` does not fit here"),
        ("tcp: { profile: 5 }", "`5` does not fit here"),
        ("rules: [{ match: { direction: up } }]", "`up` does not fit here"),
    ] {
        let node = super::refused(&format!("{}{block}\n", super::LEAST));
        let scenario = Scenario::parse("trial.yaml", &format!("{WORLD}{block}\n"), &[]);
        let scenario =
            scenario.and_then(|scenario| scenario.under("x")).expect_err("it is refused").to_string();
        assert!(node.contains(wanted) && scenario.contains(wanted), "{block}: {node} {scenario}");
    }
}
