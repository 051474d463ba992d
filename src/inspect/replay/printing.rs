//! Prints the replay for people.

use std::fmt::Write as _;

use hopwise_lab::plain;

use super::findings::{Agent, Differs, End, Findings, Replayed};
use crate::table;

const OPEN_LOOP: &str = "\
Other agents got the arrivals that the ACKs of the live agent led to. Their own ACKs would have led to others, at\n\
other times. Their waits end where they decide; what the link then delays is not in them.\n";

pub(super) fn page(findings: &Findings) -> String {
    let mut page = String::new();
    for connection in &findings.connections {
        push(&mut page, connection);
    }
    sums(&mut page, findings);
    if findings.connections.iter().any(|connection| !connection.others.is_empty()) {
        page.push_str(OPEN_LOOP);
    }
    for note in &findings.notes {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "note: {}", plain::line(&note.replace('\n', " ")));
    }
    page
}

fn push(page: &mut String, connection: &Replayed) {
    let Replayed { number, from, to, receiver, end, arrivals, live, left, merged, .. } = connection;
    let ends = match end {
        End::Closed => "",
        End::Open => ", still open at the end of the log",
        End::Cut => ", cut by a gap in the log",
    };
    let verdict = if connection.difference.is_some() { "one differs" } else { "none differs" };
    // Writing to a String cannot fail.
    let _ = writeln!(page, "connection {number}, data from {from} to {to}, receiver {receiver}{ends}");
    let _ = writeln!(
        page,
        "  {}, {} ({} merged, {} left): {verdict}",
        counted(*arrivals, "arrival"),
        counted(live.acks, "ACK"),
        grouped(*merged),
        grouped(*left)
    );
    if let Some(differs) = &connection.difference {
        push_difference(page, differs);
    }
    // After a difference, the counts are those of the replay.
    let which = if connection.difference.is_some() { "again" } else { "live" };
    let rows: Vec<_> = std::iter::once(row(live, which))
        .chain(connection.others.iter().map(|other| row(other, "")))
        .collect();
    for line in table::lines(&COLUMNS, &rows) {
        let _ = writeln!(page, "  {line}");
    }
    page.push('\n');
}

const COLUMNS: [&str; 8] =
    ["agent", "", "ACKs", "of nothing new", "segments/ACK", "mean wait", "longest", "at once"];

fn row(agent: &Agent, which: &str) -> Vec<String> {
    #[expect(clippy::cast_precision_loss, reason = "a ratio that is shown with two digits")]
    let each = if agent.acks == 0 { 0.0 } else { agent.segments as f64 / agent.acks as f64 };
    vec![
        agent.spec.clone(),
        which.to_owned(),
        grouped(agent.acks),
        grouped(agent.without_segments),
        format!("{each:.2}"),
        format!("{:.3} ms", agent.mean_wait_ms),
        format!("{:.3} ms", agent.longest_wait_ms),
        grouped(agent.at_once),
    ]
}

fn push_difference(page: &mut String, differs: &Differs) {
    let Differs { time_s, frame, file, call, live, replayed, .. } = differs;
    let place = match (frame, file) {
        (Some(frame), Some(file)) => format!("frame {frame} of {file}"),
        _ => "no frame".to_owned(),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(page, "  first difference at {time_s:.9} s, {place}, when {call}:");
    let _ = writeln!(page, "    in the capture: {live}");
    let _ = writeln!(page, "    in the replay:  {replayed}");
}

fn sums(page: &mut String, findings: &Findings) {
    let Findings { arrivals, acks, different, .. } = findings;
    let verdict = match different {
        0 => "none differs".to_owned(),
        1 => "1 connection differs".to_owned(),
        many => format!("{many} connections differ"),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(page, "{}, {}, {verdict}", counted(*arrivals, "arrival"), counted(*acks, "ACK"));
    let more = [
        (findings.without_arrivals, "got no data"),
        (findings.not_listed, "more decided the same"),
        (findings.different_not_listed, "more differ"),
        (findings.without_beginning, "not replayed: open before the log began, or cut by a gap"),
    ];
    for (count, what) in more.into_iter().filter(|(count, _)| *count > 0) {
        let _ = writeln!(page, "{}: {what}", counted(count, "connection"));
    }
}

fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// `1,234,567`
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_have_commas() {
        let texts = [0, 999, 1_000, 12_345, 1_000_000].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "12,345", "1,000,000"]);
    }
}
