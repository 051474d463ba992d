//! Explains one packet of a capture in a sentence.

use std::net::SocketAddr;
use std::path::Path;

use hopwise_core::wire::{IpView, protocol};
use hopwise_lab::plain;
use hopwise_mesh::behind_routing;
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};

use super::packets::{RadioFrame, arp, ethernet_payload, layers, radio_frame_of, tcp};
use super::source::{CapturePacket, each};
use hopwise_daemon::failure::Failure;

pub(super) fn sentence(path: &Path, frame: u64) -> Result<String, Failure> {
    let mut found = None;
    let source = each(path, |packet| {
        if packet.frame == frame {
            found = Some(describe(packet));
        }
        Ok(found.is_none())
    })?;
    found.ok_or_else(|| {
        let problem = match source.frames {
            0 => "it has no frames".to_owned(),
            seen => format!("it has {seen} frames, expected a frame from 1 to {seen}"),
        };
        Failure::refused(path.display().to_string(), problem)
    })
}

/// The 802.11 frame of the packet, in a capture of a radio.
pub(super) fn radio_frame(packet: &CapturePacket) -> Option<RadioFrame<'_>> {
    let is_radio = packet.link == DataLink::IEEE802_11_RADIOTAP;
    if is_radio { radio_frame_of(&packet.block.data) } else { None }
}

/// Data about a packet in a capture, without its bytes.
pub(super) struct PacketFacts {
    pub(super) is_inbound: bool,
    /// It has a direction. Packets of a monitor have none.
    pub(super) is_directed: bool,
    /// Its comments about the packet.
    pub(super) comments: Vec<String>,
    /// The comment on its link, without the first words.
    link: Option<String>,
}

/// The first words of a comment on a link.
const OF_LINK: &str = "link to ";

pub(super) fn said(packet: &EnhancedPacketBlock<'_>) -> PacketFacts {
    const INBOUND: u32 = 1;
    let mut comments = Vec::new();
    let (mut direction, mut link) = (0, None);
    for option in &packet.options {
        match option {
            EnhancedPacketOption::Comment(text) => {
                let text = plain::line(text);
                match text.strip_prefix(OF_LINK) {
                    Some(told) => link = Some(told.to_owned()),
                    None => comments.push(text),
                }
            }
            EnhancedPacketOption::Flags(flags) => direction = flags & 3,
            _ => {}
        }
    }
    PacketFacts { is_inbound: direction == INBOUND, is_directed: direction != 0, comments, link }
}

impl PacketFacts {
    pub(super) fn comment(&self) -> Option<String> {
        joined(&self.comments)
    }

    /// The whole comment on its link.
    pub(super) fn of_link(&self) -> Option<String> {
        self.link.as_ref().map(|told| format!("{OF_LINK}{told}"))
    }
}

pub(super) fn joined(comments: &[String]) -> Option<String> {
    (!comments.is_empty()).then(|| comments.join("; "))
}

/// The address and port of this end, then of the peer; empty if the packet is no TCP.
pub(super) fn flow(packet: &CapturePacket, is_inbound: bool) -> String {
    let Some((ip, tcp, _)) = layers(packet.link, &packet.block.data).ip.and_then(tcp) else {
        return String::new();
    };
    let (src, dst) = (SocketAddr::new(ip.src, tcp.src_port), SocketAddr::new(ip.dst, tcp.dst_port));
    if is_inbound { format!("{dst} - {src}") } else { format!("{src} - {dst}") }
}

fn describe(packet: &CapturePacket) -> String {
    let (frame, said, data) = (packet.frame, said(&packet.block), &packet.block.data);
    let (is_inbound, comment) = (said.is_inbound, said.comment());
    let told = said.link.map_or(String::new(), |told| format!(" The link to {told}."));
    if packet.link == DataLink::IEEE802_11_RADIOTAP {
        return describe_radio(frame, is_inbound, comment, data);
    }
    let what = match packet.link {
        DataLink::ETHERNET => {
            if let Some(arp) = arp(data) {
                let way = if is_inbound { "came in" } else { "left" };
                return format!("Frame {frame} ({arp}) {way}; it is of the link, not of a connection.");
            }
            what(ethernet_payload(data))
        }
        _ => what(data),
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
fn describe_radio(frame: u64, is_inbound: bool, comment: Option<String>, data: &[u8]) -> String {
    let read = radio_frame_of(data);
    let frame_itself =
        read.as_ref().map_or_else(|| format!("{} bytes", data.len()), |read| read.what.clone());
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
    let (protocol, _) = behind_routing(ip.protocol, ip.payload);
    if protocol != protocol::TCP {
        return format!("{hosts}, protocol {protocol}");
    }
    match tcp(packet) {
        Some((_, tcp, _)) => {
            let bytes = tcp.payload.len();
            let kind = if bytes == 0 { "no data".to_owned() } else { format!("{bytes} bytes") };
            format!("{}:{} to {}:{}, {kind}", ip.src, tcp.src_port, ip.dst, tcp.dst_port)
        }
        None => hosts,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::time::Duration;

    use super::*;

    fn packet(frame: u64, options: Vec<EnhancedPacketOption<'static>>) -> CapturePacket {
        let data = Cow::Borrowed(&b"xx"[..]);
        let timestamp = Duration::ZERO;
        let block = EnhancedPacketBlock { interface_id: 0, timestamp, original_len: 2, data, options };
        CapturePacket { frame, at: 0, interface: 0, link: DataLink::RAW, block }
    }

    #[test]
    fn a_packet_of_ours_says_why_it_left() {
        let comment = EnhancedPacketOption::Comment("ACK 9: delayed decided it, count 2 of 2".into());
        let text = describe(&packet(3, vec![EnhancedPacketOption::Flags(2), comment]));
        assert_eq!(text, "Frame 3 (2 bytes) left because: ACK 9: delayed decided it, count 2 of 2.");
    }

    #[test]
    fn what_is_told_of_a_link_is_no_reason_of_the_packet() {
        let told = || EnhancedPacketOption::Comment("link to 02:00:00:00:00:01; signal -61 dBm".into());
        let because = EnhancedPacketOption::Comment("10 bytes, new".into());
        let text = |options| describe(&packet(3, options));
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
        let text = describe(&packet(1, vec![EnhancedPacketOption::Flags(1), comment]));
        assert_eq!(text, "Frame 1 (2 bytes) came in. dropped: paws.");
    }

    #[test]
    fn a_comment_is_one_line() {
        let comment = EnhancedPacketOption::Comment("dropped: x\nFrame 2 left\u{202e}; \r\ty".into());
        let text = describe(&packet(1, vec![EnhancedPacketOption::Flags(1), comment]));
        assert_eq!(text, "Frame 1 (2 bytes) came in. dropped: x?Frame 2 left?; ??y.");
    }
}
