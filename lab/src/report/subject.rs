//! The subject of a trial, in a sentence made of its settings.

use std::collections::BTreeMap;

use super::View;
use crate::located::either;
use crate::scenario::settings::flatten;

/// The settings' values by path, each once, in the order of the runs.
struct SettingValues(BTreeMap<String, Vec<String>>);

/// Values of a path that are looked at. A sentence with more of them is not read.
const MOST_VALUES: usize = 1_000;

impl SettingValues {
    fn of(view: &View<'_>) -> SettingValues {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (path, value) in view.bundle.records.iter().flat_map(|record| flatten(&record.settings)) {
            let known = values.entry(path).or_default();
            if known.len() < MOST_VALUES && !known.contains(&value) {
                known.push(value);
            }
        }
        SettingValues(values)
    }

    /// The values at a path: `4, 8 or 12`.
    fn at(&self, path: &str) -> Option<String> {
        Some(either(self.0.get(path)?)).filter(|values| !values.is_empty())
    }

    fn with(&self, path: &str, words: impl Fn(&str) -> String) -> Option<String> {
        self.at(path).map(|value| words(&value))
    }
}

/// The sentence about the runs; none if the settings name nothing for it.
pub(super) fn sentence(view: &View<'_>) -> Option<String> {
    let values = SettingValues::of(view);
    let topology = [
        values.with("topology.kind", |kind| format!("a {kind}")),
        values.with("topology.hops", |hops| format!("{hops} hops")),
        values.with("topology.rows", |rows| format!("{rows} rows")),
        values.with("topology.columns", |columns| format!("{columns} columns")),
        values.with("topology.nodes", |nodes| format!("{nodes} nodes")),
        values.with("topology.spacing_m", |metres| format!("{} m apart", metres.trim_end_matches(".0"))),
    ];
    let radios = [
        values.with("radio.profile", |profile| format!("802.11 radios {profile}")),
        values.with("mac.rules", |rules| format!("MAC rules {rules}")),
        values.with("routing.protocol", |protocol| format!("{protocol} routes")),
    ];
    let flows = (0..).map_while(|nth| flow(&values, nth)).collect::<Vec<_>>();
    let time = values.with("run.duration", |duration| {
        let warmup =
            values.with("run.warmup", |warmup| format!(", of which the first {warmup} do not count"));
        format!("runs of {duration}{}", warmup.unwrap_or_default())
    });
    let joined = |parts: &[Option<String>]| parts.iter().flatten().cloned().collect::<Vec<_>>().join(", ");
    let parts = [joined(&topology), joined(&radios), flows.join(", "), time.unwrap_or_default()];
    let said: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    (!said.is_empty()).then(|| format!("What was run: {}.", said.join("; ")))
}

/// `3 flows of bulk from first to last` of the nth entry of the traffic.
fn flow(values: &SettingValues, nth: usize) -> Option<String> {
    const MOST: usize = 4;
    let at = |key: &str| values.at(&format!("traffic.{nth}.{key}"));
    let kind = at("kind")?;
    if nth == MOST {
        return Some("and more flows".to_owned());
    }
    let ends = at("from").zip(at("to")).map(|(from, to)| format!(" from {from} to {to}"));
    let flows = at("flows").filter(|flows| flows != "1").map(|flows| format!("{flows} flows of "));
    (nth < MOST).then(|| format!("{}{kind}{}", flows.unwrap_or_default(), ends.unwrap_or_default()))
}
