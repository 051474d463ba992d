//! The way of a segment as text and as data.

use std::fmt::Write as _;

use serde::Serialize;

use super::segment::FollowedSegment;
use super::track::{InterfacePassage, RadioHop, SegmentSending, SendingStep};

#[derive(Debug, Serialize)]
pub(super) struct Followed {
    from: String,
    to: String,
    /// The number of its first byte, as Wireshark counts.
    seq: u32,
    bytes: u32,
    /// The segment in words.
    #[serde(skip)]
    what: String,
    /// The time of the capture's first packet, in nanoseconds since 1970.
    begins_ns: i64,
    sendings: Vec<SendingWay>,
}

/// One sending, and how it ended.
#[derive(Debug, Serialize)]
struct SendingWay {
    #[serde(flatten)]
    sending: SegmentSending,
    end: String,
    /// It came to the endpoint, as far as the capture shows it.
    is_there: bool,
}

impl Followed {
    pub(super) fn new(target: &FollowedSegment, begins_ns: i64, sendings: Vec<SegmentSending>) -> Followed {
        let (from, to) = target.segment.flow;
        let ways = sendings.into_iter().map(|sending| {
            let (end, is_there) = end(&sending);
            SendingWay { sending, end, is_there }
        });
        Followed {
            from: from.to_string(),
            to: to.to_string(),
            seq: target.first,
            bytes: target.segment.len,
            what: target.to_string(),
            begins_ns,
            sendings: ways.collect(),
        }
    }

    pub(super) fn page(&self) -> String {
        let mut page = format!("{}\n", self.what);
        for way in &self.sendings {
            // Writing to a String cannot fail.
            let _ = self.way(&mut page, way);
        }
        page
    }

    fn way(&self, page: &mut String, way: &SendingWay) -> std::fmt::Result {
        let Some(first) = way.sending.steps.first() else { return Ok(()) };
        let (at, place, said) = match first {
            SendingStep::Left(left) => (left.at_ns, &left.place, &left.said),
            SendingStep::Hop(hop) => (hop.first_try_ns, &hop.from, &hop.said),
            SendingStep::Came(came) => (came.at_ns, &came.place, &None),
        };
        let said = said.as_ref().map_or(String::new(), |said| format!(": {said}"));
        writeln!(page, "\nSent at {} s, first seen at {place}{said}", self.seconds(at))?;
        let hops =
            ["hop", "from", "to", "waited ms", "RTS", "data", "airtime ms", "there at s", "tries lost to"];
        let rows: Vec<_> = way.sending.steps.iter().filter_map(hop).zip(1..).collect();
        let rows = rows.iter().map(|(hop, nth)| self.row(hop, *nth)).collect::<Vec<_>>();
        if !rows.is_empty() {
            hopwise_daemon::table::lines(&hops, &rows)
                .iter()
                .try_for_each(|line| writeln!(page, "{line}"))?;
        }
        if way.sending.steps.iter().all(|step| hop(step).is_none()) {
            self.passages(page, &way.sending)?;
        }
        writeln!(page, "{}", way.end)
    }

    fn row(&self, hop: &RadioHop, nth: u32) -> Vec<String> {
        let waited = hop.waited_ns.map_or_else(|| "-".to_owned(), millis);
        let there = hop.heard_ns.map_or_else(|| "-".to_owned(), |at| self.seconds(at));
        let tries = [hop.rts.to_string(), hop.data.to_string(), millis(hop.airtime_ns), there];
        let first = [nth.to_string(), hop.from.clone(), hop.to.clone(), waited];
        first.into_iter().chain(tries).chain([counted(&hop.lost)]).collect()
    }

    /// Captures of hosts alone have no radios: the IP packet at each of them.
    fn passages(&self, page: &mut String, sending: &SegmentSending) -> std::fmt::Result {
        let mut last: Option<&InterfacePassage> = None;
        let mut rows = Vec::new();
        for step in &sending.steps {
            let (way, passage) = match step {
                SendingStep::Left(left) => ("leaves", left),
                SendingStep::Came(came) => ("comes", came),
                SendingStep::Hop(_) => continue,
            };
            let after = last.map_or_else(|| "-".to_owned(), |last| millis(passage.at_ns - last.at_ns));
            let links = last.map_or_else(
                || "-".to_owned(),
                |last| u32::from(last.hop_limit.saturating_sub(passage.hop_limit)).to_string(),
            );
            rows.push(vec![passage.place.clone(), way.to_owned(), self.seconds(passage.at_ns), after, links]);
            last = Some(passage);
        }
        let head = ["at", "packet", "at s", "after ms", "routers between"];
        hopwise_daemon::table::lines(&head, &rows).iter().try_for_each(|line| writeln!(page, "{line}"))
    }

