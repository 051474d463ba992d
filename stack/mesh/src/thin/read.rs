//! The headers of a packet that leaves, without its data.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hopwise_core::Seq;
use hopwise_core::wire::{Checksums, Flags, SackBlock, TcpView, protocol};

const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
/// An MF flag or an offset (RFC 791).
const FRAGMENT: u16 = 0x3fff;
/// Options that a pure ACK of the Internet has (RFC 9293, RFC 7323, RFC 2018), by kind: end, no operation, SACK,
/// timestamps.
const KNOWN: [u8; 4] = [0, 1, 5, 8];
const TCP_HEADER: usize = 20;

/// A direction of a connection: the end that sends, and the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ends {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
}

/// A TCP segment, as far as it matters here.
#[derive(Clone, Debug)]
pub(super) struct ReadHead {
    pub(super) ends: Ends,
    pub(super) seq: Seq,
    pub(super) ack: Seq,
    pub(super) flags: Flags,
    pub(super) hop_limit: u8,
    pub(super) window: u16,
    /// Bytes of data.
    data: u32,
    /// Bytes of the headers of IP and TCP in a data segment with the same options.
    pub(super) headers: u16,
    pub(super) sack: Vec<SackBlock>,
    /// True if all its options are known.
    pub(super) is_plain: bool,
}

impl ReadHead {
    pub(super) fn begins_or_resets(&self) -> bool {
        self.flags.contains(Flags::SYN) || self.flags.contains(Flags::RST)
    }

    /// Returns whether it has data or a FIN.
    pub(super) fn takes_numbers(&self) -> bool {
        self.data > 0 || self.flags.contains(Flags::FIN)
    }

    /// The number that the sender's next segment begins with.
    pub(super) fn next(&self) -> Seq {
        self.seq + self.data + u32::from(self.flags.contains(Flags::FIN))
    }
}

/// `None` for anything but TCP right behind a plain header of IP.
pub(super) fn read(head: &[u8]) -> Option<ReadHead> {
    let word = |at: usize| head.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]));
    let (ip_len, total, src, dst) = match head.first()? {
        0x45 if *head.get(9)? == protocol::TCP && word(6)? & FRAGMENT == 0 => {
            let address = |at: usize| Some(Ipv4Addr::from(*head.get(at..)?.first_chunk::<4>()?));
            (V4_HEADER, word(2)?.into(), IpAddr::from(address(12)?), IpAddr::from(address(16)?))
        }
        first if first >> 4 == 6 && *head.get(6)? == protocol::TCP => {
            let address = |at: usize| Some(Ipv6Addr::from(*head.get(at..)?.first_chunk::<16>()?));
            let total = usize::from(word(4)?) + V6_HEADER;
            (V6_HEADER, total, IpAddr::from(address(8)?), IpAddr::from(address(24)?))
        }
        _ => return None,
    };
    let segment = head.get(ip_len..)?;
    let tcp = TcpView::parse(src, dst, segment, Checksums::Trust).ok()?;
    let tcp_len = segment.len() - tcp.payload.len();
    // A packet of more than 64 KiB, which the kernel will cut later, has no length.
    let total = if total > ip_len { total } else { ip_len + segment.len() };
    let data = total.checked_sub(ip_len + tcp_len)?;
    // An ACK with SACK blocks has them besides what data segments have.
    let usual = if tcp.options.timestamps.is_some() { TCP_HEADER + 12 } else { TCP_HEADER };
    Some(ReadHead {
        ends: Ends { from: SocketAddr::new(src, tcp.src_port), to: SocketAddr::new(dst, tcp.dst_port) },
        seq: tcp.seq,
        ack: tcp.ack,
        flags: tcp.flags,
        hop_limit: *head.get(if ip_len == V4_HEADER { 8 } else { 7 })?,
        window: tcp.window,
        data: u32::try_from(data).ok()?,
        headers: u16::try_from(ip_len + usual).ok()?,
        sack: tcp.options.sack.to_vec(),
        is_plain: has_known_options(segment.get(TCP_HEADER..tcp_len)?),
    })
}

fn has_known_options(mut options: &[u8]) -> bool {
    while let [kind, rest @ ..] = options {
        if !KNOWN.contains(kind) {
            return false;
        }
        options = match (*kind, rest) {
            (0, _) => return true,
            (1, _) => rest,
            (_, [len, ..]) if *len >= 2 => match options.get(usize::from(*len)..) {
                Some(behind) => behind,
                None => return false,
            },
            _ => return false,
        };
    }
    true
}
