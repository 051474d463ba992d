//! SYNs from made-up addresses at a given rate. The benchmark of the host sends them, too.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hopwise_core::wire::Sum;
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketFlags, SocketType, sendto, socket_with};

const PAUSE: Duration = Duration::from_micros(200);

/// Sends from 10.128.0.0/9 to an IPv4 address until `stop` is set; counts the SYNs.
pub(crate) fn run(to: IpAddr, port: u16, per_second: u64, sent: &AtomicU64, stop: &AtomicBool) {
    let socket = raw_socket(AddressFamily::INET);
    let clock = hopwise_host::Clock::start();
    while !stop.load(Ordering::Relaxed) {
        let due = clock.now().0 / 1000 * per_second / 1_000_000;
        let mut at = sent.load(Ordering::Relaxed);
        while at < due {
            // A full queue of the kernel means that the SYN was not sent.
            let _ = sendto(&socket, &syn(to, port, at as u32), SendFlags::empty(), &SocketAddr::new(to, 0));
            at += 1;
        }
        sent.store(at, Ordering::Relaxed);
        // A loop without rest would take a processor from the measured threads.
        std::thread::park_timeout(PAUSE);
    }
}

fn syn(to: IpAddr, port: u16, number: u32) -> Vec<u8> {
    let mixed = number.wrapping_mul(0x9e37_79b1);
    let from = [10, (mixed >> 8) as u8 | 0x80, (mixed >> 16) as u8, (mixed >> 24) as u8];
    let from_port = u16::from_be_bytes([(mixed >> 24) as u8 | 4, mixed as u8]);
    syn_between((from, from_port).into(), SocketAddr::new(to, port), mixed)
}

/// A packet with a SYN. The kernel fills in the checksum of an IPv4 header.
pub(crate) fn syn_between(from: SocketAddr, to: SocketAddr, seq: u32) -> Vec<u8> {
    segment_between(from, to, seq, (SYN, 64))
}

pub(crate) const SYN: u8 = 2;

/// A packet with these flags of TCP and without data, which may go over so many hops.
pub(crate) fn segment_between(
    from: SocketAddr,
    to: SocketAddr,
    seq: u32,
    (flags, hops): (u8, u8),
) -> Vec<u8> {
    let mut packet = match (from.ip(), to.ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let header = [0x45, 0, 0, 40, 0, 0, 0x40, 0, hops, 6, 0, 0];
            [&header[..], &src.octets(), &dst.octets()].concat()
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            [&[0x60, 0, 0, 0, 0, 20, 6, hops][..], &src.octets(), &dst.octets()].concat()
        }
        mixed => panic!("two versions of IP: {mixed:?}"),
    };
    let header = packet.len();
    packet.extend([from.port().to_be_bytes(), to.port().to_be_bytes()].concat());
    packet.extend(seq.to_be_bytes());
    packet.extend([0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    let sum = Sum::pseudo_header(from.ip(), to.ip(), 6, 20).add(&packet[header..]).finish();
    packet[header + 16..header + 18].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// A socket that sends whole packets of a version of IP.
pub(crate) fn raw_socket(family: AddressFamily) -> OwnedFd {
    let raw = Protocol::from_raw(std::num::NonZero::new(255).expect("not zero"));
    socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, Some(raw)).expect("root may open a raw socket")
}
