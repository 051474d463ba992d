//! Frames go on the air.

use hopwise_core::narrow::as_u32;

use super::station::{ExchangePhase, Hears, PacketInService, Wait};
use super::{Dcf, EVERYONE, Frame, FrameKind, MacRules, NS2_PATIENCE_NS};
use crate::deadlines::NEVER;
use crate::phy::BLOCK_ACK_BYTES;

impl Dcf {
    pub(super) fn send_rts(&mut self, now: u64, n: usize) {
        let Some(service) = self.stations[n].service else { return };
        let (times, data, ack) = (&self.times, service.airtime_ns, self.answer_ns(&service));
        let frame = Frame {
            duration_ns: whole_us(3 * times.sifs + times.cts + data + ack),
            number: service.number,
            load: service.load,
            access: self.access(n, FrameKind::Rts),
            ..Frame::control(FrameKind::Rts, service.to, self.phy.basic, times.rts)
        };
        self.stations[n].phase = ExchangePhase::AwaitsCts;
        self.stations[n].frame = frame;
        self.transmit(now, n);
    }

    /// Keeps other stations quiet for the data frame that follows (CTS-to-self). A hidden station hears nothing of it,
    /// as it has no answer.
    #[inline(never)]
    pub(super) fn send_cts_to_self(&mut self, now: u64, n: usize) {
        let access = self.access(n, FrameKind::Cts);
        let Some(service) = &mut self.stations[n].service else { return };
        // The aggregate takes no further packet.
        service.is_cleared = true;
        let service = *service;
        let exchange = 2 * self.times.sifs + service.airtime_ns + self.answer_ns(&service);
        let frame = Frame {
            duration_ns: whole_us(exchange),
            number: service.number,
            load: service.load,
            access,
            ..Frame::control(FrameKind::Cts, as_u32(n), self.phy.basic, self.times.cts)
        };
        self.stations[n].phase = ExchangePhase::Sends;
        self.stations[n].frame = frame;
        self.transmit(now, n);
    }

    pub(super) fn send_data(&mut self, now: u64, n: usize) {
        let access = self.access(n, FrameKind::Data);
        let Some(held) = &mut self.stations[n].service else { return };
        let service = *held;
        held.has_left = true;
        let first = self.stations[n].mpdus.first().copied().filter(|_| service.mpdus > 0);
        self.note_departed(n, service.mpdus);
        let ack_ns = self.answer_ns(&service);
        let (duration_ns, phase) = if service.to == EVERYONE {
            (0, ExchangePhase::Sends)
        } else {
            (whole_us(self.times.sifs + ack_ns), ExchangePhase::AwaitsAck)
        };
        let frame = Frame {
            duration_ns,
            bytes: service.bytes,
            number: service.number,
            load: service.load,
            is_announced: service.is_cleared,
            is_repeat: first.map_or(service.has_left, |first| first.is_repeat),
            access,
            mpdus: service.mpdus,
            ..Frame::control(FrameKind::Data, service.to, service.rate, service.airtime_ns)
        };
        self.stations[n].phase = phase;
        self.stations[n].frame = frame;
        self.transmit(now, n);
    }

    /// The airtime of the answer to the frame with the packets in service.
    #[inline]
    pub(super) fn answer_ns(&self, service: &PacketInService) -> u64 {
        if service.mpdus > 1 {
            self.phy.airtime_ns(BLOCK_ACK_BYTES, service.rate.answer())
        } else {
            self.ack_ns(service.rate)
        }
    }

    /// Applies the start of the station's frame to all stations in range.
    pub(super) fn transmit(&mut self, now: u64, n: usize) {
        if self.is_written_down() {
            self.write_sent(now, n);
            self.note_departure(n);
        }
        let st = &mut self.stations[n];
        debug_assert!(st.sends_until <= now, "a station sends one frame at a time");
        if st.reception.hears == Hears::Frame {
            // A station that sends cannot decode a frame that comes in meanwhile.
            st.reception.hears = Hears::Noise;
        }
        st.reception.started = NEVER;
        let airtime_ns = st.frame.airtime_ns;
        let until = now + airtime_ns;
        (st.sends_from, st.sends_until) = (now, until);
        st.busy_until = st.busy_until.max(until);
        self.stats[n].on_sent((st.frame.kind, st.frame.load), airtime_ns);
        self.book_sent(n);
        self.medium.look(n, now);
        self.wait(n, Wait::FrameEnd, until + self.medium.longest_ns(n));
        for link in self.medium.of(n) {
            self.arrive(now, link, airtime_ns);
        }
    }

    /// All stations in range have received the end of a frame.
    pub(super) fn on_frame_end(&mut self, now: u64, n: usize) {
        for link in self.medium.of(n) {
            let to = self.medium.links[link].to as usize;
            let reception = &self.stations[to].reception;
            if reception.hears != Hears::Nothing && reception.until <= now {
                self.settle(to);
            }
        }
        self.after_own_frame(n);
    }

    fn after_own_frame(&mut self, n: usize) {
        let (st, times) = (&self.stations[n], &self.times);
        let (end, duration_ns) = (st.sends_until, st.frame.duration_ns);
        match (st.frame.kind, st.frame.to) {
            (FrameKind::Rts, _) => self.wait(n, Wait::Answer, end + times.cts_timeout),
            (FrameKind::BlockAckReq, _) => self.wait(n, Wait::Answer, end + times.ack_timeout),
            (FrameKind::Data, EVERYONE) => self.on_broadcast_sent(n),
            (FrameKind::Data, _) => self.wait(n, Wait::Answer, end + times.ack_timeout),
            (FrameKind::Cts, to) if to as usize == n => {
                self.stations[n].phase = ExchangePhase::Idle;
                self.wait(n, Wait::ToSendData, end + times.sifs);
            }
            // The duration of a CTS is SIFS, the data, SIFS, the ACK. Under ns-2's rules the station does nothing else
            // until the data ends; the standard has no such wait.
            (FrameKind::Cts, _) if self.mac.rules == MacRules::Ns2 => {
                let data_end = end + duration_ns - times.sifs - times.ack;
                self.wait(n, Wait::Answer, data_end + NS2_PATIENCE_NS);
            }
            (FrameKind::Cts | FrameKind::Ack | FrameKind::BlockAck, _) => {
                self.stations[n].phase = ExchangePhase::Idle;
                self.proceed(n);
            }
        }
    }
}

/// A duration field, in whole microseconds. It covers the frame's own exchange, also in a TXOP of several frames (IEEE
/// 802.11-2020 §9.2.5.2, single protection).
pub(super) fn whole_us(ns: u64) -> u64 {
    (ns + 500) / 1_000 * 1_000
}
