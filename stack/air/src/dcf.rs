//! The distributed coordination function of 802.11, for all stations of one medium.
//!
//! A frame makes two events. Its start is applied to all stations in range, each with its own instant of arrival. Its
//! end settles all receptions that it ended. A station waits for one thing at a time and has one deadline. Receivers of
//! aggregates have a second deadline, for packets behind missing ones. The NAV has none, since a backoff that goes on
//! is put off to after it.
//!
//! An event that is applied ahead of its instant stays invisible until then. A station does not notice a first bit that
//! arrives at the very instant when its backoff runs out: both send, and collide.
//!
//! [`MacRules::Ns2`] are the rules of the papers' simulator; where they differ from the standard's the code names the
//! rule. Stations of 802.11n follow EDCA's rules, with a backoff for each category, and may send aggregates. Their
//! functions are not inlined into functions that run for every frame: inlining made simulations of other radios a
//! seventh slower. Not modelled: fragmentation, power saving, ADDBA, beacons.

mod aggregate;
mod backoff;
mod block_ack;
mod categories;
mod contender;
mod exchange;
mod facts;
mod fates;
mod interference;
mod minstrel;
mod mpdu;
mod rates;
mod reception;
mod recipient;
mod station;
mod transmission;
mod written;

pub use crate::frame::{EVERYONE, Frame, FrameCounts, FrameKind, MacRules, StationStats};
pub(crate) use aggregate::AggregateRoom;
pub use rates::{RateControl, RateUse};
pub(crate) use recipient::category_of;

use std::collections::VecDeque;

use hopwise_core::Cast;
use hopwise_core::narrow::as_u32;
use hopwise_core::queue::{AirtimeEstimate, Category};

use crate::airtime::{AirLoad, AirtimeBook};
use crate::channel::Channel;
use crate::deadlines::{Deadlines, NEVER};
use crate::frames::{FrameEnding, FrameEvent, FrameLoss};
use crate::medium::{Medium, Position, Radio};
use crate::motion::NodeTrack;
use crate::phy::{ACK_BYTES, BitForm, FCS_BYTES, Phy, Rate};
use crate::waits::QueueWaits;
use station::{DcfStation, PacketInService, Wait};

/// The MAC's settings, which all stations share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacConfig {
    /// The standard's rules, or the papers' simulator's.
    pub rules: MacRules,
    /// Packets of at least this many bytes are announced by RTS; `None` announces no packet.
    pub rts_threshold: Option<u32>,
    /// A CTS to the station itself goes before each data frame for one receiver that no RTS announces.
    pub cts_to_self: bool,
    /// Transmissions of an RTS, or of a packet without RTS.
    pub short_retries: u8,
    /// Transmissions of a packet that was announced.
    pub long_retries: u8,
    /// The choice of a data frame's rate.
    pub rate: RateControl,
    /// The most packets in one aggregate (A-MPDU), 2 to 64; `None` sends each in a frame of its own.
    pub ampdu: Option<u8>,
    /// The bytes of the longest A-MSDU, which are several packets in one MPDU; `None` puts each into one of its own.
    pub amsdu: Option<u32>,
    /// Packets for aggregates are given up this long after they came; `None` repeats them without end.
    pub lifetime_ns: Option<u64>,
    /// A packet waits no longer for missing packets before it; `None`: it waits until they are given up.
    pub reorder_ns: Option<u64>,
}

impl Default for MacConfig {
    fn default() -> MacConfig {
        MacConfig {
            rules: MacRules::Standard,
            rts_threshold: Some(0),
            cts_to_self: false,
            short_retries: 7,
            long_retries: 4,
            rate: RateControl::Fixed,
            ampdu: None,
            amsdu: None,
            lifetime_ns: Some(LIFETIME_NS),
            reorder_ns: Some(REORDER_NS),
        }
    }
}

impl MacConfig {
    /// Returns whether an RTS announces this many bytes.
    fn announces(&self, bytes: u32) -> bool {
        self.rts_threshold.is_some_and(|least| bytes >= least)
    }
}

/// The default of dot11EDCATableMSDULifetime, 500 TU.
const LIFETIME_NS: u64 = 512_000_000;

/// HT_RX_REORDER_BUF_TIMEOUT of Linux's mac80211.
const REORDER_NS: u64 = 100_000_000;

