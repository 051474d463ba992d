//! Settings of hosts: what each world has, and what it is told to have in their place.

use super::*;

const KERNELS: &str = "topology: { kind: chain, hops: 1 }\n\
    traffic: [{ from: first, to: last, kind: bulk }]\n\
    arms: { one: { receiver: kernel, sender: kernel:reno, host: { gro: false, txqueuelen: 9 } } }\n\
    world: netns\nrun: { duration: 3s }\n";

fn host_of(sets: &[&str]) -> HostPlan {
    planned(KERNELS, sets).expect("it is sound").host
}

#[test]
fn an_arm_gives_hosts_settings_in_words() {
    let words = |plan: &HostPlan| {
        plan.settings.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(words(&host_of(&[])), "gro off, txqueuelen 9");
    let more = ["host={ tso: true, sysctl: { net.ipv4.tcp_rmem: '4096  131072 6291456' } }"];
    assert_eq!(
        words(&host_of(&more)),
        "gro off, net.ipv4.tcp_rmem 4096 131072 6291456, tso on, txqueuelen 9"
    );
    let off = ["host={ sysctl: { net.ipv4.tcp_sack: false, net.ipv4.tcp_congestion_control: reno } }"];
    assert_eq!(
        words(&host_of(&off)),
        "gro off, net.ipv4.tcp_congestion_control reno, net.ipv4.tcp_sack 0, txqueuelen 9"
    );
    let of_radios = ["world=mesh", "host={ orig_interval: 500ms, mesh_rssi_threshold: -70, tx_power: 10 }"];
    assert_eq!(
        words(&host_of(&of_radios)),
        "gro off, mesh_rssi_threshold -70, orig_interval 500000us, tx_power 10, txqueuelen 9"
    );
    let mesh = ["world=mesh", "host={ rts_threshold: off, short_retries: 4 }"];
    assert_eq!(words(&host_of(&mesh)), "gro off, rts_threshold off, short_retries 4, txqueuelen 9");
    let commands = host_of(&["host={ before: { all: a, n1: b }, after: { n1: c } }"]);
    assert_eq!(commands.commands("n1"), [("a", ""), ("b", "c")]);
    assert_eq!(commands.commands("n0"), [("a", "")]);
}

#[test]
fn an_arm_adds_to_the_switches_and_commands_of_the_file() {
    let own = "arms.one.host={ sysctl: { net.ipv4.tcp_ecn: 1, net.ipv4.tcp_sack: 1 }, before: { n1: b } }";
    let plan = host_of(&[
        "host={ sysctl: { net.ipv4.tcp_sack: 0, net.ipv4.tcp_timestamps: 0 }, before: { all: a } }",
        own,
    ]);
    let settings: Vec<_> = plan.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    assert_eq!(settings, ["net.ipv4.tcp_ecn 1", "net.ipv4.tcp_sack 1", "net.ipv4.tcp_timestamps 0"]);
    assert_eq!(plan.commands("n1"), [("a", ""), ("b", "")]);
}

#[test]
fn a_simulated_radio_takes_the_threshold_that_a_driver_would() {
    for world in ["sim", "netns"] {
        let sets = owned(&["host={ rts_threshold: 300 }", &format!("world={world}")]);
        let scenario = Scenario::parse("a.yaml", CHAIN, &sets).expect("it is read");
        let armed = scenario.only(None).expect("it has one arm");
        assert_eq!(armed.settings()["radio"]["rts_threshold"], 300);
        assert!(armed.prepare(1).expect("a plan").host.is_empty());
    }
}

#[test]
fn what_a_world_lacks_is_refused_with_what_it_has() {
    let of_sim = refused(&["host={ gro: false }"]);
    assert!(of_sim.ends_with("has no hosts; no such key, or world: netns, hwsim or mesh"), "{of_sim}");
    let of_queue = refused(&["host={ txqueuelen: 9 }"]);
    assert!(
        of_queue.ends_with("has no hosts; radio.queue_packets, or world: netns, hwsim or mesh"),
        "{of_queue}"
    );
    for (set, instead) in [
        ("host={ orig_interval: 1s }", "routing.batman.orig_interval, or world: hwsim or mesh"),
        ("host={ aql_limit: 1ms }", "radio.queue.aql_high, or world: hwsim or mesh"),
        ("host={ mesh_hwmp_rootmode: 4 }", "no such key, or world: hwsim or mesh"),
    ] {
        assert!(refused(&[set]).ends_with(instead), "{}", refused(&[set]));
    }
    for (set, words) in [
        ("host={ orig_interval: 1s }", "radios have no driver in the world netns"),
        ("host={ orig_interval: 5ms }", "5ms is out of range"),
        ("host={ aql_limit: 66ms }", "66ms is out of range"),
        ("host={ mesh_rssi_threshold: 3 }", "3 is out of range"),
        ("host={ sysctl: { net.ipv4.ip_forward: 0 } }", "changes more than itself"),
        ("host={ sysctl: { net.ipv6.conf.all.hop_limit: 3 } }", "changes more than itself"),
        ("host={ sysctl: { net.ipv6.conf.n0.disable_ipv6: 1 } }", "a switch of one interface, such as"),
        ("host={ sysctl: { net.ipv4.tcp_rmem: [1, 2, 3] } }", "has a list or nothing"),
        ("host={ sysctl: { net.ipv4.tcp_sack: ~ } }", "has a list or nothing"),
        ("host={ fragmentation: 1001 }", "1001 is odd"),
        ("host={ short_retries: 4 }", "radios have no driver in the world netns"),
        ("host={ before: { n7: iw } }", "no node is called `n7`"),
        ("host={ sysctl: { kernel.panic: 1 } }", "`kernel.panic` is no such switch"),
        ("host={ sysctl: { 'net./../x': 1 } }", "is no such switch"),
        ("host={ short_retries: 0 }", "0 is out of range"),
    ] {
        match planned(KERNELS, &[set]) {
            Err(NoPlan::Refused(refusal)) => {
                assert!(shown(&refusal).contains(words), "{set}: {}", shown(&refusal));
            }
            other => panic!("{set}: {other:?}"),
        }
    }
}

#[test]
fn a_transparent_arm_refuses_settings_that_its_nodes_would_not_get() {
    let carried = "arms={ one: { transparent: true, host: { gro: false } } }";
    let Err(NoPlan::Refused(refusal)) = planned(KERNELS, &[carried]) else { panic!("it is refused") };
    assert!(shown(&refusal).contains("its programs run on a host behind the node"), "{}", shown(&refusal));
    let simulated = "arms={ one: { transparent: true, host: { rts_threshold: 300 } } }";
    assert!(planned(KERNELS, &[simulated]).is_ok());
}
