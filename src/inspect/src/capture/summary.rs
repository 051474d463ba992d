//! Summary of a capture's comments: the rules that decided, how often, and how long segments waited.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use super::mac::{self, FrameTries, LostFrames};
use super::source::{CapturePacket, each};
use super::why::{flow, radio_frame, said};
use hopwise_daemon::failure::Failure;

/// Counts of one capture; each list is in the order of its connections.
#[derive(Debug, Default, Serialize)]
pub(super) struct CaptureSummary {
    frames: u64,
    /// ACKs that left, alone or with data.
    acks: Vec<Acks>,
    /// Received packets whose ACK was withheld.
    withheld: Vec<Withheld>,
    /// Data that left.
    sent: Vec<SentSegments>,
    /// Received packets that were dropped.
    dropped: Vec<DroppedPackets>,
    /// In the capture of a radio: its own frames that need an answer or are broadcast, by receiver.
    tries: Vec<FrameTries>,
    /// Number of these without an answer.
    lost: Vec<LostFrames>,
}

#[derive(Debug, Serialize)]
struct Acks {
    connection: String,
    agent: String,
    rule: String,
    count: u64,
    /// The wait of the first segment, for the ACKs that held one.
    held: u64,
    mean_held_ms: Option<f64>,
    longest_held_ms: Option<f64>,
    /// Decided ACKs that were merged into these.
    merged: u64,
}

#[derive(Debug, Serialize)]
struct Withheld {
    connection: String,
    agent: String,
    rule: String,
    count: u64,
}

#[derive(Debug, Serialize)]
struct SentSegments {
    connection: String,
    what: String,
    lost_by: Option<String>,
    packets: u64,
}

#[derive(Debug, Serialize)]
struct DroppedPackets {
    connection: String,
    reason: String,
    count: u64,
}

#[derive(Debug, Default)]
struct HeldAcks {
    count: u64,
    held: u64,
    sum_ms: f64,
    longest_ms: f64,
    merged: u64,
}

/// The sums during counting, by connection and comment.
#[derive(Debug, Default)]
struct ConnectionCounts {
    frames: u64,
    acks: BTreeMap<(String, String, String), HeldAcks>,
    withheld: BTreeMap<(String, String, String), u64>,
    sent: BTreeMap<(String, String, Option<String>), u64>,
    dropped: BTreeMap<(String, String), u64>,
    mac: mac::MacCounts,
}

impl ConnectionCounts {
    fn add(&mut self, packet: &CapturePacket) {
        self.frames += 1;
        let said = said(&packet.block);
        let (is_inbound, Some(comment)) = (said.is_inbound, said.comment()) else { return };
        // The comment on a received frame is about its sender.
        let frame = radio_frame(packet).filter(|_| !is_inbound);
        if let Some(frame) = &frame {
            self.mac.hear(frame.kind, &comment);
        }
        // Each try of a frame has the comment of the segment in it.
        if frame.is_some_and(|frame| frame.is_retry) {
            return;
        }
        let connection = flow(packet, is_inbound);
        for part in comment.split("; ") {
            self.hear(&connection, is_inbound, part);
        }
    }

    fn hear(&mut self, connection: &str, is_inbound: bool, part: &str) {
        let connection = connection.to_owned();
        if let Some(reason) = part.strip_prefix("dropped: ") {
            *self.dropped.entry((connection, reason.to_owned())).or_default() += 1;
        } else if let Some(held) = part.strip_prefix("ACK withheld by ") {
            let (agent, why) = held.split_once(": ").unwrap_or((held, ""));
            *self.withheld.entry((connection, agent.to_owned(), word(why))).or_default() += 1;
        } else if !is_inbound && let Some(ack) = Ack::read(part) {
            let acks = self.acks.entry((connection, ack.agent, ack.rule)).or_default();
            acks.count += 1;
            acks.merged = acks.merged.saturating_add(ack.merged);
            if let Some(ms) = ack.held_ms {
                acks.held += 1;
                acks.sum_ms += ms;
                acks.longest_ms = acks.longest_ms.max(ms);
            }
        } else if !is_inbound && let Some((what, lost_by)) = sent(part) {
            *self.sent.entry((connection, what, lost_by)).or_default() += 1;
        }
    }
}

/// Content of a comment on an ACK that leaves.
#[derive(Debug, PartialEq)]
pub(super) struct Ack {
    pub(super) agent: String,
    pub(super) rule: String,
    held_ms: Option<f64>,
    merged: u64,
}

impl Ack {
    pub(super) fn read(part: &str) -> Option<Ack> {
        let part = part.strip_prefix("with ").unwrap_or(part);
        let part = part.strip_prefix("duplicate ").unwrap_or(part);
        let (number, reason) = part.strip_prefix("ACK ")?.split_once(": ")?;
        number.parse::<u32>().ok()?;
        let (agent, rule) = who(reason);
        let before = |end: &str| reason.split_once(end).and_then(|(start, _)| start.rsplit(", ").next());
        let held_ms = before(" ms after the first segment").and_then(|ms| ms.parse().ok());
        let merged = before(" more that were decided").and_then(|more| more.strip_prefix("in place of "));
        let merged = merged.and_then(|count| count.parse().ok()).unwrap_or(0);
        Some(Ack { agent, rule, held_ms, merged })
    }
}

