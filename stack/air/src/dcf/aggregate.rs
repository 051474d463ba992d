//! The sender's half: packets for one station that leave in one aggregate (A-MPDU), and the block ACK for them.
//!
//! The packets that a station was given for one other station are its `mpdus`, in the order of their numbers. As long
//! as none of them is on the air, more may join. Access to the medium fixes how many leave. One alone leaves as a frame
//! of its own and gets an ACK; it has a limit of tries. Several get a block ACK. Those that it leaves out go first in
//! the next aggregate, until their lifetime ends (IEEE 802.11-2016 §10.22.2.12): there is no limit of tries. If the
//! block ACK is missing the station requests it. It also sends a request when it has given a packet up, so that its
//! receiver waits no longer.
//!
//! A packet may also join another packet in its MPDU (A-MSDU) that has not left yet. They share a number and a fate.
//! Without A-MPDU such an MPDU leaves alone: there is no agreement, no window, and no request.

use hopwise_core::narrow::{as_u8, as_u32};

use super::mpdu::{BESIDE_AMSDU, JoinedPacket, Length, Mpdu};
use super::recipient::WINDOW;
use super::station::{ExchangePhase, PacketInService, Wait};
use super::transmission::whole_us;
use super::{Dcf, DcfNews, EVERYONE, Frame, FrameKind, Offered, PacketOutcome};
use crate::deadlines::NEVER;
use crate::frames::FrameFate;
use crate::phy::{BLOCK_ACK_BYTES, BLOCK_ACK_REQ_BYTES, DELIMITER_BYTES};

/// Room in the aggregate that a station prepares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AggregateRoom {
    /// The receiver.
    pub(crate) to: u32,
    /// The longest packet that fits.
    pub(crate) bytes: u32,
}

impl Dcf {
    /// Room for a further packet of the category at hand at a station, under aggregation.
    #[inline(never)]
    pub(crate) fn room_for_more(&self, station: u32) -> Option<AggregateRoom> {
        let st = &self.stations[station as usize];
        let service = st.service.as_ref().filter(|service| service.to != EVERYONE && !service.is_cleared)?;
        let is_out = matches!(st.phase, ExchangePhase::AwaitsCts | ExchangePhase::AwaitsAck);
        if is_out || service.is_request {
            return None;
        }
        let (to, joins) = (service.to, self.room_to_join(station as usize).unwrap_or(0));
        let bytes = joins.max(self.room_for_mpdu(station as usize).unwrap_or(0));
        (bytes > 0).then_some(AggregateRoom { to, bytes })
    }

    fn length_of(&self, mpdus: &[Mpdu]) -> Length {
        mpdus.iter().fold(Length::default(), |length, mpdu| length.with(mpdu.bytes + self.phy.data_overhead))
    }

    /// The longest packet for which the aggregate has room in an MPDU of its own.
    fn room_for_mpdu(&self, n: usize) -> Option<u32> {
        let st = &self.stations[n];
        let (first, last) = (st.mpdus.first()?, st.mpdus.last()?);
        let is_in_window = last.number + 1 < first.number + WINDOW;
        if st.mpdus.len() >= usize::from(self.mac.ampdu?) || !is_in_window {
            return None;
        }
        let length = self.length_of(&st.mpdus);
        st.service?.longest.checked_sub(length.padded + DELIMITER_BYTES + self.phy.data_overhead)
    }

    /// The longest packet for which the last MPDU has room.
    fn room_to_join(&self, n: usize) -> Option<u32> {
        let st = &self.stations[n];
        let (last, before) = st.mpdus.split_last()?;
        let room = last.room(self.times.longest_amsdu)?;
        let left = st.service?.longest.checked_sub(self.length_of(before).padded + DELIMITER_BYTES)?;
        Some(room.min(left.checked_sub(last.with_packet(0) + BESIDE_AMSDU)?))
    }

    #[inline(never)]
    pub(super) fn add_mpdu(&mut self, now: u64, n: usize, offered: &Offered) -> u32 {
        let Offered { to, bytes, load, queued_at, .. } = *offered;
        let queued_at = queued_at.unwrap_or(NEVER);
        if self.room_to_join(n).is_some_and(|room| bytes <= room) {
            let st = &mut self.stations[n];
            let last = st.mpdus.last_mut().expect("it has room");
            last.join(bytes);
            let number = last.number;
            st.joined.push(JoinedPacket { number, load, queued_at });
            return number;
        }
        let st = &mut self.stations[n];
        let number = st.number_for(to);
        let since = if queued_at == NEVER { now } else { queued_at };
        let expires = self.mac.lifetime_ns.map_or(NEVER, |lifetime| since + lifetime);
        st.mpdus.push(Mpdu {
            number,
            bytes,
            packets: 1,
            load,
            queued_at,
            expires,
            unanswered: 0,
            has_left: false,
            is_repeat: false,
        });
        number
    }

