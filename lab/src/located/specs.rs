//! Refuses a spec of agents at its place, with the message of the spec parser.

use hopwise_agents::SpecError;
use hopwise_agents::registry::{self, Kind};

use super::{Document, Refusal, YamlPath};

impl Document {
    /// The end of `error` gives the accepted values; if there are none, the advice lists all names.
    pub fn refuse_spec(&self, at: &YamlPath, kind: Kind, error: &SpecError) -> Box<Refusal> {
        let text = error.to_string();
        let mut lines = text.lines();
        let problem = lines.next().unwrap_or_default().to_owned();
        let names: Vec<_> = registry::names(kind).collect();
        let accepted = lines.last().map_or_else(|| names.join(", "), str::to_owned);
        // The refusal shows the item of a YAML list; a list in one text has no items.
        let at = error.item().map_or_else(|| at.clone(), |nth| at.index(nth));
        let refusal = self.refuse(&at, problem, accepted.trim());
        let parts = [Some((error.spec(), error.place())), error.in_item()];
        let narrower = parts.into_iter().flatten().find_map(|(spec, wrong)| refusal.within(spec, wrong));
        narrower.unwrap_or(refusal)
    }
}
