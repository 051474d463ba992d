//! Comments on single packets, made from the trace, for captures.
//!
//! A [`Comments`] takes the events of one machine in their order. A packet that leaves has its comment with its own
//! event. A packet that came has its comment once all its events are known. ACK numbers count from the peer's first
//! seen number, as in Wireshark.

mod conn;
mod must;
mod path;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use hopwise_core::agent::{By, Why};
use hopwise_core::trace::{DropReason, LostBy, TraceEvent, TraceKind};
use hopwise_core::{Endpoint, Instant, Seq};

use conn::{Conn, Decision};

/// The connections that are remembered; the oldest is dropped first.
const MOST_CONNECTIONS: usize = 4096;
/// The most look-ups of a connection's names while its hops are unknown.
const MOST_ASKED: u8 = 8;

/// Looks up a connection's names by its number in the trace.
pub type Names = Box<dyn FnMut(u32) -> Option<ConnNames> + Send>;

/// Names of a connection's agents and paths, which the trace does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnNames {
    /// The agent's spec, as the connection got it.
    pub receiver: String,
    /// The list of sender agents, the owner of cwnd first.
    pub senders: String,
    /// The list of shadow agents.
    pub shadows: String,
    /// The configuration's rule that chose them; None if no rule did.
    pub rule: Option<String>,
    /// The number of links to the peer; None while unknown.
    pub hops: Option<u8>,
}

impl ConnNames {
    /// Names the connection that has this number in the endpoint's trace.
    pub fn of(now: Instant, endpoint: &Endpoint, conn: u32) -> Option<ConnNames> {
        let id = endpoint.by_trace_number(conn)?;
        let info = endpoint.info(now, id).ok()?;
        let hops = info.path.hops_to_peer.map(|(hops, _)| hops);
        // The rule's name in the form of the configuration's error messages.
        let rule = endpoint.rule_of(id).map(|nth| format!("rules.{nth}"));
        let (receiver, senders, shadows) = (info.receiver, info.senders, info.shadows);
        Some(ConnNames { receiver, senders, shadows, rule, hops })
    }

    /// The names of a connection that ended before they were looked up.
    fn unknown() -> ConnNames {
        let (receiver, senders) = ("the receiver agent".into(), "the sender agents".into());
        ConnNames { receiver, senders, ..ConnNames::default() }
    }
}

/// The comment on one packet. It refers to other packets by their running numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comment {
    /// Empty if there is no comment.
    pub text: String,
    /// The ACK in it was decided for this packet.
    pub answers: Option<u64>,
    /// It carries ECE, because this packet came marked.
    pub echoes: Option<u64>,
}

impl Comment {
    /// The text with frame numbers; `frame` returns the frame of a packet in the file, if there is one.
    pub fn with_frames(&self, frame: impl Fn(u64) -> Option<u64>) -> String {
        let mut text = self.text.clone();
        if let Some(answered) = self.answers.and_then(&frame) {
            // Writing to a String cannot fail.
            let _ = write!(text, "; answers frame {answered}");
        }
        if let Some(marked) = self.echoes {
            text.push_str("; ECE");
            if let Some(marked) = frame(marked) {
                let _ = write!(text, " for the mark of frame {marked}");
            }
        }
        text
    }
}

/// Turns one machine's trace into comments.
pub struct Comments {
    names: Names,
    connections: BTreeMap<u32, Conn>,
    arrival: Option<Arrival>,
}

/// The newest packet with its comment so far.
#[derive(Debug, Default)]
pub(super) struct Arrival {
    packet: u64,
    conn: u32,
    text: String,
    /// Number, length in sequence space, payload and flags of its segment.
    pub(super) segment: Option<Segment>,
    /// The number of newly acknowledged bytes, unless it is dropped.
    newly: u32,
    pub(super) dropped: Option<DropReason>,
    /// The place of its data, unless it is in order.
    place: Option<&'static str>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) seq: Seq,
    pub(super) payload: u32,
    pub(super) flags: u8,
}

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const ACK: u8 = 16;
const CWR: u8 = 128;

