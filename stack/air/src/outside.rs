//! A machine that is elsewhere: it sends and receives Ethernet frames of devices that another program drives.
//!
//! A neighbour's name is the link-local address that its MAC makes (RFC 4291 appendix A), as the contract needs an
//! address. Some frames of each device wait here. The reader of the device checks for room first. Further frames wait
//! in the device's own queue and are dropped there, as with a radio's. Routing packets do not overtake data there. With
//! Linux's queue all frames wait here. Those for a radio that takes them by access category do as well: each has a
//! queue of its own, and no reader of the device knows beforehand which one is next.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};

use hopwise_core::queue::{Beside, Category, FqCodel, FqCodelConfig, Queued, SpareBuffers, Spent};
use hopwise_core::trace::DropReason;
use hopwise_core::{Cast, Instant, LinkEvent, LinkId, Machine, NextHop, Payload, QueueClass, Rx, Transmit};

use crate::frames::{ETHERNET_BYTES, Mac};

/// The longest MSDU (IEEE 802.11-2020, 9.2.4.8), and the SNAP header in it that names the protocol.
const MSDU_BYTES: usize = 2_304;
const SNAP_BYTES: usize = 8;
/// The longest payload of an Ethernet frame.
const WIRE_BYTES: usize = 1_500;

/// Why a frame does not go on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRefusal {
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
struct OutsideDevice {
    link: LinkId,
    is_radio: bool,
    waiting: DeviceQueue,
}

/// The frames that wait for a device.
#[derive(Debug)]
enum DeviceQueue {
    /// Some, as further ones wait in the kernel's own queue of the device.
    Some {
        frames: VecDeque<Vec<u8>>,
        most: usize,
        /// The frames that the radio holds after the first of an aggregate.
        beside: usize,
        /// For a radio that takes frames by category, how many of each wait. The next one beyond `most` is lost.
        of_category: Option<[usize; 4]>,
    },
    /// All of them.
    All(Box<FqCodel>),
}

impl OutsideDevice {
    fn has_room(&self) -> bool {
        match &self.waiting {
            DeviceQueue::Some { frames, most, beside, of_category: None } => frames.len() + beside < *most,
            // A frame may be lost, or cost an earlier frame its place.
            DeviceQueue::Some { .. } | DeviceQueue::All(_) => true,
        }
    }
}

/// The machine that stands for devices of another program, with the frames that wait for them.
#[derive(Debug, Default)]
pub struct OutsideDevices {
    mac: Mac,
    devices: Vec<OutsideDevice>,
    came: VecDeque<(LinkId, Vec<u8>)>,
    spare: SpareBuffers<8>,
    /// The number of frames that no station acknowledged.
    pub undelivered: u64,
    /// The last id of a frame in a queue of Linux.
    last_id: u64,
    queue_drops: u64,
    codel_drops: u64,
}

/// Room for some frames.
fn some(most: usize) -> DeviceQueue {
    DeviceQueue::Some { frames: VecDeque::new(), most, beside: 0, of_category: None }
}

impl OutsideDevices {
    /// A machine with this address and no device yet.
    pub fn new(mac: Mac) -> OutsideDevices {
        OutsideDevices { mac, ..OutsideDevices::default() }
    }

    /// Adds a radio for which at most this number of frames wait here.
    #[must_use]
    pub fn with_radio(self, link: LinkId, most: usize) -> OutsideDevices {
        self.with(link, true, some(most))
    }

    /// Adds a radio whose frames wait here as in Linux's mac80211.
    #[must_use]
    pub fn with_radio_of_linux(self, link: LinkId, queue: FqCodelConfig) -> OutsideDevices {
        let queue = FqCodel::new(FqCodelConfig { header: ETHERNET_BYTES, ..queue });
        self.with(link, true, DeviceQueue::All(Box::new(queue)))
    }

    /// The radio at this link takes its frames by access category from now on.
    #[must_use]
    pub fn by_category(mut self, link: LinkId) -> OutsideDevices {
        match self.waiting(link) {
            Some(DeviceQueue::Some { of_category, .. }) => *of_category = Some([0; 4]),
            Some(DeviceQueue::All(queue)) => queue.divide(),
            None => {}
        }
        self
    }

    /// Adds an end of a wire for which at most this number of frames wait here.
    #[must_use]
    pub fn with_wire(self, link: LinkId, most: usize) -> OutsideDevices {
        self.with(link, false, some(most))
    }

    fn with(mut self, link: LinkId, is_radio: bool, waiting: DeviceQueue) -> OutsideDevices {
        self.devices.push(OutsideDevice { link, is_radio, waiting });
        self
    }

