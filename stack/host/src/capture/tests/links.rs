//! Comments on links, beside those on packets.

use std::net::IpAddr;

use hopwise_core::{LinkFacts, StationAddress};

use super::*;

/// All comments of each packet in a file.
fn comments(path: &Path) -> Vec<Vec<String>> {
    let bytes = fs::read(path).expect("the file is there");
    let mut reader = PcapNgReader::new(&bytes[..]).expect("it begins with a section");
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.expect("whole blocks") else { continue };
        let comments = packet.options.iter().filter_map(|option| match option {
            EnhancedPacketOption::Comment(text) => Some(text.to_string()),
            _ => None,
        });
        packets.push(comments.collect());
    }
    packets
}

#[test]
fn a_packet_has_a_comment_on_its_link_beside_its_reason() {
    let folder = Folder::new("capture-links");
    let (capture, mut tap) = new();
    let tell = |ns| {
        let station = StationAddress([2, 0, 0, 0, 0, 1]);
        let facts = LinkFacts { signal_dbm: Some(-61), ..LinkFacts::new(station, Instant(ns)) };
        let peer = IpAddr::from([10, 0, 0, 2]);
        capture.tell_links(&Arc::new([(peer, Arc::new(facts))].into()));
    };
    tell(1);
    capture.start(settings(&folder.file("a.pcapng"))).expect("it starts");
    let ip = [[0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6], [0, 0, 10, 0, 0, 1, 10, 0, 0, 2]].concat();
    packet(&mut tap, Direction::Out, 0, 1, &ip);
    tell(2);
    event(&mut tap, 10, 2, ack_sent(9));
    packet(&mut tap, Direction::Out, 0, 2, &ip);
    packet(&mut tap, Direction::Out, 0, 3, b"no IP");
    capture.stop().expect("it runs");
    let told = comments(&folder.file("a.pcapng"));
    let of_link = "link to 02:00:00:00:00:01; signal -61 dBm; told 0.000 ms ago";
    assert!(told[0].is_empty(), "what was told before the capture is no news of it: {told:?}");
    assert!(told[1].len() == 2 && told[1][0].starts_with("ACK 1") && told[1][1] == of_link, "{told:?}");
    assert!(told[2].is_empty(), "{told:?}");
}