impl Segment {
    /// The number after its last one.
    pub(super) fn end(&self) -> Seq {
        self.seq + self.payload + u32::from(self.has(FIN)) + u32::from(self.has(SYN))
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

impl Comments {
    /// Calls `names` at most eight times a connection, until its hops are known.
    pub fn new(names: Names) -> Comments {
        Comments { names, connections: BTreeMap::new(), arrival: None }
    }

    /// Begins the packet of that number. The next events belong to it, until another one comes or it is
    /// [taken](Comments::of_arrival).
    pub fn arrives(&mut self, packet: u64) {
        self.arrival = Some(Arrival { packet, ..Arrival::default() });
    }

    /// The comment on the newest packet.
    pub fn of_arrival(&mut self) -> Comment {
        let text = self.arrival.take().map(Arrival::into_text).unwrap_or_default();
        Comment { text, ..Comment::default() }
    }

    /// Takes the next event. Returns a comment if the event is about a packet that leaves.
    pub fn hear(&mut self, event: &TraceEvent) -> Option<Comment> {
        match event.kind {
            TraceKind::AckSent { number, repeat, decision, .. } => {
                return Some(self.conn(event.conn).on_ack(number, decision, repeat));
            }
            TraceKind::Sent { .. } => return Some(self.conn(event.conn).on_sent(&event.kind)),
            TraceKind::AckMerged { decision, into, .. } => self.conn(event.conn).merge(decision, into),
            TraceKind::AckDecided { number, decision, by: by @ By::Piggyback, why } => {
                let decision = Decision::new((number, decision), by, why);
                self.conn(event.conn).decide(event.now, decision);
            }
            TraceKind::AckDecided { .. } | TraceKind::AckHeld { .. } => self.hear_of_ack(event),
            TraceKind::ShadowHeld { shadow, why } => self.hear_of_shadow(event, shadow, "withhold", why),
            TraceKind::ShadowAck { shadow, why } => self.hear_of_shadow(event, shadow, "acknowledge", why),
            TraceKind::Received { .. } => self.hear_of_segment(event),
            TraceKind::Dropped(reason) => self.hear_of_drop(event, reason),
            TraceKind::Window { allowed, .. } => self.hear_of_window(event, allowed),
            _ => self.hear_of_path(event),
        }
        None
    }

    fn hear_of_segment(&mut self, event: &TraceEvent) {
        let TraceKind::Received { seq, ack, len, flags, .. } = event.kind else { return };
        let segment = Segment { seq, payload: len, flags };
        let conn = self.conn(event.conn);
        conn.see_number(if segment.has(SYN) { seq } else { seq - 1 }, segment.has(SYN));
        if segment.has(CWR) {
            conn.marked = None;
        }
        let newly = if segment.has(ACK) { conn.newly_acknowledged(ack) } else { 0 };
        if let Some(arrival) = of(&mut self.arrival, event) {
            arrival.conn = event.conn;
            arrival.segment = Some(segment);
            arrival.newly = newly;
        }
    }

    /// Shadows are named by their places in the list, counted from 0 as in metrics and in the trace.
    fn hear_of_shadow(&mut self, event: &TraceEvent, shadow: u8, what: &str, why: Why) {
        let shadows = self.conn(event.conn).names.shadows.clone();
        if let Some(arrival) = of(&mut self.arrival, event) {
            arrival.say(format_args!("shadow {shadow} of {shadows} would {what}: {why}"));
        }
    }

    fn hear_of_drop(&mut self, event: &TraceEvent, reason: DropReason) {
        let next = self.connections.get(&event.conn).and_then(|conn| conn.expected);
        let Some(arrival) = of(&mut self.arrival, event) else { return };
        // Most checks come before the ACK counts.
        arrival.newly = 0;
        arrival.dropped = Some(reason);
        let next = next.filter(|_| reason == DropReason::OutOfWindow);
        match next.and_then(|next| must::where_it_lay(arrival, next)) {
            Some(place) => arrival.say(format_args!("dropped: {} ({place})", reason.name())),
            None => arrival.say(format_args!("dropped: {}", reason.name())),
        }
    }

    /// The agents were consulted after the newest packet, and no packet has left since.
    fn hear_of_window(&mut self, event: &TraceEvent, allowed: u32) {
        let senders = self.conn(event.conn).names.senders.clone();
        let arrival = self.arrival.as_mut().filter(|arrival| arrival.conn == event.conn && event.conn != 0);
        if let Some(arrival) = arrival {
            arrival.say(format_args!("{senders} allows {allowed} bytes in flight"));
        }
    }

    fn hear_of_ack(&mut self, event: &TraceEvent) {
        let arrival = self.arrival.as_ref().filter(|arrival| arrival.packet == event.packet);
        let packet = arrival.map(|arrival| arrival.packet);
        let place = arrival.and_then(|arrival| arrival.place);
        let end = arrival.and_then(|arrival| arrival.segment).map(|segment| segment.end());
        let must = match event.kind {
            TraceKind::AckDecided { number, by: By::Forced, why, .. } => must::of(why, arrival, number),
            _ => None,
        };
        let conn = self.conn(event.conn);
        let text = match event.kind {
            TraceKind::AckDecided { number, decision, by, why } => {
                let answers = packet.or(conn.held_last.filter(|_| event.packet == 0));
                let decision = Decision::new((number, decision), by, why);
                conn.decide(event.now, decision.on(answers, must, place))
            }
            TraceKind::AckHeld { why, due_us, basis } => {
                conn.hold(event.now, packet, end);
                conn.withheld(why, due_us, basis)
            }
            _ => return,
        };
        if let Some(arrival) = of(&mut self.arrival, event) {
            arrival.say(format_args!("{text}"));
        }
    }

    fn conn(&mut self, number: u32) -> &mut Conn {
        if self.connections.len() >= MOST_CONNECTIONS && !self.connections.contains_key(&number) {
            self.connections.pop_first();
        }
        let conn = self.connections.entry(number).or_insert_with(|| Conn::new(ConnNames::unknown()));
        if conn.names.hops.is_none() && conn.asked < MOST_ASKED {
            conn.asked += 1;
            conn.names = (self.names)(number).unwrap_or_else(|| conn.names.clone());
        }
        conn
    }
}

hopwise_core::shown!(Comments: arrival);

/// The arrival of an event. Packets that leave have numbers of their own, and timers have none.
fn of<'a>(arrival: &'a mut Option<Arrival>, event: &TraceEvent) -> Option<&'a mut Arrival> {
    arrival.as_mut().filter(|arrival| arrival.packet == event.packet)
}

