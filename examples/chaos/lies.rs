//! Routing messages of a liar: well made and untrue, or received and changed.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use hopwise_host::Clock;
use hopwise_mesh::aodv::messages::{AodvMessage, Rerr, Rrep, Rreq};
use hopwise_mesh::aodvv2::messages as dymo;
use hopwise_mesh::rfc5444::{ALL_ROUTERS, Packet};
use hopwise_mesh::{aodv, rfc5444};
use hopwise_testing::memory::Random;

use crate::forge::{Liar, MTU, bytes, ip, raw_socket, send_raw};
use crate::inside::{elapsed, pause};
use crate::mesh::Speaks;

/// The most messages kept for a replay.
const MOST_HEARD: usize = 64;

/// The longest message of UDP over IPv4, which the kernel cuts into fragments.
const LONGEST: usize = 65_535 - IP_AND_UDP;
const IP_AND_UDP: usize = 28;
/// A message of that length takes a radio long, so that few reach it.
const USUAL: usize = 1_400;

/// Sends to all neighbours, to each, and under others' addresses, for this long.
pub(crate) fn tell(liar: &Liar, speaks: Speaks, changes: bool, random: &mut Random, lasts: Duration) {
    let (port, all) = match speaks {
        Speaks::Aodv => (aodv::PORT, Ipv4Addr::BROADCAST),
        Speaks::Dymo => (rfc5444::PORT, ALL_ROUTERS),
    };
    let (Ok(socket), Ok(raw)) = (speaking_socket(liar.own, port), raw_socket()) else { return };
    let ears = UdpSocket::bind((all, port)).and_then(|ears| {
        ears.set_nonblocking(true)?;
        Ok(ears)
    });
    let (mut heard, mut buffer) = (Vec::new(), vec![0; 65_535]);
    let clock = Clock::start();
    while elapsed(&clock) < lasts {
        for ears in [Some(&socket), ears.as_ref().ok()].into_iter().flatten() {
            while let Ok(size) = ears.recv(&mut buffer) {
                if heard.len() < MOST_HEARD {
                    heard.push(buffer[..size].to_vec());
                }
            }
        }
        for _ in 0..random.between(1, 6) {
            let is_old = changes && !heard.is_empty() && random.one_in(2);
            let mut message = if is_old {
                heard[random.below(heard.len() as u64) as usize].clone()
            } else {
                made(liar, speaks, random)
            };
            if changes {
                mutate(&mut message, random);
            }
            let to = random.pick(&liar.honest);
            match random.below(3) {
                0 => drop(socket.send_to(&message, (all, port))),
                1 => drop(socket.send_to(&message, (to, port))),
                _ => {
                    // The kernel does not cut packets with headers of ours.
                    message.truncate(MTU - IP_AND_UDP);
                    send_raw(&raw, &ip((random.pick(&liar.honest), to), 17, &udp(port, &message)));
                }
            }
        }
        pause(Duration::from_millis(random.between(1, 20)));
    }
}

fn speaking_socket(own: Ipv4Addr, port: u16) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind((own, port))?;
    socket.set_broadcast(true)?;
    socket.set_ttl(255)?;
    socket.set_multicast_ttl_v4(255)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Makes a datagram without a sum, which UDP over IPv4 allows.
fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let size = (payload.len() as u16).saturating_add(8);
    let mut datagram = [port, port, size, 0].iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
    datagram.extend_from_slice(payload);
    datagram
}

fn address(liar: &Liar, random: &mut Random) -> Ipv4Addr {
    match random.below(8) {
        0 => Ipv4Addr::from(random.next_u64() as u32),
        1 => Ipv4Addr::from(0x0a00_0000 | random.below(256) as u32),
        2 => liar.own,
        _ => random.pick(&liar.honest),
    }
}

fn made(liar: &Liar, speaks: Speaks, random: &mut Random) -> Vec<u8> {
    match speaks {
        Speaks::Aodv => {
            let mut bytes = Vec::new();
            aodv_message(liar, random).emit(&mut bytes);
            bytes
        }
        Speaks::Dymo => {
            let messages = (0..random.log_between(1, 6)).map(|_| dymo_message(liar, random)).collect();
            Packet { messages, ..Packet::default() }.bytes().unwrap_or_default()
        }
    }
}

