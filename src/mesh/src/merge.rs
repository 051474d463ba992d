//! `hopwise mesh merge`: the recordings of several nodes as one field.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use hopwise_air::channel::recording::{MergedRecording, RecordingFile, merge};
use hopwise_lab::named;
use serde::Serialize;

use super::record::NodeName;
use hopwise_daemon::failure::{self, Failure, remark, say};
use hopwise_daemon::table;

/// The largest file that is read, as for a trace of a channel.
const LARGEST_MIB: u64 = 256;

/// Join recordings of several nodes into one field, for `channel: { trace: FILE }`
#[derive(Args, Debug)]
#[command(after_help = "\
The files are those of `hopwise mesh record`, with one interval. Their clocks are believed, and have to agree within
that interval. The field begins once all nodes record. A node's own file tells the name of its radio; --node names those
that recorded nothing. Stations without a name are left out.

Examples:
  hopwise mesh merge gate.csv roof.csv shed.csv --out field.csv
  hopwise mesh merge gate.csv roof.csv --node 02:00:00:00:00:03=shed --out field.csv --json
  hopwise run configs/field.yaml --set channel.trace=field.csv")]
pub(crate) struct Arguments {
    /// Recordings to join, or a single one to name its stations
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Name of a node, by the address of its radio; repeatable
    #[arg(long, value_name = "ADDRESS=NAME")]
    node: Vec<NodeName>,
    /// Print what is in the field as one JSON object
    #[arg(long)]
    json: bool,
}

/// The file that was written.
#[derive(Debug, Serialize)]
struct MergeReport {
    out: String,
    nodes: Vec<String>,
    every_s: f64,
    began_s: f64,
    length_s: f64,
    rows: u64,
    links: Vec<LinkSummary>,
    /// The time before the last node began to record, which is left out.
    skipped_s: f64,
    /// The file of that node.
    last_begun: Option<String>,
    /// Stations without a name, whose rows are left out.
    strangers: Vec<String>,
    /// Files that end within a line, which is left out.
    cut: Vec<String>,
}

#[derive(Debug, Serialize)]
struct LinkSummary {
    from: String,
    to: String,
    signals: u64,
    counts: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { files, out, node, json } = arguments;
    refuse_own(files, out)?;
    let names: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
    let texts = files.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let sources: Vec<_> = names.iter().zip(&texts).map(|(name, text)| RecordingFile { name, text }).collect();
    let given: Vec<_> = node.iter().map(|NodeName(address, name)| (*address, name.clone())).collect();
    let merged = merge(&sources, &given).map_err(|refused| {
        let error = refused.error;
        Failure::refused(format!("{}:{}:{}", names[refused.file], error.line, error.column), error)
    })?;
    named::write(out, &merged.text).map_err(|error| Failure::refused(out.display().to_string(), error))?;
    let report = MergeReport::of(merged, out, &names);
    report.remarks().iter().for_each(|line| remark(line));
    if *json { say(&failure::json(&report)?) } else { say(&report.page()) }
}

/// A recording that is read may not be written over.
fn refuse_own(files: &[PathBuf], out: &Path) -> Result<(), Failure> {
    let Ok(real) = out.canonicalize() else { return Ok(()) };
    if files.iter().any(|path| path.canonicalize().is_ok_and(|path| path == real)) {
        let problem = "it is one of the recordings to join: expected another name after --out";
        return Err(Failure::refused(out.display().to_string(), problem));
    }
    Ok(())
}

/// A loss of power may leave any bytes behind the last whole line.
fn read(path: &Path) -> Result<String, Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::refused(path.display().to_string(), error);
    let mut bytes = Vec::new();
    let file = named::open(path).map_err(|error| refused(&error))?;
    file.take((LARGEST_MIB << 20) + 1).read_to_end(&mut bytes).map_err(|error: io::Error| refused(&error))?;
    if bytes.len() as u64 > LARGEST_MIB << 20 {
        return Err(refused(&format!("expected a recording of at most {LARGEST_MIB} MiB")));
    }
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let rest = String::from_utf8_lossy(&bytes[whole..]).into_owned();
    bytes.truncate(whole);
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text + &rest),
        Err(error) => {
            let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            Err(Failure::refused(format!("{}:{line}", path.display()), "it is no text, expected a recording"))
        }
    }
}

