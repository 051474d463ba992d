//! The way of a segment as text and as data.

use std::fmt::Write as _;

use serde::Serialize;

use super::segment::Target;
use super::track::{Hop, Passage, Sending, Step};

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
    sendings: Vec<Way>,
}

/// One sending, and how it ended.
#[derive(Debug, Serialize)]
struct Way {
    #[serde(flatten)]
    sending: Sending,
    end: String,
    /// It came to the endpoint, as far as the capture shows it.
    is_there: bool,
}

impl Followed {
    pub(super) fn new(target: &Target, begins_ns: i64, sendings: Vec<Sending>) -> Followed {
        let (from, to) = target.segment.flow;
        let ways = sendings.into_iter().map(|sending| {
            let (end, is_there) = end(&sending);
            Way { sending, end, is_there }
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

    fn way(&self, page: &mut String, way: &Way) -> std::fmt::Result {
        let Some(first) = way.sending.steps.first() else { return Ok(()) };
        let (at, place, said) = match first {
            Step::Left(left) => (left.at_ns, &left.place, &left.said),
            Step::Hop(hop) => (hop.first_try_ns, &hop.from, &hop.said),
            Step::Came(came) => (came.at_ns, &came.place, &None),
        };
        let said = said.as_ref().map_or(String::new(), |said| format!(": {said}"));
        writeln!(page, "\nSent at {} s, first seen at {place}{said}", self.seconds(at))?;
        let hops =
            ["hop", "from", "to", "waited ms", "RTS", "data", "airtime ms", "there at s", "tries lost to"];
        let rows: Vec<_> = way.sending.steps.iter().filter_map(hop).zip(1..).collect();
        let rows = rows.iter().map(|(hop, nth)| self.row(hop, *nth)).collect::<Vec<_>>();
        if !rows.is_empty() {
            crate::table::lines(&hops, &rows).iter().try_for_each(|line| writeln!(page, "{line}"))?;
        }
        if way.sending.steps.iter().all(|step| hop(step).is_none()) {
            self.passages(page, &way.sending)?;
        }
        writeln!(page, "{}", way.end)
    }

    fn row(&self, hop: &Hop, nth: u32) -> Vec<String> {
        let waited = hop.waited_ns.map_or_else(|| "-".to_owned(), millis);
        let there = hop.heard_ns.map_or_else(|| "-".to_owned(), |at| self.seconds(at));
        let tries = [hop.rts.to_string(), hop.data.to_string(), millis(hop.airtime_ns), there];
        let first = [nth.to_string(), hop.from.clone(), hop.to.clone(), waited];
        first.into_iter().chain(tries).chain([counted(&hop.lost)]).collect()
    }

    /// Captures of hosts alone have no radios: the IP packet at each of them.
    fn passages(&self, page: &mut String, sending: &Sending) -> std::fmt::Result {
        let mut last: Option<&Passage> = None;
        let mut rows = Vec::new();
        for step in &sending.steps {
            let (way, passage) = match step {
                Step::Left(left) => ("leaves", left),
                Step::Came(came) => ("comes", came),
                Step::Hop(_) => continue,
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
        crate::table::lines(&head, &rows).iter().try_for_each(|line| writeln!(page, "{line}"))
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

fn hop(step: &Step) -> Option<&Hop> {
    match step {
        Step::Hop(hop) => Some(hop),
        _ => None,
    }
}

fn millis(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let micros = nanos.unsigned_abs() / 1_000;
    format!("{sign}{}.{:03}", micros / 1_000, micros % 1_000)
}

/// The end of a sending, and whether it came to the endpoint.
fn end(sending: &Sending) -> (String, bool) {
    let begun = sending.steps.first().map(|step| match step {
        Step::Left(passage) | Step::Came(passage) => passage.at_ns,
        Step::Hop(hop) => hop.first_try_ns,
    });
    let took = |at: i64| begun.map_or(String::new(), |begun| format!(" after {} ms", millis(at - begun)));
    let words = |said: &Option<String>| said.as_ref().map_or(String::new(), |said| format!(": {said}"));
    match sending.steps.last() {
        Some(Step::Came(came)) => {
            (format!("Came to {}{}{}", came.place, took(came.at_ns), words(&came.said)), true)
        }
        Some(Step::Hop(hop)) => match (hop.heard_ns, &hop.taken) {
            (Some(at), Some(taken)) => (format!("Came to {}{}: {taken}", hop.to, took(at)), true),
            (Some(_), None) => (held(sending, &hop.to), false),
            (None, _) => (not_heard(hop), false),
        },
        Some(Step::Left(left)) => (held(sending, &left.place), false),
        None => (String::new(), false),
    }
}

/// A station had it, and never sent it.
fn held(sending: &Sending, place: &str) -> String {
    match &sending.given_up_behind[..] {
        [] => format!("It is at {place}, and in no further frame: it waits, found no route or was dropped"),
        [why] => format!("Lost at {place}, which gave a packet up before those that came later: {why}"),
        [.., why] => format!(
            "Lost at {place}, or it waits there: {} packets were given up before a later one left, the last for: {why}",
            sending.given_up_behind.len()
        ),
    }
}

fn not_heard(hop: &Hop) -> String {
    let Hop { from, to, rts, data, .. } = hop;
    let last = hop.lost.last().map_or(String::new(), |lost| format!(", the last: {lost}"));
    if hop.is_given_up {
        return format!(
            "Lost from {from} to {to}: {from} gave it up after {rts} RTS and {data} data frames{last}"
        );
    }
    match (hop.is_answered, &hop.lost[..]) {
        (true, _) => format!("{to} acknowledged the frame, and no capture here is that of its radio"),
        (false, []) => format!("Sent to {to}, and no capture shows that it was heard"),
        (false, _) => format!("Not heard at {to} when the capture ended{last}"),
    }
}
