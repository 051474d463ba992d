//! A wire between two stacks of one machine, without a device and without rights.
//!
//! Each packet is a message on a pair of Unix sockets. Two bytes before it say how to cut a bundle. Memory spoils no
//! packet, so that bundles pass whole and without checksums.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hopwise_core::{Instant, Transmit};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType,
    recvmsg, sendmsg, socketpair,
};

use crate::counters::{LinkDrop, LinkTally};
use crate::link::{Arrived, Gather, Link, LinkError, LinkProperties, Received, Sent};
use crate::tun::{check_ip, on_write_error};

const NAME: &str = "wire";
/// The payload of a bundle's segments, or 0 for a packet alone.
const HEADER: usize = 2;

/// One end of a wire.
#[derive(Debug)]
pub struct Wire {
    fd: OwnedFd,
    mtu: u16,
    tally: LinkTally,
}

impl Wire {
    /// Both ends of a wire that carries packets of up to `mtu` bytes, and bundles of such packets.
    pub fn pair(mtu: u16) -> Result<(Wire, Wire), LinkError> {
        if mtu < 68 {
            let what = "an MTU is at least 68 (1280 for IPv6)";
            return Err(LinkError::Setting { device: NAME.to_owned(), what });
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let ends = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .map_err(|error| LinkError::system("make a pair of sockets", NAME, error))?;
        let wire = |fd| Wire { fd, mtu, tally: LinkTally::new(NAME) };
        Ok((wire(ends.0), wire(ends.1)))
    }
}

impl Link for Wire {
    fn properties(&self) -> LinkProperties {
        LinkProperties::bundling(self.mtu)
    }

    fn tally(&self) -> &LinkTally {
        &self.tally
    }

    fn gathers(&mut self) -> Option<&mut dyn Gather> {
        Some(self)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    fn receive(&mut self, _now: Instant, into: &mut [u8]) -> Received {
        let mut header = [0; HEADER];
        let mut slices = [IoSliceMut::new(&mut header), IoSliceMut::new(into)];
        let mut nothing = RecvAncillaryBuffer::default();
        let bytes = match recvmsg(&self.fd, &mut slices, &mut nothing, RecvFlags::empty()) {
            Ok(message) => message.bytes,
            Err(_) => return Received::Nothing,
        };
        let Some(bytes) = bytes.checked_sub(HEADER) else {
            // A message of ours has a header. An empty one is the end of the other side.
            return self.tally.gone();
        };
        let segment_bytes = Some(u16::from_be_bytes(header)).filter(|bytes| *bytes > 0);
        match check_ip(&into[..bytes], &mut self.tally) {
            Received::Packet(arrived) => Received::Packet(Arrived { segment_bytes, ..arrived }),
            dropped => dropped,
        }
    }

    fn transmit(&mut self, _now: Instant, transmit: &Transmit, packet: &[u8]) -> Sent {
        self.transmit_pieces(transmit, [packet, &[], &[]])
    }
}

impl Gather for Wire {
    fn transmit_pieces(&mut self, transmit: &Transmit, pieces: [&[u8]; 3]) -> Sent {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        if transmit.segment_bytes.is_none() && bytes > usize::from(self.mtu) {
            return self.tally.refused(LinkDrop::TooBig);
        }
        let header = transmit.segment_bytes.unwrap_or(0).to_be_bytes();
        let [first, second, third] = pieces;
        let slices = [&header[..], first, second, third].map(IoSlice::new);
        let mut nothing = SendAncillaryBuffer::default();
        match sendmsg(&self.fd, &slices, &mut nothing, SendFlags::NOSIGNAL) {
            Ok(_) => self.tally.taken(bytes),
            // The other end has been closed, as a device that was deleted.
            Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => {
                self.tally.is_gone = true;
                self.tally.refused(LinkDrop::Gone)
            }
            Err(error) => on_write_error(error.into(), &mut self.tally),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::numbered::{number, packet, transmit};

    #[test]
    fn packets_and_the_cut_of_bundles_pass_until_an_end_is_closed() {
        let (mut near, mut far) = Wire::pair(1500).expect("a pair is made");
        let bundle = Transmit { segment_bytes: Some(40), ..transmit(2) };
        assert_eq!(near.transmit(Instant::ZERO, &transmit(1), &numbered(1)), Sent::Taken);
        assert_eq!(near.transmit_pieces(&bundle, [&numbered(2)[..20], &numbered(2)[20..], &[]]), Sent::Taken);
        let mut buffer = vec![0; crate::MAX_PACKET];
        for segment_bytes in [None, Some(40)] {
            let Received::Packet(arrived) = far.receive(Instant::ZERO, &mut buffer) else {
                panic!("a packet has come");
            };
            assert_eq!((arrived.bytes, arrived.segment_bytes), (100, segment_bytes));
        }
        assert_eq!(far.receive(Instant::ZERO, &mut buffer), Received::Nothing);
        assert_eq!(far.counters().received, near.counters().sent);
        drop(near);
        assert_eq!(far.receive(Instant::ZERO, &mut buffer), Received::Gone);
        let sent = far.transmit(Instant::ZERO, &transmit(3), &packet(3));
        assert_eq!((sent, far.counters().is_gone), (Sent::Refused(LinkDrop::Gone), true));
        assert!(Wire::pair(67).is_err());
    }

    #[test]
    fn a_full_wire_keeps_the_order_and_loses_nothing() {
        let (mut near, mut far) = Wire::pair(1500).expect("a pair is made");
        let taken = (0..).find(|n| near.transmit(Instant::ZERO, &transmit(*n), &numbered(*n)) == Sent::Full);
        let mut buffer = vec![0; crate::MAX_PACKET];
        for expected in 0..taken.expect("it is full at some time") {
            assert!(matches!(far.receive(Instant::ZERO, &mut buffer), Received::Packet(_)));
            assert_eq!(number(&buffer[4..]), expected);
        }
        assert_eq!(far.receive(Instant::ZERO, &mut buffer), Received::Nothing);
    }

    /// An IP packet by its first byte, with a number after that.
    fn numbered(number: u32) -> Vec<u8> {
        let mut whole = packet(0x4500_0000);
        whole[4..8].copy_from_slice(&number.to_be_bytes());
        whole
    }
}
