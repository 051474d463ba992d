//! Trace events as lines of text, and back.
//!
//! A trace begins with [`FIRST_LINE`] and [`COLUMN_NAMES`]. Each event is one line, with columns separated by tabs:
//!
//! | column | meaning |
//! |---|---|
//! | `time_s` | seconds since the run began, nine decimals |
//! | `conn` | the connection's number in its endpoint; 0: none |
//! | `packet` | the id of the transmit, or the number of the received packet; 0: neither |
//! | `event` | one of [`EVENT_NAMES`] |
//! | `details` | `key=value` pairs separated by spaces; may be empty |
//!
//! The pairs depend on the event. `rule`, `have` and `want` give the reason for an ACK sent or held ("count 3 of 5"),
//! `reason` that for a drop. Names that end in `_us` are microseconds; lengths and windows are bytes. `flags` are the
//! header's, joined by commas.

use std::fmt::Write as _;

use super::{ChosenBy, TraceEvent, TraceKind};
use crate::agent::{Basis, HopSource, LinkNews, Why};
use crate::{Instant, Seq, micros};

mod read;

pub use read::{TraceLine, TraceParseError, TraceReader, parse_line};

/// The first line of every trace; another number means that columns or pairs have changed their meaning.
pub const FIRST_LINE: &str = "# hopwise-trace 1";
/// The second line of every trace.
pub const COLUMN_NAMES: &str = "time_s\tconn\tpacket\tevent\tdetails";

/// Collects the lines of a trace until the driver writes them.
#[derive(Debug)]
pub struct TraceText {
    text: String,
}

impl TraceText {
    /// Begins with the two header lines.
    pub fn new() -> TraceText {
        TraceText { text: format!("{FIRST_LINE}\n{COLUMN_NAMES}\n") }
    }

    /// Appends the event's line.
    pub fn push(&mut self, event: &TraceEvent) {
        write_line(event, &mut self.text);
    }

    /// The text since the beginning, or since the last [`clear`](TraceText::clear).
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Drops the text so far, so that a long run needs no more memory than one drain of the ring.
    pub fn clear(&mut self) {
        self.text.clear();
    }
}

impl Default for TraceText {
    fn default() -> TraceText {
        TraceText::new()
    }
}

/// Appends one event as a line, with its newline.
pub fn write_line(event: &TraceEvent, out: &mut String) {
    let TraceEvent { now: Instant(nanos), conn, packet, kind } = event;
    let (seconds, rest) = (nanos / NANOS, nanos % NANOS);
    // Writing to a String cannot fail.
    let _ = write!(out, "{seconds}.{rest:09}\t{conn}\t{packet}\t{}\t", kind.name());
    let mut details = Details { out, first: true };
    details.of(kind);
    out.push('\n');
}

const NANOS: u64 = 1_000_000_000;

macro_rules! event_names {
    ($($pattern:pat => $name:literal),+ $(,)?) => {
        /// The names of all events, as the `event` column has them.
        pub const EVENT_NAMES: &[&str] = &[$($name),+];

        impl TraceKind {
            /// The name in the `event` column, in metrics and in [`EVENT_NAMES`].
            pub const fn name(&self) -> &'static str {
                match self { $($pattern => $name),+ }
            }
        }
    };
}

