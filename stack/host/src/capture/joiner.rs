//! Joins packets with the trace, by the ids that both carry, into comments.
//!
//! The trace of a packet that leaves comes before the packet, and that of one that came, after it: so an arrival waits
//! until the next packet.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::time::Duration;

use hopwise_core::agent::{By, Why};
use hopwise_core::trace::{SentWhat, TraceEvent, TraceKind};
use hopwise_core::{Instant, LinkId, Seq};

use super::queue::{Head, Record};
use super::{ConnNames, Names};
use crate::observer::Direction;

/// ACKs of a connection that were decided and have not left; the ledger lets 8 wait.
const MOST_DECIDED: usize = 16;
/// Packets whose links are full, while others carry more: one each. What a link has refused, or one that is not
/// captured has carried, stays until others take its place.
const MOST_LEAVING: usize = 16;
/// Connections that are remembered; the oldest is forgotten first.
const MOST_CONNECTIONS: usize = 4096;

/// Times that a connection's names are asked for, as long as its hops are unknown.
const MOST_ASKED: u8 = 8;

/// A packet with what is to be said of it.
#[derive(Debug)]
pub(super) struct Commented<'a> {
    pub(super) head: Head,
    pub(super) packet: &'a [u8],
    /// Empty where there is nothing to say.
    pub(super) comment: &'a str,
}

pub(super) struct Joiner {
    names: Names,
    connections: BTreeMap<u32, Conn>,
    /// The arrival that waits for its trace.
    arrival: Option<(Head, Vec<u8>)>,
    said_of_arrival: String,
    leaving: Vec<Leaving>,
}

/// A packet that will leave, or of which pieces have left.
struct Leaving {
    id: u64,
    comment: String,
    /// What it has left by.
    link: Option<LinkId>,
}

/// What the trace has said of a connection.
#[derive(Debug, Default)]
struct Conn {
    names: ConnNames,
    /// How often someone was asked for the names: hops are known only after some packets.
    asked: u8,
    decided: VecDeque<Decided>,
    held_since: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Decided {
    number: Seq,
    by: By,
    why: Why,
    held: Option<Duration>,
    /// Decided before it and gone into it.
    merged: u32,
}

impl Joiner {
    pub(super) fn new(names: Names) -> Joiner {
        Joiner {
            names,
            connections: BTreeMap::new(),
            arrival: None,
            said_of_arrival: String::new(),
            leaving: Vec::with_capacity(MOST_LEAVING),
        }
    }

    /// Hands on what is complete.
    pub(super) fn take(&mut self, record: Record<'_>, sink: &mut dyn FnMut(&Commented<'_>)) {
        match record {
            Record::Event(event) => self.hear(&event),
            Record::Packet(head, packet) => {
                self.finish(sink);
                if head.direction == Direction::In {
                    self.arrival = Some((head, packet.to_vec()));
                    return;
                }
                sink(&Commented { head, packet, comment: self.said_of_leaving(&head) });
            }
        }
    }

    /// When the arrival came that waits for its trace.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        self.arrival.as_ref().map(|(head, _)| head.at)
    }

    /// The arrival that waits will hear no more of itself.
    pub(super) fn finish(&mut self, sink: &mut dyn FnMut(&Commented<'_>)) {
        if let Some((head, packet)) = self.arrival.take() {
            sink(&Commented { head, packet: &packet, comment: &self.said_of_arrival });
        }
        self.said_of_arrival.clear();
    }

    fn hear(&mut self, event: &TraceEvent) {
        match event.kind {
            TraceKind::Dropped(reason) => {
                self.say_of_arrival(event, format_args!("dropped: {}", reason.name()));
            }
            TraceKind::AckHeld { why } => {
                let conn = self.conn(event.conn);
                conn.held_since.get_or_insert(event.now);
                let mut text = format!("ACK withheld by {}: {why}", conn.names.receiver);
                conn.add_rule(&mut text);
                self.say_of_arrival(event, format_args!("{text}"));
            }
            TraceKind::AckDecided { number, by, why } => {
                let conn = self.conn(event.conn);
                let held = conn.held_since.take().map(|since| event.now.since(since));
                if conn.decided.len() == MOST_DECIDED {
                    conn.decided.pop_front();
                }
                conn.decided.push_back(Decided { number, by, why, held, merged: 0 });
                let mut text = format!("ACK {}: {}", number.0, reason(by, why, &conn.names.receiver));
                conn.add_rule(&mut text);
                self.say_of_arrival(event, format_args!("{text}"));
            }
            TraceKind::ShadowHeld { seat, why } => {
                let shadow = self.conn(event.conn).shadow(seat);
                self.say_of_arrival(event, format_args!("shadow {shadow} would withhold: {why}"));
            }
            TraceKind::ShadowAck { seat, why } => {
                let shadow = self.conn(event.conn).shadow(seat);
                self.say_of_arrival(event, format_args!("shadow {shadow} would acknowledge: {why}"));
            }
            TraceKind::AckMerged { number } => self.conn(event.conn).merge(number),
            TraceKind::AckSent { number, decided, repeat } => {
                let comment = self.conn(event.conn).on_ack(number, decided, repeat);
                self.leaves(event.packet, comment);
            }
            TraceKind::Sent { ack, len, segments, what, flight, allowed, .. } => {
                let much = if segments > 1 {
                    format!("{len} bytes in {segments} segments")
                } else {
                    format!("{len} bytes")
                };
                let limits = (what != SentWhat::Control && allowed != u32::MAX).then_some((allowed, flight));
                let comment = self.conn(event.conn).on_sent(ack, &much, what, limits);
                self.leaves(event.packet, comment);
            }
            _ => {}
        }
    }

    fn leaves(&mut self, id: u64, comment: String) {
        if self.leaving.len() == MOST_LEAVING {
            let oldest = self.leaving.iter().position(|left| left.link.is_none());
            self.leaving.remove(oldest.unwrap_or(0));
        }
        self.leaving.push(Leaving { id, comment, link: None });
    }

    /// The segments of a bundle that was cut here all leave for its reason, until the link carries something else.
    fn said_of_leaving(&mut self, head: &Head) -> &str {
        self.leaving.retain(|left| left.id == head.id || left.link != Some(head.link));
        let said = self.leaving.iter_mut().find(|left| left.id == head.id);
        said.map_or("", |left| {
            left.link = Some(head.link);
            &left.comment
        })
    }

    fn say_of_arrival(&mut self, event: &TraceEvent, what: std::fmt::Arguments<'_>) {
        if self.arrival.as_ref().is_some_and(|(head, _)| head.id == event.packet) {
            if !self.said_of_arrival.is_empty() {
                self.said_of_arrival.push_str("; ");
            }
            // Writing to a String cannot fail.
            let _ = self.said_of_arrival.write_fmt(what);
        }
    }

    fn conn(&mut self, number: u32) -> &mut Conn {
        if !self.connections.contains_key(&number) {
            if self.connections.len() >= MOST_CONNECTIONS {
                self.connections.pop_first();
            }
            self.connections.insert(number, Conn { names: ConnNames::unknown(), ..Conn::default() });
        }
        let conn = self.connections.entry(number).or_default();
        if conn.names.hops.is_none() && conn.asked < MOST_ASKED {
            conn.asked += 1;
            conn.names = (self.names)(number).unwrap_or_else(|| conn.names.clone());
        }
        conn
    }
}