    fn seconds(&self, at: i64) -> String {
        let micros = at.saturating_sub(self.begins_ns) / 1_000;
        format!("{}.{:06}", micros / 1_000_000, (micros % 1_000_000).abs())
    }
}

/// Each cause once, with the number of its tries if there are several.
fn counted(lost: &[String]) -> String {
    let mut causes: Vec<(&str, u32)> = Vec::new();
    for cause in lost {
        match causes.iter_mut().find(|(known, _)| known == cause) {
            Some((_, count)) => *count += 1,
            None => causes.push((cause, 1)),
        }
    }
    let texts = causes.into_iter().map(|(cause, count)| match count {
        1 => cause.to_owned(),
        count => format!("{count} times {cause}"),
    });
    texts.collect::<Vec<_>>().join("; ")
}

fn hop(step: &SendingStep) -> Option<&RadioHop> {
    match step {
        SendingStep::Hop(hop) => Some(hop),
        _ => None,
    }
}

fn millis(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let micros = nanos.unsigned_abs() / 1_000;
    format!("{sign}{}.{:03}", micros / 1_000, micros % 1_000)
}

/// The end of a sending, and whether it came to the endpoint.
fn end(sending: &SegmentSending) -> (String, bool) {
    let begun = sending.steps.first().map(|step| match step {
        SendingStep::Left(passage) | SendingStep::Came(passage) => passage.at_ns,
        SendingStep::Hop(hop) => hop.first_try_ns,
    });
    let took = |at: i64| begun.map_or(String::new(), |begun| format!(" after {} ms", millis(at - begun)));
    let words = |said: &Option<String>| said.as_ref().map_or(String::new(), |said| format!(": {said}"));
    match sending.steps.last() {
        Some(SendingStep::Came(came)) => {
            (format!("Came to {}{}{}", came.place, took(came.at_ns), words(&came.said)), true)
        }
        Some(SendingStep::Hop(hop)) => match (hop.heard_ns, &hop.taken) {
            (Some(at), Some(taken)) => (format!("Came to {}{}: {taken}", hop.to, took(at)), true),
            (Some(at), None) if hop.is_overheard => (
                format!("{} acknowledged it{}, and no monitor heard it leave there", hop.to, took(at)),
                false,
            ),
            (Some(_), None) => (held(sending, &hop.to), false),
            (None, _) => (not_heard(hop), false),
        },
        Some(SendingStep::Left(left)) => (held(sending, &left.place), false),
        None => (String::new(), false),
    }
}

/// A station had it, and never sent it.
fn held(sending: &SegmentSending, place: &str) -> String {
    match &sending.given_up_behind[..] {
        [] => format!("It is at {place}, and in no further frame: it waits, found no route or was dropped"),
        [why] => format!("Lost at {place}, which gave a packet up before it sent later ones: {why}"),
        [.., why] => format!(
            "Lost at {place}, or it waits there: {} packets were given up before a later one left, the last for: {why}",
            sending.given_up_behind.len()
        ),
    }
}

fn not_heard(hop: &RadioHop) -> String {
    let RadioHop { from, to, rts, data, .. } = hop;
    let last = hop.lost.last().map_or(String::new(), |lost| format!(", the last: {lost}"));
    if hop.is_given_up {
        return format!(
            "Lost from {from} to {to}: {from} gave it up after {rts} RTS and {data} data frames{last}"
        );
    }
    match (hop.is_answered, &hop.lost[..]) {
        (true, _) => format!("{to} acknowledged the frame, and no capture here is from its radio"),
        (false, []) => format!("Sent to {to}, and no capture shows that it was heard"),
        (false, _) => format!("Not heard at {to} when the capture ended{last}"),
    }
}
