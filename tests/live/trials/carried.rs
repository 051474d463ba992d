//! Trials of programs that know nothing of Hopwise: their TCP is carried, or its ACKs are thinned.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Output;

use serde_json::Value;

use super::{LASTS, Scenario, TEXT};

/// Programs on hosts behind the ends, whose TCP two transparent nodes carry.
#[test]
fn a_trial_measures_programs_that_know_nothing_of_the_nodes_before_them() {
    needs!["nft"];
    let arms = "arms={ carried: { receiver: delayed, transparent: true } }";
    for routing in ["static", "aodv"] {
        let scenario = Scenario::new("carried", "netns", TEXT);
        let routing = format!("routing.protocol={routing}");
        let output = scenario.trial(&["--set", arms, "--set", &routing, LASTS[0], LASTS[1]]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let record = &scenario.records()[0];
        let flows = &record["result"]["flows"];
        assert_eq!(record["settings"]["arm"]["transparent"], true, "{record}");
        assert!(flows[0]["goodput_kbps"].as_f64() > Some(100.0), "{flows}");
        assert!(flows[1]["completed"]["count"].as_u64() > Some(0), "{flows}");
        let datagrams = flows.as_array().and_then(|flows| flows.iter().find(|flow| flow["id"] == "f2"));
        let datagrams = datagrams.expect("it is there")["bytes_delivered"].as_u64();
        // A busy machine loses some.
        assert!(datagrams > Some(200 * 50), "{flows}");
        // These would be of the way to the node alone.
        for untold in ["segments_sent", "rtt_ms", "timeouts"] {
            assert_eq!(flows[0][untold], Value::Null, "{flows}");
        }
        assert_eq!(scenario.namespaces(), [""; 0]);
    }
}

/// The kernel's TCP, whose ACKs a daemon thins at each end that receives.
#[test]
fn a_trial_thins_the_acks_of_the_kernels_that_receive() {
    needs!["nft"];
    let arms = "arms={ thin: { receiver: kernel, sender: kernel:cubic, thin: \"delayed:d=8\" } }";
    let scenario = Scenario::new("thinned", "netns", TEXT);
    let output = scenario.trial(&["--set", arms, LASTS[0], LASTS[1]]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = &scenario.records()[0];
    assert_eq!(record["settings"]["arm"]["thin"], "delayed:8", "{record}");
    let thinned = &record["result"]["live"]["thinned"];
    let count = |node: &str, what: &str| thinned[node][what].as_u64().unwrap_or_else(|| panic!("{thinned}"));
    assert!(count("n2", "replaced") > 0 && count("n2", "acks") > count("n2", "replaced"), "{thinned}");
    assert!(count("n0", "acks") > 0, "its answers are data, too: {thinned}");
    assert_eq!(thinned["n1"], Value::Null, "it receives nothing");
    let offloads = &record["result"]["live"]["offloads"]["n2"]["air0"];
    assert!(offloads.as_array().is_some_and(|on| on.contains(&"rx-gro".into())), "{record}");
    assert!(record["result"]["flows"][0]["goodput_kbps"].as_f64() > Some(100.0), "{record}");
    assert_eq!(scenario.namespaces(), [""; 0]);
}

/// A trial that finds `ip` alone of all tools: nothing leads packets to a daemon.
pub(super) fn without_tools(scenario: &Scenario, words: &[&str]) -> Output {
    let tools = scenario.file.with_extension("tools");
    fs::create_dir_all(&tools).expect("a folder");
    let path = env::var("PATH").unwrap_or_default();
    let ip = env::split_paths(&path).map(|folder| folder.join("ip")).find(|file| file.exists());
    symlink(ip.expect("namespaces need it"), tools.join("ip")).expect("a link");
    let output = scenario.command(words).env("PATH", &tools).output().expect("it starts");
    fs::remove_dir_all(&tools).expect("it is there");
    output
}

#[test]
fn a_daemon_that_cannot_start_ends_the_trial_with_its_error() {
    needs!["nft"];
    let arms = "arms={ thin: { receiver: kernel, sender: kernel:cubic, thin: aad } }";
    let scenario = Scenario::new("unthinned", "netns", TEXT);
    let output = without_tools(&scenario, &["--set", arms, LASTS[0], LASTS[1]]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("thin the ACKs of a node's kernel") && said.contains("is needed"), "{said}");
    assert_eq!(scenario.namespaces(), [""; 0]);
}
