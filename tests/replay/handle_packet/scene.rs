//! The endpoint, its peer, the wire between them, and a stranger who sees and sends any packet.

use std::collections::VecDeque;
use std::time::Duration;

use hopwise_core::{Cast, Instant, LinkId, Machine, Payload, Rx};

use super::arrival::{Soundness, carries_the_stream, soundness};
use super::calls::Program;
use super::departure;
use super::flows::Flows;
use super::forge::{self, Forged};
use super::setup::{self, FAR_V4, HOST_V4, HOST_V6, LINK, PEER_V4, PEER_V6, STRANGER_V4, STRANGER_V6};
use crate::input::{Bits, Input};

/// Packets that may leave at one instant: far more than windows and buffers allow.
const MOST_AT_ONCE: usize = 20_000;
/// A story ends after this many packets.
const MOST_PACKETS: usize = 30_000;
const MOST_ON_WIRE: usize = 400;
const MOST_RECENT: usize = 8;
/// Packets at least so long are as long as they say.
const LONG: u16 = 65_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Host,
    Peer,
}

/// The parameters of the next packet's handover.
#[derive(Clone, Copy)]
struct Manner {
    link: LinkId,
    cast: Cast,
    segment_bytes: Option<u16>,
}

const USUAL: Manner = Manner { link: LINK, cast: Cast::ToUs, segment_bytes: None };

pub(super) struct Scene {
    now: Instant,
    host: Program,
    peer: Program,
    wire: VecDeque<(To, Vec<u8>)>,
    flows: Flows,
    /// The host's last packets, in each direction.
    sent: VecDeque<Vec<u8>>,
    came: VecDeque<Vec<u8>>,
    manner: Manner,
    /// True if the host's link has no room.
    is_jammed: bool,
    packets: usize,
}

impl Scene {
    pub(super) fn new(input: &mut Input<'_>) -> Scene {
        let host = setup::make(HOST_V4, HOST_V6, 1, input);
        let peer = setup::make(PEER_V4, PEER_V6, 2, input);
        Scene {
            now: Instant(u64::from(input.octet()) << 40),
            host: Program::new(host, [PEER_V4, PEER_V6, STRANGER_V4, STRANGER_V6, FAR_V4], input),
            peer: Program::new(peer, [HOST_V4, HOST_V6, HOST_V4, HOST_V6, STRANGER_V4], input),
            wire: VecDeque::new(),
            flows: Flows::default(),
            sent: VecDeque::new(),
            came: VecDeque::new(),
            manner: USUAL,
            is_jammed: false,
            packets: 0,
        }
    }

    pub(super) fn is_tired(&self) -> bool {
        self.packets > MOST_PACKETS
    }

    pub(super) fn step(&mut self, input: &mut Input<'_>) {
        match input.octet() % 24 {
            0 => self.raw(input),
            1..=6 => self.forge(forge::segment, input),
            7 => self.forge(|_, _, input| forge::datagram(input), input),
            8 => self.icmp(input),
            9 => self.again(input),
            10..=13 => self.host.call(self.now, input),
            14 | 15 => self.peer.call(self.now, input),
            16 | 17 => self.carry(input),
            18 | 19 => self.wait(input),
            20 | 21 => self.run(input),
            22 => self.set_manner(input),
            _ => self.jam(input),
        }
        self.flush();
    }

    fn raw(&mut self, input: &mut Input<'_>) {
        let len = input.word();
        let len = if len < LONG { len % 1600 } else { len };
        let packet = input.bytes(len.into()).to_vec();
        self.hand_in(&packet, true);
    }

