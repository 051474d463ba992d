//! The words about the path and about losses.

use super::{Arrival, Comments, in_words, of};
use hopwise_core::Millis;
use hopwise_core::agent::Class;
use hopwise_core::trace::{StateName, TraceEvent, TraceKind};

impl Comments {
    pub(super) fn hear_of_path(&mut self, event: &TraceEvent) {
        let stretches = self.note_path(event);
        if let Some(arrival) = of(&mut self.arrival, event) {
            arrival.say_of_path(event.kind, stretches);
        }
    }

    /// Notes what later comments need. Returns the number of stretches above holes until this event.
    fn note_path(&mut self, event: &TraceEvent) -> u32 {
        match event.kind {
            TraceKind::MarkSeen => self.conn(event.conn).marked = Some(event.packet),
            TraceKind::Lost { by, .. } | TraceKind::RecoveryBegan { by, .. } => {
                self.conn(event.conn).lost_by = Some(by);
            }
            TraceKind::RecoveryEnded => self.conn(event.conn).lost_by = None,
            _ => {}
        }
        match event.kind {
            TraceKind::Placed { stretches, .. } => {
                std::mem::replace(&mut self.conn(event.conn).stretches, stretches)
            }
            _ => 0,
        }
    }
}

impl Arrival {
    fn say_of_path(&mut self, kind: TraceKind, stretches: u32) {
        match kind {
            TraceKind::Placed { class, stretches: now } => {
                let place = place(class, now > stretches);
                self.place = Some(place);
                self.say(format_args!("{place}"));
            }
            TraceKind::MarkSeen => self.say(format_args!("CE: the network marked it")),
            TraceKind::Lost { segments, by } => {
                let many = if segments == 1 { "" } else { "s" };
                self.say(format_args!("{segments} segment{many} lost by {}", in_words(by)));
            }
            TraceKind::RecoveryBegan { ssthresh, flight, .. } => self.say(format_args!(
                "fast recovery begins: {flight} bytes were in flight, ssthresh {ssthresh}"
            )),
            TraceKind::RecoveryEnded => self.say(format_args!("recovery ends")),
            TraceKind::Undone(by) => self.say(format_args!("nothing was lost, by {}", by.name())),
            TraceKind::Marked => self.say(format_args!("ECE: the window is reduced for a mark")),
            TraceKind::Rtt { sample_us, srtt_us, rto_us } => self.say(format_args!(
                "round trip {}, smoothed {}, RTO {}",
                Millis::of_micros(sample_us),
                Millis::of_micros(srtt_us),
                Millis::of_micros(rto_us)
            )),
            TraceKind::IcmpError { kind, code } => {
                self.say(format_args!("an ICMP error of type {kind} and code {code} about our packet"));
            }
            TraceKind::PathMtu { bytes, how } => {
                self.say(format_args!("the path's MTU is {bytes}, by {}", how.name()));
            }
            TraceKind::Thawed => self.say(format_args!("the path is back")),
            // These two states are entered when our own FIN leaves.
            TraceKind::State(state) if !matches!(state, StateName::FinWait1 | StateName::LastAck) => {
                self.say(format_args!("the state is {} now", state.name()));
            }
            _ => {}
        }
    }
}

fn place(class: Class, opens: bool) -> &'static str {
    match class {
        Class::InOrder => "in order",
        Class::FillsHole => "fills a hole",
        Class::OutOfOrder if opens => "opens a hole",
        Class::OutOfOrder => "above a hole",
        Class::Duplicate => "a duplicate",
    }
}
