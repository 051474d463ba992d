//! Shows packets and frames to the observers, in order.

use hopwise_core::{Instant, Machine};

use super::{Driver, Port};
use crate::frames::KeptFrame;
use crate::link::Arrived;
use crate::observer::{Direction, SeenPacket};

impl<M: Machine> Driver<M> {
    pub(super) fn show_arrived(&mut self, now: Instant, index: usize, arrived: &Arrived) {
        if !self.is_watched {
            return;
        }
        self.show_frames(index);
        let seen = SeenPacket {
            at: now,
            link: self.ports[index].id,
            direction: Direction::In,
            id: self.packets_in,
            segment_bytes: arrived.segment_bytes,
            ethernet: arrived.ethernet,
            packet: &self.buffer[..arrived.bytes],
        };
        for observer in &mut self.observers {
            observer.on_packet(&seen);
        }
    }

    pub(super) fn show_sent(&mut self, now: Instant, index: usize) {
        if !self.is_watched {
            return;
        }
        self.drain_trace();
        self.show_frames(index);
        let port = &self.ports[index];
        let Some((transmit, packet)) = port.outgoing.next() else { return };
        let ethernet = port.link.ethernet_of(transmit, packet);
        for observer in &mut self.observers {
            observer.on_packet(&SeenPacket {
                at: now,
                link: port.id,
                direction: Direction::Out,
                id: transmit.id,
                segment_bytes: transmit.segment_bytes,
                ethernet,
                packet,
            });
        }
    }

    /// Shows the frames that the link has received or sent by itself.
    pub(super) fn show_frames(&mut self, index: usize) {
        if !self.is_watched {
            return;
        }
        let Driver { ports, observers, .. } = self;
        let Port { id: link, link: carrier, .. } = &mut ports[index];
        carrier.drain_frames(&mut |frame: &KeptFrame| {
            let seen = SeenPacket {
                at: frame.at,
                link: *link,
                direction: frame.direction,
                id: frame.id.unwrap_or(0),
                segment_bytes: frame.segment_bytes,
                ethernet: Some(frame.header),
                packet: &frame.packet,
            };
            for observer in observers.iter_mut() {
                match frame.id {
                    Some(_) => observer.on_packet(&seen),
                    None => observer.on_own_frame(&seen),
                }
            }
        });
    }

    pub(super) fn drain_trace(&mut self) {
        let Driver { machine, observers, is_watched, .. } = self;
        if !*is_watched {
            return;
        }
        machine.drain_trace(&mut |event| {
            for observer in observers.iter_mut() {
                observer.on_trace(event);
            }
        });
    }
}
