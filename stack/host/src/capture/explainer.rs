//! Joins packets with the trace where both are at hand: in captures of a simulated world without a driver.

use std::fmt;

use hopwise_core::trace::TraceEvent;
use hopwise_core::trace::comments::{Comment, Names};

use super::joiner::{Commented, Joiner};
use super::queue::{Head, Record};
use crate::observer::SeenPacket;

/// Gets packets and trace events as an [`Observer`](crate::Observer) does. It comments each packet: why it left, or
/// what the endpoint did with it. The comments name packets by their numbers, and the sink knows its files' frames.
pub struct Explainer {
    joiner: Joiner,
}

impl Explainer {
    /// Begins without packets; `names` names connections' agents in comments.
    pub fn new(names: Names) -> Explainer {
        Explainer { joiner: Joiner::new(names) }
    }

    /// Hands an outgoing packet to the sink at once, and before it the arrival that waited for its trace.
    pub fn on_packet(&mut self, seen: &SeenPacket<'_>, sink: &mut dyn FnMut(&SeenPacket<'_>, &Comment)) {
        let SeenPacket { at, link, direction, id, packet, .. } = *seen;
        let head = Head { at, link, direction, id, header_len: 0 };
        self.joiner.take(Record::Packet(head, packet), &mut |commented| tell(commented, sink));
    }

    /// Keeps an event of the trace for the comment of its packet.
    pub fn on_trace(&mut self, event: &TraceEvent) {
        self.joiner.take(Record::Event(*event), &mut |_| {});
    }

    /// Hands on the arrival that waits: it gets no more events.
    pub fn finish(&mut self, sink: &mut dyn FnMut(&SeenPacket<'_>, &Comment)) {
        self.joiner.finish(&mut |commented| tell(commented, sink));
    }
}

fn tell(commented: &Commented<'_>, sink: &mut dyn FnMut(&SeenPacket<'_>, &Comment)) {
    let Commented { head: Head { at, link, direction, id, .. }, packet, comment } = *commented;
    sink(&SeenPacket { at, link, direction, id, segment_bytes: None, ethernet: None, packet }, comment);
}

impl fmt::Debug for Explainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Explainer").finish_non_exhaustive()
    }
}
