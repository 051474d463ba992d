//! Explains one packet of a capture in a sentence, and reads captures.

use std::fs::File;
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::Path;

use hopwise_core::wire::{Checksums, IpView, TcpView, protocol};
use hopwise_lab::plain;
use hopwise_mesh::behind_routing;
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::{Block, PcapNgReader};

use super::{ethernet, radio};
use crate::failure::Failure;

pub(super) fn sentence(path: &Path, frame: u64) -> Result<String, Failure> {
    let mut found = None;
    let seen = each_packet(path, |packet| {
        if packet.frame == frame {
            found = Some(describe(frame, packet.link, packet.block));
        }
        found.is_none()
    })?;
    found.ok_or_else(|| {
        let problem = format!("it has {seen} frames, expected a frame from 1 to {seen}");
        Failure::refused(path.display().to_string(), problem)
    })
}

/// A packet of a capture, with the number of its frame.
pub(super) struct Packet<'a> {
    pub(super) frame: u64,
    pub(super) link: Option<DataLink>,
    pub(super) block: &'a EnhancedPacketBlock<'a>,
}

impl Packet<'_> {
    /// The 802.11 frame of the packet, in a capture of a radio.
    pub(super) fn radio_frame(&self) -> Option<radio::RadioFrame<'_>> {
        let is_radio = self.link == Some(DataLink::IEEE802_11_RADIOTAP);
        if is_radio { radio::read(&self.block.data) } else { None }
    }
}

