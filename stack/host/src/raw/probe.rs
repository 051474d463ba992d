//! Asks by ARP which stations have an address (RFC 5227): an answer to a probe is a duplicate.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::StationAddress;
use rustix::event::{PollFd, PollFlags};
use tun_rs::VIRTIO_NET_HDR_LEN;

use super::arp;
use super::ethernet::{BROADCAST, ETHERNET, EthernetFrame, Mac, Protocol, header};
use super::socket::{Got, PacketSocket};
use crate::clock::Clock;
use crate::counters::LinkTally;
use crate::poller::wait_for;

/// The probes of RFC 5227 §2.1.1: one may be lost.
const PROBES: u32 = 3;

/// The other stations on a device's link that have an address, as far as they answer within that time. Needs
/// CAP_NET_RAW.
pub fn holders(device: &str, address: Ipv4Addr, within: Duration) -> io::Result<Vec<StationAddress>> {
    let (mut socket, about) = PacketSocket::open(device).map_err(io::Error::other)?;
    let (clock, mut found) = (Clock::start(), Vec::new());
    for nth in 1..=PROBES {
        ask(&mut socket, about.mac, address);
        let until = within * nth / PROBES;
        loop {
            take(&mut socket, about.mac, address, &mut found);
            let left = until.saturating_sub(clock.now().since(hopwise_core::Instant::ZERO));
            if left.is_zero() {
                break;
            }
            let _ = wait_for(&mut [PollFd::from_borrowed_fd(socket.descriptor(), PollFlags::IN)], left);
        }
    }
    Ok(found)
}

/// The probe names no sender, so that no table of a neighbour changes.
fn ask(socket: &mut PacketSocket, own: Mac, address: Ipv4Addr) {
    let question = arp::question(own, Ipv4Addr::UNSPECIFIED.into(), address.into());
    let head = header(BROADCAST, own, Protocol::Arp);
    let frame = [&[0; VIRTIO_NET_HDR_LEN][..], &head, &question].concat();
    let mut tally = LinkTally::new("");
    socket.put(&frame, &mut tally);
    socket.flush(&mut tally);
}

fn take(socket: &mut PacketSocket, own: Mac, address: Ipv4Addr, found: &mut Vec<StationAddress>) {
    let mut frame = vec![0; VIRTIO_NET_HDR_LEN + ETHERNET + 1_500];
    while let Got::Frame { bytes, .. } = socket.next(&mut frame) {
        let holder = frame[..bytes].get(VIRTIO_NET_HDR_LEN..).and_then(|frame| holder(frame, own, address));
        found.extend(holder.filter(|station| !found.contains(station)));
    }
}

/// The station in a frame that uses the address: in an answer, or in a question of its own.
fn holder(frame: &[u8], own: Mac, address: Ipv4Addr) -> Option<StationAddress> {
    let head = EthernetFrame::parse(frame).filter(|head| head.protocol == Protocol::Arp)?;
    let seen = arp::parse(&frame[ETHERNET..])?;
    let is_it = seen.sender == IpAddr::V4(address) && seen.mac != own && head.from != own;
    is_it.then_some(StationAddress(seen.mac))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Mac = [2, 0, 0, 0, 0, 1];
    const OTHER: Mac = [2, 0, 0, 0, 0, 2];

    fn frame(from: Mac, packet: &[u8]) -> Vec<u8> {
        [&header(BROADCAST, from, Protocol::Arp)[..], packet].concat()
    }

    #[test]
    fn a_station_that_uses_the_address_holds_it_and_we_ourselves_do_not() {
        let (address, asker) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 9));
        let answer = |mac| arp::answer(mac, address.into(), OWN, Ipv4Addr::UNSPECIFIED.into());
        let of = |frame: &[u8]| holder(frame, OWN, address);
        assert_eq!(of(&frame(OTHER, &answer(OTHER))), Some(StationAddress(OTHER)));
        let its_own = arp::question(OTHER, address.into(), asker.into());
        assert_eq!(of(&frame(OTHER, &its_own)), Some(StationAddress(OTHER)));
        assert_eq!(of(&frame(OWN, &answer(OWN))), None);
        let about_us = arp::question(OTHER, asker.into(), address.into());
        assert_eq!(of(&frame(OTHER, &about_us)), None, "it only asks");
        assert_eq!(of(&[0; 20]), None);
    }
}
