mod reset;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::agent::{
    AckNote, AckVerdict, Allowance, Arrival, Loss, Needs, Owner, ReceiverAgent, RecvView, Reduction,
    SendView, SenderAgent, SenderAgents, Why,
};
use crate::ignores;
use crate::tcp::config::{AckMerge, BufferLimits};
use crate::tcp::cx::Memory;
use crate::tcp::recovery::Certainty;
use crate::tcp::senders::Senders;
use crate::trace::TraceRing;
use crate::wire::{Checksums, Ecn as IpEcn, Flags, IpView, SackBlock, TcpOptions, TcpView};

const MSS: u32 = 1000;

/// An agent that acknowledges everything at once.
#[derive(Debug)]
pub(crate) struct Each;

impl ReceiverAgent for Each {
    ignores!(on_ack);

    fn needs(&self) -> Needs {
        Needs::default()
    }
    fn on_arrival(&mut self, _: &Arrival, _: &RecvView<'_>) -> AckVerdict {
        AckVerdict::Now(Why::plain(AckRule::Each))
    }
    fn on_deadline(&mut self, _: Instant, _: &RecvView<'_>) -> AckVerdict {
        AckVerdict::Hold(Why::plain(AckRule::Each))
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn note(&self) -> AckNote {
        AckNote::default()
    }
    fn gauges(&self, _: &mut dyn FnMut(&'static str, u64)) {}
}

/// An agent with a fixed window of ten segments.
#[derive(Debug)]
pub(crate) struct Ten;

impl SenderAgent for Ten {
    ignores!(tune, on_sent, on_acked, on_dup_ack, on_recovered, on_path, note);

    fn needs(&self) -> Needs {
        Needs::default()
    }
    fn on_loss(&mut self, _: &Loss, view: &SendView<'_>) -> Option<Reduction> {
        Some(Reduction { ssthresh: 5 * u64::from(view.mss) })
    }
    fn narrow(&self, _: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
        Allowance { flight_bytes: so_far.flight_bytes.min(10 * u64::from(view.mss)), ..so_far }
    }
    fn gauges(&self, _: &mut dyn FnMut(&'static str, u64)) {}
}

/// One connection, and a peer that a test controls.
struct Rig {
    conn: Connection,
    ring: TraceRing,
    now: Instant,
    /// The peer's next sequence number.
    peer: Seq,
    /// The peer's urgent pointer.
    urgent: u16,
    /// The peer's window.
    window: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Left {
    seq: Seq,
    flags: Flags,
    payload: Vec<u8>,
}

impl Rig {
    fn connecting(config: TcpConfig) -> Rig {
        let flow = Flow {
            local: SocketAddr::from(([10, 0, 0, 1], 1000)),
            remote: SocketAddr::from(([10, 0, 0, 2], 7)),
        };
        let mut ring = TraceRing::new(64);
        let setup = Setup {
            number: 1,
            flow,
            config: Arc::new(config),
            receiver: Box::new(Each),
            shadows: Vec::new(),
            senders: SenderAgents { owner: Owner::Alone(Box::new(Ten)), others: Box::default() },
            iss: Seq(0x7fff_ff00),
            ts_offset: 0,
            link_mtu: 1500,
            path_mtu: None,
            ack_merge: AckMerge::Off,
            source_route: None,
            follows: None,
        };
        let mut cx = Cx { now: Instant::ZERO, conn: 1, packet: 0, memory: Memory::Plenty, ring: &mut ring };
        let mut conn = setup.make(Origin::Active);
        open_active(&mut cx, &mut conn);
        Rig { conn, ring, now: Instant::ZERO, peer: Seq(5000), urgent: 0, window: u16::MAX }
    }

    /// An open connection without options, and with segments of [`MSS`].
    fn established() -> Rig {
        Rig::established_with(plain())
    }

    fn established_with(config: TcpConfig) -> Rig {
        let sack_permitted = config.sack;
        let mut rig = Rig::connecting(config);
        rig.leaves();
        let syn = TcpOptions { mss: Some(MSS as u16), sack_permitted, ..TcpOptions::default() };
        let iss = rig.conn.out.sending.iss;
        rig.hear_with(Flags::SYN | Flags::ACK, iss + 1, syn, &[]);
        rig.leaves();
        rig
    }

    fn use_ecn(&mut self) {
        self.conn.out.opening.pretend_ecn();
    }

    fn hear(&mut self, flags: Flags, ack: Seq, payload: &[u8]) {
        self.hear_with(flags | Flags::ACK, ack, TcpOptions::default(), payload);
    }

    fn hear_with(&mut self, flags: Flags, ack: Seq, options: TcpOptions, payload: &[u8]) {
        let segment = TcpView {
            src_port: 7,
            dst_port: 1000,
            seq: self.peer,
            ack,
            flags,
            window: self.window,
            urgent: self.urgent,
            options,
            payload,
        };
        self.peer += segment.sequence_len();
        let arrived = Arrived {
            segment: &segment,
            ecn: IpEcn::NotEct,
            hop_limit: 64,
            crossings: 0,
            segment_bytes: None,
            source_route: None,
        };
        let mut cx = Cx { now: self.now, conn: 1, packet: 0, memory: Memory::Plenty, ring: &mut self.ring };
        self.conn.handle_segment(&mut cx, &arrived);
    }

    fn write(&mut self, data: &[u8]) {
        let cx = Cx { now: self.now, conn: 1, packet: 0, memory: Memory::Plenty, ring: &mut self.ring };
        assert_eq!(self.conn.write(&cx, data), data.len());
    }

    fn read(&mut self, bytes: usize) {
        let mut cx = Cx { now: self.now, conn: 1, packet: 0, memory: Memory::Plenty, ring: &mut self.ring };
        assert_eq!(self.conn.read(&mut cx, &mut vec![0; bytes]), bytes);
    }

    fn set_options(&mut self, options: Options) {
        let cx = Cx { now: self.now, conn: 1, packet: 0, memory: Memory::Plenty, ring: &mut self.ring };
        self.conn.set_options(&cx, options);
    }

    fn shutdown(&mut self) {
        self.conn.shutdown_write();
    }

    /// Runs the next deadline, unless the connection is over.
    fn wait_for_timer(&mut self) -> bool {
        loop {
            let due = self.conn.deadline();
            if due == Instant::FAR {
                return false;
            }
            self.now = self.now.max(due);
            let mut cx =
                Cx { now: self.now, conn: 1, packet: 0, memory: Memory::Plenty, ring: &mut self.ring };
            if self.conn.handle_timeout(&mut cx) {
                return true;
            }
        }
    }

    /// All segments that may leave now.
    fn leaves(&mut self) -> Vec<Left> {
        let mut left = Vec::new();
        let mut packet = Vec::new();
        loop {
            packet.clear();
            let mut cx =
                Cx { now: self.now, conn: 1, packet: 0, memory: Memory::Plenty, ring: &mut self.ring };
            let link = LinkHelp { checksums: Checksums::Verify, lends: false, most_bytes: None };
            if self.conn.poll_transmit(&mut cx, &link, &mut packet) == super::Left::Nothing {
                return left;
            }
            let ip = IpView::parse(&packet).expect("a packet");
            let tcp = TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Verify).expect("a segment");
            left.push(Left { seq: tcp.seq, flags: tcp.flags, payload: tcp.payload.to_vec() });
        }
    }
}

fn plain() -> TcpConfig {
    TcpConfig { sack: false, timestamps: false, window_scale: false, ecn: false, ..TcpConfig::modern() }
}

/// Pretends that so many bytes were sent since the SYN.
fn age(rig: &mut Rig, bytes: u32) {
    let iss = rig.conn.out.sending.una - bytes;
    rig.conn.out.sending.iss = iss;
}

#[test]
fn two_gibibytes_after_the_syn_what_is_unsent_is_still_counted_from_snd_una() {
    let mut rig = Rig::established();
    age(&mut rig, (1 << 31) + 100);
    rig.write(&[1; 12 * MSS as usize]);
    assert_eq!(rig.conn.out.send_view().unsent.bytes, u64::from(12 * MSS));
    assert_eq!(rig.leaves().len(), 10);
    assert_eq!(rig.conn.out.send_view().unsent.bytes, u64::from(2 * MSS));
}

#[test]
fn when_snd_una_meets_iss_again_the_stream_does_not_shift() {
    let mut rig = Rig::established();
    age(&mut rig, 0);
    let start = rig.conn.out.sending.una;
    rig.write(b"stream");
    let left = rig.leaves();
    assert_eq!((left[0].seq, &left[0].payload[..]), (start, &b"stream"[..]));
    rig.hear(Flags::default(), start + 6, &[]);
    assert_eq!(
        (rig.conn.out.sending.buffer.len(), rig.conn.out.timers.deadline(Timer::Retransmit)),
        (0, None)
    );
}

/// A number that lies half of the sequence space back after two more segments.
fn long_before(number: Seq) -> Seq {
    number - ((1 << 31) - 3 * MSS / 2)
}

fn ack_two_segments(rig: &mut Rig) {
    for _ in 0..2 {
        rig.write(&[1; MSS as usize]);
        rig.leaves();
        let nxt = rig.conn.out.sending.nxt;
        rig.hear(Flags::default(), nxt, &[]);
    }
}

#[test]
fn a_recovery_two_gibibytes_ago_does_not_forbid_a_fast_retransmit() {
    let mut rig = Rig::established();
    rig.conn.out.loss.recovery_mut().point = long_before(rig.conn.out.sending.una);
    ack_two_segments(&mut rig);
    rig.write(&[1; 5 * MSS as usize]);
    rig.leaves();
    let una = rig.conn.out.sending.una;
    for _ in 0..3 {
        rig.hear(Flags::default(), una, &[]);
    }
    assert_eq!(rig.leaves()[0].seq, una);
}

#[test]
fn a_mark_two_gibibytes_ago_does_not_hide_the_next_one() {
    let mut rig = Rig::established();
    rig.use_ecn();
    rig.conn.out.loss.recovery_mut().reduced_at = Some(long_before(rig.conn.out.sending.una));
    ack_two_segments(&mut rig);
    rig.write(&[1; MSS as usize]);
    rig.leaves();
    let nxt = rig.conn.out.sending.nxt;
    rig.hear(Flags::ECE, nxt, &[]);
    assert!(rig.conn.out.sending.cwr);
}

#[test]
fn urgent_data_two_gibibytes_ago_is_not_pointed_at_again() {
    let mut rig = Rig::established();
    let end = long_before(rig.conn.out.sending.una);
    rig.conn.out.sending.pretend_urgent(end);
    ack_two_segments(&mut rig);
    rig.write(&[1; MSS as usize]);
    assert!(!rig.leaves()[0].flags.contains(Flags::URG));
}

// shows: MUST-33
#[test]
fn urgent_data_is_unread_until_it_is_read_and_never_again() {
    let mut rig = Rig::established();
    let segment = |rig: &mut Rig, urgent: u16, payload: &[u8]| {
        let una = rig.conn.out.sending.una;
        rig.urgent = urgent;
        rig.hear(Flags::URG, una, payload);
    };
    segment(&mut rig, 3, b"urgent");
    assert_eq!((rig.conn.urgent_unread(), rig.conn.events.urgent), (3, true));
    rig.conn.events.urgent = false;
    rig.read(2);
    assert_eq!(rig.conn.urgent_unread(), 1);
    rig.read(4);
    assert_eq!((rig.conn.urgent_unread(), rig.conn.receiving.has_urgent_end()), (0, false));
    segment(&mut rig, 0, b"more");
    assert!(!rig.conn.events.urgent, "its end was read already");
}

#[test]
fn a_keep_alive_without_an_interval_still_lets_time_pass() {
    let mut rig = Rig::established();
    let zero = KeepAlive { idle: Duration::ZERO, interval: Duration::ZERO, probes: 3 };
    rig.set_options(Options { keep_alive: Some(zero), ..rig.conn.options() });
    assert!(rig.conn.out.timers.deadline(Timer::KeepAlive) > Some(rig.now));
    let una = rig.conn.out.sending.una;
    rig.hear(Flags::default(), una, b"data");
    assert!(rig.conn.out.timers.deadline(Timer::KeepAlive) > Some(rig.now));
}

/// A block from segment `from` to before segment `to`, counted from `snd_una`.
fn block(rig: &Rig, from: u32, to: u32) -> SackBlock {
    SackBlock { left: rig.conn.out.sending.una + from * MSS, right: rig.conn.out.sending.una + to * MSS }
}

/// The ACK for the lower block was lost; RFC 8985 §6.2 step 3 compares with earlier ACKs.
#[test]
fn two_blocks_that_one_ack_brings_are_not_out_of_order() {
    let mut rig = Rig::established_with(TcpConfig { sack: true, ..plain() });
    rig.now = Instant::from_millis(100);
    rig.write(&[1; 6 * MSS as usize]);
    rig.leaves();
    rig.now = Instant::from_millis(200);
    let sack = [block(&rig, 4, 5), block(&rig, 2, 3)].into_iter().collect();
    let una = rig.conn.out.sending.una;
    rig.hear_with(Flags::ACK, una, TcpOptions { sack, ..TcpOptions::default() }, &[]);
    let rtt = Some(Duration::from_millis(100));
    assert_eq!(rig.conn.out.loss.board.sacked().segments, 2);
    assert_eq!(rig.conn.out.loss.recovery.rack.window(Certainty::Enough, rtt, rtt), Duration::ZERO);
    let sack = [block(&rig, 1, 2)].into_iter().collect();
    rig.hear_with(Flags::ACK, una, TcpOptions { sack, ..TcpOptions::default() }, &[]);
    assert_eq!(
        rig.conn.out.loss.recovery.rack.window(Certainty::Enough, rtt, rtt),
        Duration::from_millis(25)
    );
}

/// A peer that has closed its window, and a FIN that waits behind it.
fn with_fin_behind_closed_window() -> Rig {
    let mut rig = Rig::established();
    (rig.window, rig.now) = (0, Instant::from_secs(1));
    let una = rig.conn.out.sending.una;
    rig.hear(Flags::default(), una, &[]);
    rig.shutdown();
    rig
}

/// Runs the timers for this long; the peer answers each segment, or is gone.
fn run(rig: &mut Rig, time: Duration, answers: bool) {
    let until = rig.now + time;
    while rig.now < until && rig.conn.closed.is_none() && rig.wait_for_timer() {
        let left = rig.leaves();
        if answers && !left.is_empty() {
            let una = rig.conn.out.sending.una;
            rig.hear(Flags::default(), una, &[]);
        }
        assert!(left.len() <= 1, "{left:?}");
    }
}

// shows: MUST-36
#[test]
fn a_fin_waits_for_the_window_and_probes_it() {
    let mut rig = with_fin_behind_closed_window();
    let nxt = rig.conn.out.sending.nxt;
    assert_eq!(rig.leaves(), []);
    rig.wait_for_timer();
    while rig.leaves().is_empty() {
        assert!(rig.wait_for_timer());
    }
    assert_eq!(
        (rig.conn.out.stats.window_probes, rig.conn.out.sending.nxt),
        (1, nxt),
        "a probe without data"
    );
    rig.window = 100;
    rig.hear(Flags::default(), nxt, &[]);
    let left = rig.leaves();
    assert_eq!((left.len(), left[0].seq, left[0].flags.contains(Flags::FIN)), (1, nxt, true));
}

#[test]
fn data_that_fills_the_window_leaves_its_fin_behind() {
    let mut rig = Rig::established();
    rig.window = MSS as u16;
    let una = rig.conn.out.sending.una;
    rig.hear(Flags::default(), una, &[]);
    rig.write(&[1; MSS as usize]);
    rig.shutdown();
    let left = rig.leaves();
    assert_eq!((left.len(), left[0].flags.contains(Flags::FIN)), (1, false));
    rig.hear(Flags::default(), una + MSS, &[]);
    assert!(rig.leaves()[0].flags.contains(Flags::FIN));
}

// shows: MUST-37
#[test]
fn a_closed_window_is_probed_for_as_long_as_the_peer_answers() {
    for with_data in [false, true] {
        let mut rig = with_fin_behind_closed_window();
        if with_data {
            rig.conn.out.sending.pretend_open();
            rig.write(b"data");
        }
        run(&mut rig, Duration::from_secs(20_000), true);
        assert_eq!(rig.conn.closed, None, "with data: {with_data}");
    }
}

#[test]
fn a_closed_window_whose_peer_is_gone_is_given_up() {
    for with_data in [false, true] {
        let mut rig = with_fin_behind_closed_window();
        if with_data {
            rig.conn.out.sending.pretend_open();
            rig.write(b"data");
        }
        run(&mut rig, Duration::from_secs(20_000), false);
        assert_eq!(rig.conn.closed, Some(CloseReason::TimedOut), "with data: {with_data}");
    }
}

/// RFC 3168 §6.1.2: one reduction a window, whatever the reason, and CWR reports it.
#[test]
fn a_mark_in_a_window_that_lost_something_does_not_reduce_it_again() {
    let mut rig = Rig::established();
    rig.use_ecn();
    rig.write(&[1; 12 * MSS as usize]);
    rig.leaves();
    let (una, nxt) = (rig.conn.out.sending.una, rig.conn.out.sending.nxt);
    for _ in 0..3 {
        rig.hear(Flags::default(), una, &[]);
    }
    rig.leaves();
    rig.hear(Flags::ECE, nxt, &[]);
    let left = rig.leaves();
    assert_eq!((left.len(), left[0].flags.contains(Flags::CWR)), (2, true));
    assert!(!left[1].flags.contains(Flags::CWR));
    let mut marked = 0;
    rig.ring.drain(&mut |event| marked += usize::from(event.kind == TraceKind::Marked));
    assert_eq!(marked, 0);
}

/// The peer's segments may be larger than those that it accepts. A peer with less than two segments of window may be
/// stuck behind its own silly-window avoidance.
#[test]
fn a_window_that_reopens_is_told_to_a_peer_whose_segments_are_larger_than_ours() {
    let limits = BufferLimits { initial: 4000, max: 4000 };
    let mut rig = Rig::established_with(TcpConfig { recv_buffer: limits, segment_bytes: 200, ..plain() });
    let una = rig.conn.out.sending.una;
    for _ in 0..2 {
        rig.hear(Flags::default(), una, &[1; 1448]);
        rig.leaves();
    }
    rig.read(2896);
    assert_eq!(rig.leaves().len(), 1);
}

/// An agent that never allows any data.
#[derive(Debug)]
struct Never;

impl SenderAgent for Never {
    ignores!(tune, on_sent, on_acked, on_dup_ack, on_loss, on_recovered, on_path, note);

    fn needs(&self) -> Needs {
        Needs::default()
    }
    fn narrow(&self, _: Instant, _: &SendView<'_>, so_far: Allowance) -> Allowance {
        Allowance { flight_bytes: 0, new_from: Instant::FAR, resend_from: Instant::FAR, ..so_far }
    }
    fn gauges(&self, _: &mut dyn FnMut(&'static str, u64)) {}
}

#[test]
fn an_agent_that_allows_nothing_slows_a_connection_down_and_does_not_stop_it() {
    let mut rig = Rig::established();
    rig.conn.out.senders = Senders::new(SenderAgents {
        owner: Owner::Alone(Box::new(Ten)),
        others: [Box::new(Never) as _].into(),
    });
    rig.now = Instant::from_secs(10);
    rig.write(&[7; 2 * MSS as usize]);
    assert_eq!(rig.leaves().len(), 1, "with nothing in flight one segment may always leave");
    let una = rig.conn.out.sending.una + MSS;
    rig.now += Duration::from_millis(10);
    rig.hear(Flags::default(), una, &[]);
    assert_eq!(rig.leaves(), []);
    let due = Instant::from_secs(11);
    assert!(rig.conn.deadline() <= due, "pacing holds nothing longer than max(RTO, 1 s)");
    rig.now = due;
    assert_eq!(rig.leaves().len(), 1);
}