/// Hands over packets until `take` returns false. Returns the number of packets until then.
pub(super) fn each_packet(path: &Path, mut take: impl FnMut(&Packet<'_>) -> bool) -> Result<u64, Failure> {
    let name = path.display().to_string();
    let refused = |problem: &dyn std::fmt::Display| Failure::refused(&name, problem);
    let file = File::open(path).map_err(|error| refused(&error))?;
    let mut reader = PcapNgReader::new(BufReader::new(file))
        .map_err(|error| refused(&format_args!("expected a capture {WANTED}: {error}")))?;
    let (mut seen, mut links) = (0, Vec::new());
    while let Some(block) = reader.next_block() {
        let block = block.map_err(|error| refused(&format_args!("after frame {seen}: {error}")))?;
        match block {
            Block::SectionHeader(_) => links.clear(),
            Block::InterfaceDescription(interface) => links.push(interface.linktype),
            Block::EnhancedPacket(block) => {
                seen += 1;
                let link = links.get(block.interface_id as usize).copied();
                if !take(&Packet { frame: seen, link, block: &block }) {
                    break;
                }
            }
            _ => {}
        }
    }
    if seen == 0 { Err(refused(&"it has no frames")) } else { Ok(seen) }
}

/// The captures that have comments.
const WANTED: &str =
    "in pcapng, of a node or of --capture (`hopwise run`, `trial`, `air`); a classic pcap has no reasons";

/// Data about a packet in a capture, beside its bytes.
pub(super) struct Said {
    pub(super) is_inbound: bool,
    /// All its comments about the packet.
    pub(super) comment: Option<String>,
    /// The comment on its link, without the first words.
    link: Option<String>,
}

/// The first words of a comment on a link.
const OF_LINK: &str = "link to ";

pub(super) fn said(packet: &EnhancedPacketBlock<'_>) -> Said {
    const INBOUND: u32 = 1;
    let mut comments = Vec::new();
    let (mut is_inbound, mut link) = (false, None);
    for option in &packet.options {
        match option {
            EnhancedPacketOption::Comment(text) => {
                let text = plain::line(text);
                match text.strip_prefix(OF_LINK) {
                    Some(told) => link = Some(told.to_owned()),
                    None => comments.push(text),
                }
            }
            EnhancedPacketOption::Flags(flags) => is_inbound = flags & 3 == INBOUND,
            _ => {}
        }
    }
    Said { is_inbound, comment: (!comments.is_empty()).then(|| comments.join("; ")), link }
}

/// The address and port of this end, then of the peer; empty if the packet is no TCP.
pub(super) fn flow(packet: &Packet<'_>, is_inbound: bool) -> String {
    let bytes = match packet.link {
        Some(DataLink::IEEE802_11_RADIOTAP) => packet.radio_frame().and_then(|read| read.packet),
        Some(DataLink::ETHERNET) => Some(ethernet::payload(&packet.block.data)),
        _ => Some(&*packet.block.data),
    };
    let Some(ip) = bytes.and_then(|bytes| IpView::parse(bytes).ok()) else { return String::new() };
    let (found, payload) = behind_routing(ip.protocol, ip.payload);
    if found != protocol::TCP {
        return String::new();
    }
    let Ok(tcp) = TcpView::parse(ip.src, ip.dst, payload, Checksums::Trust) else { return String::new() };
    let (src, dst) = (SocketAddr::new(ip.src, tcp.src_port), SocketAddr::new(ip.dst, tcp.dst_port));
    if is_inbound { format!("{dst} - {src}") } else { format!("{src} - {dst}") }
}

fn describe(frame: u64, link: Option<DataLink>, packet: &EnhancedPacketBlock<'_>) -> String {
    let Said { is_inbound, comment, link: told } = said(packet);
    let told = told.map_or(String::new(), |told| format!(" The link to {told}."));
    if link == Some(DataLink::IEEE802_11_RADIOTAP) {
        return describe_radio(frame, is_inbound, comment, packet);
    }
    let what = match link {
        Some(DataLink::ETHERNET) => {
            if let Some(arp) = ethernet::arp(&packet.data) {
                let way = if is_inbound { "came in" } else { "left" };
                return format!("Frame {frame} ({arp}) {way}; it is of the link, not of a connection.");
            }
            what(ethernet::payload(&packet.data))
        }
        _ => what(&packet.data),
    };
    let packet = match (is_inbound, comment) {
        (false, Some(comment)) => format!("Frame {frame} ({what}) left because: {comment}."),
        (false, None) => format!(
            "Frame {frame} ({what}) left; the trace says nothing of it (no TCP, or events were lost)."
        ),
        (true, Some(comment)) => format!("Frame {frame} ({what}) came in. {comment}."),
        (true, None) => format!("Frame {frame} ({what}) came in, and nothing was recorded about it."),
    };
    packet + &told
}

/// The MAC's comment describes how a frame left, not only why.
fn describe_radio(
    frame: u64,
    is_inbound: bool,
    comment: Option<String>,
    packet: &EnhancedPacketBlock<'_>,
) -> String {
    let read = radio::read(&packet.data);
    let frame_itself =
        read.as_ref().map_or_else(|| format!("{} bytes", packet.data.len()), |read| read.what.clone());
    let within =
        read.and_then(|read| read.packet).map_or(String::new(), |packet| format!("; {}", what(packet)));
    let way = if is_inbound { "came in" } else { "left" };
    let said = comment.map_or(String::new(), |comment| format!(": {comment}"));
    format!("Frame {frame} ({frame_itself}{within}) {way}{said}.")
}

/// Source, destination and kind of the segment.
fn what(packet: &[u8]) -> String {
    let Ok(ip) = IpView::parse(packet) else { return format!("{} bytes", packet.len()) };
    let hosts = format!("{} to {}", ip.src, ip.dst);
    let (protocol, payload) = behind_routing(ip.protocol, ip.payload);
    if protocol != protocol::TCP {
        return format!("{hosts}, protocol {protocol}");
    }
    match TcpView::parse(ip.src, ip.dst, payload, Checksums::Trust) {
        Ok(tcp) => {
            let bytes = tcp.payload.len();
            let kind = if bytes == 0 { "no data".to_owned() } else { format!("{bytes} bytes") };
            format!("{}:{} to {}:{}, {kind}", ip.src, tcp.src_port, ip.dst, tcp.dst_port)
        }
        Err(_) => hosts,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::time::Duration;

    use super::*;

    fn packet(options: Vec<EnhancedPacketOption<'static>>) -> EnhancedPacketBlock<'static> {
        let data = Cow::Borrowed(&b"xx"[..]);
        EnhancedPacketBlock { interface_id: 0, timestamp: Duration::ZERO, original_len: 2, data, options }
    }

    #[test]
    fn a_packet_of_ours_says_why_it_left() {
        let comment = EnhancedPacketOption::Comment("ACK 9: delayed decided it, count 2 of 2".into());
        let text = describe(3, Some(DataLink::RAW), &packet(vec![EnhancedPacketOption::Flags(2), comment]));
        assert_eq!(text, "Frame 3 (2 bytes) left because: ACK 9: delayed decided it, count 2 of 2.");
    }

    #[test]
    fn what_is_told_of_a_link_is_no_reason_of_the_packet() {
        let told = || EnhancedPacketOption::Comment("link to 02:00:00:00:00:01; signal -61 dBm".into());
        let because = EnhancedPacketOption::Comment("10 bytes, new".into());
        let text = |options| describe(3, Some(DataLink::RAW), &packet(options));
        assert_eq!(
            text(vec![EnhancedPacketOption::Flags(2), because, told()]),
            "Frame 3 (2 bytes) left because: 10 bytes, new. The link to 02:00:00:00:00:01; signal -61 dBm."
        );
        let alone = text(vec![EnhancedPacketOption::Flags(1), told()]);
        assert!(
            alone.contains("nothing was recorded about it. The link to 02:00:00:00:00:01; signal"),
            "{alone}"
        );
    }

    #[test]
    fn an_arrival_says_what_became_of_it() {
        let comment = EnhancedPacketOption::Comment("dropped: paws".into());
        let text = describe(1, Some(DataLink::RAW), &packet(vec![EnhancedPacketOption::Flags(1), comment]));
        assert_eq!(text, "Frame 1 (2 bytes) came in. dropped: paws.");
    }

    #[test]
    fn a_comment_is_one_line() {
        let comment = EnhancedPacketOption::Comment("dropped: x\nFrame 2 left\u{202e}; \r\ty".into());
        let text = describe(1, Some(DataLink::RAW), &packet(vec![EnhancedPacketOption::Flags(1), comment]));
        assert_eq!(text, "Frame 1 (2 bytes) came in. dropped: x?Frame 2 left?; ??y.");
    }
}
