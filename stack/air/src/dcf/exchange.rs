//! RTS, CTS, data, ACK: a station's answers, its waits, and its steps when an answer is missing.

use hopwise_core::Cast;
use hopwise_core::narrow::as_u32;

use super::recipient::category_of;
use super::station::{ExchangePhase, Hears, OwedAnswer, Reception, Wait};
use super::transmission::whole_us;
use super::{Dcf, DcfNews, Frame, FrameKind, MacRules, PacketOutcome};
use crate::airtime::AirLoad;
use crate::frames::FrameLoss;
use crate::phy::{BLOCK_ACK_BYTES, Rate};

/// The fields that a station reads of a frame for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivedFields {
    pub(super) kind: FrameKind,
    pub(super) duration_ns: u64,
    pub(super) is_announced: bool,
    /// The number of its packet, or the first of a block.
    pub(super) number: u32,
    /// The packets in an aggregate; 0 without aggregation.
    pub(super) mpdus: u8,
    /// The packets that a block ACK acknowledges.
    pub(super) bitmap: u64,
}

impl Dcf {
    /// A frame for this station was understood.
    pub(super) fn take_own(&mut self, n: usize, heard: &Reception, frame: ReceivedFields) {
        match frame.kind {
            FrameKind::Rts => self.take_rts(n, heard, frame),
            FrameKind::Cts => self.take_cts(n, heard),
            FrameKind::Data => self.take_data(n, heard, frame),
            FrameKind::Ack => self.take_ack(n, heard.until),
            FrameKind::BlockAck => self.take_block_ack(n, (frame.number, frame.bitmap), heard.until),
            FrameKind::BlockAckReq => {
                let st = &self.stations[n];
                if st.phase == ExchangePhase::Idle && st.wait == Wait::Nothing {
                    self.take_block_ack_request(n, heard, frame);
                } else {
                    self.note_loss(self.medium.links[heard.link as usize].from, n, FrameLoss::Engaged);
                }
            }
        }
    }

    fn take_rts(&mut self, n: usize, heard: &Reception, frame: ReceivedFields) {
        let st = &self.stations[n];
        if st.phase != ExchangePhase::Idle || st.wait != Wait::Nothing {
            self.note_loss(self.medium.links[heard.link as usize].from, n, FrameLoss::Engaged);
            return;
        }
        let duration_ns = whole_us(frame.duration_ns - self.times.sifs - self.times.cts);
        self.owe(n, heard, FrameKind::Cts, duration_ns);
    }

    pub(super) fn owe(&mut self, n: usize, heard: &Reception, kind: FrameKind, duration_ns: u64) {
        let to = self.medium.links[heard.link as usize].from;
        self.stations[n].owed = Some(OwedAnswer { kind, to, duration_ns, block: (0, 0) });
        self.wait(n, Wait::ToAnswer, heard.until + self.times.sifs);
    }

    fn take_cts(&mut self, n: usize, heard: &Reception) {
        let st = &mut self.stations[n];
        let (ExchangePhase::AwaitsCts, Some(service)) = (st.phase, &mut st.service) else { return };
        service.is_cleared = true;
        st.short_tries = 0;
        st.phase = ExchangePhase::Idle;
        self.note_answered(n);
        self.wait(n, Wait::ToSendData, heard.until + self.times.sifs);
    }

    fn take_data(&mut self, n: usize, heard: &Reception, frame: ReceivedFields) {
        let st = &mut self.stations[n];
        let is_expected = match (frame.is_announced, st.phase) {
            (true, ExchangePhase::AwaitsData) => true,
            (is_announced, ExchangePhase::Idle) => {
                let is_late = is_announced && self.mac.rules == MacRules::Ns2;
                !is_late && st.wait == Wait::Nothing
            }
            _ => false,
        };
        if !is_expected {
            self.note_loss(self.medium.links[heard.link as usize].from, n, FrameLoss::Engaged);
            return;
        }
        st.phase = ExchangePhase::Idle;
        if frame.mpdus > 0 {
            self.take_mpdus(n, heard, frame);
            return;
        }
        self.owe(n, heard, FrameKind::Ack, 0);
        let link = &mut self.medium.links[heard.link as usize];
        let Some(service) = &self.stations[link.from as usize].service else { return };
        let (number, rate) = (service.number, service.rate);
        // After a lost ACK the frame comes again.
        let last = &mut link.delivered[category_of(number).index()];
        if std::mem::replace(last, number) != number {
            let (from, to) = (link.from, as_u32(n));
            let power_w = heard.power_w;
            self.book_packet(n, from);
            self.news.push_back(DcfNews::Arrived { from, to, number, cast: Cast::ToUs, rate, power_w });
        }
    }

