//! Prints a measurement: its progress, and its result for people or for a program.

use std::io::{self, IsTerminal, Write};

use hopwise_core::millis;
use hopwise_lab::units::Size;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::Arguments;
use super::report::{FlowReport, MeasurementReport, ProcessCost, RequestRoundTrips, Total};
use crate::measure::protocol::{FlowWork, MeasurementPlan};
use crate::measure::{rate, rate_of};
use hopwise_daemon::failure::{Failure, json};

/// The result as a page, or as one JSON object.
pub(super) fn result(report: &MeasurementReport, is_json: bool) -> Result<String, Failure> {
    if is_json { Ok(json(report)? + "\n") } else { Ok(page(report)) }
}

const COLUMNS: [&str; 10] =
    ["flow", "from", "to", "hops", "delivered", "goodput", "resent", "acks", "receiver", "sender"];

pub(super) fn page(report: &MeasurementReport) -> String {
    let rows: Vec<_> = report.flows.iter().map(row).collect();
    let mut lines = hopwise_daemon::table::lines(&COLUMNS, &rows);
    for flow in &report.flows {
        lines.extend(flow.shadows.iter().map(|shadow| format!("{}: {shadow}", flow.id)));
    }
    if report.flows.len() > 1 {
        let Total { goodput_kbps, jain } = report.total;
        lines.push(format!("total {}, Jain's index {jain:.3}", rate(goodput_kbps)));
    }
    if let Some(RequestRoundTrips { count, per_s, mean_us, p50_us, p99_us, max_us, .. }) = report.requests {
        lines.push(format!(
            "{count} round trips, {per_s:.0}/s; mean {mean_us:.0} µs, median {p50_us}, p99 {p99_us}, max {max_us}"
        ));
    }
    if let Some(sha256) = &report.sha256 {
        let verdict = if sha256.matches { "the same at both ends" } else { "DIFFERENT at the other end" };
        lines.push(format!("SHA-256 {}, {verdict}", sha256.sent));
    }
    let ProcessCost { cpu_s, peak_rss_mib, .. } = report.cost;
    lines.push(format!(
        "{:.2} s, this end used {cpu_s:.2} s of CPU and {peak_rss_mib:.1} MiB",
        report.counted_s
    ));
    lines.join("\n") + "\n"
}

fn row(flow: &FlowReport) -> Vec<String> {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    vec![
        flow.id.clone(),
        flow.from.clone(),
        flow.to.clone(),
        or_dash(flow.hops.zip(flow.hops_source.as_ref()).map(|(hops, source)| format!("{hops} ({source})"))),
        Size(flow.bytes_delivered).to_string(),
        rate(flow.goodput_kbps),
        or_dash(
            flow.sent.as_ref().map(|sent| format!("{}/{}", sent.segments_retransmitted, sent.segments_sent)),
        ),
        or_dash(flow.acked.as_ref().map(|acked| acked.acks_sent.to_string())),
        or_dash(flow.receiver.clone()),
        or_dash(flow.sender.as_ref().map(|sender| sender.join(" "))),
    ]
}

/// The progress of a measurement: a row for each interval, and a bar on a terminal.
pub(super) struct MeasurementProgress {
    bar: ProgressBar,
    bar_shows_bytes: bool,
    has_rows: bool,
    began: Instant,
    /// The last interval's end, and the bytes up to there.
    last: (Instant, u64),
}

impl MeasurementProgress {
    pub(super) fn begin(arguments: &Arguments, plan: &MeasurementPlan) -> MeasurementProgress {
        let bar_shows_bytes = matches!(plan.work, FlowWork::Bytes { .. } | FlowWork::File { .. });
        let has_rows = !arguments.json && !arguments.interval.0.is_zero();
        let (bar, began) = (bar(plan, bar_shows_bytes, arguments.json), Instant::now());
        MeasurementProgress { bar, bar_shows_bytes, has_rows, began, last: (began, 0) }
    }

    /// Shows the number of bytes that have moved until now.
    pub(super) async fn tell(&mut self, now: Instant, total: u64) {
        let (began, last) = (self.began, self.last);
        self.bar.set_position(if self.bar_shows_bytes { total } else { millis(began.elapsed()) });
        if self.has_rows {
            let rate = rate_of(total - last.1, now - last.0);
            let (from, to) = ((last.0 - began).as_secs_f64(), (now - began).as_secs_f64());
            let size = Size(total - last.1).to_string();
            let row = format!("{from:6.2}-{to:<6.2} s  {size:>10}  {rate}\n");
            let bar = self.bar.clone();
            let write = move || bar.suspend(|| hopwise_lab::plain::out().write_all(row.as_bytes()));
            // A reader that stops still gets the measurement's exit status.
            let _ = tokio::task::spawn_blocking(write).await;
        }
        self.last = (now, total);
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn bar(plan: &MeasurementPlan, shows_bytes: bool, is_json: bool) -> ProgressBar {
    if is_json || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let all = match plan.work {
        FlowWork::Bytes { bytes } => bytes.saturating_mul(u64::from(plan.flows)),
        FlowWork::File { bytes } => bytes,
        FlowWork::BulkFor { micros } => micros / 1000,
        FlowWork::Requests { .. } => return ProgressBar::new_spinner(),
    };
    let template = if shows_bytes {
        "{bar:40} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}"
    } else {
        "{bar:40} {elapsed} of the time"
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(all).with_style(style)
}
