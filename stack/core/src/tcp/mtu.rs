//! The size of packets on this path. It follows ICMP (RFC 1191, 8201), and lost segments if ICMP is silent. Probes with
//! real segments raise it again (RFC 4821).

use std::net::IpAddr;
use std::time::Duration;

use crate::Seq;

/// The time that a smaller size is kept before a larger one is tried again (RFC 1191 §6.3).
const RETRY_AFTER_S: u16 = 600;
/// The same time if packets were lost without an ICMP report, as in an outage. It doubles with each lost probe.
const RETRY_AFTER_SILENCE_S: u16 = 10;

/// Sizes to try when large packets are lost without an ICMP report, and when the size grows again.
const LADDER: [u16; 6] = [576, 1280, 1400, 1492, 1500, 9000];

/// The timeouts in a row before a large segment's size is suspected; the same number reports a path in trouble (RFC
/// 9293 §3.8.3, R1). An outage is a more frequent reason.
const SUSPICIOUS_TIMEOUTS: u32 = 3;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MtuSearch {
    /// The size that the path is believed to carry.
    pub(crate) pmtu: u16,
    /// The link's own size, never exceeded.
    pub(crate) link: u16,
    /// The least size that ICMP can lower packets to.
    least: u16,
    floor: u16,
    pub(crate) discovers: bool,
    /// The next segment that can fill a larger size should try it.
    wants_probe: bool,
    pub(crate) probe: Option<MtuProbe>,
    retry_after_s: u16,
    /// The size before silence lowered it, until it is known whether the size was the cause.
    suspected_from: Option<u16>,
    /// The suspected size, once the path is back. The first probe tests it: the silence may have been an outage.
    asks_for: Option<u16>,
}

/// A segment in flight that is larger than the proven size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MtuProbe {
    pub(crate) seq: Seq,
    len: u16,
    size: u16,
}

impl MtuProbe {
    pub(crate) fn end(&self) -> Seq {
        self.seq + u32::from(self.len)
    }
}

/// The sizes at the start of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) link: u16,
    /// The path's remembered size.
    pub(crate) known: Option<u16>,
    /// See `TcpConfig::least_path_mtu`.
    pub(crate) least: u16,
    /// Whether the path is searched for the size that it carries.
    pub(crate) discovers: bool,
}

impl MtuSearch {
    pub(crate) fn new(peer: IpAddr, sizes: Sizes) -> MtuSearch {
        let Sizes { link, known, least, discovers } = sizes;
        // Only ICMP lowers the size below 576 octets (RFC 1191's plateau below is 296).
        let floor = if peer.is_ipv4() { 576 } else { 1280 };
        // Routers do not cut IPv6 packets. Without discovery, a sender must use the size that every path carries (RFC
        // 8200 §5).
        let most = if peer.is_ipv6() && !discovers { link.min(floor) } else { link };
        MtuSearch {
            pmtu: known.map_or(most, |known| known.min(most)),
            link,
            // Over IPv6 no report may go below the size that every path carries.
            least: if peer.is_ipv4() { least } else { 0 },
            floor,
            discovers,
            retry_after_s: RETRY_AFTER_S,
            ..MtuSearch::default()
        }
    }

    /// The size of our packets.
    pub(crate) fn size(&self) -> u16 {
        self.pmtu.max(self.least).min(self.link)
    }

    /// Returns whether routers have to cut packets of our least size.
    pub(crate) fn is_cut(&self) -> bool {
        self.pmtu < self.size()
    }

    /// Takes `size` from a verified ICMP report. Returns whether it is news.
    pub(crate) fn on_icmp(&mut self, size: u16) -> bool {
        if !self.discovers || size >= self.pmtu {
            return false;
        }
        self.pmtu = size;
        self.probe = None;
        self.retry_after_s = RETRY_AFTER_S;
        self.suspected_from = None;
        self.asks_for = None;
        true
    }

    /// A packet of `size` octets timed out `nth` times in a row. Returns whether smaller ones are tried.
    pub(crate) fn on_timeout_of(&mut self, size: u16, nth: u32) -> bool {
        // Starts below this very packet, which the peer's MSS may already keep below our own size.
        let size = size.min(self.size());
        if !self.discovers || nth < SUSPICIOUS_TIMEOUTS || size <= self.floor {
            return false;
        }
        self.suspected_from.get_or_insert(self.pmtu);
        let below = LADDER.iter().rev().find(|step| **step < size && **step <= 1280);
        self.pmtu = below.copied().unwrap_or(self.floor).max(self.floor);
        self.retry_after_s = RETRY_AFTER_SILENCE_S;
        self.asks_for = None;
        true
    }