    fn take_ack(&mut self, n: usize, ended: u64) {
        let st = &mut self.stations[n];
        let (ExchangePhase::AwaitsAck, Some(service)) = (st.phase, &st.service) else { return };
        let is_announced = service.is_announced;
        self.learn_rate(n, 1);
        self.note_answered(n);
        let st = &mut self.stations[n];
        *(if is_announced { &mut st.long_tries } else { &mut st.short_tries }) = 0;
        st.phase = ExchangePhase::Idle;
        st.wait = Wait::Nothing;
        self.finish(n, PacketOutcome::Acknowledged);
        self.note_success(n, ended);
        self.draw_backoff(n);
    }

    pub(super) fn block_ack_ns(&self, answered_at: Rate) -> u64 {
        let rate = if answered_at.is_ht() { answered_at.answer() } else { self.phy.basic };
        self.phy.airtime_ns(BLOCK_ACK_BYTES, rate)
    }

    /// SIFS has passed since the frame that needs an answer.
    pub(super) fn on_time_to_answer(&mut self, now: u64, n: usize) {
        let Some(owed) = self.stations[n].owed.take() else { return };
        self.settle_what_is_over(now, n);
        let st = &self.stations[n];
        let is_held_up = match (owed.kind, self.mac.rules) {
            // ns-2 wants carrier and NAV idle, the standard the NAV alone.
            (FrameKind::Cts, MacRules::Ns2) => st.nav > now || st.hears_anything(now),
            (FrameKind::Cts, MacRules::Standard) => st.nav_end() > now,
            _ => false,
        };
        if is_held_up {
            self.note_loss(owed.to, n, FrameLoss::HeldUp);
            self.proceed(n);
            return;
        }
        // The frame that is answered is still the last one of its sender.
        let answered_at = self.stations[owed.to as usize].frame.rate;
        let (airtime_ns, phase) = match owed.kind {
            FrameKind::Cts if self.mac.rules == MacRules::Ns2 => (self.times.cts, ExchangePhase::AwaitsData),
            FrameKind::Cts => (self.times.cts, ExchangePhase::Sends),
            FrameKind::BlockAck => (self.block_ack_ns(answered_at), ExchangePhase::Sends),
            _ => (self.ack_ns(answered_at), ExchangePhase::Sends),
        };
        let rate = if answered_at.is_ht() { answered_at.answer() } else { self.phy.basic };
        self.stations[n].phase = phase;
        // The answered packet is still in service there.
        let answered = &self.stations[owed.to as usize].service;
        let frame = Frame {
            duration_ns: owed.duration_ns,
            number: owed.block.0,
            load: answered.as_ref().map_or(AirLoad::Other, |service| service.load),
            bitmap: owed.block.1,
            ..Frame::control(owed.kind, owed.to, rate, airtime_ns)
        };
        self.stations[n].frame = frame;
        self.transmit(now, n);
    }

    /// SIFS has passed since the CTS. On a medium that got busy the station begins again with an RTS.
    pub(super) fn on_time_to_send_data(&mut self, now: u64, n: usize) {
        self.settle_what_is_over(now, n);
        let st = &mut self.stations[n];
        let is_busy = self.mac.rules == MacRules::Ns2 && (st.nav > now || st.hears_anything(now));
        if !is_busy {
            self.send_data(now, n);
            return;
        }
        if let Some(service) = &mut st.service {
            service.is_cleared = false;
        }
        st.widen();
        self.draw_backoff(n);
        self.proceed(n);
    }

