//! The keys of scenarios as a page for readers: a table for each block of a scenario.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

const HEAD: &str = "\
# Keys of a scenario

Written by a test from the schema, as `hopwise schema --markdown` prints it. `hopwise schema` prints the schema itself,
with which editors complete and check scenarios. `traffic[]` is an entry of the list `traffic`; `arms.NAME` is what
stands under any name in `arms`.
";

/// A block of keys.
struct Block<'a> {
    path: String,
    schema: &'a Value,
}

struct Page<'a> {
    whole: &'a Value,
    blocks: Vec<Block<'a>>,
    /// The paths at which definitions come first, by their names.
    paths: BTreeMap<&'a str, String>,
}

/// The whole of `docs/scenario.md`.
pub(super) fn page(whole: &Value) -> String {
    let mut page = Page { whole, blocks: Vec::new(), paths: BTreeMap::new() };
    page.collect("", whole);
    let mut text = HEAD.to_owned();
    for (name, definition) in
        objects(&whole["$defs"]).filter(|(_, definition)| definition["pattern"].is_string())
    {
        write!(text, "\n- *{}* is {}", name.to_lowercase(), prose(definition)).expect("a text grows");
    }
    text.push('\n');
    for block in &page.blocks {
        page.write(block, &mut text);
    }
    text
}

fn objects(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten().filter(|item| item["type"] != "null")
}

/// The description in one line, as a cell of a table holds it.
fn prose(schema: &Value) -> String {
    let words: Vec<_> = schema["description"].as_str().unwrap_or_default().split_whitespace().collect();
    words.join(" ").replace('|', "\\|")
}

/// The name by which links find a heading.
fn anchor(path: &str) -> String {
    path.to_lowercase().chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
}

impl<'a> Page<'a> {
    /// The name and the schema that a reference names.
    fn named(&self, schema: &'a Value) -> Option<(&'a str, &'a Value)> {
        let name = schema["$ref"].as_str()?.strip_prefix("#/$defs/")?;
        Some((name, &self.whole["$defs"][name]))
    }

    /// Puts a block of keys down with all blocks below it, each where it comes first.
    fn collect(&mut self, path: &str, schema: &'a Value) {
        if schema["properties"].is_object() {
            self.blocks.push(Block { path: path.to_owned(), schema });
        }
        let dot = if path.is_empty() { "" } else { "." };
        for (key, value) in objects(&schema["properties"]) {
            self.descend(&format!("{path}{dot}{key}"), value);
        }
    }

    fn descend(&mut self, path: &str, schema: &'a Value) {
        if let Some((name, definition)) = self.named(schema) {
            let is_block = definition["properties"].is_object();
            if is_block && !self.paths.contains_key(name) {
                self.paths.insert(name, path.to_owned());
                self.collect(path, definition);
            } else if !is_block {
                self.descend(path, definition);
            }
        }
        items(&schema["anyOf"]).for_each(|one| self.descend(path, one));
        if schema["items"].is_object() {
            self.descend(&format!("{path}[]"), &schema["items"]);
        }
        if schema["additionalProperties"].is_object() {
            self.descend(&format!("{path}.NAME"), &schema["additionalProperties"]);
        }
    }

    fn write(&self, block: &Block<'_>, text: &mut String) {
        let heading = if block.path.is_empty() { "The file".to_owned() } else { format!("`{}`", block.path) };
        write!(text, "\n## {heading}\n\n{}\n\n", prose(block.schema)).expect("a text grows");
        text.push_str("| key | value | meaning |\n|---|---|---|\n");
        for (key, schema) in objects(&block.schema["properties"]) {
            let needed = items(&block.schema["required"]).any(|name| name == key);
            let needed = if needed { ", required" } else { "" };
            let meaning = self.meaning(schema);
            writeln!(text, "| `{key}` | {}{needed} | {meaning} |", self.form(schema)).expect("a text grows");
        }
    }

    /// The meaning of a key, and of each choice that it has.
    fn meaning(&self, schema: &'a Value) -> String {
        let mut meaning = prose(schema);
        let inner = items(&schema["anyOf"]).next().unwrap_or(schema);
        let choices = self.named(inner).map_or(inner, |(_, definition)| definition);
        for choice in items(&choices["oneOf"]) {
            let name = choice["const"].as_str().unwrap_or_default();
            write!(meaning, " `{name}`: {}", prose(choice)).expect("a text grows");
        }
        meaning
    }

    /// The values that a key takes.
    fn form(&self, schema: &'a Value) -> String {
        if let Some((name, definition)) = self.named(schema) {
            return if let Some(path) = self.paths.get(name) {
                format!("[keys](#{})", anchor(path))
            } else if definition["pattern"].is_string() {
                name.to_lowercase()
            } else {
                self.form(definition)
            };
        }
        let quoted =
            |value: &Value| format!("`{}`", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let choices: Vec<_> = items(&schema["oneOf"]).map(|choice| quoted(&choice["const"])).collect();
        if !choices.is_empty() {
            return choices.join(", ");
        }
        if schema["enum"].is_array() {
            return items(&schema["enum"]).map(quoted).collect::<Vec<_>>().join(", ");
        }
        if schema["anyOf"].is_array() {
            return self.either(schema);
        }
        if schema["properties"].is_object() {
            let keys: Vec<_> = objects(&schema["properties"]).map(|(key, _)| key).collect();
            return format!("`{{ {} }}`", keys.join(", "));
        }
        if schema["items"].is_object() {
            return format!("list of {}", self.form(&schema["items"]));
        }
        if schema["additionalProperties"].is_object() {
            return format!("names with {}", self.form(&schema["additionalProperties"]));
        }
        kinds(&schema["type"])
    }

    /// One of several forms. The names of agents are examples of texts, and too many for a cell.
    fn either(&self, schema: &'a Value) -> String {
        let is_text = items(&schema["anyOf"]).any(|one| one["type"] == "string");
        let of_use = items(&schema["anyOf"]).filter(|one| !(is_text && one["enum"].is_array()));
        let mut forms: Vec<_> = of_use.map(|one| self.form(one)).collect();
        forms.dedup();
        forms.join(" or ")
    }
}

fn kinds(kinds: &Value) -> String {
    let name = |kind: &Value| {
        Some(match kind.as_str()? {
            "integer" => "whole number",
            "number" => "number",
            "string" => "text",
            "boolean" => "`true`, `false`",
            "array" => "list",
            "object" => "names with values",
            _ => return None,
        })
    };
    let one = name(kinds).into_iter();
    one.chain(items(kinds).filter_map(name)).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::page;

    fn made() -> String {
        page(&hopwise_lab::scenario::json_schema())
    }

    #[test]
    fn the_book_has_the_keys_of_the_schema() {
        crate::book::holds("docs/scenario.md", &made());
    }

    #[test]
    fn every_key_has_a_meaning_and_a_value() {
        let made = made();
        for row in made.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            assert!(cells.len() >= 3 && !cells[1].is_empty() && !cells[2].is_empty(), "{row}");
        }
        for row in
            ["| `hops` | whole number | Number of hops", "| `kind` | `chain`, `cross`", "| `duration` | time"]
        {
            assert!(made.contains(row), "{row}: {made}");
        }
    }
}
