//! Framing of a link's packets, for observers: Ethernet headers, and the link's own frames.

use hopwise_core::Instant;

use crate::observer::Direction;

/// Two addresses and a type.
pub type EthernetHeader = [u8; 14];

/// The kind of header before the packets of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Framing {
    /// Nothing.
    #[default]
    Ip,
    /// An Ethernet header of 14 bytes.
    Ethernet,
}

/// A frame that the driver has not handed over itself: ARP and NDP, and packets that waited for a neighbour's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFrame {
    /// The time at which it came or left.
    pub at: Instant,
    /// In or out.
    pub direction: Direction,
    /// The number of the machine's packet in it; `None` for a frame of the link's own.
    pub id: Option<u64>,
    /// Payload bytes per segment, of a coalesced read or write.
    pub segment_bytes: Option<u16>,
    /// The Ethernet header.
    pub header: EthernetHeader,
    /// The bytes behind that header.
    pub packet: Vec<u8>,
}

/// Frames between two calls of the driver, at most [`MOST`].
#[derive(Debug, Default)]
pub(crate) struct FrameLog {
    is_on: bool,
    frames: Vec<KeptFrame>,
}

/// Enough for many neighbours that answer at once, with the packets that waited for each.
const MOST: usize = 4096;

impl FrameLog {
    pub(crate) fn turn(&mut self, is_on: bool) {
        self.is_on = is_on;
        self.frames.clear();
    }

    pub(crate) fn keep(&mut self, frame: impl FnOnce() -> Option<KeptFrame>) {
        if self.is_on && self.frames.len() < MOST {
            self.frames.extend(frame());
        }
    }

    pub(crate) fn drain(&mut self, sink: &mut dyn FnMut(&KeptFrame)) {
        for frame in self.frames.drain(..) {
            sink(&frame);
        }
    }
}