    /// Returns whether a frame may be put in.
    pub fn has_room(&self, link: LinkId) -> bool {
        self.devices.iter().any(|device| device.link == link && device.has_room())
    }

    /// A frame that the device sends.
    pub fn put(&mut self, now: Instant, link: LinkId, frame: &[u8]) -> Result<(), FrameRefusal> {
        let Some(device) = self.devices.iter_mut().find(|device| device.link == link) else {
            return Err(FrameRefusal::NoRoom);
        };
        if !device.has_room() {
            return Err(FrameRefusal::NoRoom);
        }
        if frame.len() <= ETHERNET_BYTES {
            return Err(FrameRefusal::TooShort);
        }
        if frame.len() - ETHERNET_BYTES > if device.is_radio { MSDU_BYTES - SNAP_BYTES } else { WIRE_BYTES } {
            return Err(FrameRefusal::TooLong);
        }
        if device.is_radio && frame[6..12] != self.mac {
            return Err(FrameRefusal::InAnothersName);
        }
        let kept = self.spare.copy(frame);
        match &mut device.waiting {
            DeviceQueue::Some { frames, of_category: None, .. } => frames.push_back(kept),
            DeviceQueue::Some { frames, most, beside, of_category: Some(counts) } => {
                let count = &mut counts[category(frame).index()];
                if *count + *beside >= *most {
                    self.queue_drops += 1;
                    self.spare.keep(kept);
                } else {
                    *count += 1;
                    frames.push_back(kept);
                }
            }
            DeviceQueue::All(queue) => {
                self.last_id += 1;
                let (to, id, class) = (receiver(frame), self.last_id, QueueClass::Data);
                queue.push(now, Queued { to, class, id, at: now, packet: kept });
            }
        }
        self.count_lost(link);
        Ok(())
    }

    /// Counts what a queue of Linux has dropped.
    fn count_lost(&mut self, link: LinkId) {
        let Some(device) = self.devices.iter_mut().find(|device| device.link == link) else { return };
        let DeviceQueue::All(queue) = &mut device.waiting else { return };
        while let Some((queued, reason)) = queue.poll_lost() {
            self.queue_drops += 1;
            self.codel_drops += u64::from(reason == DropReason::Codel);
            self.spare.keep(queued.packet);
        }
    }

    /// The frames that queues here have dropped.
    pub fn queue_drops(&self) -> u64 {
        self.queue_drops
    }

    /// CoDel's part of them.
    pub fn codel_drops(&self) -> u64 {
        self.codel_drops
    }

    /// The packets that CoDel has marked; none where no queue has CoDel.
    pub fn queue_marks(&self) -> Option<u64> {
        let of = |device: &OutsideDevice| match &device.waiting {
            DeviceQueue::Some { .. } => None,
            DeviceQueue::All(queue) => Some(queue.marks()),
        };
        self.devices.iter().filter_map(of).reduce(|sum, more| sum + more)
    }

    /// The radio tells how much time a frame has taken.
    pub fn on_spent(&mut self, link: LinkId, spent: &Spent) {
        if let Some(DeviceQueue::All(queue)) = self.waiting(link) {
            queue.on_spent(spent);
        }
    }

    fn waiting(&mut self, link: LinkId) -> Option<&mut DeviceQueue> {
        self.devices.iter_mut().find(|device| device.link == link).map(|device| &mut device.waiting)
    }

    /// Takes the next frame for a neighbour, for an aggregate.
    pub fn poll_beside(
        &mut self,
        now: Instant,
        link: LinkId,
        more: &Beside,
        out: &mut Vec<u8>,
    ) -> Option<u64> {
        let taken = match self.waiting(link)? {
            DeviceQueue::Some { frames, beside, of_category, .. } => {
                let is_for_it = |frame: &[u8]| receiver(frame) == NextHop::Neighbour(more.to);
                let next = take_from((frames, of_category), more.category, (is_for_it, more.bytes))?;
                *beside = more.held;
                Some((0, next))
            }
            DeviceQueue::All(queue) => {
                queue.pop_beside(now, more.category, (more.to, more.bytes)).map(id_and_frame)
            }
        };
        self.hand_over(link, taken, out).map(|transmit| transmit.id)
    }

