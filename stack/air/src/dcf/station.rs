//! The state of one station.

use hopwise_core::queue::Category;

use super::MacRules;
use super::contender::{Contender, Success};
use super::minstrel::Minstrel;
use super::mpdu::{JoinedPacket, Mpdu};
use super::rates::ArfLadder;
use super::recipient::{NumberSpace, before_first};
use crate::deadlines::NEVER;
use crate::frames::DrawnBackoff;
use crate::phy::{Phy, Rate};
use crate::random::{NumberStream, Purpose};

/// The purpose of the one deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Nothing,
    /// When the backoff runs out.
    Backoff,
    /// When all stations that receive our frame have received its end.
    FrameEnd,
    /// SIFS after a frame that needs an answer.
    ToAnswer,
    /// SIFS after the CTS.
    ToSendData,
    /// SIFS after an exchange of a TXOP that goes on.
    ToContinue,
    /// When a CTS or an ACK is overdue, or announced data (`rules: ns2`).
    Answer,
}

/// The station's place in an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangePhase {
    Idle,
    /// An RTS is out.
    AwaitsCts,
    /// A CTS is out (`rules: ns2`).
    AwaitsData,
    /// Data is out.
    AwaitsAck,
    /// A CTS, an ACK or a broadcast is on the air.
    Sends,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Backoff {
    #[default]
    None,
    /// The medium is busy, or something else goes first.
    Paused,
    Running,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Hears {
    #[default]
    Nothing,
    /// A frame that can still be decoded.
    Frame,
    /// A frame that cannot be decoded: too weak, or the station sent during it.
    Noise,
    /// Several on top of each other.
    Collision,
}

/// The state of a station's receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reception {
    pub(super) hears: Hears,
    pub(super) link: u32,
    /// When PHY-RXSTART.indication comes: the preamble and the header are understood. [`NEVER`]: it does not come.
    pub(super) started: u64,
    /// The start of the receiver's busy time, with this frame or with frames that it captured.
    pub(super) from: u64,
    /// When the first bit of the frame itself arrived.
    pub(super) began: u64,
    pub(super) until: u64,
    pub(super) power_w: f64,
    /// The parts of an aggregate that have errors, from the lowest bit on.
    pub(super) lost: u64,
}

impl Reception {
    pub(super) fn overlap(&self) -> Overlap {
        Overlap { from: self.began, until: self.until, power_w: self.power_w, link: self.link }
    }
}

/// A frame on the air at a station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overlap {
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) power_w: f64,
    pub(super) link: u32,
}

/// The packet that a station was given.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketInService {
    pub(super) to: u32,
    pub(super) bytes: u32,
    pub(super) number: u32,
    pub(super) airtime_ns: u64,
    pub(super) rate: Rate,
    pub(super) load: crate::airtime::AirLoad,
    pub(super) is_announced: bool,
    /// The rate control wants an RTS first.
    pub(super) is_protected: bool,
    /// The bytes of the longest aggregate at the rate.
    pub(super) longest: u32,
    /// The frames without an answer since the rate control began with the best rate.
    pub(super) chain: u8,
    /// A CTS has gone before: data is next.
    pub(super) is_cleared: bool,
    /// A data frame with it has been on the air: the next one is a retry (IEEE 802.11-2016 §9.2.4.1.6).
    pub(super) has_left: bool,
    /// When it came into its machine's queue, until its first frame; [`NEVER`] where that is not known.
    pub(super) queued_at: u64,
    /// The RTSs and data frames with it that no answer followed.
    pub(super) unanswered: u32,
    /// The packets in the frame, the first of the station's `mpdus`; 0 without aggregation.
    pub(super) mpdus: u8,
    /// A request for a block ACK is next.
    pub(super) is_request: bool,
}

/// A CTS, an ACK or a block ACK that is owed.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwedAnswer {
    pub(super) kind: super::FrameKind,
    pub(super) to: u32,
    pub(super) duration_ns: u64,
    /// The first number of a block ACK, and its bitmap.
    pub(super) block: (u32, u64),
}