/// The fate of a packet that a station was given.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DcfNews {
    /// The packets of that number of `from` have arrived at `to`: one packet, or the packets of an A-MSDU.
    Arrived { from: u32, to: u32, number: u32, cast: Cast, rate: Rate, power_w: f64 },
    /// The packet of `from` has come to `to`, and waits there for packets before it. [`DcfNews::Arrived`] follows.
    Kept { from: u32, to: u32, number: u32 },
    /// The station may have room for more in its aggregate.
    HasRoom { station: u32 },
    /// The station is done with this count of packets of that number.
    Done { station: u32, number: u32, packets: u8, outcome: PacketOutcome, rate: Rate, tries: u32 },
}

/// A packet for a station that has room.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Offered {
    pub to: u32,
    pub bytes: u32,
    pub load: AirLoad,
    /// Since when it has waited, where that is known. Its wait ends with its first frame.
    pub queued_at: Option<u64>,
    pub category: Category,
}

impl Offered {
    /// A packet of no load that a result counts, which has waited nowhere.
    pub fn plain(to: u32, bytes: u32, category: Category) -> Offered {
        Offered { to, bytes, load: AirLoad::Other, queued_at: None, category }
    }
}

/// The end of a packet at the radio that was given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome {
    /// Its receiver has acknowledged it.
    Acknowledged,
    /// A broadcast, which no station acknowledges.
    Sent,
    /// All tries failed, and the packet is lost here.
    GivenUp,
}

/// Times that every exchange needs.
#[derive(Clone, Copy, Debug)]
struct ExchangeTimes {
    slot: u32,
    /// The slots by which a backoff falls at the end of AIFS; DCF's falls by none at the end of DIFS.
    slots_of_aifs: u32,
    sifs: u64,
    difs: u64,
    /// By the index of the category.
    aifs: [u64; 4],
    txop: [u64; 4],
    eifs: u64,
    rts: u64,
    cts: u64,
    ack: u64,
    /// The time that a station waits for a CTS and an ACK.
    cts_timeout: u64,
    ack_timeout: u64,
    /// The time that an RTS holds the medium if no frame follows it (`rules: standard`).
    rts_alone: u64,
    /// The bytes of the longest A-MPDU at the profile's own rate.
    longest_ampdu: u32,
    /// The bytes of the longest A-MSDU; 0 without.
    longest_amsdu: u32,
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Dcf {
    phy: Phy,
    mac: MacConfig,
    radio: Radio,
    times: ExchangeTimes,
    medium: Medium,
    stations: Vec<DcfStation>,
    stats: Vec<StationStats>,
    waits: Vec<QueueWaits>,
    deadlines: Deadlines,
    news: VecDeque<DcfNews>,
    /// True if the channel changes with time.
    is_lively: bool,
    /// The number of frame starts, frame ends and timers until now.
    pub(crate) events: u64,
    airtimes: Vec<AirtimeBook>,
    /// Each station's facts of its links, if they are kept.
    books: Vec<facts::Book>,
    /// The frames that stations send and receive, while they are watched.
    seen: Option<Vec<FrameEvent>>,
    /// While `seen` is kept: how each station's last frame was lost, if it was.
    losses: Vec<Option<FrameLoss>>,
    /// The same: how parts of each station's last aggregate were lost, of which other parts came through.
    spoilers: Vec<FrameLoss>,
    endings: Vec<FrameEnding>,
    /// The load that each station's rates have carried, under rate control.
    rate_uses: Vec<Vec<RateUse>>,
    /// The instant of the event at hand.
    now: u64,
    seed: u64,
    /// The numbers that a frame lets go up, for a moment.
    released: Vec<u32>,
}

impl Dcf {
    /// Stations without a position have no radio.
    pub fn new(phy: Phy, mac: MacConfig, radio: Radio, positions: &[Option<Position>], seed: u64) -> Dcf {
        Dcf::with_channel(phy, mac, radio, &Channel::default(), positions, seed)
    }

