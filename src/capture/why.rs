//! One packet of a capture, in a sentence.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use hopwise_core::wire::{Checksums, IpView, TcpView, protocol};
use hopwise_mesh::behind_routing;
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::{Block, PcapNgReader};

use super::radio;
use crate::failure::Failure;

pub(super) fn sentence(path: &Path, frame: u64) -> Result<String, Failure> {
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
            Block::EnhancedPacket(packet) => {
                seen += 1;
                if seen == frame {
                    let link = links.get(packet.interface_id as usize).copied();
                    return Ok(describe(frame, link, &packet));
                }
            }
            _ => {}
        }
    }
    if seen == 0 {
        return Err(refused(&"it has no frames"));
    }
    Err(refused(&format_args!("it has {seen} frames, expected a frame from 1 to {seen}")))
}

/// The captures that have comments.
const WANTED: &str =
    "in pcapng, of a node or of --capture (`hopwise run`, `trial`, `air`); a classic pcap has no reasons";

fn describe(frame: u64, link: Option<DataLink>, packet: &EnhancedPacketBlock<'_>) -> String {
    const INBOUND: u32 = 1;
    let mut comments = Vec::new();
    let mut is_inbound = false;
    for option in &packet.options {
        match option {
            EnhancedPacketOption::Comment(text) => comments.push(text.as_ref()),
            EnhancedPacketOption::Flags(flags) => is_inbound = flags & 3 == INBOUND,
            _ => {}
        }
    }
    let comment = (!comments.is_empty()).then(|| comments.join("; "));
    if link == Some(DataLink::IEEE802_11_RADIOTAP) {
        return describe_radio(frame, is_inbound, comment, packet);
    }
    let what = what(&packet.data);
    match (is_inbound, comment) {
        (false, Some(comment)) => format!("Frame {frame} ({what}) left because: {comment}."),
        (false, None) => format!(
            "Frame {frame} ({what}) left; the trace says nothing of it (no TCP, or events were lost)."
        ),
        (true, Some(comment)) => format!("Frame {frame} ({what}) came in. {comment}."),
        (true, None) => format!("Frame {frame} ({what}) came in, and was taken without a word."),
    }
}

/// The MAC's words tell how a frame left, not only why.
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

/// Who to whom, and what kind of segment.
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
    fn an_arrival_says_what_became_of_it() {
        let comment = EnhancedPacketOption::Comment("dropped: paws".into());
        let text = describe(1, Some(DataLink::RAW), &packet(vec![EnhancedPacketOption::Flags(1), comment]));
        assert_eq!(text, "Frame 1 (2 bytes) came in. dropped: paws.");
    }
}
