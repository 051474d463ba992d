//! Fills the links with the machine's packets, in turns.

use hopwise_core::{Instant, Machine};

use super::Driver;
use crate::link::Sent;
use crate::poller::Interest;

impl<M: Machine> Driver<M> {
    /// D1.
    pub(super) fn pump(&mut self, now: Instant) {
        self.owes_answers = false;
        self.drain_trace();
        for index in 0..self.ports.len() {
            if !self.ports[index].is_full {
                self.send(now, index);
            }
        }
        self.drain_trace();
    }

    pub(super) fn send(&mut self, now: Instant, index: usize) {
        let before = self.ports[index].left;
        while self.ports[index].left > 0 && self.send_one(now, index) {
            self.ports[index].left -= 1;
        }
        let port = &mut self.ports[index];
        port.stopped_at = (port.left == 0 && !port.is_full).then_some(now);
        if port.left < before {
            self.ports[index].link.flush(now);
            self.show_frames(index);
        }
    }

    /// Returns whether a packet left, or was refused for good, and the next may follow.
    fn send_one(&mut self, now: Instant, index: usize) -> bool {
        let Driver { machine, ports, is_watched, .. } = self;
        let port = &mut ports[index];
        let was_full = std::mem::take(&mut port.is_full);
        // Observers see whole packets.
        let may_gather = !*is_watched && port.outgoing.is_empty();
        let sent = if let Some(link) = port.link.gathers().filter(|_| may_gather) {
            port.outgoing.gather(now, machine, port.id, link)
        } else {
            port.outgoing.fill(now, machine, port.id, port.link.properties().cuts);
            port.outgoing.next().map(|(transmit, packet)| port.link.transmit(now, transmit, packet))
        };
        let Some(sent) = sent else { return false };
        match sent {
            Sent::Taken => {
                self.packets_out += 1;
                self.show_sent(now, index);
            }
            Sent::Waits => {
                self.packets_out += 1;
                self.drain_trace();
            }
            Sent::Refused(_) => {}
            Sent::Full => {
                port.is_full = true;
                if !was_full {
                    self.change_interest(index, Interest::ReadAndRoom);
                }
                return false;
            }
        }
        self.ports[index].outgoing.advance();
        if was_full {
            self.change_interest(index, Interest::Read);
        }
        true
    }
}
