//! The values that a key takes, in words.

use serde::Serialize;
use serde_json::Value as Json;

use super::Sub;
use super::list::is_by_chance;

/// A word that a key takes, with its meaning.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The word in the file.
    pub word: String,
    /// The meaning, as a sentence.
    pub meaning: String,
}

/// The words that a key takes and that have meanings of their own.
pub(super) fn choices(sub: Sub<'_>) -> Vec<Choice> {
    let text =
        |value: &Json| value.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let meant = sub.meant();
    let all = meant.iter().flat_map(|one| items(&one.schema["oneOf"]));
    all.map(|one| Choice { word: text(&one["const"]), meaning: text(&one["description"]) }).collect()
}

/// The values in words: `whole number`, `list of keys`, `time or off`.
pub(super) fn form(sub: Sub<'_>) -> String {
    let Sub { root, schema } = sub;
    if let Some(name) = schema["$ref"].as_str().and_then(|text| text.strip_prefix("#/$defs/")) {
        let definition = &root["$defs"][name];
        let is_quantity = definition["pattern"].is_string();
        return if is_quantity { name.to_lowercase() } else { form(sub.at(definition)) };
    }
    let quoted =
        |value: &Json| format!("`{}`", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let words: Vec<_> = items(&schema["oneOf"]).map(|one| quoted(&one["const"])).collect();
    if !words.is_empty() {
        return words.join(", ");
    }
    if schema["enum"].is_array() {
        // YAML 1.1 reads `off` as false: the schema has both, and readers need one.
        let is_off = items(&schema["enum"]).any(|one| one == "off");
        let named = items(&schema["enum"]).filter(|one| !(is_off && one.is_boolean()));
        return named.map(quoted).collect::<Vec<_>>().join(", ");
    }
    if schema["anyOf"].is_array() {
        return either(sub);
    }
    if let Some(properties) = schema["properties"].as_object() {
        let names = || properties.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        return if is_by_chance(schema) { format!("`{{ {} }}`", names()) } else { "keys".to_owned() };
    }
    if schema["items"].is_object() {
        return format!("list of {}", several(&form(sub.at(&schema["items"]))));
    }
    if schema["additionalProperties"].is_object() {
        return format!("map of names to {}", several(&form(sub.at(&schema["additionalProperties"]))));
    }
    kinds(&schema["type"])
}

/// The form of several values: `list of numbers` holds values of the form `number`.
fn several(form: &str) -> String {
    let (noun, rest) = form.split_at(form.find(" of ").unwrap_or(form.len()));
    let is_one_noun = ["number", "text", "list", "map"].iter().any(|one| noun.ends_with(one));
    if is_one_noun { format!("{noun}s{rest}") } else { form.to_owned() }
}

fn items(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten().filter(|item| item["type"] != "null")
}

/// One of several forms. The names of agents are examples of texts, and too many for a line.
fn either(sub: Sub<'_>) -> String {
    let all = &sub.schema["anyOf"];
    let is_text = items(all).any(|one| one["type"] == "string");
    let of_use = items(all).filter(|one| !(is_text && one["enum"].is_array()));
    let mut forms: Vec<_> = of_use.map(|one| form(sub.at(one))).collect();
    forms.dedup();
    forms.join(" or ")
}

fn kinds(kinds: &Json) -> String {
    let name = |kind: &Json| {
        Some(match kind.as_str()? {
            "integer" => "whole number",
            "number" => "number",
            "string" => "text",
            "boolean" => "`true`, `false`",
            "array" => "list",
            "object" => "map of names to values",
            _ => return None,
        })
    };
    let one = name(kinds).into_iter();
    one.chain(items(kinds).filter_map(name)).collect::<Vec<_>>().join(" or ")
}
