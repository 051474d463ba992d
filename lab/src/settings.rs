//! Settings as paths with their values, and their differences.

use serde_json::Value;

use crate::scenario::point::plain;

/// The most differences in a message; settings with more of them belong to another trial.
const MOST_LINES: usize = 3;

/// Every path with its value, in the form that people write.
pub(crate) fn flatten(value: &Value) -> Vec<(String, String)> {
    let mut flat = Vec::new();
    collect("", value, &mut flat);
    flat
}

fn collect(path: &str, value: &Value, into: &mut Vec<(String, String)>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            entries.iter().for_each(|(key, value)| collect(&below(key), value, into));
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            items.iter().enumerate().for_each(|(nth, item)| collect(&below(&nth.to_string()), item, into));
        }
        Value::Array(items) => {
            into.push((path.to_owned(), items.iter().map(plain).collect::<Vec<_>>().join(", ")));
        }
        other => into.push((path.to_owned(), plain(other))),
    }
}

/// Differences between two settings: `run.duration is 10s here and 20s there`. None if there are none.
pub(crate) fn difference(here: &Value, there: &Value) -> Option<String> {
    let (here, there) = (flatten(here), flatten(there));
    let of = |all: &[(String, String)], path: &str| {
        all.iter().find(|(known, _)| known == path).map_or("nothing".to_owned(), |(_, value)| value.clone())
    };
    let mut lines = Vec::new();
    for (path, _) in here.iter().chain(&there) {
        let (one, other) = (of(&here, path), of(&there, path));
        let line = format!("{path} is {one} here and {other} there");
        if one != other && !lines.contains(&line) {
            lines.push(line);
        }
    }
    let more = if lines.len() > MOST_LINES { ", and more" } else { "" };
    lines.truncate(MOST_LINES);
    (!lines.is_empty()).then(|| format!("{}{more}", lines.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_is_told_by_its_path_and_both_values() {
        let one = json!({ "run": { "duration": "10s" }, "traffic": [{ "to": "n8" }], "same": [1, 2] });
        let other = json!({ "run": { "duration": "20s" }, "traffic": [{ "to": "n8", "start": "1s" }], "same": [1, 2] });
        assert_eq!(
            difference(&one, &other).as_deref(),
            Some("run.duration is 10s here and 20s there, traffic.0.start is nothing here and 1s there")
        );
        assert_eq!(difference(&one, &one), None);
    }

    #[test]
    fn of_many_differences_the_first_are_told() {
        let many = |value: u32| json!({ "a": value, "b": value, "c": value, "d": value, "e": value });
        let lines = difference(&many(1), &many(2)).expect("they differ");
        assert_eq!(
            lines,
            "a is 1 here and 2 there, b is 1 here and 2 there, c is 1 here and 2 there, and more"
        );
    }
}
