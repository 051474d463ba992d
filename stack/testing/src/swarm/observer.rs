//! Reads the packets that an endpoint sends and receives, and checks the duties of every TCP on the wire. It knows
//! nothing of the endpoint's insides.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hopwise_core::wire::{Checksums, Flags, HopwiseOption, IpView, OfferFlags, TcpView, protocol};
use hopwise_core::{Instant, Seq};

/// RFC 9293 MUST-40, where the driver comes in time.
const LONGEST_HOLD: Duration = Duration::from_millis(500);
/// The MSS of a peer that names none (MUST-15), over IPv4.
const DEFAULT_MSS: u16 = 536;

/// Packets that must not be seen on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    Unreadable,
    /// The segment is longer than the peer's MSS (MUST-16).
    TooLong {
        bytes: usize,
        mss: u16,
    },
    /// The segment lies beyond every window that the peer has advertised, a probe's byte aside (SHLD-15).
    BeyondWindow {
        end: Seq,
        edge: Seq,
    },
    /// An acknowledgment of bytes that never came.
    AckOfNothing {
        ack: Seq,
        highest: Seq,
    },
    /// A SACK block for data that never came (RFC 2018 §3).
    SackOfNothing {
        right: Seq,
        highest: Seq,
    },
    AckWentBack {
        ack: Seq,
        from: Seq,
    },
    /// The right edge of our window moved left (SHLD-14). It may move by less than a step of the window scale after
    /// segments that are small beside one.
    WindowWentBack {
        edge: Seq,
        from: Seq,
    },
    HeldTooLong {
        since: Instant,
    },
}

impl fmt::Display for Sight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "on the wire: {self:?}")
    }
}

/// The observer of one endpoint.
#[derive(Debug, Default)]
pub(super) struct Observer {
    /// The flows, by our port and the peer's port.
    flows: BTreeMap<(u16, u16), Flow>,
    /// The last SYN that came for each: its number and its options.
    syns: BTreeMap<(u16, u16), (Seq, Peer)>,
    /// Holds are not judged when the driver may be late.
    judges_holds: bool,
    /// True once fragments came; their contents are not seen.
    is_blind: bool,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    iss: Seq,
    own_shift: Option<u8>,
    peer: Option<Peer>,
    /// The highest edge that the peer has advertised.
    edge_in: Option<Seq>,
    edge_out: Option<Seq>,
    ack_out: Option<Seq>,
    /// The highest valid acknowledgment: the end of the highest segment that came.
    highest: Option<Seq>,
    /// True if we agreed that the peer's data segments carry its cwnd in place of a window.
    hears_cwnd: bool,
    /// The smallest payload that came: a window field has steps, and cannot follow a payload that is small beside a
    /// step.
    least_in: u32,
    /// The time since when in-order data waits for an ACK, and its end.
    owed_since: Option<Instant>,
    next: Option<Seq>,
}

/// The options of the peer's SYN.
#[derive(Clone, Copy, Debug)]
struct Peer {
    mss: u16,
    shift: Option<u8>,
    /// True if the peer agreed that our data segments carry our cwnd in place of a window.
    hears_cwnd: bool,
}

impl Peer {
    fn of(syn: &TcpView<'_>) -> Peer {
        Peer {
            mss: syn.options.mss.unwrap_or(DEFAULT_MSS),
            shift: syn.options.window_scale,
            hears_cwnd: agrees_to_cwnd(syn),
        }
    }
}

fn agrees_to_cwnd(syn: &TcpView<'_>) -> bool {
    matches!(syn.options.hopwise, Some(HopwiseOption::Offer(flags)) if flags.contains(OfferFlags::USE_IN_WINDOW))
}

impl Flow {
    fn new(iss: Seq, own_shift: Option<u8>) -> Flow {
        Flow {
            iss,
            own_shift,
            peer: None,
            edge_in: None,
            edge_out: None,
            ack_out: None,
            highest: None,
            hears_cwnd: false,
            least_in: u32::MAX,
            owed_since: None,
            next: None,
        }
    }