    /// Takes the next frame of a category while the radio holds earlier ones.
    pub fn poll_in(
        &mut self,
        now: Instant,
        link: LinkId,
        (category, held): (Category, usize),
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let taken = match self.waiting(link)? {
            DeviceQueue::Some { frames, beside, of_category, .. } => {
                let next = take_from((frames, of_category), category, (|_: &[u8]| true, usize::MAX))?;
                *beside = held;
                Some((0, next))
            }
            DeviceQueue::All(queue) => queue.pop_in(now, category).map(id_and_frame),
        };
        self.hand_over(link, taken, out)
    }

    /// Appends a frame that was taken from a queue to `out`. The queue may have lost other frames meanwhile.
    fn hand_over(
        &mut self,
        link: LinkId,
        taken: Option<(u64, Vec<u8>)>,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.count_lost(link);
        let (id, frame) = taken?;
        out.extend_from_slice(&frame);
        let to = receiver(&frame);
        self.spare.keep(frame);
        Some(Transmit { to, class: QueueClass::Data, segment_bytes: None, id })
    }

    /// Returns whether a frame has come.
    pub fn has_mail(&self) -> bool {
        !self.came.is_empty()
    }

    /// Hands out the frames that have come, in order, with the device that each is for.
    pub fn take(&mut self, mut sink: impl FnMut(LinkId, &[u8])) {
        while let Some((link, frame)) = self.came.pop_front() {
            sink(link, &frame);
            self.spare.keep(frame);
        }
    }
}

impl Machine for OutsideDevices {
    fn handle_packet(&mut self, _now: Instant, rx: &Rx<'_>) {
        if rx.cast == Cast::Overheard {
            return;
        }
        if let (Cast::ToUs, Some(from), Some(DeviceQueue::All(queue))) =
            (rx.cast, rx.from, self.waiting(rx.link))
        {
            queue.on_heard(from, rx.packet);
        }
        self.came.push_back((rx.link, self.spare.copy(rx.packet)));
    }

    fn handle_link_event(&mut self, _now: Instant, link: LinkId, event: &LinkEvent<'_>) {
        match (self.waiting(link), *event) {
            (Some(DeviceQueue::Some { beside, .. }), _) => *beside = beside.saturating_sub(1),
            (
                Some(DeviceQueue::All(queue)),
                LinkEvent::NotDelivered { id, .. } | LinkEvent::Delivered { id, .. },
            ) => {
                queue.on_gone(id);
            }
            _ => {}
        }
        self.undelivered += u64::from(matches!(event, LinkEvent::NotDelivered { .. }));
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(
        &mut self,
        now: Instant,
        link: LinkId,
        _: Payload,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let device = self.devices.iter_mut().find(|device| device.link == link)?;
        let taken = match &mut device.waiting {
            DeviceQueue::Some { frames, .. } => frames.pop_front().map(|frame| (0, frame)),
            DeviceQueue::All(queue) => queue.pop(now).map(id_and_frame),
        };
        let is_radio = device.is_radio;
        let transmit = self.hand_over(link, taken, out)?;
        Some(if is_radio { transmit } else { Transmit { to: NextHop::Link, ..transmit } })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

// Frames of Ethernet that wait: to whom they go, in which category, and which one is next.

/// The receiver of a frame of Ethernet, or of another frame from its first address on.
pub(crate) fn receiver(frame: &[u8]) -> NextHop {
    match *frame {
        [a, b, c, d, e, f, ..] if a & 1 == 0 => NextHop::Neighbour(name_of([a, b, c, d, e, f])),
        _ => NextHop::All,
    }
}

/// The category of an Ethernet frame: Linux looks at the DSCP of IP, and at nothing else here.
fn category(frame: &[u8]) -> Category {
    match frame.get(ETHERNET_BYTES - 2..ETHERNET_BYTES) {
        Some([0x08, 0x00] | [0x86, 0xdd]) => Category::of_packet(&frame[ETHERNET_BYTES..]),
        _ => Category::BestEffort,
    }
}

fn id_and_frame(queued: Queued) -> (u64, Vec<u8>) {
    (queued.id, queued.packet)
}

/// Takes the first frame of a category that is meant; without categories, the first that is meant.
fn take_from(
    (frames, of_category): (&mut VecDeque<Vec<u8>>, &mut Option<[usize; 4]>),
    wanted: Category,
    (is_meant, most): (impl Fn(&[u8]) -> bool, usize),
) -> Option<Vec<u8>> {
    let is_divided = of_category.is_some();
    let is_it = |frame: &Vec<u8>| (!is_divided || category(frame) == wanted) && is_meant(frame);
    let place = frames.iter().position(is_it).filter(|place| frames[*place].len() <= most)?;
    if let Some(counts) = of_category {
        counts[wanted.index()] -= 1;
    }
    frames.remove(place)
}
