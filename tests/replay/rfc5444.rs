//! Any bytes, taken as a packet of RFC 5444. A packet that was read keeps its meaning when it is written again, in no
//! more bytes.

use hopwise_mesh::rfc5444::Packet;

pub(crate) fn replay(bytes: &[u8]) {
    if let Ok(packet) = Packet::parse(bytes) {
        let again = packet.bytes().expect("what was read is no longer when it is written again");
        assert!(again.len() <= bytes.len(), "{} bytes became {}", bytes.len(), again.len());
        assert_eq!(Packet::parse(&again), Ok(packet));
    }
}