    /// The timeouts were needless: the packets had arrived. Returns whether the old size is back.
    pub(crate) fn acquit(&mut self) -> bool {
        let Some(size) = self.suspected_from.take().filter(|size| *size > self.pmtu) else { return false };
        self.pmtu = size;
        self.retry_after_s = RETRY_AFTER_S;
        true
    }

    /// The timeouts were real, so the lower size stays until a probe proves a larger one. One probe leaves at once:
    /// most silences are outages, in which all packets are lost.
    pub(crate) fn settle(&mut self) {
        if let Some(size) = self.suspected_from.take() {
            self.asks_for = Some(size);
            self.retry();
        }
    }

    /// The wait until a larger size is tried again.
    pub(crate) fn retry_after(&self) -> Duration {
        Duration::from_secs(self.retry_after_s.into())
    }

    pub(crate) fn is_below_link(&self) -> bool {
        self.discovers && self.pmtu < self.link
    }

    /// The wait is over: tries a larger size again.
    pub(crate) fn retry(&mut self) {
        self.wants_probe = self.is_below_link();
    }

    /// The packet size that the next new segment should try.
    pub(crate) fn wanted_probe(&self) -> Option<u16> {
        if !self.wants_probe || self.probe.is_some() {
            return None;
        }
        if let Some(size) = self.asks_for.filter(|size| *size > self.size()) {
            return Some(size);
        }
        let above = LADDER.iter().find(|step| **step > self.size() && **step < self.link);
        Some(above.copied().unwrap_or(self.link))
    }

    pub(crate) fn probe_sent(&mut self, seq: Seq, len: u16, size: u16) {
        self.asks_for = None;
        self.probe = Some(MtuProbe { seq, len, size });
    }

    /// Everything below `una` has arrived. Returns whether that proves a larger size.
    pub(crate) fn on_acked(&mut self, una: Seq) -> bool {
        let Some(probe) = self.probe.filter(|probe| probe.end() <= una) else { return false };
        self.probe = None;
        self.pmtu = probe.size;
        self.wants_probe = self.is_below_link();
        true
    }

    /// The probe was lost: its size is too large, and the loss is no sign of congestion.
    pub(crate) fn probe_lost(&mut self) {
        self.probe = None;
        self.wants_probe = false;
        self.retry_after_s = (2 * self.retry_after_s).min(RETRY_AFTER_S);
    }

    /// The segment at `seq` is retransmitted. A probe that arrives in smaller pieces proves nothing. Returns whether
    /// this ends a probe.
    pub(crate) fn on_resent(&mut self, seq: Seq) -> bool {
        let ends = self.probe.is_some_and(|probe| probe.seq <= seq && seq < probe.end());
        if ends {
            self.probe_lost();
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const SIZES: Sizes = Sizes { link: 1500, known: None, least: 552, discovers: true };

    fn search() -> MtuSearch {
        MtuSearch::new(Ipv4Addr::LOCALHOST.into(), SIZES)
    }

    #[test]
    fn silence_lowers_the_size_step_by_step_and_not_below_the_floor() {
        let mut mtu = search();
        assert!(!mtu.on_timeout_of(1500, 1) && !mtu.on_timeout_of(1500, 2));
        assert!(mtu.on_timeout_of(1500, 3));
        assert_eq!(mtu.size(), 1280);
        assert!(mtu.on_timeout_of(1280, 4));
        assert_eq!(mtu.size(), 576);
        assert!(!mtu.on_timeout_of(576, 5));
    }

    #[test]
    fn silence_that_was_something_else_lowers_nothing_for_long() {
        let mut mtu = search();
        assert!(mtu.on_timeout_of(1500, 3) && mtu.on_timeout_of(1280, 4));
        assert!(mtu.acquit() && !mtu.acquit());
        assert_eq!(mtu.size(), 1500);
        assert!(mtu.on_timeout_of(1500, 3));
        mtu.settle();
        assert!(!mtu.acquit());
        assert!(mtu.on_timeout_of(1280, 3) && mtu.on_icmp(552));
        assert!(!mtu.acquit());
    }

    #[test]
    fn once_the_path_is_back_the_first_probe_asks_for_the_size_of_before() {
        let mut mtu = search();
        assert!(mtu.on_timeout_of(1500, 3) && mtu.on_timeout_of(1280, 4));
        assert_eq!(mtu.wanted_probe(), None);
        mtu.settle();
        assert_eq!(mtu.wanted_probe(), Some(1500));
        mtu.probe_sent(Seq(0), 1460, 1500);
        let mut outage = mtu;
        assert!(outage.on_acked(Seq(1460)));
        assert_eq!((outage.size(), outage.wanted_probe()), (1500, None));
        mtu.probe_lost();
        mtu.retry();
        assert_eq!((mtu.size(), mtu.wanted_probe()), (576, Some(1280)));
    }

    #[test]
    fn after_silence_a_larger_size_is_tried_soon_and_then_ever_later() {
        let mut mtu = search();
        mtu.on_timeout_of(1500, 3);
        let waits: Vec<u64> = (0..8)
            .map(|_| {
                let wait = mtu.retry_after().as_secs();
                mtu.probe_lost();
                wait
            })
            .collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 600, 600]);
        mtu.on_timeout_of(1280, 3);
        mtu.on_icmp(500);
        assert_eq!(mtu.retry_after().as_secs(), 600);
    }