impl MergeReport {
    fn of(merged: MergedRecording, out: &Path, files: &[String]) -> MergeReport {
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let link = |link: hopwise_air::channel::recording::MergedLink| LinkSummary {
            from: link.from,
            to: link.to,
            signals: link.signals,
            counts: link.counts,
        };
        MergeReport {
            out: out.display().to_string(),
            nodes: merged.names,
            every_s: seconds(merged.every_ns),
            began_s: seconds(merged.began_ns),
            length_s: seconds(merged.length_ns),
            rows: merged.rows,
            links: merged.links.into_iter().map(link).collect(),
            skipped_s: merged.skipped.map_or(0.0, |(time, _)| seconds(time)),
            last_begun: merged.skipped.map(|(_, file)| files[file].clone()),
            strangers: merged.strangers.iter().map(ToString::to_string).collect(),
            cut: merged.cut.iter().map(|(file, line)| format!("{}:{line}", files[*file])).collect(),
        }
    }

    fn remarks(&self) -> Vec<String> {
        let cut =
            |place: &String| format!("{place}: the line is cut short, as after a kill, and is left out");
        let mut lines: Vec<_> = self.cut.iter().map(cut).collect();
        if let Some(file) = &self.last_begun {
            lines.push(format!("the first {:.1} s are left out: {file} begins then", self.skipped_s));
        }
        if !self.strangers.is_empty() {
            let all = self.strangers.join(", ");
            lines
                .push(format!("stations without a name are left out: {all}; --node ADDRESS=NAME names them"));
        }
        let heard: BTreeSet<_> =
            self.links.iter().filter(|link| link.signals > 0).map(|link| (&link.from, &link.to)).collect();
        let one_way = heard.iter().filter(|(from, to)| !heard.contains(&(*to, *from)));
        lines.extend(one_way.map(|(from, to)| {
            format!(
                "{from} hears nothing of {to}: it is out of reach that way, as without a recording of {from}"
            )
        }));
        lines
    }

    fn page(&self) -> String {
        let row = |link: &LinkSummary| {
            vec![link.from.clone(), link.to.clone(), link.signals.to_string(), link.counts.to_string()]
        };
        let rows: Vec<_> = self.links.iter().map(row).collect();
        let mut lines = table::lines(&["from", "to", "signals", "counts"], &rows);
        let MergeReport { out, nodes, length_s, rows, .. } = self;
        lines.push(format!(
            "{out}: {rows} rows of {} nodes ({}), {length_s:.1} s",
            nodes.len(),
            nodes.join(", ")
        ));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_tells_what_is_left_out_and_which_way_is_missing() {
        let link = |from: &str, to: &str, signals| LinkSummary {
            from: from.into(),
            to: to.into(),
            signals,
            counts: 3,
        };
        let report = MergeReport {
            out: "field.csv".into(),
            nodes: vec!["gate".into(), "roof".into()],
            every_s: 0.1,
            began_s: 0.0,
            length_s: 12.34,
            rows: 7,
            links: vec![link("gate", "roof", 4), link("roof", "gate", 0)],
            skipped_s: 2.0,
            last_begun: Some("roof.csv".into()),
            strangers: vec!["02:00:00:00:00:07".into()],
            cut: vec!["gate.csv:9".into()],
        };
        assert!(
            report.page().ends_with("\nfield.csv: 7 rows of 2 nodes (gate, roof), 12.3 s"),
            "{}",
            report.page()
        );
        let remarks = report.remarks();
        assert!(remarks[0].starts_with("gate.csv:9: the line is cut short"), "{remarks:?}");
        assert_eq!(remarks[1], "the first 2.0 s are left out: roof.csv begins then");
        assert!(remarks[2].contains("02:00:00:00:00:07; --node ADDRESS=NAME"), "{remarks:?}");
        assert_eq!(remarks.len(), 4);
        assert!(remarks[3].starts_with("gate hears nothing of roof"), "{remarks:?}");
    }
}
