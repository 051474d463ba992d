//! The arms of the files whose figures the book shows: none is the fallback of an agent that the other end did not
//! serve.

use super::read;
use crate::result::RunResult;

const SHOWN: [(&str, &str); 7] = [
    ("delay", include_str!("../../../../configs/delay.yaml")),
    ("delay-senders", include_str!("../../../../configs/delay-senders.yaml")),
    ("today", include_str!("../../../../configs/today.yaml")),
    ("live/chain4", include_str!("../../../../configs/live/chain4.yaml")),
    ("live/delay", include_str!("../../../../configs/live/delay.yaml")),
    ("live/hops", include_str!("../../../../configs/live/hops.yaml")),
    ("live/mesh4", include_str!("../../../../configs/live/mesh4.yaml")),
];

#[test]
fn no_arm_whose_figures_are_shown_does_without_something() {
    for (name, text) in SHOWN {
        let scenario = read(text, &["world=sim", "matrix={}", "topology.hops=1", "run={ duration: 2s }"]);
        let arms = scenario.asked().expect("arms").arms;
        for arm in arms.iter().filter(|arm| scenario.can_run(arm)) {
            let prepared = scenario.plan(Some(arm), 1).expect("a plan");
            let results = crate::sim::run(&prepared.plan).expect("it runs");
            let result = RunResult::new(name, "sim", &prepared, &results);
            let lacks: Vec<_> =
                result.flows.iter().flat_map(|f| [&f.receiver_lacks, &f.sender_lacks]).flatten().collect();
            assert!(lacks.is_empty(), "{name}, {arm}: {lacks:?}");
        }
    }
}
