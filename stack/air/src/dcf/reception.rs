//! Reception of one frame, and of several at once.

use hopwise_core::Cast;
use hopwise_core::narrow::as_u32;

use super::exchange::ReceivedFields;
use super::station::{DcfStation, Hears, Reception};
use super::{Dcf, DcfNews, EVERYONE, Frame, FrameKind, MacRules};
use crate::channel::BeginningFrame;
use crate::deadlines::NEVER;
use crate::frames::FrameLoss;
use crate::medium::Hearing;

impl Dcf {
    /// The first bit of a frame is on its way to a station in range.
    #[inline]
    pub(super) fn arrive(&mut self, now: u64, link_index: usize, airtime_ns: u64) {
        let link = &self.medium.links[link_index];
        let (sender, n, from) = (link.from, link.to as usize, now + u64::from(link.delay_ns));
        let (mut power_w, mut lost) = (link.power_w, 0);
        let (mut is_decodable, mut is_detectable) = (link.is_decodable, link.is_detectable);
        if self.is_lively {
            let Some((link, parts)) = self.link_now(now, link_index) else { return };
            (power_w, lost) = (link.power_w, parts);
            (is_decodable, is_detectable) = (link.is_decodable, link.is_detectable);
        }
        let st = &mut self.stations[n];
        // A reception that ends before is settled first.
        if st.reception.hears != Hears::Nothing && st.reception.until <= from {
            self.settle(n);
        }
        let st = &self.stations[n];
        let is_spoiled = from < st.sends_until && st.sends_from <= from;
        let hears = if is_decodable && !is_spoiled { Hears::Frame } else { Hears::Noise };
        if is_spoiled {
            self.note_loss(sender, n, FrameLoss::Sending(st.frame.kind));
        }
        let started = if is_detectable && !is_spoiled { from + self.phy.start_ns() } else { NEVER };
        let until = from + airtime_ns;
        let link = as_u32(link_index);
        let new = Reception { hears, link, started, from, began: from, until, power_w, lost };
        match self.mac.rules {
            MacRules::Ns2 => self.hear_ns2(n, new),
            MacRules::Standard if self.phy.is_ht() => self.hear_ht(n, new),
            MacRules::Standard => self.hear_standard(n, new),
        }
        self.interrupt(n, from);
    }

    /// A link of a channel that changes, for its sender's frame, and the parts of the frame that chance spoils.
    #[inline(never)]
    fn link_now(&mut self, now: u64, link_index: usize) -> Option<(Hearing, u64)> {
        let sender = self.medium.links[link_index].from as usize;
        let DcfStation { frame, mpdus, .. } = &self.stations[sender];
        let of_frame = usize::from(frame.mpdus).min(mpdus.len());
        let overhead = self.phy.data_overhead;
        let sizes: Vec<u32> = match frame.mpdus {
            0 | 1 => Vec::new(),
            _ => mpdus[..of_frame].iter().map(|mpdu| mpdu.bytes + overhead).collect(),
        };
        let bytes = frame.bytes_on_air(&self.phy);
        self.medium.at(link_index, &BeginningFrame { now, bytes, rate: frame.rate, mpdus: &sizes })
    }

    /// ns-2 compares frames in pairs: the later of two is never captured. A frame that is weaker by the capture ratio
    /// is ignored, except for the NAV that it sets.
    #[inline]
    fn hear_ns2(&mut self, n: usize, new: Reception) {
        let st = &mut self.stations[n];
        if st.reception.hears == Hears::Nothing {
            st.reception = new;
            return;
        }
        // Frames are applied in the order of sending and received in the order of arrival.
        let (first, later) =
            if new.from < st.reception.from { (new, st.reception) } else { (st.reception, new) };
        if first.power_w >= self.radio.capture * later.power_w {
            st.extend_nav(later.until + self.times.eifs);
            st.reception = first;
            self.count_lost(n, &later, &first);
            return;
        }
        let lasts = if later.until > first.until { later } else { first };
        st.reception = Reception { hears: Hears::Collision, from: first.from, ..lasts };
        self.count_lost(n, &first, &later);
        self.count_lost(n, &later, &first);
    }

    /// A reception that another frame spoilt, if it was for this station.
    pub(super) fn count_lost(&mut self, n: usize, lost: &Reception, by: &Reception) {
        let from = self.medium.links[lost.link as usize].from;
        if lost.hears == Hears::Frame && self.stations[from as usize].frame.to as usize == n {
            self.stats[n].collisions += 1;
            let sender = self.medium.links[by.link as usize].from;
            let kind = self.stations[sender as usize].frame.kind;
            let is_over = by.hears == Hears::Nothing;
            self.note_loss(
                from,
                n,
                if is_over { FrameLoss::Interference } else { FrameLoss::Frame { sender, kind } },
            );
        }
    }

    /// The standard takes a frame, also a later one, if its power exceeds the sum of all other powers by the SINR of
    /// its rate.
    #[inline]
    fn hear_standard(&mut self, n: usize, new: Reception) {
        let st = &mut self.stations[n];
        let are_over = if st.came_alone {
            st.reception.until <= new.from
        } else {
            st.overlapping.iter().all(|other| other.until <= new.from)
        };
        if !are_over || st.reception.hears != Hears::Nothing {
            return self.hear_beside_others(n, new);
        }
        st.came_alone = true;
        st.follow(&new);
        st.reception = new;
    }

