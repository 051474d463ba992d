//! Refuses settings without an effect: their author had an effect in mind.

use hopwise_mesh::RoutingProtocol;
use hopwise_mesh::constants::RuleSet;
use serde_yaml::Value;

use crate::located::{Checked, Document, YamlPath};
use crate::routing::{effective_keys, takes};
use crate::scenario::matrix::{MatrixCell, first_reading};
use crate::scenario::schema::{
    ArmConfig, FadingName, MatrixConfig, PathLossName, ScenarioFile, SourceName, UnheardName,
};
use crate::words::Word;

/// Refuses constants of one protocol under another, or under static routes. `rules` may stand beside the protocol, for
/// users who set another protocol over it; `rules` alone is refused. If arms or points differ in the protocol, some of
/// them use the constants.
pub(super) fn routing(document: &Document, file: &ScenarioFile) -> Checked {
    let Some(given) = document.value_at("routing").and_then(Value::as_mapping) else { return Ok(()) };
    if varies(file, "routing.protocol") {
        return Ok(());
    }
    let protocol = file.routing.protocol();
    of_other_rules(document, file, given.keys().filter_map(Value::as_str))?;
    if document.is_set("routing.protocol") {
        return Ok(());
    }
    let is_said = given.contains_key("protocol");
    for key in given.keys().filter_map(Value::as_str).filter(|key| !takes(protocol, key)) {
        if key != "rules" || !is_said || document.is_set("routing.rules") {
            let problem = format!("`{key}` changes nothing under protocol: {}", protocol.name);
            let at = YamlPath::root().key("routing").key(key);
            return Err(document.refuse_key(&at, problem, &effective_keys(protocol)));
        }
    }
    Ok(())
}

/// Refuses constants that the rules in force do not know. The file's own constants may stay if other rules are set over
/// its rules.
fn of_other_rules<'a>(
    document: &Document,
    file: &ScenarioFile,
    keys: impl Iterator<Item = &'a str>,
) -> Checked {
    if varies(file, "routing.rules") {
        return Ok(());
    }
    let (protocol, rules) = (file.routing.protocol(), file.routing.rules());
    let is_over_others = document.is_set("routing.rules");
    for key in keys.filter(|key| !protocol.uses(rules, key)) {
        if !is_over_others || document.is_set(&format!("routing.{key}")) {
            // Only the rules of ns-2 lack constants.
            let problem = format!("`{key}` changes nothing under rules: ns2");
            let at = YamlPath::root().key("routing").key(key);
            return Err(document.refuse_key(&at, problem, "rules: rfc3561 beside it"));
        }
    }
    Ok(())
}

/// Refuses constants that the protocol beside them does not know, or its rules do not, where points of a matrix or
/// sweep have a whole section `routing`.
pub(in crate::scenario) fn routing_of_cells(document: &Document, cells: &[MatrixCell]) -> Checked {
    for cell in cells {
        let section =
            cell.values().find(|(path, _)| *path == "routing").and_then(|(_, value)| value.as_mapping());
        let (Some(section), Some(at)) = (section, cell.place_of("routing")) else { continue };
        let said = |key: &str| section.get(key).cloned();
        // A word that is none of the known ones is refused when the point is read.
        let protocol = said("protocol").and_then(|word| serde_yaml::from_value(word).ok());
        let rules = said("rules").and_then(|word| serde_yaml::from_value(word).ok());
        let (Word(protocol), Word(rules)): (Word<&RoutingProtocol>, Word<RuleSet>) =
            (protocol.unwrap_or_default(), rules.unwrap_or_default());
        for key in section.keys().filter_map(Value::as_str) {
            let unknown = match (takes(protocol, key), !protocol.uses(rules, key)) {
                (false, _) => "protocol",
                (true, true) => "rules",
                (true, false) => continue,
            };
            let problem = format!("`{key}` changes nothing under the `{unknown}` of this section");
            return Err(document.refuse_key(&at.key(key), problem, "constants that it knows"));
        }
    }
    Ok(())
}

/// The keys that say what a recording says too.
const BESIDE_A_TRACE: [&str; 5] = ["shadowing_db", "asymmetric", "fading", "doppler_hz", "k"];

/// The same, unless the recording leaves pairs to path loss.
const OF_PATH_LOSS: [&str; 2] = ["path_loss", "exponent"];

/// Refuses a second source of powers beside a recording. Models of the file may stay if the recording is set over it.
fn trace(document: &Document, file: &ScenarioFile) -> Checked {
    if file.channel.trace.is_none() || varies(file, "channel.trace") {
        return Ok(());
    }
    let at = YamlPath::root().key("channel");
    let is_over_others = document.is_set("channel.trace");
    let is_modelled = file.channel.unheard == UnheardName::PathLoss || varies(file, "channel.unheard");
    let of_path_loss = OF_PATH_LOSS.into_iter().filter(|_| !is_modelled);
    for key in of_path_loss.chain(BESIDE_A_TRACE) {
        let path = format!("channel.{key}");
        let is_given = document.value_at(&path).is_some();
        if is_given && (!is_over_others || document.is_set(&path)) {
            let paths = [key, "trace"].map(|key| at.key(key));
            let problem = format!("`{key}` changes nothing beside a recording");
            return Err(document.refuse_key_among(&paths, problem, "one of the two"));
        }
    }
    let is_gain = |sentence: &String| sentence.split_whitespace().any(|word| word == "gains");
    match file.channel.links.iter().position(is_gain) {
        Some(nth) if !is_over_others || document.is_set("channel.links") => {
            let paths = [at.key("links").index(nth), at.key("trace")];
            let problem = "a gain changes nothing beside a recording";
            Err(document.refuse_among(&paths, problem, "one of the two"))
        }
        _ => Ok(()),
    }
}

