//! The schema in words that editors know: ranges of plain numbers as bounds.

use hopwise_air::truncate;
use serde_json::{Map, Value as Json};

use super::Range;

/// The schema with `minimum` and its like beside each `x-range` of plain numbers. Quantities have units, and their
/// ranges stay words.
pub fn for_editors(schema: &Json) -> Json {
    match schema {
        Json::Object(members) => {
            let each = members.iter().map(|(name, member)| (name.clone(), for_editors(member)));
            let mut all: Map<_, _> = each.collect();
            if is_of_numbers(members)
                && let Some(text) = members.get("x-range").and_then(Json::as_str)
            {
                let range = Range::of(text);
                all.extend(range.bounds().map(|(word, end)| (word.to_owned(), number(end))));
            }
            all.into()
        }
        Json::Array(all) => all.iter().map(for_editors).collect(),
        other => other.clone(),
    }
}

/// The end of a range, without a point if it is whole.
fn number(end: f64) -> Json {
    if end.fract() == 0.0 { truncate::to_i64(end).into() } else { end.into() }
}

/// The value may be a number; a list or a text with a unit is none.
fn is_of_numbers(schema: &Map<String, Json>) -> bool {
    let is = |kind: &Json| *kind == "integer" || *kind == "number";
    match schema.get("type") {
        Some(Json::Array(kinds)) => kinds.iter().any(is),
        kind => kind.is_some_and(is),
    }
}