    pub(crate) fn with_channel(
        phy: Phy,
        mac: MacConfig,
        radio: Radio,
        channel: &Channel,
        positions: &[Option<Position>],
        seed: u64,
    ) -> Dcf {
        let medium = Medium::new(&radio, channel, positions, seed);
        let phy = phy.under(mac.rules);
        let stations = (0..as_u32(medium.stations())).map(|n| DcfStation::new(&phy, mac.rules, (seed, n)));
        Dcf {
            times: ExchangeTimes { longest_amsdu: mpdu::longest_amsdu(&phy, &mac), ..times(&phy, mac.rules) },
            stations: stations.collect(),
            stats: vec![StationStats::default(); medium.stations()],
            waits: vec![QueueWaits::default(); medium.stations()],
            // Receivers of aggregates wait for holes during their exchanges, too.
            deadlines: Deadlines::new(medium.stations() * if mac.ampdu.is_some() { 2 } else { 1 }),
            news: VecDeque::new(),
            is_lively: channel.is_lively(),
            events: 0,
            airtimes: Vec::new(),
            books: Vec::new(),
            seen: None,
            losses: vec![None; medium.stations()],
            spoilers: vec![FrameLoss::Channel; medium.stations()],
            endings: Vec::new(),
            rate_uses: vec![Vec::new(); medium.stations()],
            now: 0,
            seed,
            released: Vec::new(),
            phy,
            mac,
            radio,
            medium,
        }
    }

    /// Sets the stations' motion; a station without a track stays where it is. Call it before anything has happened.
    pub(crate) fn set_motion(&mut self, positions: &[Option<Position>], tracks: Vec<Option<NodeTrack>>) {
        self.medium.set_motion(positions, tracks);
    }

    /// From now on packets are whole frames. An RTS announces packets whose content has the same length as before.
    pub(crate) fn take_whole_frames(&mut self) {
        let more = self.phy.data_overhead - FCS_BYTES;
        self.phy.data_overhead = FCS_BYTES;
        self.mac.rts_threshold =
            self.mac.rts_threshold.map(|least| if least == 0 { 0 } else { least + more });
    }

    /// Reports packets between other stations too.
    pub(crate) fn set_hears_all(&mut self, station: u32, hears_all: bool) {
        self.stations[station as usize].hears_all = hears_all;
    }

    /// Returns whether packets for one station may leave in one frame.
    pub(crate) fn is_aggregating(&self) -> bool {
        self.mac.ampdu.is_some() || self.mac.amsdu.is_some()
    }

    /// Returns whether several packets (A-MSDU) may have one number.
    #[inline]
    pub(crate) fn joins_packets(&self) -> bool {
        self.times.longest_amsdu > 0
    }

    /// Returns whether receivers wait for missing packets no longer than a timeout.
    pub(crate) fn has_reorder_timeout(&self) -> bool {
        self.mac.ampdu.is_some() && self.mac.reorder_ns.is_some()
    }

    #[cfg(test)]
    pub(crate) fn has_room(&self, station: u32) -> bool {
        self.stations[station as usize].service.is_none()
    }

    /// Gives a plain packet of best effort.
    pub fn offer(&mut self, now: u64, station: u32, to: u32, bytes: u32) {
        self.give(now, station, Offered::plain(to, bytes, Category::BestEffort));
    }

    /// When the next event happens; `u64::MAX` without any.
    #[inline]
    pub fn next(&self) -> u64 {
        self.deadlines.next()
    }

    /// Lets that event happen. Afterwards there may be news.
    pub fn fire(&mut self) {
        let (now, n) = (self.deadlines.next(), self.deadlines.first());
        self.events += 1;
        self.now = now;
        if n >= self.stations.len() {
            return self.on_holes_due(now, n - self.stations.len());
        }
        match std::mem::replace(&mut self.stations[n].wait, Wait::Nothing) {
            Wait::Nothing => panic!("a deadline is waited for"),
            Wait::Backoff => self.on_backoff_over(now, n),
            Wait::FrameEnd => self.on_frame_end(now, n),
            Wait::ToAnswer => self.on_time_to_answer(now, n),
            Wait::ToSendData => self.on_time_to_send_data(now, n),
            Wait::ToContinue => self.on_time_to_continue(now, n),
            Wait::Answer => self.on_no_answer(now, n),
        }
        // Most handlers file the next deadline themselves.
        if self.stations[n].wait == Wait::Nothing {
            self.deadlines.set(n, NEVER);
        }
        debug_assert!(self.deadlines.of(n) >= now, "a station's deadlines never go back");
    }

    pub fn next_news(&mut self) -> Option<DcfNews> {
        self.news.pop_front()
    }

    /// Lets every event before `end_ns` happen, and tells the news of each with its time.
    pub fn play(&mut self, end_ns: u64, mut on_news: impl FnMut(&mut Dcf, u64, DcfNews)) {
        while self.next() < end_ns {
            let now = self.next();
            self.fire();
            while let Some(news) = self.next_news() {
                on_news(self, now, news);
            }
        }
    }

