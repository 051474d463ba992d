//! The results of one end of a flow, over all its connections. A live node sends them to the trial as JSON.

use std::net::IpAddr;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::HopSource;
use hopwise_core::narrow::as_usize;
use hopwise_core::tcp::{ConnectionStats, Info};
use serde::{Deserialize, Serialize};

use super::delays::{Delays, Spread};
use super::probe::Probed;
use super::sockets::{Platform, Sockets};

/// The counted time is divided into this number of intervals.
pub(crate) const INTERVALS: u32 = 100;

/// The bytes that arrived, and the counted part of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrivedBytes {
    /// The beginning of the counted time.
    #[serde(skip)]
    pub counts_from: Instant,
    /// The length of an interval.
    #[serde(skip)]
    each: Duration,
    /// The bytes that arrived in the counted time.
    pub counted_bytes: u64,
    /// The bytes that arrived in the whole run.
    pub bytes: u64,
    /// The counted bytes of each interval, up to the last one that had any.
    pub by_interval: Vec<u64>,
}

impl ArrivedBytes {
    pub(super) fn new(counts_from: Instant, each: Duration) -> ArrivedBytes {
        ArrivedBytes { counts_from, each, ..ArrivedBytes::default() }
    }

    pub(super) fn add(&mut self, now: Instant, bytes: u64) {
        self.bytes += bytes;
        if now >= self.counts_from {
            self.counted_bytes += bytes;
            let each_ns = u64::try_from(self.each.as_nanos()).unwrap_or(u64::MAX).max(1);
            let nth = (now.0 - self.counts_from.0) / each_ns;
            let nth = as_usize(nth.min(u64::from(INTERVALS) - 1));
            if self.by_interval.len() <= nth {
                self.by_interval.resize(nth + 1, 0);
            }
            self.by_interval[nth] += bytes;
        }
    }
}

/// The data that an end let go at once, in the counted time: segments that leave upon one packet or timer are one
/// burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bursts {
    /// The number of bursts.
    pub count: u64,
    /// The data segments in all of them.
    pub segments: u64,
    /// The data segments of the longest one.
    pub longest: u64,
}

/// The bursts of the connections of one end, one after the other.
#[derive(Debug)]
pub(super) struct BurstCounter<C> {
    /// The connection, and what it had sent when it was looked at last.
    last: Option<(C, u64)>,
    bursts: Bursts,
}

impl<C: PartialEq + Copy> BurstCounter<C> {
    pub(super) fn none() -> BurstCounter<C> {
        BurstCounter { last: None, bursts: Bursts::default() }
    }

    pub(super) fn take(&mut self, conn: C, sent: u64, counts: bool) {
        let before = self.last.filter(|(of, _)| *of == conn).map_or(0, |(_, sent)| sent);
        self.last = Some((conn, sent));
        let segments = sent - before;
        if counts && segments > 0 {
            self.bursts.count += 1;
            self.bursts.segments += segments;
            self.bursts.longest = self.bursts.longest.max(segments);
        }
    }

    /// None while nothing was sent.
    pub(super) fn bursts(&self) -> Option<Bursts> {
        (self.bursts.count > 0).then_some(self.bursts)
    }
}

/// Transfers or requests that ended in the counted time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionTimes {
    /// The number of transfers or requests that ended.
    pub count: u64,
    /// The sum of their durations, in nanoseconds.
    pub total_ns: u64,
    /// The longest duration, in nanoseconds.
    pub longest_ns: u64,
    /// None if nothing ended.
    pub spread: Option<Spread>,
}

/// The agents that a connection had at one end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentsAtEnd {
    /// Specs.
    pub receiver: String,
    /// The sender agents, as one spec.
    pub senders: String,
    /// The shadows, as one spec.
    pub shadows: String,
    /// Abilities that the peer did not agree to, or never showed, in the words of the trace.
    pub receiver_lacks: Vec<String>,
    /// The same for the sender agents.
    pub senders_lack: Vec<String>,
}