impl ConnNames {
    /// Of a connection that was over before anyone asked.
    fn unknown() -> ConnNames {
        let (receiver, senders) = ("the receiver agent".into(), "the sender agents".into());
        ConnNames { receiver, senders, ..ConnNames::default() }
    }
}

impl Conn {
    /// By its place in the list of shadows.
    fn shadow(&self, seat: u8) -> String {
        format!("{} of {}", u32::from(seat) + 1, self.names.shadows)
    }

    /// The decision behind an ACK that leaves; older ones went into it.
    fn decision(&mut self, number: Seq) -> Option<Decided> {
        let place = self.decided.iter().position(|decided| decided.number == number)?;
        self.decided.drain(..=place).next_back()
    }

    /// The ACK of that number goes into the one that was decided last.
    fn merge(&mut self, number: Seq) {
        let Some(place) = self.decided.iter().position(|decided| decided.number == number) else { return };
        let Some(gone) = self.decided.remove(place) else { return };
        match self.decided.back_mut() {
            Some(last) => {
                last.merged += 1 + gone.merged;
                last.held = last.held.max(gone.held);
            }
            None => self.decided.push_back(gone),
        }
    }

    /// Of an ACK that tells `number` and was `decided` as another one.
    fn on_ack(&mut self, number: Seq, decided: Seq, repeat: bool) -> String {
        let receiver = self.names.receiver.clone();
        let mut text = match self.decision(decided) {
            None => format!("ACK {}: in answer to a segment", number.0),
            Some(Decided { by, why, held, merged, .. }) => {
                let head = if repeat { "duplicate ACK" } else { "ACK" };
                let mut text = format!("{head} {}: {}", number.0, reason(by, why, &receiver));
                if let Some(held) = held {
                    let _ = write!(text, ", {} after the first segment it held", millis(held));
                }
                if merged > 0 {
                    let _ =
                        write!(text, ", in place of {merged} more that were decided before it could leave");
                }
                text
            }
        };
        self.add_rest(&mut text);
        text
    }

    /// `limits` are what the sender agents allow in flight, and what was.
    fn on_sent(&mut self, ack: Seq, much: &str, what: SentWhat, limits: Option<(u32, u32)>) -> String {
        let mut text = match what {
            SentWhat::New => format!("{much}, new"),
            SentWhat::Resent => format!("{much}, sent again in fast recovery"),
            SentWhat::AfterTimeout => format!("{much}, sent again after a timeout"),
            SentWhat::Probe => format!("{much}, a probe"),
            SentWhat::TailProbe => format!("{much}, a probe for the loss of the window's tail"),
            SentWhat::Control => "opens or ends the connection".to_owned(),
        };
        let senders = &self.names.senders;
        if let Some((allowed, flight)) = limits {
            // Writing to a String cannot fail.
            let _ = write!(text, ": {senders} allows {allowed} bytes in flight, {flight} were");
        }
        if let Some(Decided { number, by, why, .. }) = self.decision(ack) {
            let reason = reason(by, why, &self.names.receiver);
            let _ = write!(text, "; with ACK {}: {reason}", number.0);
        }
        self.add_rest(&mut text);
        text
    }

    fn add_rest(&self, text: &mut String) {
        if let Some(hops) = self.names.hops {
            let _ = write!(text, "; {hops} hops");
        }
        self.add_rule(text);
    }

    fn add_rule(&self, text: &mut String) {
        if let Some(rule) = &self.names.rule {
            let _ = write!(text, "; agents by {rule}");
        }
    }
}

fn reason(by: By, why: Why, receiver: &str) -> String {
    match by {
        By::Agent => format!("{receiver} decided it, {why}"),
        By::Repeat => format!("{receiver} repeats it, {why}"),
        By::Forced => format!("the protocol demands it, {why}, whatever {receiver} says"),
        By::Piggyback => "it rides on data that leaves anyway".to_owned(),
    }
}

fn millis(time: Duration) -> String {
    let micros = time.as_micros();
    format!("{}.{:03} ms", micros / 1000, micros % 1000)
}
