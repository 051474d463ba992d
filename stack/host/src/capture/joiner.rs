//! Joins packets with the trace, by the ids that both carry.
//!
//! Events of a packet that leaves come before it. Events of a packet that arrived come after it. An arrival therefore
//! waits until the next packet.

use super::comments::{Comment, Comments, Names};
use hopwise_core::trace::TraceEvent;
use hopwise_core::{Instant, LinkId};

use super::queue::{PacketHead, QueueRecord};
use crate::observer::{Direction, SeenPacket};

/// Packets that wait for full links, one each. A packet that a link has refused, or that left by a link without
/// capture, stays until later packets take its place.
const MOST_LEAVING: usize = 16;

const NOTHING: &Comment = &Comment { text: String::new(), answers: None, echoes: None };

/// A packet with its comment.
#[derive(Debug)]
pub(super) struct Commented<'a> {
    pub(super) head: PacketHead,
    pub(super) packet: &'a [u8],
    pub(super) comment: &'a Comment,
}

pub(super) struct Joiner {
    comments: Comments,
    /// The arrival that waits for its events.
    arrival: Option<(PacketHead, Vec<u8>)>,
    leaving: Vec<LeavingPacket>,
}

/// A packet that will leave, or some of whose pieces have left.
struct LeavingPacket {
    id: u64,
    comment: Comment,
    /// The link by which it has left.
    link: Option<LinkId>,
}

impl Joiner {
    pub(super) fn new(names: Names) -> Joiner {
        Joiner { comments: Comments::new(names), arrival: None, leaving: Vec::with_capacity(MOST_LEAVING) }
    }

    /// Takes a record, and hands on the packets that are complete.
    pub(super) fn take(&mut self, record: QueueRecord<'_>, sink: &mut dyn FnMut(&Commented<'_>)) {
        match record {
            QueueRecord::Event(event) => self.hear(&event),
            QueueRecord::Links(_) => {}
            QueueRecord::Packet(head, packet, Some(said)) => {
                let comment = &Comment { text: said.to_owned(), answers: None, echoes: None };
                sink(&Commented { head, packet, comment });
            }
            QueueRecord::Packet(head, packet, None) => {
                self.finish(sink);
                if head.id == 0 {
                    sink(&Commented { head, packet, comment: NOTHING });
                    return;
                }
                if head.direction == Direction::In {
                    self.comments.arrives(head.id);
                    self.arrival = Some((head, packet.to_vec()));
                    return;
                }
                sink(&Commented { head, packet, comment: self.said_of_leaving(&head) });
            }
        }
    }

    /// The time of the arrival that waits for its events.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        self.arrival.as_ref().map(|(head, _)| head.at)
    }

    /// Hands on the arrival that waits: it gets no more events.
    pub(super) fn finish(&mut self, sink: &mut dyn FnMut(&Commented<'_>)) {
        if let Some((head, packet)) = self.arrival.take() {
            sink(&Commented { head, packet: &packet, comment: &self.comments.of_arrival() });
        }
    }

    fn hear(&mut self, event: &TraceEvent) {
        let Some(comment) = self.comments.hear(event) else { return };
        if self.leaving.len() == MOST_LEAVING {
            let oldest = self.leaving.iter().position(|left| left.link.is_none());
            self.leaving.remove(oldest.unwrap_or(0));
        }
        self.leaving.push(LeavingPacket { id: event.packet, comment, link: None });
    }

    /// The comment of an outgoing packet. All segments of a bundle that the driver cut have its reason, until the link
    /// carries another packet.
    fn said_of_leaving(&mut self, head: &PacketHead) -> &Comment {
        self.leaving.retain(|left| left.id == head.id || left.link != Some(head.link));
        let said = self.leaving.iter_mut().find(|left| left.id == head.id);
        said.map_or(NOTHING, |left| {
            left.link = Some(head.link);
            &left.comment
        })
    }
}

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
        let head = PacketHead { at, link, direction, id, header_len: 0 };
        self.joiner.take(QueueRecord::Packet(head, packet, None), &mut |commented| tell(commented, sink));
    }

    /// Keeps an event of the trace for the comment of its packet.
    pub fn on_trace(&mut self, event: &TraceEvent) {
        self.joiner.take(QueueRecord::Event(*event), &mut |_| {});
    }

    /// Hands on the arrival that waits: it gets no more events.
    pub fn finish(&mut self, sink: &mut dyn FnMut(&SeenPacket<'_>, &Comment)) {
        self.joiner.finish(&mut |commented| tell(commented, sink));
    }
}

fn tell(commented: &Commented<'_>, sink: &mut dyn FnMut(&SeenPacket<'_>, &Comment)) {
    let Commented { head: PacketHead { at, link, direction, id, .. }, packet, comment } = *commented;
    sink(&SeenPacket { at, link, direction, id, segment_bytes: None, ethernet: None, packet }, comment);
}

hopwise_core::shown!(Explainer);
