//! Strangers' packets: floods, packets without meaning, pieces of packets, and forged segments of connections between
//! other hosts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use hopwise_core::wire::Sum;
use hopwise_host::Clock;
use hopwise_testing::memory::Random;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketFlags, SocketType, sendto, socket_with};

use crate::inside::{elapsed, pause};
use crate::lies;
use crate::mesh::Speaks;
use crate::place::Namespace;

/// The MTU of a station's device, and the payload of a packet that fills it.
pub(crate) const MTU: usize = 1_500;
const FILLS: u64 = MTU as u64 - 20;
/// The attack's rate, above the rate of a station's radio.
const PACKETS_A_MILLISECOND: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attack {
    /// SYNs from made-up addresses.
    Syns,
    Garbage,
    /// Pieces that overlap, lack their rest, or come in any order.
    Fragments,
    Resets,
    Icmp,
    /// Routing messages that are well made and untrue.
    Lies,
    /// Routing messages that were received or made, with some bytes changed.
    Mutants,
}

/// A stranger who may send any packet, with bad intent.
#[derive(Clone, Debug)]
pub(crate) struct Liar {
    pub(crate) place: Namespace,
    pub(crate) own: Ipv4Addr,
    pub(crate) honest: Vec<Ipv4Addr>,
    /// The honest connections: client, server and port.
    pub(crate) flows: Vec<(Ipv4Addr, Ipv4Addr, u16)>,
    pub(crate) speaks: Option<Speaks>,
    /// The liar's device, by its place in the site's list.
    pub(crate) device: Option<usize>,
}

impl Attack {
    pub(crate) const ALL: [Attack; 7] = [
        Attack::Syns,
        Attack::Garbage,
        Attack::Fragments,
        Attack::Resets,
        Attack::Icmp,
        Attack::Lies,
        Attack::Mutants,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Attack::Syns => "syns",
            Attack::Garbage => "garbage",
            Attack::Fragments => "fragments",
            Attack::Resets => "resets",
            Attack::Icmp => "icmp",
            Attack::Lies => "lies",
            Attack::Mutants => "mutants",
        }
    }
}

impl Liar {
    /// Attacks for this long. A place that is gone meanwhile takes no packets.
    pub(crate) fn attack(&self, attack: Attack, seed: u64, lasts: Duration) {
        let mut random = Random::new(seed, 4);
        let _ = self.place.inside(|| match (attack, self.speaks) {
            (Attack::Lies | Attack::Mutants, Some(speaks)) => {
                lies::tell(self, speaks, attack == Attack::Mutants, &mut random, lasts);
            }
            _ => self.send(attack, &mut random, lasts),
        });
    }

    fn send(&self, attack: Attack, random: &mut Random, lasts: Duration) {
        let Ok(socket) = raw_socket() else { return };
        let clock = Clock::start();
        while elapsed(&clock) < lasts {
            for _ in 0..PACKETS_A_MILLISECOND * 5 {
                send_raw(&socket, &self.packet(attack, random));
            }
            pause(Duration::from_millis(5));
        }
    }

    fn packet(&self, attack: Attack, random: &mut Random) -> Vec<u8> {
        let (src, dst, port) = random.pick(&self.flows);
        match attack {
            Attack::Syns => {
                let stranger = Ipv4Addr::from(0x0a80_0000 | (random.next_u64() as u32 & 0x7f_ffff));
                tcp((stranger, dst), random, port, 2)
            }
            Attack::Resets => {
                let flags = random_flags(random);
                tcp((src, dst), random, port, flags)
            }
            Attack::Icmp => icmp((self.own, dst, port), src, random),
            Attack::Fragments => fragment((src, dst), random),
            Attack::Garbage | Attack::Lies | Attack::Mutants => garbage((src, dst), random),
        }
    }
}

/// Draws RST, RST and ACK, SYN, and others that must not pass.
fn random_flags(random: &mut Random) -> u8 {
    if random.one_in(4) { random.next_u64() as u8 } else { random.pick(&[4, 0x14, 2, 0x11, 0x12]) }
}

pub(crate) fn raw_socket() -> rustix::io::Result<OwnedFd> {
    let raw = std::num::NonZero::new(255).map(Protocol::from_raw);
    socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, raw)
}

/// Sends a packet, unless the kernel refuses it.
pub(crate) fn send_raw(socket: &OwnedFd, packet: &[u8]) {
    let Some(&[a, b, c, d]) = packet.get(16..20) else { return };
    let to = SocketAddr::new(IpAddr::from([a, b, c, d]), 0);
    let _ = sendto(socket, packet, SendFlags::empty(), &to);
}

/// Makes an IPv4 packet; the kernel fills in its sum.
pub(crate) fn ip((src, dst): (Ipv4Addr, Ipv4Addr), protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0, 0, 255, protocol, 0, 0]);
    packet.extend(src.octets());
    packet.extend(dst.octets());
    packet.extend_from_slice(payload);
    packet
}

/// A segment without data: at random, its numbers meet no window.
fn tcp((src, dst): (Ipv4Addr, Ipv4Addr), random: &mut Random, port: u16, flags: u8) -> Vec<u8> {
    let mut segment = Vec::new();
    // The segment goes from a client's port to the service, or back.
    let client = random.between(32_768, 60_999) as u16;
    let ports = if random.one_in(2) { [client, port] } else { [port, client] };
    segment.extend(ports[0].to_be_bytes());
    segment.extend(ports[1].to_be_bytes());
    segment.extend((random.next_u64() as u32).to_be_bytes());
    segment.extend((random.next_u64() as u32).to_be_bytes());
    segment.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    let sum = Sum::pseudo_header(src.octets().into(), dst.octets().into(), 6, 20).add(&segment).finish();
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    ip((src, dst), 6, &segment)
}

/// Makes an error about a packet that was never sent, or a message of another kind.
fn icmp((from, to, port): (Ipv4Addr, Ipv4Addr, u16), other: Ipv4Addr, random: &mut Random) -> Vec<u8> {
    let mut quoted = tcp((to, other), random, port, 0x10);
    quoted.truncate(28);
    let kind = random.pick(&[3, 3, 3, 4, 5, 11, 12, 13, 255]);
    let code = if kind == 3 { random.below(16) as u8 } else { random.below(4) as u8 };
    let mut message = vec![kind, code, 0, 0];
    message.extend((random.next_u64() as u32 & 0x0000_ffff).to_be_bytes());
    message.extend(quoted);
    let sum = Sum::default().add(&message).finish();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    ip((from, to), 1, &message)
}

/// A piece of a packet that may never come whole.
fn fragment(ends: (Ipv4Addr, Ipv4Addr), random: &mut Random) -> Vec<u8> {
    let payload = bytes(random, FILLS);
    let mut packet = ip(ends, random.pick(&[1, 6, 17]), &payload);
    // Few identifications: pieces then meet.
    packet[4..6].copy_from_slice(&(random.below(8) as u16 + 1).to_be_bytes());
    let place = random.below(0x2000) as u16 | if random.one_in(3) { 0 } else { 0x2000 };
    packet[6..8].copy_from_slice(&place.to_be_bytes());
    packet
}

fn garbage(ends: (Ipv4Addr, Ipv4Addr), random: &mut Random) -> Vec<u8> {
    let payload = bytes(random, FILLS);
    ip(ends, random.pick(&[0, 1, 4, 6, 6, 17, 41, 50, 132, 255]), &payload)
}

/// Random bytes, at most `most`.
pub(crate) fn bytes(random: &mut Random, most: u64) -> Vec<u8> {
    (0..random.log_between(0, most)).map(|_| random.next_u64() as u8).collect()
}
