//! Records as a table: a row for each run.
//!
//! By hand: the crate `csv` quotes as well, but it does not disarm formulas.

use std::fmt::Write as _;

use super::metric::METRICS;
use super::record::Record;

/// The columns; `paths` are those that vary by point or by arm.
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

/// The line of one run, under [`header`] with the same `paths`.
pub fn row(record: &Record, paths: &[&str]) -> String {
    let mut text = format!("{},{},", record.id, quoted(&record.scenario));
    for path in paths {
        let value = record.varied(path).unwrap_or_default();
        // A negative number is no formula.
        let cell = if value.parse::<f64>().is_ok() { value } else { quoted(&value) };
        let _ = write!(text, "{cell},");
    }
    let arm = quoted(&record.arm);
    let _ = write!(text, "{arm},{},{},{}", record.seed, record.block, record.result.counted_s);
    for metric in METRICS {
        let value = (metric.of)(&record.result).map_or(String::new(), |value| value.to_string());
        let _ = write!(text, ",{value}");
    }
    text + "\n"
}

/// RFC 4180. A text that a spreadsheet would take for a formula gets an apostrophe before it.
pub(crate) fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let apostrophe = if formula { "'" } else { "" };
    match formula || text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{apostrophe}{}\"", text.replace('"', "\"\"")),
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
        assert_eq!(quoted("=1+1"), "\"'=1+1\"");
        assert_eq!(quoted("-2+3,@x"), "\"'-2+3,@x\"");
    }
}