/// Each frame on the air touches every station in its range. A world of many stations fits in no cache: what such a
/// frame reads and writes stands first, in three lines of 64 bytes.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct DcfStation {
    pub(super) reception: Reception,
    /// The end of the last frame that was received or sent.
    pub(super) busy_until: u64,
    pub(super) sends_from: u64,
    pub(super) sends_until: u64,
    pub(super) nav: u64,
    /// `rules: standard`: the NAV holds no longer than this unless a frame follows the RTS that set it.
    pub(super) nav_unless_followed: u64,
    /// The categories that are put by; none if the station only ever sent at best effort.
    pub(super) others: Vec<Contender>,
    pub(super) backoff: Backoff,
    pub(super) phase: ExchangePhase,
    pub(super) wait: Wait,
    /// `rules: standard`: nothing was drawn since the medium was idle; drawn when it gets busy.
    pub(super) is_undrawn: bool,
    /// `rules: standard`: the frame in `reception` came alone, and stands for all of `overlapping`.
    pub(super) came_alone: bool,
    pub(super) hears_all: bool,
    pub(super) short_tries: u8,
    pub(super) long_tries: u8,
    /// `rules: standard`: backoff goes on no earlier, because of a frame that was not understood.
    pub(super) eifs_until: u64,
    /// When the first slot of a running backoff begins.
    pub(super) slots_from: u64,
    pub(super) slots: u32,
    pub(super) cw: u16,
    /// The category at hand.
    pub(super) category: Category,
    /// `rules: standard`: all frames on the air here, if there were several.
    pub(super) overlapping: Vec<Overlap>,
    pub(super) cw_range: (u16, u16),
    /// A backoff is less than the window and this.
    beyond_cw: u32,
    pub(super) frame: super::Frame,
    /// The backoff of the exchange at hand as it was drawn.
    pub(super) drawn: Option<DrawnBackoff>,
    pub(super) owed: Option<OwedAnswer>,
    pub(super) service: Option<PacketInService>,
    /// Under aggregation: all packets that the station has for the receiver of the one in service.
    pub(super) mpdus: Vec<Mpdu>,
    /// The packets of all categories that have joined another packet's MPDU and have not left yet.
    pub(super) joined: Vec<JoinedPacket>,
    /// Under aggregation: the numbers between the station and its peers.
    pub(super) peers: Vec<NumberSpace>,
    /// The rate ladders, one for each receiver of earlier frames (auto rate fallback).
    pub(super) ladders: Vec<ArfLadder>,
    /// The same of Minstrel.
    pub(super) minstrels: Vec<Minstrel>,
    /// When the TXOP of the category at hand ends; 0 if it has one frame.
    pub(super) txop_until: u64,
    pub(super) txop_goes_on: Option<Success>,
    number: u32,
    /// The slots of its backoffs.
    stream: NumberStream,
    /// The frames that interference spoils (802.11n).
    pub(super) luck: NumberStream,
}

impl DcfStation {
    pub(super) fn new(phy: &Phy, rules: MacRules, (seed, n): (u64, u32)) -> DcfStation {
        DcfStation {
            reception: Reception { started: NEVER, ..Reception::default() },
            sends_from: 0,
            sends_until: 0,
            busy_until: 0,
            nav: 0,
            nav_unless_followed: u64::MAX,
            eifs_until: 0,
            slots_from: 0,
            slots: 0,
            drawn: None,
            backoff: Backoff::None,
            is_undrawn: false,
            came_alone: false,
            phase: ExchangePhase::Idle,
            wait: Wait::Nothing,
            cw: phy.cw.0,
            cw_range: phy.cw,
            beyond_cw: u32::from(rules == MacRules::Standard),
            short_tries: 0,
            long_tries: 0,
            owed: None,
            service: None,
            mpdus: Vec::new(),
            joined: Vec::new(),
            peers: Vec::new(),
            frame: super::Frame::control(super::FrameKind::Ack, super::EVERYONE, phy.basic, 0),
            overlapping: Vec::new(),
            hears_all: false,
            ladders: Vec::new(),
            minstrels: Vec::new(),
            category: Category::BestEffort,
            others: Vec::new(),
            txop_until: 0,
            txop_goes_on: None,
            number: 0,
            stream: NumberStream::new(seed, n, Purpose::Backoff),
            luck: NumberStream::new(seed, n, Purpose::Interference),
        }
    }

    pub(super) fn next_number(&mut self) -> u32 {
        self.number += 1;
        before_first(self.category) + self.number
    }

    /// A backoff of 0 to CW slots, both included (IEEE 802.11-2016 §10.3.3); ns-2 never draws CW.
    #[inline]
    pub(super) fn draw(&mut self) -> u32 {
        let slots = self.stream.below(u32::from(self.cw) + self.beyond_cw);
        self.drawn = Some(DrawnBackoff { slots, cw: self.cw });
        slots
    }

    /// 31, 63, … up to the end of the range.
    pub(super) fn widen(&mut self) {
        self.cw = (2 * self.cw + 1).min(self.cw_range.1);
    }

    pub(super) fn reset_cw(&mut self) {
        self.cw = self.cw_range.0;
    }

    /// When the NAV ends, as far as is known.
    #[inline]
    pub(super) fn nav_end(&self) -> u64 {
        self.nav.min(self.nav_unless_followed)
    }

    /// Notes whether a frame that began follows the RTS that set the NAV (IEEE 802.11-2016 §10.3.2.4).
    #[inline]
    pub(super) fn follow(&mut self, new: &Reception) {
        if new.started <= self.nav_unless_followed {
            self.nav_unless_followed = NEVER;
        } else if new.from > self.nav_unless_followed {
            self.nav = self.nav.min(self.nav_unless_followed);
            self.nav_unless_followed = NEVER;
        }
    }

    #[inline]
    pub(super) fn extend_nav(&mut self, until: u64) {
        self.nav = self.nav.max(until);
    }

    /// Returns whether the receiver is busy; a frame that arrives at `now` does not count yet.
    #[inline]
    pub(super) fn hears_anything(&self, now: u64) -> bool {
        self.reception.hears != Hears::Nothing && self.reception.from < now
    }

    /// Returns whether a frame comes in whose header is understood by now.
    #[inline]
    pub(super) fn hears_since(&self, now: u64) -> bool {
        self.reception.hears != Hears::Nothing && self.reception.started <= now
    }

    #[inline]
    pub(super) fn was_sending_at(&self, at: u64) -> bool {
        self.sends_from < at && at < self.sends_until
    }
}
