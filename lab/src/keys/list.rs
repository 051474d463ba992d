//! All keys of a file in one list, for readers: the form of each, its unit, range, default and meaning.

use serde::Serialize;
use serde_json::Value as Json;

use super::Sub;
use super::form::{Choice, choices, form};

/// The quantities that values name with their unit, and the range of each without one of its own.
const QUANTITIES: [(&str, &str, &str); 4] = [
    ("Time", "ns, us, ms, s, min, h", "0s or more"),
    ("Size", "B, kB, MB, GB, KiB, MiB, GiB", "0B or more"),
    ("Rate", "bit, kbit, mbit, gbit a second", "0bit or more"),
    ("Share", "%, ppm", "0% to 100%"),
];

/// The unit of a plain number.
pub(super) const NO_UNIT: &str = "no unit";

/// Endings of names that say a number's unit.
const UNITS: [(&str, &str); 10] = [
    ("_mps", "metres a second"),
    ("_m", "metres"),
    ("_db", "dB"),
    ("_dbm", "dBm"),
    ("_db_s", "dB a second"),
    ("_hz", "Hz"),
    ("_packets", "packets"),
    ("_bytes", "bytes"),
    ("_mtu", "bytes"),
    ("port", NO_UNIT),
];

/// One key of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Key {
    /// Its place, such as `radio.rts_threshold` or `links[].kind`; `NAME` stands for any name.
    pub path: String,
    /// A file without it is refused.
    pub required: bool,
    /// Values that it takes, in words.
    pub value: String,
    /// Unit of a number or quantity.
    pub unit: Option<String>,
    /// Accepted numbers or quantities.
    pub range: Option<String>,
    /// The value in force without the key.
    pub default: Option<String>,
    /// The same as the types of the code have it, which is not told twice.
    #[serde(skip)]
    pub default_of_code: Option<String>,
    /// Its effect, in sentences.
    pub meaning: String,
    /// The words that it takes, if each has a meaning of its own.
    pub choices: Vec<Choice>,
    /// It takes a number, which names no unit.
    #[serde(skip)]
    pub is_number: bool,
    /// Keys stand below it.
    pub is_block: bool,
    /// The type whose fields are the keys below it, by its name in the schema.
    #[serde(skip)]
    pub section: Option<String>,
    /// It says how a value is drawn: `mean`, `from` or `to`.
    #[serde(skip)]
    pub is_by_chance: bool,
}

impl Key {
    /// The range with the unit of a number: `1 to 9999 hops`.
    pub fn limits(&self) -> Option<String> {
        let range = self.range.as_ref()?;
        let unit = self.unit.as_deref().filter(|unit| self.is_number && *unit != NO_UNIT);
        Some(unit.map_or_else(|| range.clone(), |unit| format!("{range} {unit}")))
    }

    /// The last step of its path.
    pub fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default().trim_end_matches("[]")
    }
}

/// Every key of the file that this schema describes, blocks before what is in them.
pub fn keys(schema: &Json) -> Vec<Key> {
    all(schema).into_iter().filter(|key| !key.is_by_chance).collect()
}

/// The keys of values by chance: `mean`, `from` and `to`. Pages have them with the value, which says how it is drawn.
pub fn keys_by_chance(schema: &Json) -> Vec<Key> {
    all(schema).into_iter().filter(|key| key.is_by_chance).collect()
}

fn all(schema: &Json) -> Vec<Key> {
    let mut list = Vec::new();
    add("", Sub::whole(schema), &mut Vec::new(), &mut list);
    list
}

fn add<'a>(path: &str, sub: Sub<'a>, open: &mut Vec<&'a str>, list: &mut Vec<Key>) {
    let dot = if path.is_empty() { "" } else { "." };
    // The range of a value also holds for its mean and its bounds.
    let range = sub.schema["x-range"].as_str();
    for meant in sub.meant() {
        let is_by_chance = is_by_chance(meant.schema);
        let required = meant.schema["required"].as_array();
        for (key, schema) in objects(&meant.schema["properties"]) {
            let path = format!("{path}{dot}{key}");
            if list.iter().any(|known| known.path == path) {
                continue;
            }
            let is_required = required.is_some_and(|all| all.iter().any(|name| name == key));
            let mut key = of(&path, sub.at(schema), is_required);
            if is_by_chance {
                key.is_by_chance = true;
                key.range = range.map(str::to_owned).or(key.range);
            }
            list.push(key);
            enter(&path, sub.at(schema), open, list);
        }
        if meant.schema["items"].is_object() {
            enter(&format!("{path}[]"), sub.at(&meant.schema["items"]), open, list);
        }
        if meant.schema["additionalProperties"].is_object() {
            enter(&format!("{path}.NAME"), sub.at(&meant.schema["additionalProperties"]), open, list);
        }
    }
}

/// The keys of a value by chance belong to the value.
pub(super) fn is_by_chance(schema: &Json) -> bool {
    let of = schema["properties"].as_object();
    of.is_some_and(|of| of.keys().all(|key| ["mean", "from", "to"].contains(&key.as_str())))
}

/// Goes on below a definition, unless that is open already.
fn enter<'a>(path: &str, sub: Sub<'a>, open: &mut Vec<&'a str>, list: &mut Vec<Key>) {
    match sub.schema["$ref"].as_str() {
        Some(name) if open.contains(&name) => {}
        Some(name) => {
            open.push(name);
            add(path, sub, open, list);
            open.pop();
        }
        None => add(path, sub, open, list),
    }
}