event_names! {
    TraceKind::State(_) => "state",
    TraceKind::GaveWay(_) => "gave-way",
    TraceKind::Received { .. } => "received",
    TraceKind::Sent { .. } => "sent",
    TraceKind::AckSent { .. } => "ack-sent",
    TraceKind::AckDecided { .. } => "ack-decided",
    TraceKind::Placed { .. } => "placed",
    TraceKind::AckHeld { .. } => "ack-held",
    TraceKind::AckMerged { .. } => "ack-merged",
    TraceKind::SecondHeld { .. } => "second-held",
    TraceKind::ShadowAck { .. } => "shadow-ack",
    TraceKind::ShadowHeld { .. } => "shadow-held",
    TraceKind::Dropped(_) => "dropped",
    TraceKind::Timeout { .. } => "timeout",
    TraceKind::Lost { .. } => "lost",
    TraceKind::RecoveryBegan { .. } => "recovery-began",
    TraceKind::RecoveryEnded => "recovery-ended",
    TraceKind::Undone(_) => "undone",
    TraceKind::Marked => "marked",
    TraceKind::MarkSeen => "mark-seen",
    TraceKind::Rtt { .. } => "rtt",
    TraceKind::Window { .. } => "window",
    TraceKind::PathMtu { .. } => "path-mtu",
    TraceKind::Agents(_) => "agents",
    TraceKind::Fallback(_) => "fallback",
    TraceKind::IcmpError { .. } => "icmp-error",
    TraceKind::Hops { .. } => "hops",
    TraceKind::Frozen => "frozen",
    TraceKind::Thawed => "thawed",
    TraceKind::HighestAckRaised { .. } => "highest-ack-raised",
    TraceKind::LinkTold { .. } => "link-told",
    TraceKind::Kept { .. } => "kept",
    TraceKind::Released { .. } => "released",
    TraceKind::Said { .. } => "said",
}

/// The `details` column during its construction.
struct Details<'a> {
    out: &'a mut String,
    first: bool,
}

