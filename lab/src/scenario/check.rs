//! Checks of a scenario that need several keys; an error points to its place.

mod claims;
mod effect;
mod live;
mod traffic;

pub(super) use claims::claim;
pub(super) use effect::{arms_over_matrix, is_within, keys, routing_of_cells, varies, varies_beside_sweep};
use hopwise_agents::SpecError;
use hopwise_agents::registry::{DEFAULT_RECEIVER, DEFAULT_SENDERS, DEFAULT_SHADOWS, Kind};
use hopwise_agents::spec::{
    BaseStationSpec, ReceiverSpec, SenderList, ShadowList, parse_base_station, parse_receiver, parse_senders,
    parse_shadows,
};
pub(super) use live::is_kernels;

use super::schema::{ScenarioFile, TrafficFlows};
use super::{host, json_schema};
use crate::located::{Checked, Document, YamlPath, one_of};
use crate::sim::Arm;
use crate::{keys, plain};

/// Three days; the radio's clock holds longer times for every accepted number of nodes.
const LONGEST_S: u64 = 3 * 24 * 3600;
const MOST_FLOWS: u32 = 10_000;

/// The agents of an arm, in their canonical form.
#[derive(Debug)]
pub(super) struct Agents {
    pub(super) arm: Arm,
    /// The specs as they were parsed; none where the kernel's TCP runs.
    pub(super) own: Option<OwnAgents>,
    /// The agent that thins the kernel's ACKs.
    pub(super) thin: Option<ReceiverSpec>,
    /// The agent of the gateway.
    pub(super) base_station: Option<BaseStationSpec>,
}

#[derive(Debug)]
pub(super) struct OwnAgents {
    pub(super) receiver: ReceiverSpec,
    pub(super) senders: SenderList,
    pub(super) shadows: ShadowList,
}

pub(super) fn all(document: &Document, file: &ScenarioFile) -> Checked {
    run(document, file)?;
    if file.traffic.is_empty() {
        return Err(document.refuse(
            &YamlPath::root().key("traffic"),
            "there is no flow",
            "at least one flow",
        ));
    }
    if file.traffic.iter().all(TrafficFlows::is_background) {
        let key = if file.traffic[0].background { "background" } else { "kind" };
        let at = YamlPath::root().key("traffic").index(0).key(key);
        let problem = "all flows are in the background, so that no result counts any";
        let accepted = "at least one flow without `background: true` that is no probe";
        return Err(document.refuse_key(&at, problem, accepted));
    }
    effect::routing(document, file)?;
    effect::channel(document, file)?;
    effect::gateway(document, file)?;
    live::check(document, file)?;
    host::check(document, file)?;
    let total: u64 = file.traffic.iter().map(|traffic| u64::from(traffic.flows)).sum();
    for (nth, traffic) in file.traffic.iter().enumerate() {
        let at = YamlPath::root().key("traffic").index(nth);
        if total > u64::from(MOST_FLOWS) {
            let accepted = format!("1 to {MOST_FLOWS} flows in all");
            return Err(document.refuse(&at.key("flows"), format!("{total} flows in all"), &accepted));
        }
        traffic::check(document, &at, traffic)?;
    }
    for (nth, rule) in file.rules.iter().enumerate() {
        rule.check(document, &YamlPath::root().key("rules").index(nth))?;
    }
    Ok(())
}

pub(super) fn run(document: &Document, file: &ScenarioFile) -> Checked {
    if let Some(problem) = file.title.as_deref().and_then(plain::problem_of_name) {
        return Err(document.refuse(&YamlPath::root().key("title"), problem, plain::NAME));
    }
    let at = YamlPath::root().key("run");
    let duration = file.run.duration.0;
    if file.run.warmup.0 >= duration {
        let (warmup, paths) = (file.run.warmup.0, ["warmup", "duration"].map(|key| at.key(key)));
        let problem = format!("the warm-up of {warmup:?} leaves nothing of a run of {duration:?} to count");
        return Err(document.refuse_among(&paths, problem, "a `warmup` less than `duration`"));
    }
    match &file.run.baseline {
        Some(baseline) if file.arms.find(baseline).is_none() => {
            let names: Vec<_> = file.arms.names().collect();
            let problem = format!("no arm is called `{baseline}`");
            let paths = [at.key("baseline"), YamlPath::root().key("arms")];
            Err(document.refuse_among(&paths, problem, &one_of(baseline, &names)))
        }
        _ => Ok(()),
    }
}