fn objects(value: &Json) -> impl Iterator<Item = (&str, &Json)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

/// The words for the unit of a key's values.
pub(super) fn unit_of<'a>(sub: Sub<'a>, name: &str) -> Option<&'a str> {
    let is_number = sub.meant().iter().any(|one| has_type(one.schema, &["integer", "number"]));
    let ended = UNITS.iter().find(|(ending, _)| is_number && name.ends_with(ending)).map(|(_, unit)| *unit);
    sub.schema["x-unit"].as_str().or(quantity(sub).map(|(_, unit, _)| *unit)).or(ended)
}

/// The range of a key's values: its own, or its type's.
pub(super) fn limits_of(sub: Sub<'_>) -> Option<String> {
    let own = sub.schema["x-range"].as_str().map(str::to_owned);
    let by_type = || sub.meant().iter().find_map(|one| ends(one.schema));
    own.or_else(|| quantity(sub).map(|(.., range)| (*range).to_owned())).or_else(by_type)
}

fn quantity(sub: Sub<'_>) -> Option<&'static (&'static str, &'static str, &'static str)> {
    sub.meant().iter().find_map(|one| {
        let name = one.schema["$ref"].as_str()?.strip_prefix("#/$defs/")?;
        QUANTITIES.iter().find(|(known, ..)| name.trim_start_matches("Drawn") == *known)
    })
}

fn of(path: &str, sub: Sub<'_>, required: bool) -> Key {
    let (schema, meant) = (sub.schema, sub.meant());
    let name = path.rsplit('.').next().unwrap_or_default();
    let is_number = meant.iter().any(|one| has_type(one.schema, &["integer", "number"]));
    let (unit, range) = (unit_of(sub, name), limits_of(sub));
    let said =
        schema["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let (meaning, in_words) = without_default(&said, (range.as_deref(), unit));
    let is_block = meant.iter().any(|one| one.schema["properties"].is_object() && !is_by_chance(one.schema));
    let default = schema.get("default").filter(|value| !(value.is_null() || is_block && value.is_object()));
    let default_of_code = default.map(plain);
    // Words say more, such as the cases in which another default holds.
    let default = in_words.or_else(|| default_of_code.clone());
    Key {
        path: path.to_owned(),
        required,
        value: form(sub),
        unit: unit.map(str::to_owned),
        range,
        default,
        default_of_code,
        meaning,
        choices: choices(sub),
        is_number,
        is_block,
        section: section(sub).map(str::to_owned),
        is_by_chance: false,
    }
}

/// The type that a block, or each entry of a list or map, is made of.
fn section(sub: Sub<'_>) -> Option<&str> {
    sub.meant().into_iter().find_map(|one| {
        let name = one.schema["$ref"].as_str().and_then(|text| text.strip_prefix("#/$defs/"));
        let below = ["items", "additionalProperties"].map(|word| &one.schema[word]);
        let inner =
            || below.into_iter().filter(|schema| schema.is_object()).find_map(|of| section(one.at(of)));
        name.filter(|name| one.root["$defs"][name]["properties"].is_object()).or_else(inner)
    })
}

fn has_type(schema: &Json, kinds: &[&str]) -> bool {
    let is = |kind: &Json| kind.as_str().is_some_and(|kind| kinds.contains(&kind));
    is(&schema["type"]) || schema["type"].as_array().is_some_and(|all| all.iter().any(is))
}

/// The ends that the type of a number has.
fn ends(schema: &Json) -> Option<String> {
    let least = schema.get("minimum")?;
    Some(match schema.get("maximum") {
        Some(most) => format!("{least} to {most}"),
        None => format!("{least} or more"),
    })
}

/// A value as a file has it.
fn plain(value: &Json) -> String {
    match (value.as_str(), value.as_f64().filter(|_| value.is_f64())) {
        (Some(text), _) => text.to_owned(),
        (None, Some(number)) => number.to_string(),
        (None, None) => value.to_string(),
    }
}

/// The sentence without what it says in parentheses of the default and the range, and the default.
fn without_default(said: &str, (range, unit): (Option<&str>, Option<&str>)) -> (String, Option<String>) {
    let (mut meaning, mut default) = (String::new(), None);
    let mut rest = said;
    while let Some((before, (inside, after))) =
        rest.split_once(" (").and_then(|(before, rest)| Some((before, rest.split_once(')')?)))
    {
        meaning.push_str(before);
        let with_unit = format!("{} {}", range.unwrap_or_default(), unit.unwrap_or_default());
        let is_range =
            |clause: &str| Some(clause) == range || clause == with_unit || clause.starts_with("at least ");
        let mut kept = Vec::new();
        for clause in inside.split("; ") {
            match clause.strip_prefix("default") {
                Some(value) => {
                    debug_assert!(default.is_none(), "two defaults in: {said}");
                    default = Some(value.trim_start_matches(':').trim().to_owned());
                }
                None if is_range(clause) => {}
                // A default in two parts: with one setting, and with another.
                None if clause.starts_with("with ") => {
                    default = default.map(|value| format!("{value}; {clause}"));
                }
                None => kept.push(clause),
            }
        }
        if !kept.is_empty() {
            meaning.push_str(&format!(" ({})", kept.join("; ")));
        }
        rest = after;
    }
    meaning.push_str(rest);
    (meaning, default)
}