/// The agent, if one is named, and the rule.
fn who(reason: &str) -> (String, String) {
    if let Some(demand) = reason.strip_prefix("the protocol demands it, ") {
        let agent = demand.split_once(", whatever ").and_then(|(_, rest)| rest.split_once(" says"));
        return (agent.map_or_else(String::new, |(agent, _)| agent.to_owned()), word(demand));
    }
    let decided = reason.split_once(" decided it, ").or_else(|| reason.split_once(" repeats it, "));
    match decided {
        Some((agent, why)) => (agent.to_owned(), word(why)),
        None if reason.starts_with("it rides on data") => (String::new(), "piggyback".to_owned()),
        None => (String::new(), "unknown".to_owned()),
    }
}

/// The name of a rule, which its count follows.
fn word(why: &str) -> String {
    why.split([' ', ',']).next().unwrap_or_default().to_owned()
}

/// "1448 bytes, sent again in fast recovery, lost by RACK (RFC 8985 §6.2): …"
fn sent(part: &str) -> Option<(String, Option<String>)> {
    let (much, what) = part.split_once(", ")?;
    let has_bytes = much.split_once(" bytes").is_some_and(|(bytes, _)| bytes.parse::<u64>().is_ok());
    let what = what.split_once(": ").map_or(what, |(what, _)| what);
    let (what, lost_by) = match what.split_once(", lost by ") {
        Some((what, by)) => (what, Some(by.to_owned())),
        None => (what, None),
    };
    has_bytes.then(|| (what.to_owned(), lost_by))
}

impl CaptureSummary {
    pub(super) fn of(path: &Path) -> Result<CaptureSummary, Failure> {
        let mut counts = ConnectionCounts::default();
        each(path, |packet| {
            counts.add(packet);
            Ok(true)
        })?;
        if counts.frames == 0 {
            return Err(Failure::refused(path.display().to_string(), "it has no frames"));
        }
        Ok(CaptureSummary::from(counts))
    }
}

#[expect(clippy::cast_precision_loss, reason = "a mean that is shown with three decimals")]
fn mean(sum: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

impl From<ConnectionCounts> for CaptureSummary {
    fn from(counts: ConnectionCounts) -> CaptureSummary {
        let acks = counts.acks.into_iter().map(|((connection, agent, rule), sums)| {
            let HeldAcks { count, held, sum_ms, longest_ms, merged } = sums;
            let longest_held_ms = (held > 0).then_some(longest_ms);
            let mean_held_ms = mean(sum_ms, held);
            Acks { connection, agent, rule, count, held, mean_held_ms, longest_held_ms, merged }
        });
        let withheld = counts.withheld.into_iter();
        let withheld =
            withheld.map(|((connection, agent, rule), count)| Withheld { connection, agent, rule, count });
        let sent = counts.sent.into_iter();
        let sent = sent.map(|((connection, what, lost_by), packets)| SentSegments {
            connection,
            what,
            lost_by,
            packets,
        });
        let dropped = counts.dropped.into_iter();
        let dropped =
            dropped.map(|((connection, reason), count)| DroppedPackets { connection, reason, count });
        let (tries, lost) = counts.mac.into_rows();
        CaptureSummary {
            frames: counts.frames,
            acks: acks.collect(),
            withheld: withheld.collect(),
            sent: sent.collect(),
            dropped: dropped.collect(),
            tries,
            lost,
        }
    }
}

impl CaptureSummary {
    pub(crate) fn page(&self) -> String {
        let mut page = format!("{} frames\n", self.frames);
        let held = ["ACKs of", "agent", "rule", "count", "mean held ms", "longest ms", "merged"];
        table(&mut page, &held, self.acks.iter().map(acks).collect());
        let withheld_of = ["ACKs withheld of", "agent", "rule", "count"];
        table(&mut page, &withheld_of, self.withheld.iter().map(withheld).collect());
        let data = ["data of", "sent as", "lost by", "packets"];
        table(&mut page, &data, self.sent.iter().map(sent_row).collect());
        table(&mut page, &["dropped of", "reason", "count"], self.dropped.iter().map(dropped).collect());
        let tries_for = ["tries for", "frame", "tries", "again", "given up"];
        table(&mut page, &tries_for, self.tries.iter().map(tries).collect());
        let no_answer = ["no answer of", "frame", "lost to", "count"];
        table(&mut page, &no_answer, self.lost.iter().map(lost).collect());
        page
    }
}

fn acks(acks: &Acks) -> Vec<String> {
    let Acks { connection, agent, rule, count, mean_held_ms, longest_held_ms, merged, .. } = acks;
    let ms = |ms: &Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.3}"));
    let held = [ms(mean_held_ms), ms(longest_held_ms), merged.to_string()];
    [vec![connection.clone(), agent.clone(), rule.clone(), count.to_string()], held.to_vec()].concat()
}