    /// An awaited frame did not come.
    pub(super) fn on_no_answer(&mut self, now: u64, n: usize) {
        self.stations[n].wait = Wait::Answer;
        self.settle_what_is_over(now, n);
        let st = &mut self.stations[n];
        if st.wait != Wait::Answer {
            return;
        }
        if self.mac.rules == MacRules::Standard && st.hears_since(now) {
            // The station listens to the end of a frame that began in time (IEEE 802.11-2016 §10.3.2.7, §10.3.2.9).
            let until = st.reception.until;
            self.wait(n, Wait::Answer, until);
            return;
        }
        st.wait = Wait::Nothing;
        // Waiting counts as busy.
        st.busy_until = st.busy_until.max(now);
        if st.phase == ExchangePhase::AwaitsAck && st.frame.kind == FrameKind::Data {
            self.learn_rate(n, 0);
        }
        if self.stations[n].phase == ExchangePhase::AwaitsAck && self.wants_block_ack(n) {
            self.stations[n].phase = ExchangePhase::Idle;
            self.on_no_block_ack(now, n);
            self.proceed(n);
            return;
        }
        let fate = self.fate(n);
        let st = &mut self.stations[n];
        let phase = std::mem::replace(&mut st.phase, ExchangePhase::Idle);
        match phase {
            ExchangePhase::AwaitsCts => self.try_again(n, RetryLimit::Rts),
            ExchangePhase::AwaitsAck if st.service.is_some_and(|service| service.is_announced) => {
                self.try_again(n, RetryLimit::Long);
            }
            ExchangePhase::AwaitsAck => self.try_again(n, RetryLimit::Short),
            // The announced data is missing, or the station waited for nothing.
            ExchangePhase::AwaitsData | ExchangePhase::Idle | ExchangePhase::Sends => {}
        }
        if matches!(phase, ExchangePhase::AwaitsCts | ExchangePhase::AwaitsAck) {
            self.note_ending(n, fate, self.stations[n].service.is_none());
        }
        self.proceed(n);
    }

    fn try_again(&mut self, n: usize, kind: RetryLimit) {
        let st = &mut self.stations[n];
        if let Some(service) = &mut st.service {
            service.unanswered += 1;
        }
        let is_over = match kind {
            RetryLimit::Rts => None,
            RetryLimit::Short | RetryLimit::Long => self.is_chain_over(n),
        };
        let st = &mut self.stations[n];
        let (tries, most) = match kind {
            RetryLimit::Rts | RetryLimit::Short => (&mut st.short_tries, self.mac.short_retries),
            RetryLimit::Long => (&mut st.long_tries, self.mac.long_retries),
        };
        let is_aggregated = st.service.is_some_and(|service| service.mpdus > 0);
        *tries = tries.saturating_add(1);
        if is_over.unwrap_or(*tries >= most) {
            *tries = 0;
            self.finish(n, PacketOutcome::GivenUp);
        } else {
            st.widen();
            if let Some(service) = &mut st.service {
                service.is_cleared = false;
            }
            self.renew_rate(n);
        }
        self.draw_backoff(n);
        if is_aggregated {
            self.news.push_back(DcfNews::HasRoom { station: as_u32(n) });
        }
    }

    pub(super) fn on_broadcast_sent(&mut self, n: usize) {
        self.stations[n].phase = ExchangePhase::Idle;
        self.finish(n, PacketOutcome::Sent);
        self.draw_backoff(n);
        self.proceed(n);
    }

    fn finish(&mut self, n: usize, outcome: PacketOutcome) {
        let st = &mut self.stations[n];
        if st.service.is_some_and(|service| service.mpdus > 0) {
            self.finish_alone(n, outcome);
            return;
        }
        st.reset_cw();
        let Some(service) = st.service.take() else { return };
        if outcome == PacketOutcome::GivenUp {
            self.stats[n].retry_drops += 1;
        }
        let tries = service.unanswered + u32::from(outcome != PacketOutcome::GivenUp);
        self.book_done(n, &service, outcome, tries);
        let (station, number, rate) = (as_u32(n), service.number, service.rate);
        self.news.push_back(DcfNews::Done { station, number, packets: 1, outcome, rate, tries });
    }

    fn settle_what_is_over(&mut self, now: u64, n: usize) {
        let reception = &self.stations[n].reception;
        if reception.hears != Hears::Nothing && reception.until <= now {
            self.settle(n);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetryLimit {
    /// An RTS was sent. It counts as a short one.
    Rts,
    Short,
    Long,
}