impl Details<'_> {
    fn of(&mut self, kind: &TraceKind) {
        match *kind {
            TraceKind::State(state) => self.word("state", state.name()),
            TraceKind::GaveWay(to) => self.word("to", to.name()),
            TraceKind::Received { seq, ack, len, segments, flags } => {
                self.segment(seq, ack, len, flags).bundle(segments)
            }
            TraceKind::Sent { seq, ack, len, segments, flags, what, flight, allowed, decision } => {
                let text = self.segment(seq, ack, len, flags).word("what", what.name()).bundle(segments);
                let text = text.number("flight", flight);
                if allowed == u32::MAX { text } else { text.number("allowed", allowed) }.decision(decision)
            }
            TraceKind::AckSent { number, decided, repeat, decision } => {
                let text = self.seq("number", number).word("repeat", if repeat { "yes" } else { "no" });
                if decided == number { text } else { text.seq("decided", decided) }.decision(decision)
            }
            TraceKind::AckDecided { number, decision, by, why } => {
                self.seq("number", number).word("by", by.name()).why(why).decision(decision)
            }
            TraceKind::Placed { class, stretches } => {
                self.word("class", class.name()).number("stretches", stretches)
            }
            TraceKind::AckHeld { why, due_us, basis } => self.why(why).outlook(due_us, basis),
            TraceKind::AckMerged { number, decision, into } => {
                self.seq("number", number).decision(decision).number("into", into)
            }
            TraceKind::SecondHeld { count } => self.number("count", count),
            TraceKind::ShadowAck { shadow, why } | TraceKind::ShadowHeld { shadow, why } => {
                self.number("seat", shadow).why(why)
            }
            TraceKind::Dropped(reason) => self.word("reason", reason.name()),
            TraceKind::Timeout { nth, rto_us } => self.number("nth", nth).number("rto_us", rto_us),
            TraceKind::Lost { segments, by } => self.number("segments", segments).word("by", by.name()),
            TraceKind::RecoveryBegan { by, ssthresh, flight, point } => self
                .number("ssthresh", ssthresh)
                .number("flight", flight)
                .seq("point", point)
                .word("by", by.name()),
            TraceKind::Undone(by) => self.word("by", by.name()),
            TraceKind::Rtt { sample_us, srtt_us, rto_us } => {
                self.number("sample_us", sample_us).number("srtt_us", srtt_us).number("rto_us", rto_us)
            }
            TraceKind::Window { allowed, flight } => self.number("allowed", allowed).number("flight", flight),
            TraceKind::PathMtu { bytes, how } => self.number("bytes", bytes).word("how", how.name()),
            TraceKind::Agents(by @ ChosenBy::Rule(nth)) => self.word("by", by.name()).number("nth", nth),
            TraceKind::Agents(by) => self.word("by", by.name()),
            TraceKind::Fallback(lacking) => self.word("lacking", lacking.name()),
            TraceKind::IcmpError { kind, code } => self.number("kind", kind).number("code", code),
            TraceKind::Hops { from_peer, source } => {
                self.number("from_peer", from_peer).word("source", source.map_or("none", HopSource::name))
            }
            TraceKind::HighestAckRaised { to } => self.seq("to", to),
            TraceKind::LinkTold { news } => self.news(news),
            TraceKind::Kept { from, number, len, because }
            | TraceKind::Released { from, number, len, because } => self
                .word("from", from.name())
                .seq("number", number)
                .number("len", len)
                .word("because", because.name()),
            TraceKind::Said { number, window, copies } => {
                self.seq("number", number).number("window", window).number("copies", copies)
            }
            TraceKind::RecoveryEnded
            | TraceKind::Marked
            | TraceKind::MarkSeen
            | TraceKind::Frozen
            | TraceKind::Thawed => self,
        };
    }

    fn segment(&mut self, seq: Seq, ack: Seq, len: u32, flags: u8) -> &mut Self {
        self.seq("seq", seq).seq("ack", ack).number("len", len).flags(flags)
    }

    /// The number of segments, if it is more than one.
    fn bundle(&mut self, segments: u16) -> &mut Self {
        if segments > 1 { self.number("segments", segments) } else { self }
    }

    fn news(&mut self, news: LinkNews) -> &mut Self {
        self.word("news", news.name());
        let LinkNews::GoingDown { rtt, outage, within } = news else { return self };
        self.number("rtt_us", micros(rtt)).number("outage_us", micros(outage));
        if within.is_zero() { self } else { self.number("within_us", micros(within)) }
    }

    fn why(&mut self, why: Why) -> &mut Self {
        let Why { rule, have, want } = why;
        self.word("rule", rule.name());
        if want > 0 { self.number("have", have).number("want", want) } else { self }
    }

    /// The length of a hold, and its basis.
    fn outlook(&mut self, due_us: u32, basis: Option<Basis>) -> &mut Self {
        let text = if due_us == u32::MAX { self } else { self.number("due_us", due_us) };
        match basis {
            Some(Basis::LeastRtt { us }) => text.number("rtt_min_us", us),
            Some(Basis::Rate { bytes_per_s }) => text.number("bytes_per_s", bytes_per_s),
            Some(Basis::MeanGap { us }) => text.number("mean_gap_us", us),
            Some(Basis::ShortestGap { us }) => text.number("shortest_gap_us", us),
            None => text,
        }
    }

    /// The decision's number, if there is one.
    fn decision(&mut self, decision: u16) -> &mut Self {
        if decision == 0 { self } else { self.number("decision", decision) }
    }

    fn flags(&mut self, flags: u8) -> &mut Self {
        self.key("flags");
        let mut separator = "";
        for (bit, name) in FLAG_NAMES.iter().enumerate() {
            if flags & (1 << bit) != 0 {
                self.out.push_str(separator);
                self.out.push_str(name);
                separator = ",";
            }
        }
        if flags == 0 {
            self.out.push_str("none");
        }
        self
    }

    fn seq(&mut self, key: &str, seq: Seq) -> &mut Self {
        self.number(key, seq.0)
    }

    fn number(&mut self, key: &str, value: impl Into<u64>) -> &mut Self {
        self.key(key);
        let _ = write!(self.out, "{}", value.into());
        self
    }

    fn word(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        self.out.push_str(value);
        self
    }

    fn key(&mut self, key: &str) {
        if !self.first {
            self.out.push(' ');
        }
        self.first = false;
        self.out.push_str(key);
        self.out.push('=');
    }
}

/// Names from the lowest bit of the header's octet up (RFC 9293 §3.1, RFC 3168 §6.1).
const FLAG_NAMES: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

#[cfg(test)]
mod tests;
