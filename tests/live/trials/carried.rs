//! Trials of programs that know nothing of Hopwise.

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
