//! What is wrong with a scenario although each of its keys is sound: refused at its place.

use hopwise_agents::registry::Kind;
use hopwise_agents::{SpecError, validate_receiver, validate_senders};

use super::schema::{ScenarioFile, TrafficKind};
use crate::located::{Document, Place, Refusal};
use crate::sim::Arm;

type Checked = Result<(), Box<Refusal>>;

/// Three days: the radio's clock holds more for every number of nodes that is accepted.
const LONGEST_S: u64 = 3 * 24 * 3600;
const MOST_FLOWS: u32 = 10_000;
/// An Ethernet's packets less IP and TCP headers.
const LARGEST_SEGMENT: u16 = 1_460;

/// The agents of an arm, in their canonical form.
pub(super) struct Agents {
    pub(super) arm: Arm,
    pub(super) senders: Vec<String>,
}

pub(super) fn all(document: &Document, file: &ScenarioFile) -> Checked {
    run(document, file)?;
    if file.radio.queue_packets < 2 {
        let place = Place::root().key("radio").key("queue_packets");
        return Err(document.refuse(&place, "the radio holds one and one has to wait", "2 or more"));
    }
    if file.traffic.is_empty() {
        return Err(document.refuse(&Place::root().key("traffic"), "nothing flows", "at least one flow"));
    }
    let total: u64 = file.traffic.iter().map(|traffic| u64::from(traffic.flows)).sum();
    for (nth, traffic) in file.traffic.iter().enumerate() {
        let place = Place::root().key("traffic").index(nth);
        if traffic.flows == 0 || total > u64::from(MOST_FLOWS) {
            let accepted = format!("1 to {MOST_FLOWS} flows in all");
            return Err(document.refuse(&place.key("flows"), format!("{total} flows in all"), &accepted));
        }
        if traffic.segment_bytes == 0 || traffic.segment_bytes > LARGEST_SEGMENT {
            let accepted = format!("1 to {LARGEST_SEGMENT} bytes");
            let problem = format!("segments of {} bytes", traffic.segment_bytes);
            return Err(document.refuse(&place.key("segment_bytes"), problem, &accepted));
        }
        match (traffic.kind, traffic.every) {
            (TrafficKind::Cbr, None) => {
                return Err(document.refuse_key(&place, "`kind: cbr` needs `every`", "every: 10ms"));
            }
            (TrafficKind::Cbr, Some(every)) if every.0.is_zero() => {
                return Err(document.refuse(&place.key("every"), "no time between datagrams", "1us or more"));
            }
            (TrafficKind::Bulk | TrafficKind::Saturated, Some(_)) => {
                return Err(document.refuse_key(&place.key("every"), "only `kind: cbr` has it", "kind: cbr"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn run(document: &Document, file: &ScenarioFile) -> Checked {
    let place = Place::root().key("run");
    let duration = file.run.duration.0;
    if duration.is_zero() || duration.as_secs() > LONGEST_S {
        let accepted = format!("more than nothing, at most {LONGEST_S}s");
        return Err(document.refuse(&place.key("duration"), format!("a run of {duration:?}"), &accepted));
    }
    if file.run.warmup.0 >= duration {
        let problem = "the warm-up leaves nothing to count";
        return Err(document.refuse(&place.key("warmup"), problem, "less than `duration`"));
    }
    if file.run.seeds == 0 {
        return Err(document.refuse(&place.key("seeds"), "no seed, no run", "1 or more"));
    }
    let latest =
        file.traffic.iter().map(|t| t.start.0.saturating_add(t.apart.0.saturating_mul(t.flows))).max();
    if latest.is_some_and(|latest| latest.as_secs() > LONGEST_S) {
        let problem = "a flow begins after every run has ended";
        return Err(document.refuse(&Place::root().key("traffic"), problem, "a start within the run"));
    }
    Ok(())
}

pub(super) fn agents(document: &Document, file: &ScenarioFile, arm: &str) -> Result<Agents, Box<Refusal>> {
    let config = &file.arms[arm];
    let place = Place::root().key("arms").key(arm);
    let refused =
        |key: &str, kind: Kind, error: &SpecError| document.refuse_spec(&place.key(key), kind, error);
    let receiver =
        validate_receiver(&config.receiver).map_err(|e| refused("receiver", Kind::Receiver, &e))?;
    let list = format!("[{}]", config.sender.join(", "));
    let senders = validate_senders(&list).map_err(|e| refused("sender", Kind::Sender, &e))?;
    let each = config.sender.iter().map(|spec| {
        let one = validate_senders(&format!("[{spec}]")).unwrap_or_else(|_| spec.clone());
        one.trim_start_matches('[').trim_end_matches(']').to_owned()
    });
    Ok(Agents { senders: each.collect(), arm: Arm { name: arm.to_owned(), receiver, senders } })
}
