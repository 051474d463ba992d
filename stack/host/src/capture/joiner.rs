//! Joins packets with the trace, by the ids that both carry.
//!
//! The trace of a packet that leaves comes before the packet, and that of one that came, after it: so an arrival waits
//! until the next packet.

use hopwise_core::trace::TraceEvent;
use hopwise_core::trace::comments::{Comment, Comments, Names};
use hopwise_core::{Instant, LinkId};

use super::queue::{Head, Record};
use crate::observer::Direction;

/// Packets whose links are full, while others carry more: one each. What a link has refused, or one that is not
/// captured has carried, stays until others take its place.
const MOST_LEAVING: usize = 16;

const NOTHING: &Comment = &Comment { text: String::new(), answers: None, echoes: None };

/// A packet with what is to be said of it.
#[derive(Debug)]
pub(super) struct Commented<'a> {
    pub(super) head: Head,
    pub(super) packet: &'a [u8],
    pub(super) comment: &'a Comment,
}

pub(super) struct Joiner {
    comments: Comments,
    /// The arrival that waits for its trace.
    arrival: Option<(Head, Vec<u8>)>,
    leaving: Vec<Leaving>,
}

/// A packet that will leave, or of which pieces have left.
struct Leaving {
    id: u64,
    comment: Comment,
    /// What it has left by.
    link: Option<LinkId>,
}

impl Joiner {
    pub(super) fn new(names: Names) -> Joiner {
        Joiner { comments: Comments::new(names), arrival: None, leaving: Vec::with_capacity(MOST_LEAVING) }
    }

    /// Hands on what is complete.
    pub(super) fn take(&mut self, record: Record<'_>, sink: &mut dyn FnMut(&Commented<'_>)) {
        match record {
            Record::Event(event) => self.hear(&event),
            Record::Packet(head, packet) => {
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

    /// When the arrival came that waits for its trace.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        self.arrival.as_ref().map(|(head, _)| head.at)
    }

    /// The arrival that waits will hear no more of itself.
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
        self.leaving.push(Leaving { id: event.packet, comment, link: None });
    }

    /// The segments of a bundle that was cut here all leave for its reason, until the link carries something else.
    fn said_of_leaving(&mut self, head: &Head) -> &Comment {
        self.leaving.retain(|left| left.id == head.id || left.link != Some(head.link));
        let said = self.leaving.iter_mut().find(|left| left.id == head.id);
        said.map_or(NOTHING, |left| {
            left.link = Some(head.link);
            &left.comment
        })
    }
}
