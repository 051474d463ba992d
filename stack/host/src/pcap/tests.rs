use std::fs;
use std::path::PathBuf;

use super::*;

/// A capture of raw IP packets at these microseconds. Its drop removes the file.
struct File(PathBuf);

impl File {
    fn new(name: &str, packets: &[(u32, Vec<u8>)]) -> File {
        let mut bytes = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for (at_us, packet) in packets {
            let len = packet.len() as u32;
            for word in [1000 + at_us / 1_000_000, at_us % 1_000_000, len, len] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
            bytes.extend_from_slice(packet);
        }
        let path = std::env::temp_dir().join(format!("hopwise-{}-{name}.pcap", std::process::id()));
        fs::write(&path, bytes).unwrap();
        File(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn packet(len: usize) -> Vec<u8> {
    let mut packet = vec![0; len];
    packet[0] = 0x45;
    packet
}

#[test]
fn packets_come_at_the_distances_at_which_they_were_recorded() {
    let file = File::new("paced", &[(0, packet(20)), (1500, packet(30)), (2_000_000, packet(40))]);
    let mut replay = Replay::open(&file.0, Pace::AsRecorded).unwrap();
    let (mut now, mut buffer, mut seen) = (Instant::from_secs(7), vec![0; crate::MAX_PACKET], Vec::new());
    while let Some(due) = replay.poll_timeout() {
        now = now.max(due);
        let Received::Packet(arrived) = replay.receive(now, &mut buffer) else { panic!("it is due") };
        seen.push((now.since(Instant::from_secs(7)).as_micros(), arrived.bytes));
        if replay.poll_timeout().is_some_and(|due| due > now) {
            assert_eq!(replay.receive(now, &mut buffer), Received::Nothing);
        }
    }
    assert_eq!(seen, [(0, 20), (1500, 30), (2_000_000, 40)]);
    assert_eq!(replay.counters().received.packets, 3);
}

#[test]
fn packets_come_at_once_where_that_is_asked_for() {
    let file = File::new("at-once", &[(0, packet(20)), (5_000_000, packet(30))]);
    let mut replay = Replay::open(&file.0, Pace::AtOnce).unwrap();
    let mut buffer = vec![0; crate::MAX_PACKET];
    for bytes in [20, 30] {
        let received = replay.receive(Instant::ZERO, &mut buffer);
        assert!(matches!(received, Received::Packet(arrived) if arrived.bytes == bytes));
    }
    assert_eq!(replay.receive(Instant::ZERO, &mut buffer), Received::Nothing);
    assert_eq!(replay.poll_timeout(), None);
}

#[test]
fn what_is_no_ip_is_counted_and_nothing_can_be_sent() {
    let file = File::new("junk", &[(0, vec![0x12; 40]), (0, packet(10))]);
    let mut replay = Replay::open(&file.0, Pace::AtOnce).unwrap();
    let mut buffer = vec![0; crate::MAX_PACKET];
    for _ in 0..2 {
        assert_eq!(replay.receive(Instant::ZERO, &mut buffer), Received::Dropped);
    }
    let numbered = crate::testing::numbered::transmit(0);
    assert_eq!(replay.transmit(Instant::ZERO, &numbered, &packet(20)), Sent::Refused(LinkDrop::ReceiveOnly));
    let drops = replay.counters().drops;
    assert_eq!(drops.values().sum::<u64>(), 3);
}

#[test]
fn a_file_that_is_no_capture_and_a_device_that_is_none_are_refused() {
    assert!(Replay::open(Path::new("Cargo.toml"), Pace::AtOnce).is_err());
    assert!(LiveCapture::open("nosuchdevice", None).is_err());
}

#[test]
fn the_packet_is_found_behind_each_header() {
    let mut tagged = vec![0; 12];
    tagged.extend_from_slice(&[0x81, 0, 0, 5, 0x08, 0, 0x45]);
    assert_eq!(Layer::Ethernet.packet(&tagged), Some(&[0x45][..]));
    let mut cooked = vec![0; 14];
    cooked.extend_from_slice(&[0x86, 0xdd, 0x60]);
    assert_eq!(Layer::Cooked.packet(&cooked), Some(&[0x60][..]));
    assert_eq!(Layer::Raw.packet(&[0x45]), Some(&[0x45][..]));
    assert_eq!(Layer::Null.packet(&[2, 0, 0, 0, 0x45]), Some(&[0x45][..]));
}

#[test]
fn what_is_no_ip_or_too_short_is_none() {
    assert_eq!(Layer::Ethernet.packet(&[0; 14]), None);
    assert_eq!(Layer::Ethernet.packet(&[0; 5]), None);
    assert_eq!(Layer::Cooked2.packet(&[8, 0, 0]), None);
    assert_eq!(Layer::from_number(147), None);
}