    /// The station has access to the medium: its next frame takes all packets that fit.
    #[inline(never)]
    pub(super) fn fix_aggregate(&mut self, now: u64, n: usize) {
        let Some(service) = self.stations[n].service else { return };
        let (most, overhead) = (usize::from(self.mac.ampdu.unwrap_or(1)), self.phy.data_overhead);
        let longest = service.longest;
        let most_ns = self.txop_left(now, n, &service);
        let (phy, st) = (&self.phy, &mut self.stations[n]);
        let Some(first) = st.mpdus.first().copied() else { return };
        let (mut length, mut bytes, mut count) = (Length::default(), 0, 0);
        for mpdu in st.mpdus.iter().take(most) {
            let longer = length.with(mpdu.bytes + overhead);
            let is_late = most_ns.is_some_and(|most| phy.airtime_ns(longer.bare, service.rate) > most);
            if count > 0 && (longer.bare > longest || mpdu.number >= first.number + WINDOW || is_late) {
                break;
            }
            (length, bytes, count) = (longer, bytes + mpdu.bytes, count + 1);
        }
        for mpdu in &mut st.mpdus[..count] {
            mpdu.is_repeat = mpdu.has_left;
            let queued_at = std::mem::replace(&mut mpdu.queued_at, NEVER);
            if queued_at != NEVER {
                self.waits[n].add(mpdu.load, now - queued_at);
            }
        }
        if !st.joined.is_empty() {
            let leaving = &st.mpdus[..count];
            let waits = &mut self.waits[n];
            st.joined.retain(|joined| joined.waits_beside(leaving, now, waits));
        }
        let alone = first.bytes + overhead;
        let psdu = if count == 1 { phy.psdu_of_one(alone, service.rate) } else { length.bare };
        let announced = if count == 1 { first.bytes } else { psdu };
        st.service = Some(PacketInService {
            bytes,
            number: first.number,
            load: first.load,
            mpdus: as_u8(count),
            airtime_ns: self.phy.airtime_ns(psdu, service.rate),
            is_announced: service.is_protected || self.mac.announces(announced),
            ..service
        });
    }

    /// The packets of the frame at hand are on the air.
    pub(super) fn note_departed(&mut self, n: usize, mpdus: u8) {
        let st = &mut self.stations[n];
        st.mpdus.iter_mut().take(usize::from(mpdus)).for_each(|mpdu| mpdu.has_left = true);
    }