    fn forge(
        &mut self,
        make: impl FnOnce(Instant, &mut Flows, &mut Input<'_>) -> Forged,
        input: &mut Input<'_>,
    ) {
        let Forged { packets, may_mix } = make(self.now, &mut self.flows, input);
        for packet in packets {
            self.hand_in(&packet, may_mix);
        }
    }

    fn icmp(&mut self, input: &mut Input<'_>) {
        let quoted = input.index(self.sent.len()).map(|at| &self.sent[at]);
        let forged = forge::icmp_about(quoted, input);
        self.forge(|_, _, _| forged, input);
    }

    /// A packet comes back to its sender, or comes once more.
    fn again(&mut self, input: &mut Input<'_>) {
        let from = if input.octet() & 1 == 0 { &self.came } else { &self.sent };
        let Some(at) = input.index(from.len()) else { return };
        let packet = from[at].clone();
        self.hand_in(&packet, true);
    }

    /// Hands a packet to the host. A malformed one is dropped and counted, once.
    fn hand_in(&mut self, packet: &[u8], may_mix: bool) {
        let manner = std::mem::replace(&mut self.manner, USUAL);
        let rx = Rx {
            link: manner.link,
            from: None,
            cast: manner.cast,
            segment_bytes: manner.segment_bytes,
            packet,
        };
        let soundness = soundness(packet);
        self.host.is_misled |= match soundness {
            Soundness::Piece => may_mix,
            Soundness::Sound | Soundness::Malformed => !carries_the_stream(packet),
        };
        let before = self.host.drops();
        self.host.endpoint.handle_packet(self.now, &rx);
        if soundness == Soundness::Malformed {
            assert_eq!(self.host.drops(), before + 1, "a malformed packet is dropped and counted once");
        }
        keep(&mut self.came, packet.to_vec());
        self.flush();
    }

    /// Takes all packets of both endpoints.
    fn flush(&mut self) {
        if !self.is_jammed {
            self.flush_host();
        }
        let mut packet = Vec::new();
        for _ in 0..MOST_AT_ONCE {
            packet.clear();
            let Some(transmit) =
                self.peer.endpoint.poll_transmit(self.now, LINK, Payload::Inline, &mut packet)
            else {
                self.drain();
                return;
            };
            for packet in departure::cut(&packet, transmit.segment_bytes) {
                departure::check(&packet, self.peer.mtu, &mut |_, _| {});
                self.flows.note_from_peer(&packet);
                self.packets += 1;
                if goes_to(&packet, HOST_V4, HOST_V6) {
                    self.put(To::Host, packet);
                }
            }
        }
        panic!("the peer has more to send than it can have");
    }

    fn flush_host(&mut self) {
        let mut packet = Vec::new();
        for _ in 0..MOST_AT_ONCE {
            packet.clear();
            let Some(transmit) =
                self.host.endpoint.poll_transmit(self.now, LINK, Payload::Inline, &mut packet)
            else {
                return;
            };
            for packet in departure::cut(&packet, transmit.segment_bytes) {
                let flows = &mut self.flows;
                departure::check(&packet, self.host.mtu, &mut |view, segment| {
                    flows.note_from_host(view, segment);
                });
                self.packets += 1;
                if goes_to(&packet, PEER_V4, PEER_V6) {
                    self.put(To::Peer, packet.clone());
                }
                keep(&mut self.sent, packet);
            }
        }
        panic!("the host has more to send than it can have");
    }

    fn put(&mut self, to: To, packet: Vec<u8>) {
        if self.wire.len() < MOST_ON_WIRE {
            self.wire.push_back((to, packet));
        }
    }

    fn drain(&mut self) {
        for program in [&mut self.host, &mut self.peer] {
            program.endpoint.drain_trace(&mut |_| {});
        }
    }

    fn deliver(&mut self, to: To, packet: &[u8]) {
        match to {
            To::Host => self.hand_in(packet, false),
            To::Peer => self.peer.endpoint.handle_packet(self.now, &Rx::new(LINK, packet)),
        }
        self.flush();
    }

    /// One packet on the wire arrives, is lost, arrives twice or arrives with one bit changed, which every checksum
    /// finds.
    fn carry(&mut self, input: &mut Input<'_>) {
        let how = input.octet();
        let Some(at) = input.index(self.wire.len()) else { return };
        let Some((to, mut packet)) = self.wire.remove(at) else { return };
        match how % 6 {
            0 => {}
            1 => {
                self.deliver(to, &packet);
                self.deliver(to, &packet);
            }
            2 => {
                let bit = usize::from(input.word()) % (packet.len() * 8);
                packet[bit / 8] ^= 1 << (bit % 8);
                self.deliver(to, &packet);
            }
            3 => self.wire.push_back((to, packet)),
            4 => self.wire.clear(),
            _ => self.deliver(to, &packet),
        }
    }

    /// Time passes; timeouts come in time, late or for nothing.
    fn wait(&mut self, input: &mut Input<'_>) {
        let how = Bits(input.octet());
        let next = self.host.endpoint.poll_timeout();
        let amount = u64::from(input.octet());
        let later = match how.0 & 7 {
            0 | 1 => next.filter(|at| at.since(self.now) < Duration::from_secs(86_400)),
            2 => Some(self.now + Duration::from_micros(amount)),
            3 => Some(self.now + Duration::from_millis(amount)),
            4 => Some(self.now + Duration::from_millis(amount * 100)),
            5 => Some(self.now + Duration::from_secs(amount * 10)),
            6 => Some(self.now + Duration::from_secs(amount * 86_400)),
            _ => None,
        };
        self.now = later.map_or(self.now, |at| at.max(self.now));
        if !how.has(3) {
            self.timeout();
        }
    }

    fn timeout(&mut self) {
        for program in [&mut self.host, &mut self.peer] {
            program.endpoint.handle_timeout(self.now);
            let next = program.endpoint.poll_timeout();
            assert!(
                next.is_none_or(|at| at > self.now),
                "still due after the timeout: {next:?} at {:?}",
                self.now
            );
        }
        self.flush();
    }

    /// The honest world goes on for a while: packets arrive, then due timers run.
    fn run(&mut self, input: &mut Input<'_>) {
        for _ in 0..1 + input.octet() % 32 {
            if let Some((to, packet)) = self.wire.pop_front() {
                self.deliver(to, &packet);
                continue;
            }
            let next = [self.host.endpoint.poll_timeout(), self.peer.endpoint.poll_timeout()];
            let Some(at) = next.into_iter().flatten().min() else { return };
            self.now = self.now.max(at);
            self.timeout();
        }
    }

    fn set_manner(&mut self, input: &mut Input<'_>) {
        self.manner = Manner {
            link: input.pick([LINK, LINK, LinkId(9)]),
            cast: input.pick([Cast::ToUs, Cast::ToAll, Cast::Overheard]),
            segment_bytes: input.pick([None, Some(100), Some(1), Some(0), Some(1448)]),
        };
    }

    fn jam(&mut self, input: &mut Input<'_>) {
        self.is_jammed = input.octet() & 3 == 1;
        self.host.ask(self.now);
        self.peer.ask(self.now);
    }
}

fn keep(recent: &mut VecDeque<Vec<u8>>, packet: Vec<u8>) {
    if recent.len() == MOST_RECENT {
        recent.pop_front();
    }
    recent.push_back(packet);
}

fn goes_to(packet: &[u8], v4: std::net::IpAddr, v6: std::net::IpAddr) -> bool {
    let view = hopwise_core::wire::IpView::parse(packet);
    view.is_ok_and(|view| view.dst == v4 || view.dst == v6)
}