/// Refuses numbers of models that the channel does not use.
pub(super) fn channel(document: &Document, file: &ScenarioFile) -> Checked {
    trace(document, file)?;
    let channel = &file.channel;
    let fades = channel.fading != FadingName::None;
    for (key, is_given, needs, is_used) in [
        (
            "exponent",
            channel.exponent.is_some(),
            "path_loss: log-distance",
            channel.path_loss != PathLossName::TwoRay,
        ),
        ("doppler_hz", channel.doppler_hz.is_some(), "fading: rayleigh or fading: rician", fades),
        ("k", channel.k.is_some(), "fading: rician", channel.fading == FadingName::Rician),
        (
            "asymmetric",
            channel.asymmetric,
            "shadowing_db: 4, or another number above 0",
            channel.shadowing_db > 0.0,
        ),
        ("unheard", channel.unheard != UnheardName::None, "trace: FILE", channel.trace.is_some()),
    ] {
        let of = needs.split(':').next().unwrap_or(needs);
        if is_given && !is_used && !varies(file, &format!("channel.{of}")) {
            let problem = format!("`{key}` changes nothing here");
            let paths = [key, of].map(|key| YamlPath::root().key("channel").key(key));
            return Err(document.refuse_key_among(&paths, problem, &format!("{needs} beside it")));
        }
    }
    Ok(())
}

/// Refuses the errors of the true forecast for a predictor, and a predictor's signal without one. The file's own values
/// may stay if another source is set over the file's.
pub(super) fn gateway(document: &Document, file: &ScenarioFile) -> Checked {
    let (Some(config), Some(given)) =
        (&file.gateway, document.value_at("gateway").and_then(Value::as_mapping))
    else {
        return Ok(());
    };
    if varies(file, "gateway.source") {
        return Ok(());
    }
    let (name, foreign, better) = match config.source {
        SourceName::Truth => ("truth", &["slope_db_s", "noise_db", "shadow_db"][..], "source: predictor"),
        SourceName::Predictor => {
            ("predictor", &["lead", "error", "missing", "false_alarms", "late"][..], "source: truth")
        }
    };
    let is_over_another = document.is_set("gateway.source");
    for key in foreign.iter().filter(|key| given.contains_key(**key)) {
        if !is_over_another || document.is_set(&format!("gateway.{key}")) {
            let problem = format!("`{key}` changes nothing under source: {name}");
            let at = YamlPath::root().key("gateway").key(key);
            return Err(document.refuse_key(&at, problem, &format!("{better} beside it")));
        }
    }
    Ok(())
}

/// True if arms or points differ in the value at that path.
pub(in crate::scenario) fn varies(file: &ScenarioFile, path: &str) -> bool {
    varies_beside_sweep(file, path) || is_in(file.sweep.as_ref(), path)
}

/// True if arms, or points of one reading, differ in the value at that path.
pub(in crate::scenario) fn varies_beside_sweep(file: &ScenarioFile, path: &str) -> bool {
    let mut arms = file.arms.names().filter_map(|arm| file.arms.find(arm));
    let sets_it = |arm: &ArmConfig| arm.set.keys().any(|other| is_within(path, other));
    arms.any(sets_it) || is_in(file.matrix.as_ref(), path)
}

/// True if a grid gives values to that path, or to one around it.
fn is_in(grid: Option<&MatrixConfig>, path: &str) -> bool {
    let grid = grid.and_then(|grid| serde_yaml::to_value(&grid.0).ok());
    grid.is_some_and(|grid| keys(&grid).iter().any(|other| is_within(path, other)))
}

/// True for a path that is another one, or lies within it.
pub(in crate::scenario) fn is_within(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// All keys within a value, at any depth.
pub(in crate::scenario) fn keys(value: &Value) -> Vec<String> {
    match value {
        Value::Mapping(map) => {
            let below = map.iter().flat_map(|(_, value)| keys(value));
            map.keys().filter_map(|key| Some(key.as_str()?.to_owned())).chain(below).collect()
        }
        Value::Sequence(items) => items.iter().flat_map(keys).collect(),
        _ => Vec::new(),
    }
}

/// Refuses an arm that sets a value which the matrix or the sweep varies: its points would all be the same.
pub(in crate::scenario) fn arms_over_matrix(
    document: &Document,
    file: &ScenarioFile,
    cells: &[MatrixCell],
) -> Checked {
    let varied: Vec<&String> = cells.iter().take(1).flat_map(|cell| cell.point.keys()).collect();
    for name in file.arms.names() {
        for path in file.arms.find(name).into_iter().flat_map(|arm| arm.set.keys()) {
            if let Some(varied) =
                varied.iter().find(|varied| is_within(varied, path) || is_within(path, varied))
            {
                let at = YamlPath::root().key("arms").key(name).key("set").key(path);
                let is_swept = first_reading(document, file.sweep.as_ref())?.contains_key(*varied);
                let grid = if is_swept { "sweep" } else { "matrix" };
                let paths = [at, YamlPath::root().key(grid)];
                let problem = format!("the {grid} varies `{varied}`, and this would replace its values");
                let accepted = format!("one of the two: a path of the {grid}, or what an arm sets");
                return Err(document.refuse_key_among(&paths, problem, &accepted));
            }
        }
    }
    Ok(())
}
