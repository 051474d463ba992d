//! The JSON Schema and serde accept one set of scenarios.

use serde_json::Value;

use super::{CHAIN, Scenario};
use crate::scenario::json_schema;

/// The part of JSON Schema that ours uses; an unknown word is a failure.
fn problem(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    let Some(schema) = schema.as_object() else {
        return (schema != &Value::Bool(true)).then(|| "nothing is accepted".to_owned());
    };
    let no = |what: String| Some(format!("{value}: {what}"));
    let list = |wanted: &Value| wanted.as_array().cloned().unwrap_or_default();
    for (word, wanted) in schema {
        let found = match word.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" | "format" | "writeOnly" => None,
            "additionalProperties" | "required" | "maxItems" | "x-range" | "x-unit" => None,
            "$ref" => {
                let name =
                    wanted.as_str().and_then(|name| name.strip_prefix("#/$defs/")).expect("a definition");
                problem(root, &root["$defs"][name], value)
            }
            "type" => {
                let types = if wanted.is_array() { list(wanted) } else { vec![wanted.clone()] };
                let is = types.iter().any(|name| is_a(name.as_str().expect("a name"), value));
                if is { None } else { no(format!("no {wanted}")) }
            }
            "enum" => {
                if list(wanted).contains(value) {
                    None
                } else {
                    no(format!("none of {wanted}"))
                }
            }
            "const" => {
                if wanted == value {
                    None
                } else {
                    no(format!("not {wanted}"))
                }
            }
            "anyOf" | "oneOf" => {
                let fits = |one: &Value| problem(root, one, value).is_none();
                if list(wanted).iter().any(fits) { None } else { no(format!("none of {wanted}")) }
            }
            "minimum" => {
                (value.as_f64() < wanted.as_f64() && value.is_number()).then(|| "too small".to_owned())
            }
            "maximum" => {
                (value.as_f64() > wanted.as_f64() && value.is_number()).then(|| "too large".to_owned())
            }
            "pattern" => {
                value.as_str().filter(|text| !has_unit(wanted, text)).map(|text| format!("{text}: no unit"))
            }
            "minItems" => short(value.as_array().map(Vec::len), wanted),
            "minProperties" => short(value.as_object().map(serde_json::Map::len), wanted),
            "items" => list(value).iter().find_map(|item| problem(root, wanted, item)),
            "properties" => of_object(root, schema, value),
            other => panic!("the test does not know `{other}`"),
        };
        if found.is_some() {
            return found;
        }
    }
    if schema.contains_key("additionalProperties") && !schema.contains_key("properties") {
        return of_object(root, schema, value);
    }
    None
}

fn short(len: Option<usize>, least: &Value) -> Option<String> {
    len.filter(|len| (*len as u64) < least.as_u64().unwrap_or(0)).map(|len| format!("only {len}"))
}

fn of_object(root: &Value, schema: &serde_json::Map<String, Value>, value: &Value) -> Option<String> {
    let entries = value.as_object()?;
    let missing = schema.get("required").and_then(Value::as_array);
    let missing =
        missing.into_iter().flatten().find(|key| !entries.contains_key(key.as_str().expect("a key")));
    let wrong = |(key, value): (&String, &Value)| {
        let of = schema.get("properties").and_then(|all| all.get(key)).or(schema.get("additionalProperties"));
        match of {
            Some(Value::Bool(false)) => Some(format!("unknown key {key}")),
            Some(of) => problem(root, of, value).map(|problem| format!("{key}: {problem}")),
            None => None,
        }
    };
    missing.map(|key| format!("{key} is missing")).or_else(|| entries.iter().find_map(wrong))
}

fn is_a(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type is called {other}"),
    }
}

/// Our patterns are numbers before one of several units.
fn has_unit(pattern: &Value, text: &str) -> bool {
    let pattern = pattern.as_str().expect("a pattern");
    let units = pattern.strip_prefix("^[0-9]+(\\.[0-9]+)? *(").and_then(|rest| rest.strip_suffix(")$"));
    let units = units.unwrap_or_else(|| panic!("the test does not know {pattern}"));
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim_start();
    text.starts_with(|c: char| c.is_ascii_digit()) && units.split('|').any(|known| known == unit)
}

fn check(text: &str) -> Option<String> {
    let schema = json_schema();
    problem(schema, schema, &serde_yaml::from_str(text).expect("it is YAML"))
}

fn configs(folder: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let below = folders.iter().flat_map(|path| configs(&path.to_string_lossy()));
    files.into_iter().filter(|path| path.extension().is_some_and(|e| e == "yaml")).chain(below).collect()
}