/// The counters of a connection, each with its place in TCP's own statistics.
macro_rules! counters {
    ($($(#[$doc:meta])+ $name:ident: $number:ty = $of:expr;)+) => {
        /// Counters of connections at one end. A counter is absent where the TCP does not tell it.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Counted {
            $($(#[$doc])+ pub $name: Option<$number>,)+
            /// ACKs that each shadow would have sent.
            pub shadow_acks: Vec<u64>,
            /// The total wait of the first segment of each such ACK.
            pub shadow_holds: Vec<Duration>,
        }

        impl Default for Counted {
            /// The counters before the first connection.
            fn default() -> Counted {
                Counted { $($name: Some(0),)+ shadow_acks: Vec::new(), shadow_holds: Vec::new() }
            }
        }

        impl Counted {
            /// No counter at all.
            pub fn untold() -> Counted {
                Counted { $($name: None,)+ ..Counted::default() }
            }

            pub(super) fn of(info: &Info) -> Counted {
                let (shadow_acks, shadow_holds) = (info.shadow_acks.clone(), info.shadow_holds.clone());
                Counted { $($name: Some($of(&info.stats)),)+ shadow_acks, shadow_holds }
            }

            fn add_numbers(&mut self, more: &Counted) {
                $(self.$name = self.$name.zip(more.$name).map(|(sum, more)| sum + more);)+
            }
        }
    };
}

counters! {
    /// Data segments, retransmissions included.
    segments_sent: u64 = |stats: &ConnectionStats| stats.segments_sent;
    /// Data segments that were sent again.
    segments_retransmitted: u64 = |stats: &ConnectionStats| stats.segments_retransmitted;
    /// Payload bytes that the peer acknowledged.
    bytes_acked: u64 = |stats: &ConnectionStats| stats.bytes_acked;
    /// Retransmission timeouts, SYNs' timeouts included.
    timeouts: u32 = |stats: &ConnectionStats| stats.timeouts;
    /// Starts of fast recovery; each may send several segments again.
    fast_retransmits: u32 = |stats: &ConnectionStats| stats.fast_retransmits;
    /// Pure ACKs, repeated ones included.
    acks_sent: u64 = |stats: &ConnectionStats| stats.acks_sent;
    /// ACKs that an agent had repeated in case the first was lost.
    acks_repeated: u64 = |stats: &ConnectionStats| stats.acks_repeated;
    /// Segments that this end had already.
    segments_received_again: u64 = |stats: &ConnectionStats| stats.segments_duplicate;
    /// Data segments that arrived.
    segments_arrived: u64 = with_data;
    /// Data segments that came above a hole.
    segments_out_of_order: u64 = |stats: &ConnectionStats| stats.segments_out_of_order;
    /// Segments without data that arrived after the first one, which is the handshake's.
    acks_arrived: u64 = |stats: &ConnectionStats| stats.segments_received.saturating_sub(with_data(stats) + 1);
}

fn with_data(stats: &ConnectionStats) -> u64 {
    stats.segments_in_order + stats.segments_out_of_order + stats.segments_duplicate
}

impl Counted {
    pub(super) fn add(&mut self, more: &Counted) {
        self.add_numbers(more);
        let shadows = self.shadow_acks.len().max(more.shadow_acks.len());
        self.shadow_acks.resize(shadows, 0);
        self.shadow_acks.iter_mut().zip(&more.shadow_acks).for_each(|(sum, more)| *sum += more);
        self.shadow_holds.resize(shadows, Duration::ZERO);
        self.shadow_holds.iter_mut().zip(&more.shadow_holds).for_each(|(sum, more)| *sum += *more);
    }
}

/// Hops to a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedHops {
    /// The number of hops.
    pub count: u8,
    /// `routing`, `ttl` or `config`.
    pub source: String,
}

/// The results of one end of a flow in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndResult {
    /// The flow's number in the plan.
    pub flow: u16,
    /// True for the end that opens connections or sends datagrams.
    pub is_opener: bool,
    /// The bytes that arrived.
    pub tally: ArrivedBytes,
    /// The counters of all connections together.
    pub counted: Counted,
    /// The agents of the last connection; none for datagrams, or before a connection.
    pub agents: Option<AgentsAtEnd>,
    /// The transfers or requests that ended; none for other traffic.
    pub completions: Option<CompletionTimes>,
    /// The hops to the other end, where they are known.
    pub hops: Option<CountedHops>,
    /// The mean of the smoothed round-trip time in the counted time, where the world samples it.
    pub rtt: Option<Duration>,
    /// The round trips that TCP measured at this end in the counted time; none where a TCP does not tell each.
    pub round_trips: Option<Spread>,
    /// The probes of this end, if it sends any.
    pub probed: Option<Probed>,
    /// None where a TCP does not tell what it sends, or nothing was sent.
    pub bursts: Option<Bursts>,
    /// The measured datagrams that this end sent, or that arrived at it. Datagrams that arrived have, in milliseconds,
    /// their mean jitter, and mean, median and 95 % quantile of arrival less leaving, each by its own clock.
    pub datagrams: (u64, Option<[f64; 4]>),
    /// The time of day at which its clock showed zero, and the largest error of this, in milliseconds.
    pub began_ms: (f64, f64),
}

/// The round trips that the connections of one end have measured, one after the other.
#[derive(Debug)]
pub(super) struct RoundTripLog<C> {
    /// The connection and the number of the last one.
    last: Option<(C, u8)>,
    delays: Delays,
}

impl<C: PartialEq + Copy> RoundTripLog<C> {
    pub(super) fn none() -> RoundTripLog<C> {
        RoundTripLog { last: None, delays: Delays::default() }
    }

    /// Takes the newest round trip of a connection, unless it was taken before.
    pub(super) fn take(&mut self, conn: C, (rtt, nth): (Duration, u8), counts: bool) {
        if self.last != Some((conn, nth)) {
            self.last = Some((conn, nth));
            if counts {
                self.delays.add(rtt);
            }
        }
    }

    pub(super) fn spread(&self) -> Option<Spread> {
        self.delays.spread()
    }
}

/// Round-trip times that were looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RttSamples {
    sum: Duration,
    count: u32,
}

