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
pub(in crate::capture) type FlowEnds = (SocketAddr, SocketAddr);

/// The way in which the caller names the segment.
#[derive(Clone, Debug)]
pub(super) enum WantedSegment {
    Frame(u64),
    /// The byte of that number, which Wireshark counts from 1.
    Byte(FlowEnds, u32),
}

impl FromStr for WantedSegment {
    type Err = String;

    fn from_str(text: &str) -> Result<WantedSegment, String> {
        let expected = || {
            "expected the number of a frame, or FROM-TO/SEQ, such as 10.0.0.1:50548-10.0.0.9:5001/1001"
                .to_owned()
        };
        if let Ok(frame) = text.parse() {
            return if frame == 0 { Err(expected()) } else { Ok(WantedSegment::Frame(frame)) };
        }
        let read = || {
            let (flow, seq) = text.rsplit_once('/')?;
            let (from, to) = flow.split_once('-')?;
            Some(WantedSegment::Byte((from.parse().ok()?, to.parse().ok()?), seq.parse().ok()?))
        };
        read().ok_or_else(expected)
    }
}

/// A TCP segment in a packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::capture) struct CapturedSegment {
    pub(in crate::capture) flow: FlowEnds,
    pub(in crate::capture) seq: Seq,
    /// Bytes of data.
    pub(in crate::capture) len: u32,
    pub(in crate::capture) is_syn: bool,
    pub(in crate::capture) hops: u8,
    /// A hash that all copies of a packet share on its way. Most retransmissions have a hash of their own.
    pub(in crate::capture) name: u64,
}

impl CapturedSegment {
    pub(in crate::capture) fn of(packet: &[u8]) -> Option<CapturedSegment> {
        let (ip, tcp, segment) = tcp(packet)?;
        let flow = (SocketAddr::new(ip.src, tcp.src_port), SocketAddr::new(ip.dst, tcp.dst_port));
        let mut hasher = DefaultHasher::new();
        (flow, segment).hash(&mut hasher);
        Some(CapturedSegment {
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
pub(in crate::capture) struct Bases(BTreeMap<FlowEnds, Seq>);

impl Bases {
    pub(in crate::capture) fn learn(&mut self, segment: &CapturedSegment) {
        let base = if segment.is_syn { segment.seq } else { segment.seq - 1 };
        if segment.is_syn {
            self.0.insert(segment.flow, base);
        } else {
            self.0.entry(segment.flow).or_insert(base);
        }
    }

    /// The number of its first byte.
    pub(in crate::capture) fn relative(&self, flow: FlowEnds, seq: Seq) -> u32 {
        self.0.get(&flow).map_or(seq.0, |base| seq.0.wrapping_sub(base.0))
    }
}

/// The segment that is followed.
#[derive(Clone, Copy, Debug)]
pub(super) struct FollowedSegment {
    pub(super) segment: CapturedSegment,
    /// The number of its first byte.
    pub(super) first: u32,
}

impl FollowedSegment {
    /// Returns whether the segment has bytes of the target, or is the target's ACK.
    pub(super) fn is_in(&self, other: &CapturedSegment) -> bool {
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

impl fmt::Display for FollowedSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CapturedSegment { flow: (from, to), len, is_syn, .. } = self.segment;
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

    fn flow() -> FlowEnds {
        ("10.0.0.1:9".parse().expect("an address"), "[fd00::1]:5001".parse().expect("an address"))
    }

    fn segment(seq: u32, len: u32) -> CapturedSegment {
        let flow = flow();
        CapturedSegment { flow, seq: Seq(seq), len, is_syn: false, hops: 64, name: u64::from(seq) }
    }

    #[test]
    fn a_segment_is_named_by_a_frame_or_by_a_byte() {
        assert!(matches!("17".parse(), Ok(WantedSegment::Frame(17))));
        let named: WantedSegment = "10.0.0.1:9-[fd00::1]:5001/1001".parse().expect("a byte");
        assert!(matches!(named, WantedSegment::Byte(found, 1001) if found == flow()));
        for text in ["0", "-1", "10.0.0.1:9/1", "10.0.0.1:9-fd00::1:5001/x", ""] {
            let problem = text.parse::<WantedSegment>().expect_err("it names nothing");
            assert!(problem.contains("FROM-TO/SEQ"), "{problem}");
        }
    }

    #[test]
    fn bytes_that_are_sent_again_in_other_segments_are_the_same() {
        let target = FollowedSegment { segment: segment(u32::MAX - 99, 1000), first: 1 };
        for (seq, len, is_in) in
            [(u32::MAX - 99, 1000, true), (800, 50, true), (900, 100, false), (u32::MAX - 199, 100, false)]
        {
            assert_eq!(target.is_in(&segment(seq, len)), is_in, "{seq} {len}");
        }
        assert!(target.is_in(&segment(u32::MAX - 199, 101)));
        assert!(!target.is_in(&segment(0, 0)));
    }
}