#[test]
fn every_scenario_in_configs_is_one_by_the_schema_and_by_serde() {
    let mut seen = 0;
    for path in configs(concat!(env!("CARGO_MANIFEST_DIR"), "/../configs")) {
        let text = std::fs::read_to_string(&path).expect("a text");
        if !text.contains("\ntraffic:") {
            continue;
        }
        assert_eq!(check(&text), None, "{}", path.display());
        let scenario = Scenario::load(&path, &[]).expect("it is read");
        scenario.asked().unwrap_or_else(|refusal| panic!("{refusal}"));
        seen += 1;
    }
    assert!(seen >= 4, "{seen}");
}

#[test]
fn what_serde_refuses_by_its_shape_the_schema_refuses_as_well() {
    for (from, to) in [
        ("title:", "titel:"),
        ("world: sim", "world: mars"),
        ("kind: chain", "kind: ring"),
        ("kind: chain, hops: 4", "kind: chain, hops: many"),
        ("rts_threshold: 0", "rts_threshold: none"),
        ("rules: ns2", "rules: ns3"),
        ("segment_bytes: 1000", "segment_bytes: 70000"),
        ("from: first, ", ""),
        ("kind: bulk", "kind: bulk, think: 5"),
        ("kind: bulk", "kind: bulk, bytes: { mean: 5kB, most: 7kB }"),
        ("sender: [newreno]", "sender: [7]"),
        ("sender: [newreno]", "sender: [null]"),
        ("arms:", "armes:"),
        ("duration: 300s", "duration: 300"),
        ("duration: 300s, ", ""),
        ("seeds: 5", "seeds: -5"),
        ("seeds: 5", "seeds: 5, stop: never"),
        ("protocol: static, rules: ns2", "protocol: aodv, net_diameter: 251"),
        ("protocol: static, rules: ns2", "protocol: aodv, net_diameter: many"),
        ("protocol: static, rules: ns2", "protocol: aodv, local_repair: 1"),
        ("protocol: static, rules: ns2", "protocol: aodv, ttl_begin: 1"),
        ("protocol: static, rules: ns2", "protocol: dsr, dsr: { request_period: 5 }"),
        ("protocol: static, rules: ns2", "protocol: dymo, dymo: { rreq_ratelimit: 4294967296 }"),
        ("protocol: static, rules: ns2", "protocol: gpsr, gpsr: { planar: hexagons }"),
    ] {
        assert!(CHAIN.contains(from), "{from}");
        let text = CHAIN.replacen(from, to, 1);
        let by_serde = Scenario::parse("a", &text, &[]).and_then(|scenario| scenario.asked());
        assert!(by_serde.is_err() && check(&text).is_some(), "{to}: {by_serde:?} {:?}", check(&text));
    }
}

#[test]
fn what_serde_accepts_the_schema_accepts_as_well() {
    for (from, to) in [
        (
            "kind: bulk",
            "kind: bulk, bytes: { from: 5kB, to: 7kB }, think: { mean: 1s }, start: 1.5s, stop: 2min",
        ),
        ("kind: bulk", "kind: request, request: 200B, response: { mean: 20kB }, repeat: 5, background: true"),
        ("rts_threshold: 0", "rts_threshold: off"),
        ("receiver: immediate, sender: [newreno]", "sender: cubic"),
        ("receiver: immediate", "receiver: immediate, set: { topology.hops: 2 }"),
        ("seeds: 5", "seeds: 5, margin: 5%, stop: all-seeds, baseline: x"),
        ("run:", "rules: [{ match: { direction: in, port: 5001, from: n1 }, receiver: delayed }]\nrun:"),
        ("run:", "matrix: { topology.hops: [1, 2], exclude: [{ topology.hops: 1 }] }\nrun:"),
        (
            "protocol: static, rules: ns2",
            "protocol: aodv, net_diameter: 250, jitter: 0s, my_route_timeout: null, local_repair: false, key: a, \
             ack_seq: true",
        ),
        ("protocol: static, rules: ns2", "protocol: dsr, dsr: null, gpsr: { planar: rng }, dymo: {}"),
    ] {
        assert!(CHAIN.contains(from), "{from}");
        let text = CHAIN.replacen(from, to, 1);
        let by_serde = Scenario::parse("a", &text, &[]).and_then(|scenario| scenario.asked());
        assert!(by_serde.is_ok(), "{to}: {by_serde:?}");
        assert_eq!(check(&text), None, "{to}");
    }
}

#[test]
fn editors_complete_the_names_of_all_agents() {
    let schema = json_schema().to_string();
    for agent in hopwise_agents::registry::all() {
        assert!(schema.contains(&format!("\"{}\"", agent.name)), "{}", agent.name);
    }
}

#[test]
fn the_schema_accepts_the_profiles_that_there_are() {
    let with =
        |profile: &str| check(&CHAIN.replacen("profile: dsss-2mbps", &format!("profile: {profile}"), 1));
    assert_eq!((with("ofdm-54mbps"), with("dsss-5.5mbps-short")), (None, None));
    assert!(with("dsss-3mbps").is_some());
}