    /// The parts of a station's frame that have packets of their own, each with its time since the frame's start.
    pub(super) fn parts(&self, n: usize) -> impl Iterator<Item = (Mpdu, u64, u64)> + '_ {
        let st = &self.stations[n];
        let overhead = self.phy.data_overhead;
        let mpdus = st.mpdus.iter().take(usize::from(st.frame.mpdus));
        let whole = mpdus.clone().fold(Length::default(), |length, mpdu| length.with(mpdu.bytes + overhead));
        let preamble_ns = self.preamble_ns(st.frame.rate);
        let data_ns = st.frame.airtime_ns - preamble_ns;
        let at = move |bytes: u32| preamble_ns + data_ns * u64::from(bytes) / u64::from(whole.bare.max(1));
        mpdus.scan(Length::default(), move |length, mpdu| {
            let from = length.padded;
            *length = length.with(mpdu.bytes + overhead);
            Some((*mpdu, at(from), at(length.bare)))
        })
    }

    /// Requests the block ACK that did not come.
    #[inline(never)]
    pub(super) fn send_request(&mut self, now: u64, n: usize) {
        let st = &mut self.stations[n];
        let Some(service) = st.service else { return };
        let first = if let Some(mpdu) = st.mpdus.first() { mpdu.number } else { st.next_for(service.to) };
        let answer_ns = self.phy.airtime_ns(BLOCK_ACK_BYTES, self.phy.basic);
        let airtime_ns = self.phy.airtime_ns(BLOCK_ACK_REQ_BYTES, self.phy.basic);
        let duration_ns = whole_us(self.times.sifs + answer_ns);
        let access = self.access(n, FrameKind::BlockAckReq);
        let st = &mut self.stations[n];
        st.phase = ExchangePhase::AwaitsAck;
        let request = Frame::control(FrameKind::BlockAckReq, service.to, self.phy.basic, airtime_ns);
        st.frame = Frame { duration_ns, number: first, load: service.load, access, ..request };
        self.transmit(now, n);
    }

    /// Returns whether the station's last frame gets a block ACK.
    pub(super) fn wants_block_ack(&self, n: usize) -> bool {
        let frame = &self.stations[n].frame;
        frame.kind == FrameKind::BlockAckReq || frame.mpdus > 1
    }

    /// A block ACK has come.
    #[inline(never)]
    pub(super) fn take_block_ack(&mut self, n: usize, (first, bitmap): (u32, u64), now: u64) {
        let st = &mut self.stations[n];
        if st.phase != ExchangePhase::AwaitsAck || st.service.is_none() || !self.wants_block_ack(n) {
            return;
        }
        let st = &mut self.stations[n];
        (st.phase, st.wait, st.short_tries, st.long_tries) = (ExchangePhase::Idle, Wait::Nothing, 0, 0);
        st.reset_cw();
        let has = |mpdu: &Mpdu| {
            let ahead = mpdu.number.checked_sub(first);
            mpdu.has_left && ahead.is_some_and(|ahead| ahead < WINDOW && bitmap >> ahead & 1 != 0)
        };
        let was_data = st.frame.kind == FrameKind::Data;
        // A capture closes the newest frame first.
        let fates: Vec<bool> = st.mpdus.iter().take(usize::from(st.frame.mpdus)).rev().map(has).collect();
        let came = as_u32(fates.iter().filter(|has_come| **has_come).count());
        for has_come in fates {
            let fate = if has_come { FrameFate::Answered } else { FrameFate::Lost(self.spoilers[n]) };
            self.note_ending(n, fate, false);
        }
        if was_data {
            self.learn_rate(n, came);
            if let Some(service) = &mut self.stations[n].service {
                service.chain = 0;
            }
        } else {
            self.note_answered(n);
        }
        self.drop_mpdus(n, now, has);
        self.after_aggregate(n);
        self.note_success(n, now);
        self.draw_backoff(n);
    }

    /// The block ACK of an aggregate, or of a request, is missing.
    #[inline(never)]
    pub(super) fn on_no_block_ack(&mut self, now: u64, n: usize) {
        let most = self.mac.short_retries;
        let fate = self.fate(n);
        let st = &mut self.stations[n];
        for _ in 0..st.frame.mpdus.max(1) {
            self.note_ending(n, fate, false);
        }
        self.drop_mpdus(n, now, |_| false);
        let st = &mut self.stations[n];
        st.short_tries += 1;
        st.widen();
        let is_hopeless = st.mpdus.is_empty() && st.short_tries >= most;
        if let Some(service) = &mut st.service {
            (service.is_request, service.is_cleared) = (true, false);
        }
        if is_hopeless {
            (st.service, st.short_tries) = (None, 0);
            st.reset_cw();
        } else {
            st.short_tries = st.short_tries.min(most);
        }
        self.renew_rate(n);
        self.draw_backoff(n);
        self.news.push_back(DcfNews::HasRoom { station: as_u32(n) });
    }

    /// Takes away packets that have come, and packets that have waited too long.
    fn drop_mpdus(&mut self, n: usize, now: u64, has_come: impl Fn(&Mpdu) -> bool) {
        let Some(service) = self.stations[n].service else { return };
        let mut mpdus = std::mem::take(&mut self.stations[n].mpdus);
        let mut is_request = false;
        mpdus.retain_mut(|mpdu| {
            let has_come = has_come(mpdu);
            mpdu.unanswered += u32::from(mpdu.has_left && !has_come);
            let is_late = mpdu.has_left && now > mpdu.expires;
            if !has_come && !is_late {
                return true;
            }
            is_request |= !has_come;
            let outcome = if has_come { PacketOutcome::Acknowledged } else { PacketOutcome::GivenUp };
            self.tell_done(n, &service, mpdu, outcome);
            false
        });
        self.stations[n].mpdus = mpdus;
        if let Some(service) = &mut self.stations[n].service {
            service.is_request = is_request;
        }
    }

    fn tell_done(&mut self, n: usize, service: &PacketInService, mpdu: &Mpdu, outcome: PacketOutcome) {
        let is_given_up = outcome == PacketOutcome::GivenUp;
        self.stats[n].retry_drops += u64::from(is_given_up);
        let tries = mpdu.unanswered + u32::from(!is_given_up);
        self.book_done(n, service, outcome, tries);
        let (station, number, packets, rate) = (as_u32(n), mpdu.number, mpdu.packets, service.rate);
        self.news.push_back(DcfNews::Done { station, number, packets, outcome, rate, tries });
    }

    /// The frame that left alone has got its ACK, or was given up.
    #[inline(never)]
    pub(super) fn finish_alone(&mut self, n: usize, outcome: PacketOutcome) {
        let Some(service) = self.stations[n].service else { return };
        let st = &mut self.stations[n];
        st.reset_cw();
        // An RTS in vain gives up all that it was to announce.
        let gone: Vec<Mpdu> = st.mpdus.drain(..usize::from(service.mpdus).min(st.mpdus.len())).collect();
        for mpdu in gone {
            let unanswered = mpdu.unanswered + service.unanswered;
            self.tell_done(n, &service, &Mpdu { unanswered, ..mpdu }, outcome);
        }
        if let Some(service) = &mut self.stations[n].service {
            // Its receiver may hold back what came after it.
            service.is_request = outcome == PacketOutcome::GivenUp && self.mac.ampdu.is_some();
        }
        self.after_aggregate(n);
    }

    /// Frees the station if nothing is left to do for its receiver.
    fn after_aggregate(&mut self, n: usize) {
        let st = &mut self.stations[n];
        let Some(service) = &mut st.service else { return };
        (service.is_cleared, service.unanswered) = (false, 0);
        if st.mpdus.is_empty() && !service.is_request {
            st.service = None;
        }
        self.renew_rate(n);
        self.news.push_back(DcfNews::HasRoom { station: as_u32(n) });
    }
}