    fn is_scaled(&self) -> bool {
        self.own_shift.is_some() && self.peer.is_some_and(|peer| peer.shift.is_some())
    }

    fn own_step(&self) -> u8 {
        self.own_shift.filter(|_| self.is_scaled()).unwrap_or(0)
    }

    fn peer_step(&self) -> u8 {
        self.peer.and_then(|peer| peer.shift).filter(|_| self.is_scaled()).unwrap_or(0)
    }
}

impl Observer {
    pub(super) fn new(judges_holds: bool) -> Observer {
        Observer { judges_holds, ..Observer::default() }
    }

    pub(super) fn on_sent(&mut self, now: Instant, packet: &[u8]) -> Result<(), Sight> {
        let ip = IpView::parse(packet).map_err(|_| Sight::Unreadable)?;
        if ip.protocol != protocol::TCP {
            return Ok(());
        }
        let segment = TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Verify);
        let segment = segment.map_err(|_| Sight::Unreadable)?;
        let key = (segment.src_port, segment.dst_port);
        if segment.flags.contains(Flags::SYN) {
            self.on_own_syn(key, &segment);
            return Ok(());
        }
        if segment.flags.contains(Flags::RST) {
            self.flows.remove(&key);
        }
        let Some(flow) = self.flows.get_mut(&key) else { return Ok(()) };
        let judges_holds = self.judges_holds;
        if self.is_blind {
            (flow.highest, flow.edge_in) = (None, None);
        }
        flow.check_sent(&segment)?;
        flow.check_hold(now, judges_holds)?;
        if !flow.tells_cwnd(&segment) {
            flow.owed_since = None;
        }
        Ok(())
    }

    fn on_own_syn(&mut self, key: (u16, u16), syn: &TcpView<'_>) {
        let known = self.flows.get(&key).filter(|flow| flow.iss == syn.seq).copied();
        let mut flow = known.unwrap_or_else(|| Flow::new(syn.seq, syn.options.window_scale));
        flow.hears_cwnd = agrees_to_cwnd(syn);
        let answered = self.syns.get(&key).filter(|(irs, _)| *irs + 1 == syn.ack);
        if let (Some((irs, peer)), true, true) =
            (answered, syn.flags.contains(Flags::ACK), flow.peer.is_none())
        {
            flow.meet(*irs + 1, *peer);
        }
        self.flows.insert(key, flow);
    }

    /// Checks a received packet. Spoilt packets are skipped: the endpoint has to drop them too.
    pub(super) fn on_received(&mut self, now: Instant, packet: &[u8]) -> Result<(), Sight> {
        let Ok(ip) = IpView::parse(packet) else { return Ok(()) };
        self.is_blind |= ip.fragment.is_some();
        if ip.protocol != protocol::TCP {
            return Ok(());
        }
        let Ok(segment) = TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Verify) else {
            return Ok(());
        };
        let key = (segment.dst_port, segment.src_port);
        if segment.flags.contains(Flags::SYN) {
            self.syns.insert(key, (segment.seq, Peer::of(&segment)));
        }
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.check_hold(now, self.judges_holds)?;
            flow.take(now, &segment);
        }
        Ok(())
    }
}