/// The value of a key that the other keys of its block require.
pub(super) fn needed<T>(document: &Document, (block, key): (&str, &str), given: Option<T>) -> Checked<T> {
    given.ok_or_else(|| {
        let accepted = keys::accepted(json_schema(), &[block, key]);
        document.refuse_key(&YamlPath::root().key(block), format!("`{key}` is missing"), &accepted)
    })
}

/// Refuses the first given key that the block's `kind` does not take; `noun` is what has kinds.
pub(super) fn only_its_own(
    document: &Document,
    at: &YamlPath,
    given: &[(&str, bool)],
    (taken, noun, needs): (&[&str], &str, &str),
) -> Checked {
    let Some((key, _)) = given.iter().find(|(key, is_given)| *is_given && !taken.contains(key)) else {
        return Ok(());
    };
    let paths = [key, "kind"].map(|key| at.key(key));
    Err(document.refuse_key_among(&paths, format!("`{key}` belongs to another {noun}"), needs))
}

/// Accepts the paths that an arm may change, which determine its runs.
pub(super) fn settable(path: &str) -> Result<(), &'static str> {
    let first = path.split('.').next().unwrap_or_default();
    match (first, path) {
        ("arms", _) => Err("an arm cannot change the arms"),
        ("matrix", _) => Err("the matrix applies to all arms"),
        ("sweep", _) => Err("the sweep applies to all arms"),
        ("title" | "world", _) => Err("it is the same for all arms"),
        (_, "run.seeds" | "run.margin" | "run.stop" | "run.baseline" | "run.figure" | "run") => {
            Err("it applies to the whole trial")
        }
        _ => Ok(()),
    }
}

pub(super) fn agents(document: &Document, file: &ScenarioFile, arm: &str) -> Checked<Agents> {
    let config = file.arms.find(arm).cloned().unwrap_or_default();
    let at = YamlPath::root().key("arms").key(arm);
    let refused = |key: &str, kind: Kind, error: &SpecError| document.refuse_spec(&at.key(key), kind, error);
    let base_station = config.base_station.as_deref().map(parse_base_station).transpose();
    let base_station = base_station.map_err(|error| refused("base_station", Kind::BaseStation, &error))?;
    let of_gateway = base_station.as_ref().map(ToString::to_string);
    if let Some(algorithm) = live::kernel_arm(document, file, (&at, &config))? {
        let thin = config.thin.as_deref().map(parse_receiver).transpose();
        let thin = thin.map_err(|error| refused("thin", Kind::Receiver, &error))?;
        let kernels = Arm::kernel(arm, &algorithm, thin.as_ref().map(ToString::to_string));
        let arm = Arm { base_station: of_gateway, ..kernels };
        return Ok(Agents { arm, own: None, thin, base_station });
    }
    let receiver = parse_receiver(config.receiver.as_deref().unwrap_or(DEFAULT_RECEIVER))
        .map_err(|error| refused("receiver", Kind::Receiver, &error))?;
    let senders = parse_senders(config.sender.as_deref().unwrap_or(DEFAULT_SENDERS))
        .map_err(|error| refused("sender", Kind::Sender, &error))?;
    let shadows = parse_shadows(config.shadows.as_deref().unwrap_or(DEFAULT_SHADOWS))
        .map_err(|error| refused("shadows", Kind::Receiver, &error))?;
    let arm = Arm {
        name: arm.to_owned(),
        receiver: receiver.to_string(),
        senders: senders.to_string(),
        shadows: shadows.to_string(),
        base_station: of_gateway,
        transparent: config.transparent,
        thin: None,
    };
    live::transparent_arm(document, file, (&at, &config))?;
    Ok(Agents { arm, own: Some(OwnAgents { receiver, senders, shadows }), thin: None, base_station })
}
