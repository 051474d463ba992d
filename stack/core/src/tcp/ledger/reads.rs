//! A read of several segments that a link joined: the agents get them one by one.

use super::{AckLedger, Cx, Facts};
use crate::Seq;
use crate::agent::{Arrival, Class};

impl AckLedger {
    /// [`on_arrival`](AckLedger::on_arrival) for each of them; `whole` is the read as one segment. Returns the number
    /// of the last decision, if there was one.
    pub(super) fn on_segments(
        &mut self,
        cx: &mut Cx<'_>,
        whole: &Arrival,
        (count, each): (u32, u32),
        facts: &Facts<'_>,
    ) -> Option<Seq> {
        let advances = matches!(whole.class, Class::InOrder | Class::FillsHole);
        let (mut to_come, mut decided) = (whole.bytes, None);
        for nth in 0..count {
            let is_last = nth + 1 == count;
            let bytes = if is_last { to_come } else { each.min(to_come) };
            to_come -= bytes;
            // An ACK decided in the middle of a read carries the number of its own segment. The same number twice would
            // look like a duplicate ACK.
            let ahead = if advances { to_come } else { 0 };
            let (last_decided, ts_recent) = match decided {
                Some(number) => (number, facts.timestamp.unwrap_or(facts.ts_recent)),
                None => (facts.last_decided, facts.ts_recent),
            };
            let facts = Facts { rcv_nxt: facts.rcv_nxt - ahead, last_decided, ts_recent, ..*facts };
            let arrival = Arrival {
                bytes,
                push: whole.push && is_last,
                ack_request: whole.ack_request.and_then(|asked| asked.with_behind(count - 1 - nth)),
                rtt: whole.rtt.filter(|_| nth == 0),
                ..*whole
            };
            self.on_segment(cx, &arrival, &facts);
            if self.live.owed.segments == 0 {
                decided = Some(facts.rcv_nxt);
            }
        }
        decided
    }
}
