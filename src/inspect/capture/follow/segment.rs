//! The segment that is followed: bytes of one direction of a connection, or an ACK without data.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::str::FromStr;

use hopwise_core::Seq;
use hopwise_core::wire::Flags;

use super::super::packets::tcp;

/// A direction of a connection.
pub(in crate::inspect::capture) type Flow = (SocketAddr, SocketAddr);

/// The way in which the caller names the segment.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    Frame(u64),
    /// The byte of that number, which Wireshark counts from 1.
    Byte(Flow, u32),
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Wanted, String> {
        let expected = || {
            "expected the number of a frame, or FROM-TO/SEQ, such as 10.0.0.1:50548-10.0.0.9:5001/1001"
                .to_owned()
        };
        if let Ok(frame) = text.parse() {
            return if frame == 0 { Err(expected()) } else { Ok(Wanted::Frame(frame)) };
        }
        let read = || {
            let (flow, seq) = text.rsplit_once('/')?;
            let (from, to) = flow.split_once('-')?;
            Some(Wanted::Byte((from.parse().ok()?, to.parse().ok()?), seq.parse().ok()?))
        };
        read().ok_or_else(expected)
    }
}

/// A TCP segment in a packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::inspect::capture) struct Segment {
    pub(in crate::inspect::capture) flow: Flow,
    pub(in crate::inspect::capture) seq: Seq,
    /// Bytes of data.
    pub(in crate::inspect::capture) len: u32,
    pub(in crate::inspect::capture) is_syn: bool,
    pub(in crate::inspect::capture) hops: u8,
    /// The same for all copies of the packet on its way, and another one for most that are sent again.
    pub(in crate::inspect::capture) name: u64,
}

impl Segment {
    pub(in crate::inspect::capture) fn of(packet: &[u8]) -> Option<Segment> {
        let (ip, tcp, segment) = tcp(packet)?;
        let flow = (SocketAddr::new(ip.src, tcp.src_port), SocketAddr::new(ip.dst, tcp.dst_port));
        let mut hasher = DefaultHasher::new();
        (flow, segment).hash(&mut hasher);
        Some(Segment {
            flow,
            seq: tcp.seq,
            len: u32::try_from(tcp.payload.len()).unwrap_or(u32::MAX),
            is_syn: tcp.flags.contains(Flags::SYN),
            hops: ip.hop_limit,
            name: hasher.finish(),
        })
    }
}

/// The numbers from which each direction counts, as Wireshark shows them.
#[derive(Debug, Default)]
pub(in crate::inspect::capture) struct Bases(BTreeMap<Flow, Seq>);

impl Bases {
    pub(in crate::inspect::capture) fn learn(&mut self, segment: &Segment) {
        let base = if segment.is_syn { segment.seq } else { segment.seq - 1 };
        if segment.is_syn {
            self.0.insert(segment.flow, base);
        } else {
            self.0.entry(segment.flow).or_insert(base);
        }
    }

    /// The number of its first byte.
    pub(in crate::inspect::capture) fn relative(&self, flow: Flow, seq: Seq) -> u32 {
        self.0.get(&flow).map_or(seq.0, |base| seq.0.wrapping_sub(base.0))
    }
}

/// The segment that is followed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) segment: Segment,
    /// The number of its first byte.
    pub(super) first: u32,
}

impl Target {
    /// A segment with some of the same bytes, or the same ACK.
    pub(super) fn is_in(&self, other: &Segment) -> bool {
        let ours = &self.segment;
        if other.flow != ours.flow {
            return false;
        }
        if ours.len == 0 || ours.is_syn {
            return other.name == ours.name || (ours.is_syn && other.is_syn);
        }
        let begins = other.seq.0.wrapping_sub(ours.seq.0);
        other.len > 0 && (begins < ours.len || begins.wrapping_neg() < other.len)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Segment { flow: (from, to), len, is_syn, .. } = self.segment;
        write!(f, "{from} to {to}, ")?;
        match len {
            _ if is_syn => write!(f, "SYN"),
            0 => write!(f, "an ACK without data"),
            1 => write!(f, "byte {}", self.first),
            len => write!(f, "bytes {} to {}", self.first, self.first.wrapping_add(len - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> Flow {
        ("10.0.0.1:9".parse().expect("an address"), "[fd00::1]:5001".parse().expect("an address"))
    }

    fn segment(seq: u32, len: u32) -> Segment {
        let flow = flow();
        Segment { flow, seq: Seq(seq), len, is_syn: false, hops: 64, name: u64::from(seq) }
    }

    #[test]
    fn a_segment_is_named_by_a_frame_or_by_a_byte() {
        assert!(matches!("17".parse(), Ok(Wanted::Frame(17))));
        let named: Wanted = "10.0.0.1:9-[fd00::1]:5001/1001".parse().expect("a byte");
        assert!(matches!(named, Wanted::Byte(found, 1001) if found == flow()));
        for text in ["0", "-1", "10.0.0.1:9/1", "10.0.0.1:9-fd00::1:5001/x", ""] {
            let problem = text.parse::<Wanted>().expect_err("it names nothing");
            assert!(problem.contains("FROM-TO/SEQ"), "{problem}");
        }
    }

    #[test]
    fn bytes_that_are_sent_again_in_other_segments_are_the_same() {
        let target = Target { segment: segment(u32::MAX - 99, 1000), first: 1 };
        for (seq, len, is_in) in
            [(u32::MAX - 99, 1000, true), (800, 50, true), (900, 100, false), (u32::MAX - 199, 100, false)]
        {
            assert_eq!(target.is_in(&segment(seq, len)), is_in, "{seq} {len}");
        }
        assert!(target.is_in(&segment(u32::MAX - 199, 101)));
        assert!(!target.is_in(&segment(0, 0)));
    }
}
