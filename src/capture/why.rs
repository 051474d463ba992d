//! One packet of a capture, in a sentence.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use hopwise_core::wire::{Checksums, IpView, TcpView, protocol};
use hopwise_mesh::behind_routing;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::{Block, PcapNgReader};

use crate::failure::Failure;

pub(super) fn sentence(path: &Path, frame: u64) -> Result<String, Failure> {
    let name = path.display().to_string();
    let refused = |problem: &dyn std::fmt::Display| Failure::refused(&name, problem);
    let file = File::open(path).map_err(|error| refused(&error))?;
    let mut reader = PcapNgReader::new(BufReader::new(file))
        .map_err(|error| refused(&format_args!("expected a pcapng capture: {error}")))?;
    let mut seen = 0;
    while let Some(block) = reader.next_block() {
        let block = block.map_err(|error| refused(&format_args!("after frame {seen}: {error}")))?;
        if let Block::EnhancedPacket(packet) = block {
            seen += 1;
            if seen == frame {
                return Ok(describe(frame, &packet));
            }
        }
    }
    if seen == 0 {
        return Err(refused(&"it has no frames"));
    }
    Err(refused(&format_args!("it has {seen} frames, expected a frame from 1 to {seen}")))
}

fn describe(frame: u64, packet: &EnhancedPacketBlock<'_>) -> String {
    const INBOUND: u32 = 1;
    let mut comment = None;
    let mut is_inbound = false;
    for option in &packet.options {
        match option {
            EnhancedPacketOption::Comment(text) => comment = Some(text.to_string()),
            EnhancedPacketOption::Flags(flags) => is_inbound = flags & 3 == INBOUND,
            _ => {}
        }
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
        let text = describe(3, &packet(vec![EnhancedPacketOption::Flags(2), comment]));
        assert_eq!(text, "Frame 3 (2 bytes) left because: ACK 9: delayed decided it, count 2 of 2.");
    }

    #[test]
    fn an_arrival_says_what_became_of_it() {
        let comment = EnhancedPacketOption::Comment("dropped: paws".into());
        let text = describe(1, &packet(vec![EnhancedPacketOption::Flags(1), comment]));
        assert_eq!(text, "Frame 1 (2 bytes) came in. dropped: paws.");
    }
}
