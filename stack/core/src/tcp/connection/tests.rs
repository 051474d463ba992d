use std::net::SocketAddr;

use super::*;
use crate::agent::{
    AckNote, AckVerdict, Allowance, Arrival, Loss, Needs, ReceiverAgent, RecvView, Reduction, SenderAgent,
    Why,
};
use crate::ignores;
use crate::trace::TraceRing;
use crate::wire::{Checksums, Ecn as IpEcn, Flags, IpView, TcpOptions, TcpView};

const MSS: u32 = 1000;

/// Acknowledges everything at once.
#[derive(Debug)]
struct Each;

impl ReceiverAgent for Each {
    ignores!(on_ack);

    fn needs(&self) -> Needs {
        Needs::default()
    }
    fn on_arrival(&mut self, _: &Arrival, _: &RecvView<'_>) -> AckVerdict {
        AckVerdict::Now(Why::plain(crate::agent::Rule::Each))
    }
    fn on_deadline(&mut self, _: Instant, _: &RecvView<'_>) -> AckVerdict {
        AckVerdict::Hold(Why::plain(crate::agent::Rule::Each))
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn note(&self) -> AckNote {
        AckNote::default()
    }
    fn gauges(&self, _: &mut dyn FnMut(&'static str, u64)) {}
}

/// A window of ten segments, whatever happens.
#[derive(Debug)]
struct Ten;

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

/// One connection, and a peer that says what a test lets it say.
struct Rig {
    conn: Connection,
    ring: TraceRing,
    now: Instant,
    /// The peer's next sequence number.
    peer: Seq,
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
        let opening = Opening {
            number: 1,
            flow,
            options: Options::from_config(&config),
            config: Arc::new(config),
            receiver: Box::new(Each),
            shadows: Vec::new(),
            senders: vec![Box::new(Ten)],
            iss: Seq(0x7fff_ff00),
            ts_offset: 0,
            link_mtu: 1500,
            path_mtu: None,
            source_route: None,
        };
        let mut cx = Cx { now: Instant::ZERO, conn: 1, packet: 0, ring: &mut ring };
        let conn = Connection::open_active(&mut cx, opening);
        Rig { conn, ring, now: Instant::ZERO, peer: Seq(5000) }
    }

    /// Without options, and with segments of [`MSS`].
    fn established() -> Rig {
        Rig::established_with(plain())
    }

    fn established_with(config: TcpConfig) -> Rig {
        let mut rig = Rig::connecting(config);
        rig.leaves();
        let syn = TcpOptions { mss: Some(MSS as u16), ..TcpOptions::default() };
        let iss = rig.conn.snd.iss;
        rig.hear_with(Flags::SYN | Flags::ACK, iss + 1, syn, &[]);
        rig.leaves();
        rig
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
            window: u16::MAX,
            urgent: 0,
            options,
            payload,
        };
        self.peer += segment.sequence_len();
        let arrived = Arrived { segment, ecn: IpEcn::NotEct, segment_bytes: None, source_route: None };
        let mut cx = Cx { now: self.now, conn: 1, packet: 0, ring: &mut self.ring };
        self.conn.handle_segment(&mut cx, &arrived);
    }

    fn write(&mut self, data: &[u8]) {
        let cx = Cx { now: self.now, conn: 1, packet: 0, ring: &mut self.ring };
        assert_eq!(self.conn.write(&cx, data), data.len());
    }

    /// Everything that may leave now.
    fn leaves(&mut self) -> Vec<Left> {
        let mut left = Vec::new();
        let mut packet = Vec::new();
        loop {
            packet.clear();
            let mut cx = Cx { now: self.now, conn: 1, packet: 0, ring: &mut self.ring };
            if !self.conn.poll_transmit(&mut cx, Checksums::Verify, &mut packet) {
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

/// As though so much had been sent since the SYN.
fn age(rig: &mut Rig, bytes: u32) {
    rig.conn.snd.iss = rig.conn.snd.una - bytes;
}

#[test]
fn two_gibibytes_after_the_syn_what_is_unsent_is_still_counted_from_snd_una() {
    let mut rig = Rig::established();
    age(&mut rig, (1 << 31) + 100);
    rig.write(&[1; 12 * MSS as usize]);
    assert_eq!(rig.conn.send_view().unsent.bytes, u64::from(12 * MSS));
    assert_eq!(rig.leaves().len(), 10);
    assert_eq!(rig.conn.send_view().unsent.bytes, u64::from(2 * MSS));
}

#[test]
fn when_snd_una_meets_iss_again_the_stream_does_not_shift() {
    let mut rig = Rig::established();
    age(&mut rig, 0);
    let start = rig.conn.snd.una;
    rig.write(b"stream");
    let left = rig.leaves();
    assert_eq!((left[0].seq, &left[0].payload[..]), (start, &b"stream"[..]));
    rig.hear(Flags::default(), start + 6, &[]);
    assert_eq!((rig.conn.snd.buffer.len(), rig.conn.timers.deadline(Timer::Retransmit)), (0, None));
}
