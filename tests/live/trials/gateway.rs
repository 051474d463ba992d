//! Trials with a base station before a radio that fades: its proxy, and refusals of what live worlds lack.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::carried::without_tools;
use super::{HOPWISE, Scenario};

/// A second without a radio, for the kernel's TCP and for ours.
const FADE: &str = "\
topology: { kind: chain, hops: 1, spacing_m: 50, wired: { rate: 10mbit, delay: 20ms } }\n\
radio: { profile: ofdm-24mbps, rts_threshold: off }\n\
channel: { outages: [{ from: n0, to: n1, begins: 2s, ends: 3s }] }\n\
gateway: { node: n0, lead: 200ms }\n\
traffic: [{ from: first, to: last, kind: bulk }]\n\
arms:\n\
\x20 none: { receiver: kernel, sender: kernel:cubic }\n\
\x20 kernel: { receiver: kernel, sender: kernel:cubic, base_station: \"ack-hold:mode=corrected\" }\n\
\x20 ours: { receiver: delayed, base_station: \"ack-hold:mode=kick\" }\n\
run: { duration: 6s, warmup: 3s, seeds: 1 }\n";

fn count(record: &Value, what: &str) -> u64 {
    let counts = &record["result"]["live"]["proxied"]["n0"];
    counts[what].as_u64().unwrap_or_else(|| panic!("{what}: {record}"))
}

#[test]
fn the_proxy_of_a_gateway_hears_of_an_outage_and_holds_acks_or_copies_data() {
    needs!["nft"];
    for routing in ["static", "aodv"] {
        let scenario = Scenario::new("gateway", "netns", FADE);
        let output = scenario.trial(&["--set", &format!("routing.protocol={routing}")]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let records = scenario.records();
        let of =
            |arm: &str| records.iter().find(|record| record["arm"] == arm).expect("each arm has a record");
        assert_eq!(of("none")["result"]["live"].get("proxied"), None, "no proxy, no counts");
        for arm in ["kernel", "ours"] {
            let record = of(arm);
            assert!(record["result"]["total"]["goodput_kbps"].as_f64() > Some(100.0), "{record}");
            assert!(count(record, "packets") > 100 && count(record, "untouched") < 100, "{record}");
            assert!(count(record, "copied") > 0, "it cached data for the mobile: {record}");
        }
        assert!(count(of("kernel"), "held") > 0, "{}", of("kernel"));
        assert_eq!(count(of("ours"), "held"), 0, "a kick holds nothing: {}", of("ours"));
        let agent = &of("kernel")["settings"]["arm"]["base_station"];
        assert!(agent.as_str().is_some_and(|agent| agent.contains("mode=corrected")), "{agent}");
        assert_eq!(scenario.namespaces(), [""; 0]);
    }
}

/// No forecast and no news of the end: all comes by the scenario's errors.
#[test]
fn the_proxy_hears_what_the_scenario_s_forecast_says() {
    needs!["nft"];
    let scenario = Scenario::new("forecast", "netns", FADE);
    let arms = "arms={ kernel: { receiver: kernel, sender: kernel:cubic, base_station: ack-hold } }";
    let output = scenario.trial(&["--set", "gateway={ missing: 100%, late: 1h }", "--set", arms]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = &scenario.records()[0];
    assert_eq!((count(record, "held"), count(record, "copied")), (0, 0), "{record}");
    assert!(count(record, "packets") > 100, "{record}");
}

#[test]
fn a_proxy_that_cannot_start_ends_the_trial_with_its_error() {
    needs!["nft"];
    let scenario = Scenario::new("ungated", "netns", FADE);
    let output = without_tools(&scenario, &["--set", "gateway.node=n0"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("run a gateway's proxy: n0: "), "{said}");
    assert_eq!(scenario.namespaces(), [""; 0]);
}

#[test]
fn worlds_without_wires_refuse_a_gateway_at_its_place() {
    let scenario = Scenario::new("gateless", "netns", FADE);
    for world in ["hwsim", "mesh"] {
        for (wires, said) in
            [(", wired: { rate: 10mbit, delay: 1ms }", "have no wires beside"), ("", "no gateway runs")]
        {
            let topology = format!("topology={{ kind: chain, hops: 1{wires} }}");
            let mut command = Command::new(HOPWISE);
            command.arg("trial").arg(&scenario.file).args([
                "--set",
                &format!("world={world}"),
                "--set",
                &topology,
            ]);
            let output = command.output().expect("it starts");
            assert_eq!(output.status.code(), Some(2), "{world}");
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(text.contains(said), "{world}{wires}: {text}");
        }
    }
}

/// The last radio hears data for two seconds, and its ACKs are lost. The route breaks and is found anew: the answer
/// says what has arrived.
const BREAKS: &str = "\
topology: { kind: chain, hops: 2 }\n\
radio: { profile: dsss-11mbps }\n\
channel: { outages: [{ from: n2, to: n1, begins: 3s, ends: 5s, one_way: true }] }\n\
traffic: [{ from: first, to: last, kind: bulk }]\n\
arms: { pgy: { receiver: dup-count(delayed), sender: [newreno, \"elfn:probe=200ms\", pgy] } }\n\
run: { duration: 10s, warmup: 1s, seeds: 1 }\n";

/// Returns whether the sender took a number from routing, and where it has its hops from.
fn hears_of_arrivals(scenario: &Scenario, routing: &str) -> (bool, Value) {
    let mut command = Command::new(HOPWISE);
    command.arg("run").arg(&scenario.file).args(["--world", "netns", "--set", routing, "--trace", "--json"]);
    command.args(["--late", "10s", "--busy", "100%", "--out"]).arg(&scenario.out);
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let trace = fs::read_to_string(scenario.out.join("n0.trace.txt")).expect("a trace was asked for");
    let _ = fs::remove_dir_all(&scenario.out);
    (trace.contains("highest-ack-raised"), result["flows"][0]["hops_source"].clone())
}

#[test]
fn a_sender_hears_from_the_routing_daemons_what_has_arrived() {
    needs![];
    let scenario = Scenario::new("ackseq", "netns", BREAKS);
    let quiet = hears_of_arrivals(&scenario, "routing={ protocol: aodv }");
    assert_eq!(quiet, (false, "ttl".into()), "nobody has asked for arrivals");
    // A machine may be so slow that a report is too old, now and then.
    let mut tries = (0..5).map(|_| hears_of_arrivals(&scenario, "routing={ protocol: aodv, ack_seq: true }"));
    assert!(tries.any(|heard| heard == (true, "routing".into())), "no number was believed");
    assert_eq!(scenario.namespaces(), [""; 0]);
}