impl Flow {
    fn check_sent(&mut self, segment: &TcpView<'_>) -> Result<(), Sight> {
        let (bytes, end) = (segment.payload.len(), segment.seq + segment.payload.len() as u32);
        let Some(peer) = self.peer else { return Ok(()) };
        if bytes + segment.options.emitted_len() > usize::from(peer.mss) {
            return Err(Sight::TooLong { bytes, mss: peer.mss });
        }
        if let Some(edge) = self.edge_in.filter(|edge| bytes > 0 && *edge + 1 < end) {
            return Err(Sight::BeyondWindow { end, edge });
        }
        if let Some(highest) = self.highest.filter(|highest| *highest < segment.ack) {
            return Err(Sight::AckOfNothing { ack: segment.ack, highest });
        }
        let mut reported = segment.options.sack.iter().map(|block| block.right);
        if let Some(highest) = self.highest
            && let Some(right) = reported.find(|right| highest < *right)
        {
            return Err(Sight::SackOfNothing { right, highest });
        }
        if let Some(from) = self.ack_out.replace(segment.ack).filter(|from| segment.ack < *from) {
            return Err(Sight::AckWentBack { ack: segment.ack, from });
        }
        if self.tells_cwnd(segment) {
            return Ok(());
        }
        let step = self.own_step();
        let edge = segment.ack + (u32::from(segment.window) << step);
        let from = self.edge_out.unwrap_or(edge);
        self.edge_out = Some(from.max(edge));
        let may_round = self.least_in < 8 << step;
        if edge + if may_round { (1 << step) - 1 } else { 0 } < from {
            return Err(Sight::WindowWentBack { edge, from });
        }
        Ok(())
    }

    /// True if the segment carries a cwnd in its window field.
    fn tells_cwnd(&self, segment: &TcpView<'_>) -> bool {
        !segment.payload.is_empty() && self.peer.is_some_and(|peer| peer.hears_cwnd)
    }

    fn meet(&mut self, next: Seq, peer: Peer) {
        self.peer = Some(peer);
        self.highest = Some(next);
        self.next = Some(next);
    }

    fn take(&mut self, now: Instant, segment: &TcpView<'_>) {
        let end = segment.seq + segment.sequence_len();
        let is_answer = segment.flags.contains(Flags::ACK);
        if segment.flags.contains(Flags::RST) {
            self.owed_since = None; // It may have ended the connection.
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            if self.peer.is_none() && is_answer && segment.ack == self.iss + 1 {
                self.meet(end, Peer::of(segment));
                self.edge_in = Some(segment.ack + u32::from(segment.window));
            }
            return;
        }
        self.highest = Some(self.highest.map_or(end, |highest| highest.max(end)));
        if is_answer && (!self.hears_cwnd || segment.payload.is_empty()) {
            let edge = segment.ack + (u32::from(segment.window) << self.peer_step());
            self.edge_in = Some(self.edge_in.map_or(edge, |known| known.max(edge)));
        }
        if !segment.payload.is_empty() {
            self.least_in = self.least_in.min(segment.payload.len() as u32);
        }
        if self.next == Some(segment.seq) && !segment.payload.is_empty() {
            self.next = Some(end);
            self.owed_since.get_or_insert(now);
        }
    }

