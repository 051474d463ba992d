//! The frames that each station sends and receives, for logs and captures.

use std::fmt;

use crate::frame::{EVERYONE, Frame, FrameKind};

/// An address of 802.11 and of Ethernet.
pub type Mac = [u8; 6];

/// Locally administered, with the station's number.
pub fn mac_of(station: u32) -> Mac {
    if station == EVERYONE {
        return [0xff; 6];
    }
    let [a, b, c, d] = station.to_be_bytes();
    [0x02, 0, a, b, c, d]
}

/// The first header of a machine's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Packets begin with their own header.
    #[default]
    Packet,
    /// Packets begin with an Ethernet header; the radio's own header replaces it on the air.
    Ethernet,
    /// Packets are whole frames of 802.11, also of management, to which the radio adds the FCS alone.
    Whole,
}

pub(crate) const ETHERNET_BYTES: usize = 14;

impl Framing {
    /// The bytes of a packet that a data frame carries.
    pub fn payload(self, packet: &[u8]) -> &[u8] {
        match self {
            Framing::Packet | Framing::Whole => packet,
            Framing::Ethernet => packet.get(ETHERNET_BYTES..).unwrap_or_default(),
        }
    }

    /// The longest packet whose payload has at most this number of bytes.
    pub(crate) fn with_header(self, payload: u32) -> usize {
        let header = if self == Framing::Ethernet { ETHERNET_BYTES } else { 0 };
        payload as usize + header
    }

    /// The EtherType of a packet.
    pub(crate) fn ether_type(self, packet: &[u8]) -> u16 {
        match (self, packet) {
            (Framing::Ethernet, [_, _, _, _, _, _, _, _, _, _, _, _, high, low, ..]) => {
                u16::from_be_bytes([*high, *low])
            }
            (_, [first, ..]) if first >> 4 == 6 => 0x86dd,
            (_, [first, ..]) if first >> 4 == 0 => 0x0806,
            _ => 0x0800,
        }
    }
}

hopwise_core::named! {
    /// The effect of a frame on a station.
    pub enum FrameEffect {
        /// The station sent it.
        Sends = "sends",
        /// The station understood it, whether it was for this station or not.
        Decodes = "decodes",
        /// Too weak, or the station sent during it.
        Noise = "noise",
        /// Lost to another frame.
        Collision = "collision",
    }
}

/// A station's access to the medium for a frame that answers none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumAccess {
    /// The first time is 1.
    pub attempt: u8,
    /// The packet, or its RTS, may be sent this many times.
    pub most: u8,
    /// `None` after a CTS, and on a medium that had been idle.
    pub backoff: Option<DrawnBackoff>,
}

/// A backoff: slots drawn from a contention window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnBackoff {
    /// The slots to wait on an idle medium.
    pub slots: u32,
    /// The contention window that they were drawn from, in slots.
    pub cw: u16,
}

/// The fate of a frame that needs an answer, as soon as its sender knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameEnding {
    /// The station that sent the frame and learnt its fate, by its number.
    pub station: u32,
    /// The fate of that frame.
    pub fate: FrameFate,
    /// The packet was given up with it.
    pub is_given_up: bool,
}

/// The outcome of a frame that needs an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFate {
    /// Its answer came.
    Answered,
    /// It had no effect at its receiver, for this reason.
    Lost(FrameLoss),
    /// The receiver has answered, and the answer was lost.
    AnswerLost(FrameLoss),
}

/// The reason why a frame had no effect at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameLoss {
    /// Out of reach, or spoilt by the channel.
    Channel,
    /// Lost to a frame of this station.
    Frame {
        /// The number of the station that sent the other frame.
        sender: u32,
        /// The kind of the other frame.
        kind: FrameKind,
    },
    /// Lost to several weaker frames together.
    Interference,
    /// The receiver sent this frame meanwhile.
    Sending(FrameKind),
    /// The frame was understood, but the receiver's NAV or carrier forbade an answer.
    HeldUp,
    /// The frame was understood, but the receiver was in another exchange.
    Engaged,
}

/// The view of one station on one frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameEvent {
    /// The arrival of its own first bit, and of its last.
    pub from_ns: u64,
    /// The arrival of its last bit, in nanoseconds since the beginning of the run.
    pub until_ns: u64,
    /// The station with this view, by its number.
    pub station: u32,
    /// The station that sent the frame, by its number.
    pub sender: u32,
    /// The effect of the frame on the station.
    pub sees: FrameEffect,
    /// The power in watts with which it arrived; of an own frame, the power of the transmitter.
    pub power_w: f64,
    /// The frame itself.
    pub frame: Frame,
    /// The machine's own name for the packet in a data frame; 0 where there is none.
    pub packet_id: u64,
}

/// The columns of a frame log.
pub const CSV_HEADER: &str = "from_s,until_s,station,sees,kind,sender,to,bytes,duration_us,repeat";

/// A line of the frame log, under [`CSV_HEADER`].
impl fmt::Display for FrameEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let (sees, kind) = (self.sees.name(), self.frame.kind.name());
        let to = if self.frame.to == EVERYONE { "all".to_owned() } else { self.frame.to.to_string() };
        write!(
            f,
            "{},{},{},{sees},{kind},{},{to},{},{},{}",
            seconds(self.from_ns),
            seconds(self.until_ns),
            self.station,
            self.sender,
            self.frame.bytes,
            self.frame.duration_ns / 1_000,
            u8::from(self.frame.is_repeat)
        )
    }
}
