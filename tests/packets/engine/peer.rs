//! The scripted peer: the relative numbers between it and us, and the bytes of each side's stream.

use std::collections::VecDeque;
use std::net::SocketAddr;

use hopwise_core::endpoint::ConnId;

use super::options::{Opt, Stamp};
use super::text::Range;

/// Segments of ours that an ICMP error may quote.
const REMEMBERED: usize = 256;

/// The side that a byte's stream comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Ours,
    Peers,
}

/// The byte at a place of a stream; the first one after SYN is at 1. The pattern repeats late: a shift by a segment or
/// a window is seen.
pub(crate) fn pattern(side: Side, place: u32) -> u8 {
    let salt = match side {
        Side::Ours => 0x1f,
        Side::Peers => 0xa7,
    };
    let mixed = place.wrapping_mul(0x9e37_79b1) ^ (place >> 7);
    (mixed >> 13) as u8 ^ salt
}

pub(crate) fn stretch(side: Side, from: u32, len: u32) -> Vec<u8> {
    (0..len).map(|offset| pattern(side, from.wrapping_add(offset))).collect()
}

#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) remote: SocketAddr,
    pub(crate) local: SocketAddr,
    /// Its initial sequence number, which is 0 in the script.
    pub(crate) isn: u32,
    /// Ours, once a SYN of ours was seen.
    pub(crate) our_isn: Option<u32>,
    /// Our first timestamp, which is 0 in the script.
    pub(crate) our_first_stamp: Option<u32>,
    pub(crate) our_last_stamp: u32,
    /// The last window of the script.
    pub(crate) window: u16,
    pub(crate) conn: Option<ConnId>,
    /// The bytes that the application gave and took.
    pub(crate) sent: u32,
    pub(crate) read: u32,
    pub(crate) emitted: VecDeque<Vec<u8>>,
    /// The turn in which the script last used it: of two peers at the same sockets, the later one counts.
    pub(crate) turn: u64,
}

impl Peer {
    pub(crate) fn new(name: &str, local: SocketAddr, remote: SocketAddr, isn: u32) -> Peer {
        Peer {
            name: name.to_owned(),
            remote,
            local,
            isn,
            our_isn: None,
            our_first_stamp: None,
            our_last_stamp: 0,
            window: u16::MAX,
            conn: None,
            sent: 0,
            read: 0,
            emitted: VecDeque::new(),
            turn: 0,
        }
    }

    /// The next SYNs begin a new incarnation of the connection.
    pub(crate) fn begin_anew(&mut self, isn: u32) {
        *self = Peer { window: self.window, ..Peer::new(&self.name, self.local, self.remote, isn) };
    }

    pub(crate) fn remember(&mut self, packet: &[u8]) {
        if self.emitted.len() == REMEMBERED {
            self.emitted.pop_front();
        }
        self.emitted.push_back(packet.to_vec());
    }

    /// The window field of a segment to be sent: the segment's own, or the last one.
    pub(crate) fn window_field(&mut self, said: Option<Range>) -> u16 {
        if let Some(only) = said.and_then(Range::only) {
            self.window = only as u16;
        }
        self.window
    }

    pub(crate) fn our_number(&self, script: u32) -> u32 {
        script.wrapping_add(self.our_isn.unwrap_or(0))
    }

    pub(crate) fn our_script(&self, wire: u32) -> u32 {
        wire.wrapping_sub(self.our_isn.unwrap_or(0))
    }

    pub(crate) fn its_number(&self, script: u32) -> u32 {
        script.wrapping_add(self.isn)
    }

    pub(crate) fn its_script(&self, wire: u32) -> u32 {
        wire.wrapping_sub(self.isn)
    }

    /// An option to be sent: SACK blocks and timestamp echoes are about our numbers.
    pub(crate) fn to_wire(&self, option: &Opt, now_ms: u32) -> Opt {
        match option {
            Opt::Sack(blocks) => {
                let ours = |(left, right): &(u32, u32)| (self.our_number(*left), self.our_number(*right));
                Opt::Sack(blocks.iter().map(ours).collect())
            }
            Opt::Ts { val, ecr } => Opt::Ts {
                val: Stamp::Is(match val {
                    Stamp::Any => now_ms,
                    Stamp::Is(val) => *val,
                }),
                ecr: Stamp::Is(match ecr {
                    Stamp::Any => self.our_last_stamp,
                    Stamp::Is(ecr) => ecr.wrapping_add(self.our_first_stamp.unwrap_or(0)),
                }),
            },
            other => other.clone(),
        }
    }

    /// An option of ours, in the script's numbers; our timestamps are remembered.
    pub(crate) fn learn_option(&mut self, option: Opt) -> Opt {
        match option {
            Opt::Sack(blocks) => {
                let its = |(left, right): (u32, u32)| (self.its_script(left), self.its_script(right));
                Opt::Sack(blocks.into_iter().map(its).collect())
            }
            Opt::Ts { val: Stamp::Is(val), ecr } => {
                self.our_last_stamp = val;
                let first = *self.our_first_stamp.get_or_insert(val);
                Opt::Ts { val: Stamp::Is(val.wrapping_sub(first)), ecr }
            }
            other => other,
        }
    }
}

#[test]
fn no_two_stretches_of_a_stream_look_alike() {
    for shift in [1, 2, 536, 1448, 1460, 65_535, 65_536, 1 << 20] {
        let (a, b) = (stretch(Side::Ours, 1, 64), stretch(Side::Ours, 1 + shift, 64));
        assert_ne!(a, b, "{shift}");
    }
    assert_ne!(stretch(Side::Ours, 1, 64), stretch(Side::Peers, 1, 64));
}
