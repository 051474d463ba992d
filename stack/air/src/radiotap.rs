//! Captures as a monitor interface would write them: pcap with radiotap headers, which Wireshark reads.
//!
//! The frames are whole, with LLC and SNAP before the packet; the airtime of ns-2's sizes leaves those 8 bytes out.

use std::io::{self, Write};

use crate::dcf::FrameKind;
use crate::frames::{FrameEvent, Framing, Mac, Sees, mac_of};

/// Nanoseconds, and IEEE 802.11 with radiotap.
const MAGIC: u32 = 0xa1b2_3c4d;
const LINK_TYPE: u32 = 127;
const SNAP_LEN: u32 = 65_535;

/// TSFT, rate and antenna signal: bits 0, 2 and 5.
const PRESENT: u32 = 1 | 1 << 2 | 1 << 5;
const RADIOTAP_LEN: u16 = 18;

/// What begins the file.
pub fn write_header(to: &mut dyn Write) -> io::Result<()> {
    to.write_all(&MAGIC.to_le_bytes())?;
    to.write_all(&2_u16.to_le_bytes())?;
    to.write_all(&4_u16.to_le_bytes())?;
    to.write_all(&[0; 8])?;
    to.write_all(&SNAP_LEN.to_le_bytes())?;
    to.write_all(&LINK_TYPE.to_le_bytes())
}

/// A frame that was sent or decoded; others leave nothing that a receiver could write down. `packet` is what a data
/// frame carries, as its machine has it.
pub fn write_frame(
    to: &mut dyn Write,
    event: &FrameEvent,
    framing: Framing,
    packet: &[u8],
) -> io::Result<()> {
    if !matches!(event.sees, Sees::Sends | Sees::Decodes) {
        return Ok(());
    }
    let mut bytes = radiotap(event);
    frame(event, framing, packet, &mut bytes);
    to.write_all(&((event.from_ns / 1_000_000_000) as u32).to_le_bytes())?;
    to.write_all(&((event.from_ns % 1_000_000_000) as u32).to_le_bytes())?;
    let len = (bytes.len() as u32).to_le_bytes();
    to.write_all(&len)?;
    to.write_all(&len)?;
    to.write_all(&bytes)
}

fn radiotap(event: &FrameEvent) -> Vec<u8> {
    let mut bytes = vec![0, 0];
    bytes.extend_from_slice(&RADIOTAP_LEN.to_le_bytes());
    bytes.extend_from_slice(&PRESENT.to_le_bytes());
    bytes.extend_from_slice(&(event.from_ns / 1_000).to_le_bytes());
    bytes.push((event.frame.rate.bits_per_second / 500_000).min(255) as u8);
    bytes.push(dbm(event.power_w) as u8);
    bytes
}

fn dbm(power_w: f64) -> i8 {
    if power_w <= 0.0 {
        return i8::MIN;
    }
    (10.0 * libm::log10(power_w) + 30.0).clamp(-128.0, 127.0) as i8
}

const CELL: Mac = [0x02, 0xff, 0xff, 0xff, 0xff, 0xff];

fn frame(event: &FrameEvent, framing: Framing, packet: &[u8], out: &mut Vec<u8>) {
    let frame = &event.frame;
    let control: u8 = match frame.kind {
        FrameKind::Rts => 0xb4,
        FrameKind::Cts => 0xc4,
        FrameKind::Ack => 0xd4,
        FrameKind::Data => 0x08,
    };
    out.extend_from_slice(&[control, if frame.is_repeat { 0x08 } else { 0 }]);
    out.extend_from_slice(&((frame.duration_ns / 1_000).min(32_767) as u16).to_le_bytes());
    out.extend_from_slice(&mac_of(frame.to));
    match frame.kind {
        FrameKind::Cts | FrameKind::Ack => {}
        FrameKind::Rts => out.extend_from_slice(&mac_of(event.sender)),
        FrameKind::Data => {
            out.extend_from_slice(&mac_of(event.sender));
            out.extend_from_slice(&CELL);
            out.extend_from_slice(&((frame.number << 4) as u16).to_le_bytes());
            out.extend_from_slice(&[0xaa, 0xaa, 0x03, 0, 0, 0]);
            out.extend_from_slice(&framing.ether_type(packet).to_be_bytes());
            out.extend_from_slice(framing.payload(packet));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dcf::Frame;

    fn event(kind: FrameKind) -> FrameEvent {
        let frame = Frame {
            kind,
            to: 1,
            duration_ns: 314_000,
            airtime_ns: 0,
            rate: crate::phy::Phy::named("dsss-2mbps").expect("a profile").data,
            bytes: 0,
            number: 3,
            load: crate::ledger::Load::Other,
            is_announced: true,
            is_repeat: false,
        };
        let sees = Sees::Decodes;
        FrameEvent { from_ns: 1_000_002_000, until_ns: 0, station: 1, sender: 0, sees, power_w: 1e-9, frame }
    }

    fn written(event: &FrameEvent, packet: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, event, Framing::Packet, packet).expect("memory takes everything");
        bytes
    }

    #[test]
    fn an_ethernet_header_gives_way_to_the_radios_own_and_leaves_its_type() {
        let mut frame = vec![0xff; 12];
        frame.extend_from_slice(&[0x88, 0x8e, 1, 2, 3]);
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &event(FrameKind::Data), Framing::Ethernet, &frame)
            .expect("memory takes everything");
        assert!(bytes.ends_with(&[0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0x8e, 1, 2, 3]));
        assert_eq!(bytes.len(), 16 + usize::from(RADIOTAP_LEN) + 24 + 8 + 3);
    }

    #[test]
    fn frames_have_the_lengths_of_the_standard_without_fcs() {
        let record = 16 + usize::from(RADIOTAP_LEN);
        assert_eq!(written(&event(FrameKind::Rts), &[]).len(), record + 16);
        assert_eq!(written(&event(FrameKind::Ack), &[]).len(), record + 10);
        assert_eq!(written(&event(FrameKind::Data), &[0x45; 40]).len(), record + 24 + 8 + 40);
        let lost = FrameEvent { sees: Sees::Collision, ..event(FrameKind::Rts) };
        assert!(written(&lost, &[]).is_empty());
    }

    #[test]
    fn signal_is_told_in_dbm_and_time_to_the_nanosecond() {
        let bytes = written(&event(FrameKind::Rts), &[]);
        assert_eq!((&bytes[..8], bytes[33] as i8), (&[1, 0, 0, 0, 0xd0, 7, 0, 0][..], -60));
    }
}
