//! SYNs from made-up addresses at a given rate. The benchmark of the host sends them, too.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hopwise_core::wire::Sum;
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketFlags, SocketType, sendto, socket_with};

const PAUSE: Duration = Duration::from_micros(200);

/// Sends from 10.128.0.0/9 to an IPv4 address until `stop` is set; counts the SYNs.
pub(crate) fn run(to: IpAddr, port: u16, per_second: u64, sent: &AtomicU64, stop: &AtomicBool) {
    let raw = Protocol::from_raw(std::num::NonZero::new(255).expect("not zero"));
    let socket = socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, Some(raw));
    let socket = socket.expect("root may open a raw socket");
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

/// A SYN; the kernel fills in the fields of IP.
fn syn(to: IpAddr, port: u16, number: u32) -> Vec<u8> {
    let mixed = number.wrapping_mul(0x9e37_79b1);
    let src = [10, (mixed >> 8) as u8 | 0x80, (mixed >> 16) as u8, (mixed >> 24) as u8];
    let IpAddr::V4(dst) = to else { return Vec::new() };
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0];
    packet.extend_from_slice(&src);
    packet.extend_from_slice(&dst.octets());
    packet.extend_from_slice(&[(mixed >> 24) as u8 | 4, mixed as u8]);
    packet.extend_from_slice(&port.to_be_bytes());
    packet.extend_from_slice(&mixed.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]);
    let sum = Sum::pseudo_header(src.into(), dst.into(), 6, 20).add(&packet[20..]).finish();
    packet[36..38].copy_from_slice(&sum.to_be_bytes());
    packet
}