impl Arrival {
    fn say(&mut self, what: fmt::Arguments<'_>) {
        self.say_acknowledged();
        self.part(what);
    }

    fn say_acknowledged(&mut self) {
        match std::mem::take(&mut self.newly) {
            0 => {}
            1 => self.part(format_args!("acknowledges 1 byte")),
            newly => self.part(format_args!("acknowledges {newly} bytes")),
        }
    }

    fn part(&mut self, what: fmt::Arguments<'_>) {
        if !self.text.is_empty() {
            self.text.push_str("; ");
        }
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(what);
    }

    fn into_text(mut self) -> String {
        self.say_acknowledged();
        let is_bare =
            self.segment.is_some_and(|segment| segment.payload == 0 && !segment.has(SYN | FIN | RST));
        if is_bare && self.text.is_empty() {
            self.part(format_args!("acknowledges nothing new"));
        }
        self.text
    }
}

/// The evidence for a loss with its clause, for use after "lost by".
const fn in_words(lost_by: LostBy) -> &'static str {
    match lost_by {
        LostBy::Rack => "RACK (RFC 8985 §6.2)",
        LostBy::Sack => "SACK (RFC 6675 §4)",
        LostBy::DupAcks => "duplicate ACKs (RFC 5681 §3.2)",
        LostBy::PartialAck => "a partial ACK (RFC 6582 §3.2)",
        LostBy::Agent => "what a sender agent counted",
    }
}

#[cfg(test)]
mod tests;
