//! Records as a table: a row for each run.

use std::fmt::Write as _;

use serde_json::Value;

use super::metric::METRICS;
use super::record::Record;

pub fn table(records: &[Record]) -> String {
    let paths: Vec<&String> = records.first().iter().flat_map(|record| record.point.keys()).collect();
    let mut text = "id,scenario,".to_owned();
    paths.iter().for_each(|path| {
        let _ = write!(text, "{},", quoted(path));
    });
    text += "arm,seed,block,counted_s";
    METRICS.iter().for_each(|metric| {
        let _ = write!(text, ",{}", metric.name);
    });
    text.push('\n');
    for record in records {
        let _ = write!(text, "{},{},", record.id, quoted(&record.scenario));
        for path in &paths {
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
        text.push('\n');
    }
    text
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
