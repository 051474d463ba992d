//! Hashes by which two captures recognise a common frame or packet, and which capture had it first.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;

use crate::capture::packets::{AirFrame, Layers, layers};
use crate::capture::source::CapturePacket;

/// The most names of a file that are kept. All files keep the names with the lowest hashes, so that common frames stay
/// common.
const MOST: usize = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SightWay {
    Out,
    In,
}

/// A frame in one file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    pub(super) at: i64,
    pub(super) frame: u64,
    way: Option<SightWay>,
    /// The hop limit of its IP packet.
    hops: u8,
    /// It was seen at a radio, below its host's IP packets.
    is_radio: bool,
    /// It is recognised by the whole frame, and not by the IP packet in it.
    is_of_frame: bool,
}

/// The order in time of two sights of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SightOrder {
    /// The first one caused the second one.
    Forth,
    Back,
    /// Both heard one frame in the air.
    Together,
}

impl Sight {
    pub(super) fn order(&self, other: &Sight) -> Option<SightOrder> {
        let by = |is_first: bool| Some(if is_first { SightOrder::Forth } else { SightOrder::Back });
        // Each router on the way takes a hop away: what it sent is later than what the router before it received.
        if self.hops != other.hops {
            return by(self.hops > other.hops);
        }
        match (self.way?, other.way?) {
            (SightWay::Out, SightWay::In) => Some(SightOrder::Forth),
            (SightWay::In, SightWay::Out) => Some(SightOrder::Back),
            // Packets leave a host through its radio, and come in through it.
            (SightWay::Out, SightWay::Out) if self.is_radio != other.is_radio => by(other.is_radio),
            (SightWay::In, SightWay::In) if self.is_radio != other.is_radio => by(self.is_radio),
            // One packet may be in two frames below IP, as of two hops of 802.11s. One frame is in the air once.
            (SightWay::In, SightWay::In) if self.is_radio && self.is_of_frame => Some(SightOrder::Together),
            _ => None,
        }
    }
}

/// The names of a file's frames that only one frame of the file has.
#[derive(Debug, Default)]
pub(super) struct HeardFrames {
    names: BTreeMap<u64, Option<Sight>>,
    most: usize,
    content: DefaultHasher,
}

impl HeardFrames {
    pub(super) fn new() -> HeardFrames {
        HeardFrames { most: MOST, ..HeardFrames::default() }
    }

    pub(super) fn hear(&mut self, link: DataLink, packet: &CapturePacket) {
        (packet.at, &packet.block.data).hash(&mut self.content);
        let found = layers(link, &packet.block.data);
        let sight = Sight {
            at: packet.at,
            frame: packet.frame,
            // An interface in monitor mode tells no direction: it only listens.
            way: way(packet).or(found.air.map(|_| SightWay::In)),
            hops: found.ip.and_then(hop_limit).unwrap_or(0),
            is_radio: found.air.is_some(),
            is_of_frame: false,
        };
        for (name, is_of_frame) in names(&found) {
            self.note(name, Sight { is_of_frame, ..sight });
        }
    }

    fn note(&mut self, name: u64, sight: Sight) {
        if self.names.len() >= self.most && self.names.last_key_value().is_some_and(|(last, _)| name > *last)
        {
            return;
        }
        // A router has a packet before and behind its own hop, and the sight before it counts. A name that comes again
        // with an equal hop limit belongs to two packets.
        let first = |known: Sight| {
            (known.hops != sight.hops).then_some(if known.hops > sight.hops { known } else { sight })
        };
        self.names.entry(name).and_modify(|known| *known = known.and_then(first)).or_insert(Some(sight));
        if self.names.len() > self.most {
            self.names.pop_last();
        }
    }

    /// A hash of all packets and their times, by which copies of a capture are recognised.
    pub(super) fn content(&self) -> u64 {
        self.content.finish()
    }

    /// The sights of frames that both files have once.
    pub(super) fn common<'a>(&'a self, other: &'a HeardFrames) -> impl Iterator<Item = (Sight, Sight)> + 'a {
        self.names.iter().filter_map(|(name, ours)| Some(((*ours)?, (*other.names.get(name)?)?)))
    }
}

fn way(packet: &CapturePacket) -> Option<SightWay> {
    packet.block.options.iter().find_map(|option| match option {
        EnhancedPacketOption::Flags(flags) => match flags & 3 {
            1 => Some(SightWay::In),
            2 => Some(SightWay::Out),
            _ => None,
        },
        _ => None,
    })
}