impl RttSamples {
    pub(super) fn add(&mut self, rtt: Duration) {
        self.sum += rtt;
        self.count += 1;
    }

    pub(super) fn mean(self) -> Option<Duration> {
        self.sum.checked_div(self.count)
    }
}

/// The totals of one end of a TCP flow over all its connections.
#[derive(Debug)]
pub(super) struct EndTotals {
    pub(super) tally: ArrivedBytes,
    /// The counters of connections that are over.
    pub(super) past: Counted,
    /// The agents of the last connection.
    pub(super) agents: Option<AgentsAtEnd>,
    /// The hops to the peer when the first connection could carry data, and their source.
    pub(super) hops: Option<(u8, HopSource)>,
}

impl EndTotals {
    pub(super) fn new<S: Sockets>(tally: ArrivedBytes) -> EndTotals {
        EndTotals { tally, past: S::nothing_counted(), agents: None, hops: None }
    }

    /// Notes the state of a connection that has begun, was answered, or is over.
    pub(super) fn note<S: Sockets>(&mut self, now: Instant, sockets: &S, conn: S::Conn) {
        self.agents = sockets.agents(now, conn).or(self.agents.take());
    }

    /// A connection can carry data.
    pub(super) fn note_hops<P: Platform>(&mut self, now: Instant, node: &P, conn: ConnOf<P>, peer: IpAddr) {
        self.hops = self.hops.or(node.hops_to(now, peer, Some(conn)));
    }

    /// Ends a connection here; its last segments may still leave.
    pub(super) fn let_go<P: Platform>(&mut self, now: Instant, node: &mut P, conn: ConnOf<P>) {
        self.note_end(now, node.sockets(), conn);
        node.with(now, |sockets| sockets.close(now, conn));
    }

    /// The same at once; written bytes that have not left are lost.
    pub(super) fn cut_off<P: Platform>(&mut self, now: Instant, node: &mut P, conn: ConnOf<P>) {
        self.note_end(now, node.sockets(), conn);
        node.with(now, |sockets| sockets.abort(now, conn));
    }

    fn note_end<S: Sockets>(&mut self, now: Instant, sockets: &S, conn: S::Conn) {
        self.note(now, sockets, conn);
        if let Some(counted) = sockets.counted(now, conn) {
            self.past.add(&counted);
        }
    }

    /// The counters, with an open connection's counters.
    pub(super) fn counted<S: Sockets>(&self, now: Instant, sockets: &S, open: Option<S::Conn>) -> Counted {
        let mut counted = self.past.clone();
        if let Some(more) = open.and_then(|conn| sockets.counted(now, conn)) {
            counted.add(&more);
        }
        counted
    }
}

/// A platform's connections.
pub type ConnOf<P> = <<P as Platform>::Sockets as Sockets>::Conn;
/// A platform's listeners.
pub(super) type ListenerOf<P> = <<P as Platform>::Sockets as Sockets>::Listener;