    #[test]
    fn a_packet_that_vanishes_below_the_size_known_is_made_smaller_too() {
        let mut mtu = search();
        assert!(mtu.on_timeout_of(1000, 3));
        assert_eq!(mtu.size(), 576);
    }

    #[test]
    fn a_probe_that_arrives_raises_the_size_and_one_that_is_lost_does_not() {
        let mut mtu = search();
        mtu.on_icmp(1280);
        assert_eq!(mtu.wanted_probe(), None);
        mtu.retry();
        assert_eq!(mtu.wanted_probe(), Some(1400));
        mtu.probe_sent(Seq(100), 1360, 1400);
        assert_eq!(mtu.wanted_probe(), None);
        assert!(!mtu.on_acked(Seq(1000)));
        assert!(mtu.on_acked(Seq(1460)));
        assert_eq!((mtu.size(), mtu.wanted_probe()), (1400, Some(1492)));
        mtu.probe_sent(Seq(2000), 1452, 1492);
        mtu.probe_lost();
        assert_eq!((mtu.size(), mtu.wanted_probe()), (1400, None));
    }

    #[test]
    fn a_probe_whose_bytes_were_sent_again_proves_nothing() {
        let mut mtu = search();
        mtu.on_icmp(1280);
        mtu.retry();
        mtu.probe_sent(Seq(100), 1360, 1400);
        mtu.on_resent(Seq(99));
        assert!(mtu.probe.is_some());
        mtu.on_resent(Seq(100));
        assert!(!mtu.on_acked(Seq(1460)));
        assert_eq!((mtu.size(), mtu.wanted_probe()), (1280, None));
    }

    #[test]
    fn without_discovery_ipv6_packets_are_as_small_as_every_path_carries() {
        let size = |peer: IpAddr| MtuSearch::new(peer, Sizes { discovers: false, ..SIZES }).size();
        assert_eq!(size(std::net::Ipv6Addr::LOCALHOST.into()), 1280);
        assert_eq!(size(Ipv4Addr::LOCALHOST.into()), 1500);
    }

    #[test]
    fn below_the_least_size_packets_are_cut_on_the_way() {
        let mut mtu = search();
        assert!(mtu.on_icmp(552) && !mtu.is_cut());
        assert!(mtu.on_icmp(68) && !mtu.on_icmp(68));
        assert_eq!((mtu.size(), mtu.pmtu, mtu.is_cut()), (552, 68, true));
        mtu.retry();
        assert_eq!(mtu.wanted_probe(), Some(576));
        mtu.probe_sent(Seq(0), 536, 576);
        assert!(mtu.on_acked(Seq(536)) && !mtu.is_cut());
        let narrow = Sizes { link: 296, ..SIZES };
        let narrow = MtuSearch::new(Ipv4Addr::LOCALHOST.into(), narrow);
        assert_eq!((narrow.size(), narrow.is_cut()), (296, false));
    }

    #[test]
    fn icmp_never_raises() {
        let mut mtu = search();
        assert!(mtu.on_icmp(1000));
        assert!(!mtu.on_icmp(1400));
        assert_eq!(mtu.size(), 1000);
    }
}
