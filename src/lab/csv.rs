//! Records as a table: a row for each run.

use std::fmt::Write as _;

use serde_json::Value;

use super::metric::METRICS;
use super::record::Record;

/// The columns; `paths` are those of the matrix.
pub fn header(paths: &[&str]) -> String {
    let mut text = "id,scenario,".to_owned();
    for path in paths {
        let _ = write!(text, "{},", quoted(path));
    }
    text += "arm,seed,block,counted_s";
    for metric in METRICS {
        let _ = write!(text, ",{}", metric.name);
    }
    text + "\n"
}

pub fn row(record: &Record, paths: &[&str]) -> String {
    let mut text = format!("{},{},", record.id, quoted(&record.scenario));
    for path in paths {
        let value = record.point.get(*path).map_or(String::new(), |value| match value {
            Value::String(value) => value.clone(),
            value => value.to_string(),
        });
        let _ = write!(text, "{},", quoted(&value));
    }
    let arm = quoted(&record.arm);
    let _ = write!(text, "{arm},{},{},{}", record.seed, record.block, record.result.counted_s);
    for metric in METRICS {
        let value = (metric.of)(&record.result).map_or(String::new(), |value| value.to_string());
        let _ = write!(text, ",{value}");
    }
    text + "\n"
}

/// RFC 4180.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_part_a_row_is_quoted() {
        assert_eq!(quoted("[newreno, \"limit:4\"]"), "\"[newreno, \"\"limit:4\"\"]\"");
        assert_eq!(quoted("dca"), "dca");
    }
}