fn number(random: &mut Random) -> u32 {
    random.pick(&[0, 1, 2, 100, 0x7fff_ffff, 0x8000_0000, u32::MAX]).wrapping_add(random.below(3) as u32)
}

fn aodv_message(liar: &Liar, random: &mut Random) -> AodvMessage {
    let (dst, origin) = (address(liar, random), address(liar, random));
    match random.below(3) {
        0 => AodvMessage::Rreq(Rreq {
            is_join: random.one_in(8),
            is_repair: random.one_in(8),
            is_gratuitous: random.one_in(2),
            is_destination_only: random.one_in(2),
            hop_count: random.below(40) as u8,
            id: random.next_u64() as u32,
            dst,
            dst_seq: random.one_in(2).then(|| number(random)),
            origin,
            origin_seq: number(random),
        }),
        1 => AodvMessage::Rrep(Rrep {
            is_repair: random.one_in(8),
            wants_ack: random.one_in(2),
            prefix_size: random.pick(&[0, 0, 0, 8, 24, 31]),
            hop_count: random.below(40) as u8,
            dst,
            dst_seq: number(random),
            origin,
            lifetime_ms: random.pick(&[0, 1, 3_000, 3_600_000, u32::MAX]),
        }),
        _ => AodvMessage::Rerr(Rerr {
            is_no_delete: random.one_in(4),
            unreachable: (0..random.log_between(1, 255))
                .map(|_| (address(liar, random), number(random)))
                .collect(),
        }),
    }
}

fn dymo_message(liar: &Liar, random: &mut Random) -> rfc5444::Rfc5444Message {
    let route = dymo::RouteMessage {
        hop_limit: random.below(256) as u8,
        to: address(liar, random),
        seq: number(random) as u16,
        metric: random.below(256) as u8,
        validity: random.one_in(2).then(|| Duration::from_millis(random.log_between(1, 10_000_000))),
        other: address(liar, random),
        other_seq: random.one_in(2).then(|| number(random) as u16),
    };
    match random.below(4) {
        0 => route.rreq(),
        1 => route.rrep(),
        2 => dymo::rrep_ack(random.one_in(2)),
        _ => dymo::Rerr {
            hop_limit: random.below(256) as u8,
            pkt_source: random.one_in(2).then(|| address(liar, random)),
            unreachable: (0..random.log_between(1, 100))
                .map(|_| (address(liar, random), random.one_in(2).then(|| number(random) as u16)))
                .collect(),
        }
        .message(),
    }
}

/// Changes the message: some bytes are flipped, left out, repeated, added or cut off.
fn mutate(message: &mut Vec<u8>, random: &mut Random) {
    let most = if random.one_in(12) { LONGEST } else { USUAL };
    for _ in 0..random.between(1, 4) {
        let at = random.below(message.len() as u64) as usize;
        match random.below(5) {
            0 => message.truncate(at),
            1 => message.extend(bytes(random, most as u64)),
            2 if at < message.len() => drop(message.remove(at)),
            3 if at < message.len() => {
                let again = message[at..].to_vec();
                let times = random.log_between(1, (most / again.len()) as u64 + 1) as usize;
                message.extend(again.repeat(times));
            }
            _ => {
                if let Some(byte) = message.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
        message.truncate(most);
    }
}

#[test]
fn changed_messages_are_as_long_as_datagrams_can_be_and_no_longer() {
    let mut random = Random::new(1, 4);
    let changed = |_| {
        let mut message = vec![1; 24];
        mutate(&mut message, &mut random);
        message.len()
    };
    let lengths: Vec<usize> = (0..20_000).map(changed).collect();
    let above = |most: usize| lengths.iter().filter(|len| **len > most).count();
    assert!(above(LONGEST) == 0 && above(LONGEST - 1) > 0, "the longest datagram");
    assert!((1..1_000).contains(&above(USUAL)), "{} of {} are long", above(USUAL), lengths.len());
}
