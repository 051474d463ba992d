//! The keys of a file, from its JSON Schema: ranges, units, defaults and meanings each stand there once. Checks,
//! errors, pages and explanations read them from it.
//!
//! Two words of ours are added to JSON Schema's: `x-range`, such as `1 to 9999` or `100ms or more`, and `x-unit` of a
//! number. For editors, ranges of plain numbers become bounds.

mod form;
mod list;
mod number;
mod range;

pub use form::Choice;
use hopwise_air::truncate;
pub use list::{Key, keys, keys_by_chance};
pub use range::Range;
use serde_json::{Map, Value as Json};
use serde_yaml::Value;

use crate::located::{Checked, Document, YamlPath};

/// A part of a schema, with all definitions that it may refer to.
#[derive(Clone, Copy)]
pub(crate) struct Sub<'a> {
    pub(crate) root: &'a Json,
    pub(crate) schema: &'a Json,
}

impl<'a> Sub<'a> {
    pub(crate) fn whole(root: &'a Json) -> Sub<'a> {
        Sub { root, schema: root }
    }

    fn at(self, schema: &'a Json) -> Sub<'a> {
        Sub { schema, ..self }
    }

    /// The definition that a reference names, and all alternatives, each resolved; the schema itself comes first.
    fn meant(self) -> Vec<Sub<'a>> {
        let mut all = vec![self];
        let name = self.schema["$ref"].as_str().and_then(|text| text.strip_prefix("#/$defs/"));
        all.extend(name.into_iter().flat_map(|name| self.at(&self.root["$defs"][name]).meant()));
        let choices = self.schema["anyOf"].as_array().into_iter().flatten();
        all.extend(choices.flat_map(|one| self.at(one).meant()));
        all
    }
}

/// Writes the function that gives the JSON Schema of a kind of file, which this type reads.
#[macro_export]
macro_rules! schema_of {
    ($file:ty) => {
        /// The JSON Schema of the file.
        pub fn json_schema() -> &'static serde_json::Value {
            type Schema = std::sync::LazyLock<serde_json::Value>;
            static SCHEMA: Schema = Schema::new(|| schemars::schema_for!($file).to_value());
            &SCHEMA
        }
    };
    ($file:ty, checked by $read:ident) => {
        $crate::schema_of!($file);

        /// Checks a file.
        pub fn checked(document: &$crate::located::Document) -> $crate::located::Checked {
            $read(document).map(drop)
        }
    };
}

/// Refuses the first value of the file that is out of its key's range, or no number where the key takes only these.
/// Other values of a wrong kind are left to their reader.
pub fn check(document: &Document, schema: &Json) -> Checked {
    below(document, Sub::whole(schema), &YamlPath::root())
}

/// The accepted values of a key, for an error: `1 to 9999 hops`.
pub fn accepted(schema: &Json, path: &[&str]) -> String {
    let mut sub = Sub::whole(schema);
    for key in path {
        let of = sub.meant().into_iter().find(|one| one.schema["properties"][key].is_object());
        sub = of.map_or(sub, |one| one.at(&one.schema["properties"][key]));
    }
    in_words(sub.schema)
}

/// The range of a key with its unit, unless the values name theirs.
fn in_words(schema: &Json) -> String {
    let range = schema["x-range"].as_str().unwrap_or_default();
    let unit = schema["x-unit"].as_str().filter(|unit| *unit != list::NO_UNIT);
    unit.map_or_else(|| range.to_owned(), |unit| format!("{range} {unit}"))
}

fn below(document: &Document, sub: Sub<'_>, at: &YamlPath) -> Checked {
    let Some(value) = document.value_of(at) else { return Ok(()) };
    if let Some(text) = sub.schema["x-range"].as_str() {
        within(document, sub.schema, (at, value), text)?;
    }
    if let Some((problem, accepted)) = number::refused(sub, &name_of(at), value) {
        return Err(document.refuse(at, problem, &accepted));
    }
    for meant in sub.meant() {
        let of = &meant.schema["properties"];
        for key in value.as_mapping().into_iter().flat_map(|entries| entries.keys().filter_map(Value::as_str))
        {
            let schema = of.get(key).unwrap_or(&meant.schema["additionalProperties"]);
            below(document, sub.at(schema), &at.key(key))?;
        }
        for nth in 0..value.as_sequence().map_or(0, Vec::len) {
            below(document, sub.at(&meant.schema["items"]), &at.index(nth))?;
        }
    }
    Ok(())
}

/// Checks one value, or each of a list. Values by chance are checked where they are drawn.
fn within(document: &Document, schema: &Json, (at, value): (&YamlPath, &Value), text: &str) -> Checked {
    if let Some(values) = value.as_sequence() {
        let mut each = values.iter().enumerate();
        return each.try_for_each(|(nth, value)| within(document, schema, (&at.index(nth), value), text));
    }
    let said = value.as_str().map(str::to_owned).or_else(|| value.as_f64().map(|number| number.to_string()));
    let Some(said) = said.filter(|said| Range::of(text).refuses(said)) else { return Ok(()) };
    let key = name_of(at);
    Err(document.refuse(at, format_args!("{key}: {said} is out of range"), &in_words(schema)))
}

/// The last key of a path.
fn name_of(at: &YamlPath) -> String {
    let path = at.to_string();
    path.rsplit('.').find(|step| step.parse::<usize>().is_err()).unwrap_or_default().to_owned()
}

/// The schema with `minimum` and its like added to each `x-range` of plain numbers. Quantities have units, and their
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

#[cfg(test)]
mod tests;
