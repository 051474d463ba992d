//! Needs of agents that the other end did not agree to, in words.

use std::collections::BTreeMap;

use crate::record::Record;

fn with_agent(lacking: &str) -> String {
    let agent = match lacking {
        "peer-cwnd" => "sender tell-cwnd",
        "rate-request" => "sender ask-rate",
        "dup-count" => "receiver dup-count(…)",
        _ => return lacking.to_owned(),
    };
    format!("{lacking} (needs the {agent})")
}

/// The lacking needs of an agent, each with the agent of the other end that gives it.
pub fn in_words(lacking: &[String]) -> String {
    lacking.iter().map(|one| with_agent(one)).collect::<Vec<_>>().join(", ")
}

/// A sentence for each end of an arm's flows that did without something, from the arm's runs.
pub(crate) fn sentences(arm: &str, runs: &[&Record]) -> Vec<String> {
    let mut found: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for record in runs {
        let flows = || record.result.flows.iter().filter(|flow| !flow.background);
        let ends = [
            ("receiver", flows().map(|flow| &flow.receiver_lacks).find(|lacks| !lacks.is_empty())),
            ("sender", flows().map(|flow| &flow.sender_lacks).find(|lacks| !lacks.is_empty())),
        ];
        for (end, lacks) in ends.into_iter().filter_map(|(end, lacks)| Some((end, lacks?))) {
            *found.entry((end, in_words(lacks))).or_default() += 1;
        }
    }
    let sentence = |((end, lacks), count): ((&str, String), usize)| {
        let some =
            if count == runs.len() { String::new() } else { format!(", in {count} of {} runs", runs.len()) };
        format!("The {end} of {arm} does without {lacks}{some}: its figures are those of its fallback.")
    };
    found.into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::record;

    #[test]
    fn what_a_flow_lacks_comes_with_the_agent_that_gives_it() {
        assert_eq!(with_agent("peer-cwnd"), "peer-cwnd (needs the sender tell-cwnd)");
        assert_eq!(in_words(&["timestamps".into(), "rtt".into()]), "timestamps, rtt");
    }

    #[test]
    fn an_arm_that_did_without_something_has_a_sentence_for_each_end() {
        let mut runs = [1, 2].map(|block| record(8, "dca", block, 200.0));
        assert!(sentences("dca", &runs.each_ref()).is_empty());
        for run in &mut runs {
            run.result.flows[0].receiver_lacks = vec!["peer-cwnd".into()];
        }
        runs[1].result.flows[0].sender_lacks = vec!["rate-request".into()];
        assert_eq!(
            sentences("dca", &runs.each_ref()),
            [
                "The receiver of dca does without peer-cwnd (needs the sender tell-cwnd): its figures are those of its \
                 fallback.",
                "The sender of dca does without rate-request (needs the sender ask-rate), in 1 of 2 runs: its figures \
                 are those of its fallback."
            ]
        );
    }
}