#[cfg(test)]
mod tests {
    use hopwise_core::queue::Category;

    use super::super::mpdu::LONGEST_PPDU_NS;
    use super::*;
    use crate::dcf::MacConfig;
    use crate::medium::{Position, Radio};
    use crate::phy::Phy;

    /// ns-3's facts: packets of 1500 bytes in one aggregate at MCS 0, 3 and 7.
    #[test]
    fn aggregates_end_at_their_airtime_or_at_64_packets() {
        for (profile, bytes, packets, us) in [
            ("ht20-mcs0", 1_500, 2, 3_846),
            ("ht20-mcs3", 1_500, 11, 5_270),
            ("ht20-mcs7", 1_500, 28, 5_366),
            ("ht20-mcs7", 40, 64, 0),
            // 65,535 bytes are the limit.
            ("ht40-mcs15", 1_500, 42, 0),
            // 802.11ac has no such limit: 2 packets of 1544 bytes at MCS 0, and 64 packets in symbols of 1560 bits.
            ("vht20-1ss-mcs0", 1_500, 2, 3_844),
            ("vht80-1ss-mcs9", 1_500, 64, 40 + 507 * 4),
            ("vht80-2ss-mcs9", 1_500, 64, 44 + 254 * 4),
        ] {
            let positions = [0.0, 100.0].map(|x| Some(Position { x, y: 0.0 }));
            let mac = MacConfig { rts_threshold: None, ampdu: Some(64), ..MacConfig::default() };
            let phy = Phy::named(profile).expect("a profile");
            let mut dcf = Dcf::new(phy, mac, Radio::default(), &positions, 1);
            dcf.offer(0, 0, 1, bytes);
            let category = Category::BestEffort;
            let offered = Offered::plain(1, bytes, category);
            let mut count = 1;
            while dcf.room_for_more(0).is_some_and(|room| room.bytes >= bytes) {
                dcf.give_more(0, 0, offered);
                count += 1;
            }
            dcf.fire();
            let frame = dcf.stations[0].frame;
            assert_eq!((count, u32::from(frame.mpdus)), (packets, packets), "{profile}");
            assert!(us == 0 || frame.airtime_ns == us * 1_000, "{profile}: {}", frame.airtime_ns);
            assert!(frame.airtime_ns <= LONGEST_PPDU_NS);
        }
    }
}
