//! The MUST that made the protocol acknowledge, whatever the agent decided.

use super::{Arrival, FIN, SYN};
use hopwise_core::Seq;
use hopwise_core::agent::{AckRule, Why};
use hopwise_core::trace::DropReason;

/// A name without spaces, and the clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Must {
    pub(super) name: &'static str,
    pub(super) clause: &'static str,
}

const OLD_DUPLICATE: &str = "old duplicate";
const BEYOND: &str = "beyond the window";
const KEEP_ALIVE: &str = "a keep-alive, or a probe";

/// `number` is the expected one at the decision.
pub(super) fn of(why: Why, arrival: Option<&Arrival>, number: Seq) -> Option<Must> {
    let must = |name, clause| Some(Must { name, clause });
    match why.rule {
        AckRule::Window => return must("window-opens", "RFC 9293 §3.8.6.2.2"),
        AckRule::Ceiling => return must("ceiling", "RFC 9293 MUST-40"),
        AckRule::NotInOrder => return must("early-fin", "RFC 5681 §4.2"),
        _ => {}
    }
    let arrival = arrival?;
    match arrival.dropped {
        Some(DropReason::OutOfWindow) => match where_it_lay(arrival, number) {
            Some(KEEP_ALIVE) => must("keep-alive", "RFC 9293 §3.8.4"),
            Some(BEYOND) => must("beyond-window", "RFC 9293 §3.10.7.4"),
            _ => must("old-duplicate", "RFC 9293 §3.10.7.4"),
        },
        Some(DropReason::NoBuffer) => must("window-probe", "RFC 9293 §3.8.6.1"),
        // Refused data gets the same answer as data that does not fit.
        Some(DropReason::NoMemory) => must("no-memory", "RFC 9293 §3.10.7.4"),
        Some(DropReason::DataAfterClose) => must("after-its-fin", "RFC 9293 §3.10.7.4"),
        Some(DropReason::TooManyHoles) => must("too-many-holes", "RFC 5681 §4.2"),
        Some(DropReason::Paws) => must("old-timestamp", "RFC 7323 §5.3"),
        Some(DropReason::RstNotExact) => must("challenge-to-rst", "RFC 5961 §3.2"),
        Some(DropReason::SynInConnection) => must("challenge-to-syn", "RFC 5961 §4.2"),
        Some(DropReason::AckOfUnsent | DropReason::AckTooOld) => must("challenge-to-ack", "RFC 5961 §5.2"),
        _ => match arrival.segment {
            Some(segment) if segment.has(SYN) => must("handshake", "RFC 9293 §3.10.7.3"),
            Some(segment) if segment.has(FIN) => must("fin", "RFC 9293 §3.10.7.4"),
            // The FIN came earlier, before the data of this segment.
            Some(segment) if segment.payload > 0 => must("fin", "RFC 9293 §3.10.7.4"),
            _ => None,
        },
    }
}

/// The side of the window on which a segment lay; `next` is the expected number.
pub(super) fn where_it_lay(arrival: &Arrival, next: Seq) -> Option<&'static str> {
    let segment = arrival.segment?;
    if segment.end() <= next && segment.seq < next {
        let asks = !segment.has(FIN | SYN) && segment.seq + 1 == next;
        return Some(if asks { KEEP_ALIVE } else { OLD_DUPLICATE });
    }
    Some(if segment.seq < next { OLD_DUPLICATE } else { BEYOND })
}