/// A frame in the air has one name for all radios that hear it. A packet has a name for each link, as its hop limit
/// changes, and a name without the hop limit for its whole way. Beside each: whether it names a frame.
fn names(found: &Layers<'_>) -> Vec<(u64, bool)> {
    let mut names = Vec::new();
    // Retries are alike in their bytes, and two files may each lack a different retry.
    if let Some(air) = found.air.filter(|air| air.is_numbered() && !air.is_retry()) {
        names.push((hash(0, air.0), true));
    }
    let is_again = found.air.is_some_and(AirFrame::is_retry);
    if let Some(mut packet) = found.ip.filter(|_| !is_again).map(<[u8]>::to_vec) {
        without_marks(&mut packet);
        names.push((hash(1, &packet), false));
        without_hops(&mut packet);
        names.push((hash(2, &packet), false));
    }
    names
}

fn hash(kind: u8, bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (kind, bytes).hash(&mut hasher);
    hasher.finish()
}

fn is_v4(packet: &[u8]) -> bool {
    packet[0] >> 4 == 4
}

fn hop_limit(packet: &[u8]) -> Option<u8> {
    packet.get(if is_v4(packet) { 8 } else { 7 }).copied()
}

/// Routers change the field of DSCP and ECN, and with it IPv4's checksum.
fn without_marks(packet: &mut [u8]) {
    if is_v4(packet) && packet.len() >= 20 {
        packet[1] = 0;
        packet[10..12].fill(0);
    } else if packet.len() >= 40 {
        packet[0] &= 0xf0;
        packet[1] &= 0x0f;
    }
}

fn without_hops(packet: &mut [u8]) {
    let at = if is_v4(packet) { 8 } else { 7 };
    if let Some(hops) = packet.get_mut(at) {
        *hops = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(way: Option<SightWay>, hops: u8, is_radio: bool) -> Sight {
        Sight { at: 0, frame: 1, way, hops, is_radio, is_of_frame: true }
    }

    #[test]
    fn what_left_was_before_what_came_and_the_radio_is_below_the_host() {
        use SightOrder::{Back, Forth, Together};
        let (left, came) = (Some(SightWay::Out), Some(SightWay::In));
        for (ours, other, order) in [
            (sight(left, 64, false), sight(came, 64, false), Some(Forth)),
            (sight(came, 64, false), sight(left, 64, false), Some(Back)),
            // Two relays: the hop limit falls on the way.
            (sight(came, 62, false), sight(came, 63, false), Some(Back)),
            (sight(left, 62, true), sight(came, 63, true), Some(Back)),
            (sight(None, 64, false), sight(None, 63, true), Some(Forth)),
            (sight(left, 64, false), sight(left, 64, true), Some(Forth)),
            (sight(came, 64, false), sight(came, 64, true), Some(Back)),
            (sight(came, 64, true), sight(came, 64, true), Some(Together)),
            (sight(left, 64, false), sight(left, 64, false), None),
            (sight(None, 64, true), sight(came, 64, true), None),
        ] {
            assert_eq!(ours.order(&other), order, "{ours:?} {other:?}");
        }
        // Two monitors have a packet of 802.11s on two hops.
        let packet = Sight { is_of_frame: false, ..sight(came, 64, true) };
        assert_eq!(packet.order(&packet), None);
    }

    #[test]
    fn names_of_two_frames_of_a_file_are_no_names() {
        let mut heard = HeardFrames::new();
        heard.note(7, sight(None, 0, false));
        heard.note(8, sight(None, 0, false));
        heard.note(7, sight(None, 0, false));
        let found: Vec<_> = heard.common(&heard).collect();
        assert_eq!(found.len(), 1);
    }

    /// Each file keeps an equal part of the common frames.
    #[test]
    fn files_of_any_length_keep_the_same_names_in_bounded_memory() {
        let hear = |numbers: &mut dyn Iterator<Item = u64>| {
            let mut heard = HeardFrames { most: 100, ..HeardFrames::default() };
            numbers.for_each(|number| heard.note(hash(9, &number.to_le_bytes()), sight(None, 0, false)));
            heard
        };
        let (short, long) = (hear(&mut (0..5_000)), hear(&mut (0..10_000)));
        assert_eq!((short.names.len(), long.names.len()), (100, 100));
        let common = short.common(&long).count();
        assert!(common > 30, "{common}");
    }

    #[test]
    fn a_packet_keeps_one_name_over_hops_and_marks_and_has_another_on_each_link() {
        let mut packet = vec![0x45, 0, 0, 24, 0, 0, 0, 0, 64, 6, 1, 2, 10, 0, 0, 1, 10, 0, 0, 2, 1, 2, 3, 4];
        let of = |packet: &[u8]| names(&Layers { air: None, ip: Some(packet) });
        let first = of(&packet);
        (packet[1], packet[10]) = (3, 9);
        assert_eq!(of(&packet), first);
        packet[8] = 63;
        let behind = of(&packet);
        assert!(behind[0] != first[0] && behind[1] == first[1]);
        packet[23] = 5;
        assert_ne!(of(&packet)[1], first[1]);
    }
}
