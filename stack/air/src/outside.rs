//! A machine that is elsewhere: it sends and receives Ethernet frames of devices that another program drives.
//!
//! A neighbour's name is the link-local address that its MAC makes (RFC 4291 appendix A), as the contract needs an
//! address. Some frames of each device wait here. The reader of the device checks for room first. Further frames wait
//! in the device's own queue and are dropped there, as with a radio's. Routing packets do not overtake others there.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};

use hopwise_core::trace::TraceEvent;
use hopwise_core::{Cast, Instant, LinkEvent, LinkId, Machine, NextHop, Payload, QueueClass, Rx, Transmit};

use crate::frames::{ETHERNET_BYTES, Mac};
use crate::world::More;

/// The longest MSDU (IEEE 802.11-2020, 9.2.4.8), and the SNAP header in it that names the protocol.
const MSDU_BYTES: usize = 2_304;
const SNAP_BYTES: usize = 8;
/// The longest payload of an Ethernet frame.
const WIRE_BYTES: usize = 1_500;

/// Why a frame does not go on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It does not hold a whole header.
    TooShort,
    /// No frame of 802.11, or of the wire, can carry it.
    TooLong,
    /// Its source is another station's address; a station of an ad hoc network sends under its own address alone.
    InAnothersName,
    /// No frame may be put in before the waiting one has left.
    NoRoom,
}

/// The name of the station with this MAC.
pub fn name_of(mac: Mac) -> IpAddr {
    let [a, b, c, d, e, f] = mac;
    let pair = |high: u8, low: u8| u16::from_be_bytes([high, low]);
    IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, pair(a ^ 2, b), pair(c, 0xff), pair(0xfe, d), pair(e, f)))
}

#[derive(Debug)]
struct Device {
    link: LinkId,
    is_radio: bool,
    waiting: VecDeque<Vec<u8>>,
    most: usize,
    /// The frames that the radio holds beside the first of an aggregate.
    beside: usize,
}

impl Device {
    fn has_room(&self) -> bool {
        self.waiting.len() + self.beside < self.most
    }
}

/// The receiver of an Ethernet frame.
fn receiver(frame: &[u8]) -> NextHop {
    match *frame {
        [a, b, c, d, e, f, ..] if a & 1 == 0 => NextHop::Neighbour(name_of([a, b, c, d, e, f])),
        _ => NextHop::All,
    }
}

/// The machine that stands for devices of another program, with the frames that wait for them.
#[derive(Debug)]
pub struct Outside {
    mac: Mac,
    devices: Vec<Device>,
    came: VecDeque<(LinkId, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    undelivered: u64,
}

/// Buffers that are kept.
const SPARE: usize = 8;

/// An empty buffer.
fn spare(spares: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let mut buffer = spares.pop().unwrap_or_default();
    buffer.clear();
    buffer
}

fn give_back(spares: &mut Vec<Vec<u8>>, buffer: Vec<u8>) {
    if spares.len() < SPARE {
        spares.push(buffer);
    }
}

impl Outside {
    /// A machine with this address and no device yet.
    pub fn new(mac: Mac) -> Outside {
        Outside { mac, devices: Vec::new(), came: VecDeque::new(), spare: Vec::new(), undelivered: 0 }
    }

    /// Adds a radio for which at most so many frames wait here.
    #[must_use]
    pub fn with_radio(self, link: LinkId, most: usize) -> Outside {
        self.with(link, true, most)
    }

    /// Adds an end of a wire for which at most so many frames wait here.
    #[must_use]
    pub fn with_wire(self, link: LinkId, most: usize) -> Outside {
        self.with(link, false, most)
    }

    fn with(mut self, link: LinkId, is_radio: bool, most: usize) -> Outside {
        self.devices.push(Device { link, is_radio, waiting: VecDeque::new(), most, beside: 0 });
        self
    }

    /// Returns whether a frame may be put in.
    pub fn has_room(&self, link: LinkId) -> bool {
        self.devices.iter().any(|device| device.link == link && device.has_room())
    }

    /// A frame that the device sends.
    pub fn put(&mut self, link: LinkId, frame: &[u8]) -> Result<(), Refused> {
        let Some(device) = self.devices.iter_mut().find(|device| device.link == link) else {
            return Err(Refused::NoRoom);
        };
        if !device.has_room() {
            return Err(Refused::NoRoom);
        }
        if frame.len() <= ETHERNET_BYTES {
            return Err(Refused::TooShort);
        }
        if frame.len() - ETHERNET_BYTES > if device.is_radio { MSDU_BYTES - SNAP_BYTES } else { WIRE_BYTES } {
            return Err(Refused::TooLong);
        }
        if device.is_radio && frame[6..12] != self.mac {
            return Err(Refused::InAnothersName);
        }
        let mut kept = spare(&mut self.spare);
        kept.extend_from_slice(frame);
        device.waiting.push_back(kept);
        Ok(())
    }

    /// Takes the next frame for a neighbour, for an aggregate.
    pub fn poll_beside(&mut self, _: Instant, link: LinkId, more: &More, out: &mut Vec<u8>) -> Option<u64> {
        let device = self.devices.iter_mut().find(|device| device.link == link)?;
        let to = NextHop::Neighbour(more.to);
        let next = device.waiting.iter().position(|frame| receiver(frame) == to)?;
        if device.waiting[next].len() > more.bytes {
            return None;
        }
        let frame = device.waiting.remove(next)?;
        device.beside = more.held;
        out.extend_from_slice(&frame);
        give_back(&mut self.spare, frame);
        Some(0)
    }

    /// Returns whether a frame has come.
    pub fn has_mail(&self) -> bool {
        !self.came.is_empty()
    }

    /// Hands out the frames that have come, in order, with the device that each is for.
    pub fn take(&mut self, mut sink: impl FnMut(LinkId, &[u8])) {
        while let Some((link, frame)) = self.came.pop_front() {
            sink(link, &frame);
            give_back(&mut self.spare, frame);
        }
    }

    /// The number of frames that no station acknowledged.
    pub fn undelivered(&self) -> u64 {
        self.undelivered
    }
}

impl Machine for Outside {
    fn handle_packet(&mut self, _now: Instant, rx: &Rx<'_>) {
        if rx.cast == Cast::Overheard {
            return;
        }
        let mut frame = spare(&mut self.spare);
        frame.extend_from_slice(rx.packet);
        self.came.push_back((rx.link, frame));
    }

    fn handle_link_event(&mut self, _now: Instant, link: LinkId, event: &LinkEvent<'_>) {
        if let Some(device) = self.devices.iter_mut().find(|device| device.link == link) {
            device.beside = device.beside.saturating_sub(1);
        }
        self.undelivered += u64::from(matches!(event, LinkEvent::NotDelivered { .. }));
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(
        &mut self,
        _now: Instant,
        link: LinkId,
        _: Payload,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let device = self.devices.iter_mut().find(|device| device.link == link)?;
        let frame = device.waiting.pop_front()?;
        let to = if device.is_radio { receiver(&frame) } else { NextHop::Link };
        out.extend_from_slice(&frame);
        give_back(&mut self.spare, frame);
        Some(Transmit { to, class: QueueClass::Data, segment_bytes: None, id: 0 })
    }

    fn lent(&self) -> (&[u8], &[u8]) {
        Default::default()
    }

    fn keep_trace(&mut self, _: bool) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn drain_trace(&mut self, _sink: &mut dyn FnMut(&TraceEvent)) {}

    fn drain_decisions(&mut self, _: &mut dyn FnMut(&[u8])) {}

    fn keep_decisions(&mut self, _: bool) {}
}