    /// Books where the time of every station goes, from now on.
    pub(crate) fn keep_ledgers(&mut self) {
        self.airtimes = vec![AirtimeBook::default(); self.stations.len()];
    }

    /// A station's book as of now; `None` where none are kept.
    pub(crate) fn airtime(&self, now: u64, station: u32) -> Option<AirtimeBook> {
        self.airtimes.get(station as usize).map(|airtime| airtime.closed_at(now))
    }

    /// Keeps the frames that every station sends and receives, until they are taken.
    pub(crate) fn watch_frames(&mut self) {
        self.seen = Some(Vec::new());
    }

    pub(crate) fn leave_frames(&mut self) {
        self.seen = None;
        self.endings.clear();
    }

    pub(crate) fn take_seen(&mut self, sink: &mut dyn FnMut(&FrameEvent)) {
        if let Some(seen) = &mut self.seen {
            seen.iter().for_each(sink);
            seen.clear();
        }
    }

    /// The fates that stations have learnt since the last call, while frames are watched.
    pub(crate) fn take_endings(&mut self) -> impl Iterator<Item = FrameEnding> {
        self.endings.drain(..)
    }

    pub(crate) fn stats(&self, station: u32) -> &StationStats {
        &self.stats[station as usize]
    }

    /// The waits of a station's packets whose beginning was told.
    pub(crate) fn waits(&self, station: u32) -> &QueueWaits {
        &self.waits[station as usize]
    }

    /// The airtime of packets at a rate, as a driver expects it.
    pub(crate) fn estimate(&self, rate: Rate) -> AirtimeEstimate {
        self.phy.estimate(rate, self.mac.ampdu.is_some())
    }

    /// The profile's own rate.
    pub(crate) fn rate(&self) -> Rate {
        self.phy.data
    }

    /// The airtime of the ACK that a frame at this rate gets.
    #[inline]
    fn ack_ns(&self, rate: Rate) -> u64 {
        if rate.is_ht() { self.phy.airtime_ns(ACK_BYTES, rate.answer()) } else { self.times.ack }
    }

    /// The time of a frame before the first symbol of its content.
    fn preamble_ns(&self, rate: Rate) -> u64 {
        match rate.form {
            BitForm::Ht(ht) => ht.preamble_ns(),
            BitForm::Vht(vht) => vht.preamble_ns(),
            BitForm::Legacy | BitForm::NonHt => self.phy.start_ns(),
        }
    }

    fn wait(&mut self, n: usize, wait: Wait, until: u64) {
        self.stations[n].wait = wait;
        self.deadlines.set(n, until);
    }
}

/// The time by which an answer, or announced data, may be overdue (`rules: ns2`).
pub(crate) const NS2_PATIENCE_NS: u64 = 4_000;

/// The wait for an answer that takes `answer_ns`, if nothing comes at all.
pub fn answer_timeout_ns(phy: &Phy, rules: MacRules, answer_ns: u64) -> u64 {
    match rules {
        MacRules::Ns2 => phy.sifs_ns + answer_ns + NS2_PATIENCE_NS,
        MacRules::Standard => phy.answer_timeout_ns(),
    }
}

fn times(phy: &Phy, rules: MacRules) -> ExchangeTimes {
    ExchangeTimes {
        slot: u32::try_from(phy.slot_ns).unwrap_or(u32::MAX),
        slots_of_aifs: u32::from(phy.is_ht()),
        sifs: phy.sifs_ns,
        difs: phy.difs_ns(),
        aifs: categories::gaps(phy),
        txop: categories::limits(phy),
        eifs: phy.eifs_ns(),
        rts: phy.rts_ns(),
        cts: phy.cts_ns(),
        ack: phy.ack_ns(),
        cts_timeout: answer_timeout_ns(phy, rules, phy.cts_ns()),
        ack_timeout: answer_timeout_ns(phy, rules, phy.ack_ns()),
        // IEEE 802.11-2016 §10.3.2.4: 2 SIFS, a CTS, aRxPHYStartDelay, 2 slots.
        longest_ampdu: mpdu::longest_ampdu(phy, phy.data),
        longest_amsdu: 0,
        rts_alone: 2 * phy.sifs_ns + phy.cts_ns() + phy.start_ns() + 2 * phy.slot_ns,
    }
}

#[cfg(test)]
mod edca_tests;
#[cfg(test)]
mod ht_tests;
#[cfg(test)]
mod links_tests;
#[cfg(test)]
mod protection_tests;
#[cfg(test)]
mod standard_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod txop_tests;