    fn check_hold(&mut self, now: Instant, judges: bool) -> Result<(), Sight> {
        match self.owed_since.filter(|since| judges && now.since(*since) > LONGEST_HOLD) {
            Some(since) => Err(Sight::HeldTooLong { since }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hopwise_core::wire::{IpHeader, SackBlock, TcpHeader, TcpOptions};

    use super::*;

    const OURS: u16 = 1000;
    const THEIRS: u16 = 2000;

    fn packet(
        from: u16,
        seq: u32,
        ack: u32,
        flags: Flags,
        window: u16,
        len: usize,
        options: &TcpOptions,
    ) -> Vec<u8> {
        let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(10, 0, 0, 2).into());
        let header = TcpHeader {
            src_port: from,
            dst_port: if from == OURS { THEIRS } else { OURS },
            seq: Seq(seq),
            ack: Seq(ack),
            flags,
            window,
            urgent: 0,
            options,
        };
        let ip = IpHeader::plain(src, dst, protocol::TCP);
        let mut packet = Vec::new();
        ip.emit(header.len() + len, &mut packet);
        header.emit(src, dst, (&vec![7; len], &[]), Checksums::Verify, &mut packet);
        packet
    }

    /// Our SYN is 0, the peer's 500; it takes 100 bytes a segment and promises 1000.
    fn met(judges_holds: bool) -> Observer {
        let mut observer = Observer::new(judges_holds);
        let syn = TcpOptions { mss: Some(100), ..TcpOptions::default() };
        let sent = packet(OURS, 0, 0, Flags::SYN, 65535, 0, &syn);
        observer.on_sent(Instant::ZERO, &sent).expect("a SYN is fine");
        let answer = packet(THEIRS, 500, 1, Flags::SYN | Flags::ACK, 1000, 0, &syn);
        observer.on_received(Instant::ZERO, &answer).expect("a SYN-ACK is fine");
        observer
    }

    fn sends(observer: &mut Observer, seq: u32, ack: u32, window: u16, len: usize) -> Result<(), Sight> {
        let packet = packet(OURS, seq, ack, Flags::ACK, window, len, &TcpOptions::default());
        observer.on_sent(Instant::ZERO, &packet)
    }

    #[test]
    fn data_within_window_and_mss_is_fine_and_a_probe_may_go_one_beyond() {
        let mut observer = met(false);
        assert_eq!(sends(&mut observer, 1, 501, 500, 100), Ok(()));
        assert_eq!(sends(&mut observer, 1001, 501, 500, 1), Ok(()));
        assert_eq!(
            sends(&mut observer, 1001, 501, 500, 2),
            Err(Sight::BeyondWindow { end: Seq(1003), edge: Seq(1001) })
        );
        assert_eq!(sends(&mut observer, 1, 501, 500, 101), Err(Sight::TooLong { bytes: 101, mss: 100 }));
    }

    #[test]
    fn acknowledgments_go_forward_and_never_beyond_what_came() {
        let mut observer = met(false);
        let nothing = Sight::AckOfNothing { ack: Seq(502), highest: Seq(501) };
        assert_eq!(sends(&mut observer, 1, 502, 500, 0), Err(nothing));
        let data = packet(THEIRS, 501, 1, Flags::ACK, 1000, 10, &TcpOptions::default());
        assert_eq!(observer.on_received(Instant::ZERO, &data), Ok(()));
        assert_eq!(sends(&mut observer, 1, 511, 500, 0), Ok(()));
        assert_eq!(
            sends(&mut observer, 1, 501, 510, 0),
            Err(Sight::AckWentBack { ack: Seq(501), from: Seq(511) })
        );
    }

    #[test]
    fn a_sack_block_beyond_what_came_is_seen() {
        let mut observer = met(false);
        let data = packet(THEIRS, 601, 1, Flags::ACK, 1000, 10, &TcpOptions::default());
        assert_eq!(observer.on_received(Instant::ZERO, &data), Ok(()));
        for (right, fine) in [(611, true), (612, false)] {
            let mut options = TcpOptions::default();
            options.sack.push(SackBlock { left: Seq(601), right: Seq(right) });
            let ack = packet(OURS, 1, 501, Flags::ACK, 500, 0, &options);
            assert_eq!(observer.on_sent(Instant::ZERO, &ack).is_ok(), fine, "{right}");
        }
    }

    #[test]
    fn a_window_that_shrinks_is_seen() {
        let mut observer = met(false);
        assert_eq!(sends(&mut observer, 1, 501, 500, 0), Ok(()));
        let back = Sight::WindowWentBack { edge: Seq(1000), from: Seq(1001) };
        assert_eq!(sends(&mut observer, 1, 501, 499, 0), Err(back));
    }

    #[test]
    fn in_order_data_is_answered_within_half_a_second() {
        let data = packet(THEIRS, 501, 1, Flags::ACK, 1000, 10, &TcpOptions::default());
        for (after_ms, fine) in [(500, true), (501, false)] {
            let mut observer = met(true);
            observer.on_received(Instant::ZERO, &data).expect("data is fine");
            let ack = packet(OURS, 1, 511, Flags::ACK, 500, 0, &TcpOptions::default());
            let seen = observer.on_sent(Instant::from_millis(after_ms), &ack);
            assert_eq!(seen.is_ok(), fine, "{after_ms}: {seen:?}");
        }
    }
}