    #[inline(never)]
    fn hear_beside_others(&mut self, n: usize, new: Reception) {
        let st = &mut self.stations[n];
        if std::mem::take(&mut st.came_alone) {
            st.overlapping.clear();
            st.overlapping.push(st.reception.overlap());
        }
        st.overlapping.retain(|other| other.until > new.from);
        let others: f64 = st.overlapping.iter().map(|other| other.power_w).sum();
        st.overlapping.push(new.overlap());
        // Headers go at the basic rate.
        let header = self.phy.basic.sinr;
        let is_detected = others == 0.0 || new.power_w >= header.max(self.radio.capture) * others;
        let new = Reception { started: if is_detected { new.started } else { NEVER }, ..new };
        st.follow(&new);
        let mut old = st.reception;
        let all_others = others - old.power_w + new.power_w;
        let has_header =
            old.started <= new.from || (old.hears != Hears::Collision && old.power_w >= header * all_others);
        if !has_header {
            old.started = NEVER;
        }
        if old.hears == Hears::Frame {
            if old.power_w >= self.needed_ratio(&old) * all_others {
                let st = &mut self.stations[n];
                st.busy_until = st.busy_until.max(new.until);
                self.count_lost(n, &new, &old);
                return;
            }
            self.count_lost(n, &old, &new);
        }
        let is_taken = new.hears == Hears::Frame
            && (others == 0.0 || new.power_w >= self.needed_ratio(&new).max(self.radio.capture) * others);
        if !is_taken && others > 0.0 {
            self.count_lost(n, &new, &old);
        }
        let st = &mut self.stations[n];
        st.reception = if old.hears == Hears::Nothing {
            Reception { hears: if is_taken { Hears::Frame } else { Hears::Noise }, ..new }
        } else if is_taken {
            // The weaker frame may last longer: the carrier stays busy.
            st.busy_until = st.busy_until.max(old.until);
            Reception { from: old.from, started: old.started.min(new.started), ..new }
        } else {
            let lasts = if new.until > old.until { new } else { old };
            let started = old.started.min(new.started);
            Reception { hears: Hears::Collision, from: old.from, started, ..lasts }
        };
    }

    fn needed_ratio(&self, reception: &Reception) -> f64 {
        let from = self.medium.links[reception.link as usize].from as usize;
        self.stations[from].frame.rate.sinr
    }

    /// A station's reception has ended.
    pub(super) fn settle(&mut self, n: usize) {
        let st = &mut self.stations[n];
        let mut heard = st.reception;
        st.reception.hears = Hears::Nothing;
        st.busy_until = st.busy_until.max(heard.until);
        if heard.hears == Hears::Frame && self.phy.is_ht() {
            self.judge(n, &mut heard);
        }
        if self.is_written_down() {
            self.write_heard(n, &heard);
        }
        let st = &mut self.stations[n];
        // A frame that ends while the station itself sends leaves no trace.
        if !st.was_sending_at(heard.until) {
            if heard.hears == Hears::Frame {
                self.take(n, &heard);
            } else if self.mac.rules == MacRules::Ns2 {
                st.extend_nav(heard.until + self.times.eifs);
            } else if heard.started <= heard.until {
                // PHY-RXEND.indication reported an error (IEEE 802.11-2016 §10.3.2.3.7). Energy alone makes no such
                // report.
                st.eifs_until = heard.until + self.times.eifs;
            }
        }
        self.resume(n, 0);
    }

    /// A frame was decoded.
    fn take(&mut self, n: usize, heard: &Reception) {
        let from = self.medium.links[heard.link as usize].from;
        let Frame { kind, to, duration_ns, is_announced, number, mpdus, bitmap, .. } =
            self.stations[from as usize].frame;
        if to as usize == n || to == EVERYONE {
            self.book_heard(n, from, heard);
        }
        let st = &mut self.stations[n];
        // ns-2 lets an EIFS stand; the standard ends it with the next frame that is understood.
        st.eifs_until = 0;
        if to as usize == n {
            self.note_understood(from);
            self.take_own(
                n,
                heard,
                ReceivedFields { kind, duration_ns, is_announced, number, mpdus, bitmap },
            );
            return;
        }
        let is_longer = heard.until + duration_ns > st.nav_end();
        if is_longer && duration_ns > 0 {
            st.nav = heard.until + duration_ns;
            // The standard takes the NAV of an RTS back when no frame follows it.
            let is_rts = kind == FrameKind::Rts && self.mac.rules == MacRules::Standard;
            st.nav_unless_followed = if is_rts { heard.until + self.times.rts_alone } else { u64::MAX };
        }
        if kind == FrameKind::Data && (to == EVERYONE || st.hears_all) {
            self.pass_others(n, heard);
        }
    }

    /// Passes up the packets of a frame for all, or for another station.
    #[inline(never)]
    fn pass_others(&mut self, n: usize, heard: &Reception) {
        let from = self.medium.links[heard.link as usize].from;
        let Frame { to, rate, number, mpdus, .. } = self.stations[from as usize].frame;
        if to == EVERYONE {
            self.book_packet(n, from);
        }
        let cast = if to == EVERYONE { Cast::ToAll } else { Cast::Overheard };
        let (to, power_w) = (as_u32(n), heard.power_w);
        if mpdus < 2 {
            self.news.push_back(DcfNews::Arrived { from, to, number, cast, rate, power_w });
            return;
        }
        let of_frame = self.stations[from as usize].mpdus.iter().take(usize::from(mpdus)).enumerate();
        for (_, mpdu) in of_frame.filter(|(nth, _)| heard.lost >> nth & 1 == 0) {
            let number = mpdu.number;
            self.news.push_back(DcfNews::Arrived { from, to, number, cast, rate, power_w });
        }
    }
}
