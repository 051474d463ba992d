//! Route discovery: requests across the whole network, each with a longer timeout, then a rest.

use std::net::{IpAddr, Ipv4Addr};

use super::messages::{RouteMessage, statement};
use super::{Aodvv2, Cx, Route, v4};
use crate::on_demand::rank::Wish;
use crate::on_demand::searches::Begun;

impl Aodvv2 {
    /// Starts a search for a destination, unless one is under way.
    pub(super) fn search(&mut self, cx: &Cx<'_>, src: IpAddr, (dst, wish): (Ipv4Addr, Wish)) {
        let origin = v4(src).filter(|src| self.serves.contains(src)).unwrap_or(self.desk.own);
        match self.searches.begin(dst, origin, wish, 1) {
            Begun::Already => return,
            Begun::Refused => self.give_search_up(dst),
            Begun::New(gone) => {
                self.desk.discoveries += 1;
                if let Some((gone, _)) = gone {
                    self.give_search_up(gone);
                }
            }
        }
        self.take_turns(cx);
    }

    /// Sends the requests that may leave now.
    fn take_turns(&mut self, cx: &Cx<'_>) {
        let wait = self.settings.rreq_wait_time;
        while !self.is_asleep(cx.now) {
            let patience = |attempts: &u8| wait * 2_u32.pow(u32::from((*attempts).clamp(1, 16) - 1));
            let Some((dst, origin, _)) = self.searches.next_request(cx.now, patience) else { return };
            self.request(cx, (origin, dst));
        }
    }

    fn request(&mut self, cx: &Cx<'_>, (origin, dst): (Ipv4Addr, Ipv4Addr)) {
        self.desk.note_asked(cx.now, (origin, dst), true, self.settings.rtemsg_entry_time);
        let rreq = RouteMessage {
            hop_limit: self.settings.max_hopcount,
            to: origin,
            seq: self.next_seq(),
            metric: 0,
            validity: None,
            other: dst,
            other_seq: self.table.get(dst).and_then(Route::seq),
        };
        let mut message = rreq.rreq();
        message.tlvs.extend(self.desk.ack_seqs.write(cx, origin, dst).map(statement));
        self.tell_everyone(None, message);
    }

    /// Retries or gives up requests that were not answered in time.
    pub(super) fn go_on_searching(&mut self, cx: &Cx<'_>) {
        for (dst, attempts) in self.searches.unanswered(cx.now) {
            if attempts < self.settings.discovery_attempts_max {
                self.searches.go_on(dst, attempts + 1);
            } else {
                let rest = self.settings.rreq_holddown_time;
                self.searches.fail(cx.now, dst, |_, _| rest);
                self.give_search_up(dst);
            }
        }
        self.take_turns(cx);
    }

    /// Ends a search and drops its waiting packets.
    fn give_search_up(&mut self, dst: Ipv4Addr) {
        self.table.forget_wish(dst);
        self.desk.drop_waiting(dst);
    }
}
