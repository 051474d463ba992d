//! Records of the frames in flight: the airtime, and the frames, of each station.

use hopwise_core::narrow::as_u32;

use super::mpdu::Mpdu;
use super::station::{Hears, Reception};
use super::{Dcf, EVERYONE, Frame, FrameKind};
use crate::airtime::{AirLoad, AirtimeUse};
use crate::frames::{FrameEffect, FrameEvent};

impl Dcf {
    #[inline]
    pub(super) fn is_written_down(&self) -> bool {
        !self.airtimes.is_empty() || self.seen.is_some()
    }

    pub(super) fn write_sent(&mut self, now: u64, n: usize) {
        let frame = &self.stations[n].frame;
        let until = now + frame.airtime_ns;
        if let Some(airtime) = self.airtimes.get_mut(n) {
            let reception = &self.stations[n].reception;
            if reception.hears != Hears::Nothing && reception.from < now {
                airtime.book(AirtimeUse::Noise, reception.from, now);
            }
            let spent = match frame.kind {
                FrameKind::Rts => AirtimeUse::SendsRts,
                FrameKind::Cts => AirtimeUse::SendsCts,
                FrameKind::Data if frame.load == AirLoad::TcpAck => AirtimeUse::SendsTcpAck,
                FrameKind::Data => AirtimeUse::SendsData,
                FrameKind::Ack | FrameKind::BlockAck | FrameKind::BlockAckReq => AirtimeUse::SendsAck,
            };
            airtime.book(spent, now, until);
        }
        if self.seen.is_some() {
            self.see_sent(now, n);
        }
    }

    #[cold]
    fn see_sent(&mut self, now: u64, n: usize) {
        let frame = self.stations[n].frame;
        let event = FrameEvent {
            from_ns: now,
            until_ns: now + frame.airtime_ns,
            station: as_u32(n),
            sender: as_u32(n),
            sees: FrameEffect::Sends,
            power_w: self.radio.transmit_w,
            frame,
            packet_id: 0,
        };
        self.see(&event, 0);
    }

    /// Keeps a view of a frame; of an aggregate, one for each packet in it.
    fn see(&mut self, event: &FrameEvent, lost: u64) {
        let Some(mut seen) = self.seen.take() else { return };
        if event.frame.mpdus < 2 {
            seen.push(*event);
        } else {
            // The views of packets begin so that each has the preamble before it.
            let preamble_ns = self.preamble_ns(event.frame.rate);
            let of_part = |(nth, (mpdu, from, until)): (usize, (Mpdu, u64, u64))| {
                let is_lost = lost >> nth & 1 != 0 && event.sees == FrameEffect::Decodes;
                let Mpdu { number, bytes, load, is_repeat, .. } = mpdu;
                FrameEvent {
                    from_ns: event.from_ns + from - preamble_ns,
                    until_ns: event.from_ns + until,
                    sees: if is_lost { FrameEffect::Collision } else { event.sees },
                    frame: Frame { number, bytes, load, is_repeat, mpdus: 1, ..event.frame },
                    ..*event
                }
            };
            seen.extend(self.parts(event.sender as usize).enumerate().map(of_part));
        }
        self.seen = Some(seen);
    }

    pub(super) fn write_heard(&mut self, n: usize, heard: &Reception) {
        if let Some(airtime) = self.airtimes.get_mut(n) {
            let sender = self.medium.links[heard.link as usize].from;
            let to = self.stations[sender as usize].frame.to;
            let is_own = to == as_u32(n) || to == EVERYONE;
            let spent = match heard.hears {
                Hears::Frame if is_own => AirtimeUse::Receives,
                Hears::Frame => AirtimeUse::Overhears,
                Hears::Collision => AirtimeUse::Collision,
                Hears::Noise | Hears::Nothing => AirtimeUse::Noise,
            };
            airtime.book(spent, heard.from, heard.until);
        }
        if self.seen.is_some() {
            self.see_heard(n, heard);
        }
    }

    #[cold]
    fn see_heard(&mut self, n: usize, heard: &Reception) {
        let sender = self.medium.links[heard.link as usize].from;
        let sees = match heard.hears {
            Hears::Frame => FrameEffect::Decodes,
            Hears::Collision => FrameEffect::Collision,
            Hears::Noise | Hears::Nothing => FrameEffect::Noise,
        };
        let event = FrameEvent {
            from_ns: heard.began,
            until_ns: heard.until,
            station: as_u32(n),
            sender,
            sees,
            power_w: heard.power_w,
            frame: self.stations[sender as usize].frame,
            packet_id: 0,
        };
        self.see(&event, heard.lost);
    }
}