fn withheld(withheld: &Withheld) -> Vec<String> {
    let Withheld { connection, agent, rule, count } = withheld;
    vec![connection.clone(), agent.clone(), rule.clone(), count.to_string()]
}

fn sent_row(sent: &SentSegments) -> Vec<String> {
    let SentSegments { connection, what, lost_by, packets } = sent;
    vec![connection.clone(), what.clone(), lost_by.clone().unwrap_or_default(), packets.to_string()]
}

fn dropped(dropped: &DroppedPackets) -> Vec<String> {
    let DroppedPackets { connection, reason, count } = dropped;
    vec![connection.clone(), reason.clone(), count.to_string()]
}

fn tries(tries: &FrameTries) -> Vec<String> {
    let FrameTries { to, frame, tries, again, given_up } = tries;
    vec![to.clone(), frame.clone(), tries.to_string(), again.to_string(), given_up.to_string()]
}

fn lost(lost: &LostFrames) -> Vec<String> {
    let LostFrames { to, frame, lost_to, count } = lost;
    vec![to.clone(), frame.clone(), lost_to.clone(), count.to_string()]
}

fn table<const N: usize>(page: &mut String, columns: &[&str; N], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    for line in hopwise_daemon::table::lines(columns, &rows) {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(comments: &[(bool, &str)]) -> CaptureSummary {
        let mut counts = ConnectionCounts::default();
        for (is_inbound, comment) in comments {
            counts.frames += 1;
            comment.split("; ").for_each(|part| counts.hear("a - b", *is_inbound, part));
        }
        CaptureSummary::from(counts)
    }

    #[test]
    fn rules_are_counted_with_what_they_held() {
        let summary = summary(&[
            (
                true,
                "ACK withheld by delayed:d=3,hold=80ms: count 1 of 3, for 80.000 ms at most; agents by rules.4",
            ),
            (true, "ACK 9: delayed:d=3,hold=80ms decided it, count 3 of 3; agents by rules.4"),
            (
                false,
                "ACK 9: delayed:d=3,hold=80ms decided it, count 3 of 3, 15.000 ms after the first segment it held, in \
                 place of 2 more that were decided before it could leave; 2 hops; answers frame 2",
            ),
            (
                false,
                "1448 bytes, new: [cubic] allows 9000 bytes in flight, 0 were; with ACK 12: delayed:d=3,hold=80ms \
                 decided it, count 3 of 3, 5.000 ms after the first segment it held",
            ),
            (
                false,
                "ACK 15: the protocol demands it, fin (RFC 9293 §3.10.7.4), whatever delayed:d=3,hold=80ms says",
            ),
            (
                false,
                "5 bytes, new: [cubic] allows 9000 bytes in flight, 0 were; with ACK 15: it rides on \
                 data that leaves anyway",
            ),
            (
                false,
                "1448 bytes, sent again in fast recovery, lost by RACK (RFC 8985 §6.2): [cubic] allows 1 bytes \
                 in flight, 0 were",
            ),
            (
                true,
                "dropped: out-of-window (old duplicate); ACK 15: the protocol demands it, x, whatever y says",
            ),
        ]);
        let rules: Vec<_> = summary.acks.iter().map(|acks| (&*acks.agent, &*acks.rule, acks.count)).collect();
        let agent = "delayed:d=3,hold=80ms";
        assert_eq!(rules, [("", "piggyback", 1), (agent, "count", 2), (agent, "fin", 1)]);
        let counted = &summary.acks[1];
        assert_eq!((counted.held, counted.mean_held_ms, counted.merged), (2, Some(10.0), 2));
        assert_eq!(counted.longest_held_ms, Some(15.0));
        assert_eq!((summary.withheld.len(), &*summary.withheld[0].rule), (1, "count"));
        let sent: Vec<_> =
            summary.sent.iter().map(|sent| (&*sent.what, sent.lost_by.is_some(), sent.packets)).collect();
        assert_eq!(sent, [("new", false, 2), ("sent again in fast recovery", true, 1)]);
        assert_eq!(
            (summary.dropped.len(), &*summary.dropped[0].reason),
            (1, "out-of-window (old duplicate)")
        );
        let page = summary.page();
        assert!(page.starts_with("8 frames\n") && page.contains("15.000"), "{page}");
        let json = serde_json::to_value(&summary).expect("it is data");
        assert_eq!(json["acks"][1]["rule"], "count");
    }

    #[test]
    fn a_comment_that_claims_too_much_breaks_no_sum() {
        let part = format!("ACK 9: x decided it, count, in place of {} more that were decided", u64::MAX);
        let summary = summary(&[(false, &part), (false, &part)]);
        assert_eq!((summary.acks[0].count, summary.acks[0].merged), (2, u64::MAX));
    }
}
