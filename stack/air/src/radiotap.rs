//! Frames as a monitor interface gives them: a radiotap header, the frame, its FCS. Wireshark reads them.
//!
//! The frames have LLC and SNAP before the packet. By ns-2's sizes a data frame's airtime leaves 2 bytes out.

use hopwise_core::narrow::as_u32;

use crate::dcf::{FrameKind, category_of};
use crate::frames::{FrameEffect, FrameEvent, Framing, Mac, mac_of};
use crate::medium::Radio;
use crate::phy::{BitForm, ChannelBandwidth, Coding, GuardInterval, Ht, MOST_MCS, Phy, Rate, Vht};
use crate::truncate;

/// TSFT, flags, rate, channel and antenna signal: bits 0, 1, 2, 3 and 5.
const PRESENT: u32 = 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5;
const RADIOTAP_LEN: u16 = 23;
/// A frame of 802.11n has MCS information at the end, bit 19, and no rate.
const HT_PRESENT: u32 = 1 | 1 << 1 | 1 << 3 | 1 << 5 | 1 << 19;
const HT_RADIOTAP_LEN: u16 = 26;
/// A frame of 802.11ac has VHT information, bit 21, behind a byte of padding.
const VHT_PRESENT: u32 = 1 | 1 << 1 | 1 << 3 | 1 << 5 | 1 << 21;
const VHT_RADIOTAP_LEN: u16 = 36;
/// The guard interval and the width of the frame are known.
const VHT_KNOWN: u16 = 1 << 2 | 1 << 6;
const VHT_SHORT_GUARD: u8 = 0x04;
/// The MCS, width, guard interval and format of the frame are known.
const MCS_KNOWN: u8 = 0x0f;
/// Width, index and guard interval, which make the rate.
const MCS_NEEDED: u8 = 0x07;
const MCS_WIDTH: u8 = 0x03;
const MCS_40_MHZ: u8 = 0x01;
const MCS_SHORT_GUARD: u8 = 0x04;

/// Flag of a frame in radiotap: it has a short preamble.
pub const SHORT_PREAMBLE: u8 = 0x02;
/// Flag of a frame in radiotap: its FCS is at the end.
pub const HAS_FCS: u8 = 0x10;
/// Flag of a channel in radiotap: OFDM. Readers take the PHY from these flags; the band is therefore given whatever the
/// frequency.
pub const OFDM: u16 = 0x0040;
const CCK: u16 = 0x0020;
const BAND_2_GHZ: u16 = 0x0080;
/// Flag of a channel in radiotap: it is one at 5 GHz.
pub const BAND_5_GHZ: u16 = 0x0100;

/// A preamble is short when it takes less than the long one, in nanoseconds.
const LONG_PREAMBLE_NS: u64 = 192_000;
/// The preamble of OFDM, with its SIGNAL field.
const OFDM_PREAMBLE_NS: u64 = 20_000;

/// The fields that all frames of a world share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    flags: u8,
    mhz: u16,
    channel_flags: u16,
    preamble_ns: u64,
    /// Data frames have QoS Control.
    has_qos: bool,
    macs: Vec<Mac>,
}

impl Monitor {
    /// The fields for frames of this physical layer and radio. Stations have these addresses, or else our own.
    pub fn new(phy: &Phy, radio: &Radio, macs: Vec<Mac>) -> Monitor {
        let (preamble_ns, coding) = match phy.coding {
            Coding::Dsss { preamble_ns } => (preamble_ns, CCK),
            Coding::ErpOfdm | Coding::Ofdm => (OFDM_PREAMBLE_NS, OFDM),
        };
        let is_short = coding == CCK && preamble_ns < LONG_PREAMBLE_NS;
        Monitor {
            flags: HAS_FCS | if is_short { SHORT_PREAMBLE } else { 0 },
            mhz: u16::try_from(truncate::to_u32(radio.frequency_hz / 1e6)).unwrap_or(u16::MAX),
            channel_flags: coding | if phy.coding == Coding::Ofdm { BAND_5_GHZ } else { BAND_2_GHZ },
            preamble_ns,
            has_qos: phy.is_ht(),
            macs,
        }
    }

    fn mac(&self, station: u32) -> Mac {
        self.macs.get(station as usize).copied().unwrap_or_else(|| mac_of(station))
    }

    /// Appends a frame that was sent or decoded, and returns whether it was. A receiver could not write down any other.
    /// `packet` is the data frame's packet, as its machine has it.
    pub fn write(&self, event: &FrameEvent, framing: Framing, packet: &[u8], out: &mut Vec<u8>) -> bool {
        if !matches!(event.sees, FrameEffect::Sends | FrameEffect::Decodes) {
            return false;
        }
        self.write_radiotap(event, out);
        let start = out.len();
        self.write_frame(event, framing, packet, out);
        let fcs = fcs(&out[start..]);
        out.extend_from_slice(&fcs.to_le_bytes());
        true
    }

    fn write_radiotap(&self, event: &FrameEvent, out: &mut Vec<u8>) {
        let rate = event.frame.rate;
        let (len, present, preamble_ns) = match rate.form {
            BitForm::Ht(ht) => (HT_RADIOTAP_LEN, HT_PRESENT, ht.preamble_ns()),
            BitForm::Vht(vht) => (VHT_RADIOTAP_LEN, VHT_PRESENT, vht.preamble_ns()),
            BitForm::Legacy | BitForm::NonHt => (RADIOTAP_LEN, PRESENT, self.preamble_ns),
        };
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&present.to_le_bytes());
        // The first bit of the MPDU, which follows the preamble.
        out.extend_from_slice(&((event.from_ns + preamble_ns) / 1_000).to_le_bytes());
        out.push(self.flags);
        // Without a rate, the channel has padding before it.
        out.push(if rate.is_ht() { 0 } else { (rate.bits_per_second / 500_000).min(255) as u8 });
        out.extend_from_slice(&self.mhz.to_le_bytes());
        out.extend_from_slice(&self.channel_flags.to_le_bytes());
        out.push(dbm(event.power_w) as u8);
        match rate.form {
            BitForm::Ht(ht) => write_mcs(ht, out),
            BitForm::Vht(vht) => write_vht(vht, out),
            BitForm::Legacy | BitForm::NonHt => {}
        }
    }

    fn write_frame(&self, event: &FrameEvent, framing: Framing, packet: &[u8], out: &mut Vec<u8>) {
        let frame = &event.frame;
        let repeat = if frame.is_repeat { 0x08 } else { 0 };
        let duration = ((frame.duration_ns / 1_000).min(32_767) as u16).to_le_bytes();
        if let (FrameKind::Data, Framing::Whole, [control, flags, _, _, rest @ ..]) =
            (frame.kind, framing, packet)
        {
            out.extend_from_slice(&[*control, flags | repeat]);
            out.extend_from_slice(&duration);
            out.extend_from_slice(rest);
            return;
        }
        let qos = if self.has_qos && frame.kind == FrameKind::Data { QOS } else { 0 };
        out.extend_from_slice(&[control(frame.kind) | qos, repeat]);
        out.extend_from_slice(&duration);
        out.extend_from_slice(&self.mac(frame.to));
        match frame.kind {
            FrameKind::Cts | FrameKind::Ack => {}
            FrameKind::Rts => out.extend_from_slice(&self.mac(event.sender)),
            FrameKind::BlockAck | FrameKind::BlockAckReq => {
                out.extend_from_slice(&self.mac(event.sender));
                let tid = category_of(frame.number).priority() << 4;
                out.extend_from_slice(&[COMPRESSED, tid]);
                out.extend_from_slice(&sequence_control(frame.number));
                if frame.kind == FrameKind::BlockAck {
                    out.extend_from_slice(&frame.bitmap.to_le_bytes());
                }
            }
            FrameKind::Data => {
                out.extend_from_slice(&self.mac(event.sender));
                out.extend_from_slice(&CELL);
                out.extend_from_slice(&sequence_control(frame.number));
                if qos != 0 {
                    out.extend_from_slice(&[category_of(frame.number).priority(), 0]);
                }
                out.extend_from_slice(&[0xaa, 0xaa, 0x03, 0, 0, 0]);
                out.extend_from_slice(&framing.ether_type(packet).to_be_bytes());
                out.extend_from_slice(framing.payload(packet));
            }
        }
    }
}

/// The field of bit 19.
fn write_mcs(Ht { mcs, width, guard }: Ht, out: &mut Vec<u8>) {
    let width = if width == ChannelBandwidth::Mhz40 { MCS_40_MHZ } else { 0 };
    let guard = if guard == GuardInterval::Short { MCS_SHORT_GUARD } else { 0 };
    out.extend_from_slice(&[MCS_KNOWN, width | guard, mcs]);
}

/// The field of bit 21, for one user.
fn write_vht(Vht { mcs, streams, width, guard }: Vht, out: &mut Vec<u8>) {
    let guard = if guard == GuardInterval::Short { VHT_SHORT_GUARD } else { 0 };
    let width = match width {
        ChannelBandwidth::Mhz20 => 0,
        ChannelBandwidth::Mhz40 => 1,
        ChannelBandwidth::Mhz80 => 4,
    };
    out.push(0);
    out.extend_from_slice(&VHT_KNOWN.to_le_bytes());
    out.extend_from_slice(&[guard, width, mcs << 4 | streams, 0, 0, 0]);
    // The convolutional code; no group and no partial AID.
    out.extend_from_slice(&[0, 0, 0, 0]);
}

/// The rate that a field of bit 19 tells; none for one that 802.11n does not have here, such as of three streams.
pub fn rate_of_mcs([known, flags, mcs]: [u8; 3]) -> Option<Rate> {
    let width =
        if flags & MCS_WIDTH == MCS_40_MHZ { ChannelBandwidth::Mhz40 } else { ChannelBandwidth::Mhz20 };
    let ht = Ht { mcs, width, guard: guard(flags & MCS_SHORT_GUARD) };
    // Many drivers do not tell the format of the preamble, and hardly a radio sends the greenfield format.
    (known & MCS_NEEDED == MCS_NEEDED && mcs <= MOST_MCS).then(|| ht.rate())
}

/// The rate that a field of bit 21 tells of its first user.
pub fn rate_of_vht(field: [u8; 12]) -> Option<Rate> {
    let [_, _, flags, width, of_user, ..] = field;
    let width = match width {
        0 => ChannelBandwidth::Mhz20,
        1..=3 => ChannelBandwidth::Mhz40,
        4..=10 => ChannelBandwidth::Mhz80,
        _ => return None,
    };
    let vht =
        Vht { mcs: of_user >> 4, streams: of_user & 0x0f, width, guard: guard(flags & VHT_SHORT_GUARD) };
    vht.checked_rate()
}

fn guard(is_short: u8) -> GuardInterval {
    if is_short == 0 { GuardInterval::Long } else { GuardInterval::Short }
}

/// Whole dBm, as radiotap and drivers give them.
pub fn dbm(power_w: f64) -> i8 {
    if power_w <= 0.0 { i8::MIN } else { truncate::to_i8(10.0 * libm::log10(power_w) + 30.0) }
}

/// The BSSID of a world's ad hoc network.
pub const CELL: Mac = [0x02, 0xff, 0xff, 0xff, 0xff, 0xff];

/// The control field of a block ACK with a bitmap of 8 bytes, and of a request for one. Its highest bits are the TID.
const COMPRESSED: u8 = 0x04;

fn sequence_control(number: u32) -> [u8; 2] {
    (((number << 4) & 0xffff) as u16).to_le_bytes()
}

/// The bit of QoS data in the first byte of Frame Control.
const QOS: u8 = 0x80;

/// The first byte of Frame Control: version, type and subtype.
pub fn control(kind: FrameKind) -> u8 {
    match kind {
        FrameKind::Rts => 0xb4,
        FrameKind::Cts => 0xc4,
        FrameKind::Ack => 0xd4,
        FrameKind::Data => 0x08,
        FrameKind::BlockAck => 0x94,
        FrameKind::BlockAckReq => 0x84,
    }
}

/// IEEE 802.11-2016 §9.2.4.8: a CRC of 32 bits, the lowest bit of each byte first.
fn fcs(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| crc >> 8 ^ CRC[((crc ^ u32::from(*byte)) & 0xff) as usize];
    !bytes.iter().fold(!0, step)
}

static CRC: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (as_u32(byte), 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dcf::Frame;

    const HEADER: usize = RADIOTAP_LEN as usize;
    const FCS: usize = 4;

    fn event(kind: FrameKind) -> FrameEvent {
        let frame = Frame {
            kind,
            to: 1,
            duration_ns: 314_000,
            airtime_ns: 0,
            rate: phy("dsss-2mbps").data,
            bytes: 0,
            number: 3,
            load: crate::airtime::AirLoad::Other,
            is_announced: true,
            is_repeat: false,
            access: None,
            mpdus: 0,
            bitmap: 0,
        };
        let sees = FrameEffect::Decodes;
        FrameEvent {
            from_ns: 1_000_002_000,
            until_ns: 0,
            station: 1,
            sender: 0,
            sees,
            power_w: 1e-9,
            frame,
            packet_id: 0,
        }
    }

    fn phy(name: &str) -> Phy {
        Phy::named(name).expect("a profile")
    }

    fn written(event: &FrameEvent, profile: &str, framing: Framing, packet: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Monitor::new(&phy(profile), &Radio::default(), Vec::new()).write(event, framing, packet, &mut bytes);
        bytes
    }

    #[test]
    fn an_ethernet_header_gives_way_to_the_radios_own_and_leaves_its_type() {
        let mut frame = vec![0xff; 12];
        frame.extend_from_slice(&[0x88, 0x8e, 1, 2, 3]);
        let bytes = written(&event(FrameKind::Data), "dsss-2mbps", Framing::Ethernet, &frame);
        let (bytes, _) = bytes.split_at(bytes.len() - FCS);
        assert!(bytes.ends_with(&[0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0x8e, 1, 2, 3]));
        assert_eq!(bytes.len(), HEADER + 24 + 8 + 3);
    }

    #[test]
    fn a_whole_frame_stays_as_it_is_but_for_its_retry_bit_and_its_duration() {
        let packet: Vec<u8> = [&[0x80, 0x01, 9, 9][..], &[7; 40]].concat();
        let mut again = event(FrameKind::Data);
        again.frame.is_repeat = true;
        let bytes = written(&again, "dsss-2mbps", Framing::Whole, &packet);
        assert_eq!(bytes[HEADER..HEADER + 4], [0x80, 0x09, 0x3a, 0x01]);
        assert_eq!(bytes[HEADER + 4..bytes.len() - FCS], packet[4..]);
    }

    #[test]
    fn frames_have_the_lengths_of_the_standard() {
        let len =
            |event: &FrameEvent, packet: &[u8]| written(event, "dsss-2mbps", Framing::Packet, packet).len();
        assert_eq!(len(&event(FrameKind::Rts), &[]), HEADER + 16 + FCS);
        assert_eq!(len(&event(FrameKind::Ack), &[]), HEADER + 10 + FCS);
        assert_eq!(len(&event(FrameKind::Data), &[0x45; 40]), HEADER + 24 + 8 + 40 + FCS);
        let lost = FrameEvent { sees: FrameEffect::Collision, ..event(FrameKind::Rts) };
        assert_eq!(len(&lost, &[]), 0);
    }

    #[test]
    fn the_header_says_when_the_frame_began_behind_which_preamble_and_how_loud_it_was() {
        for (profile, from_us, flags, channel) in [
            ("dsss-2mbps", 1_000_194, 0x10, 0x00a0_u16),
            ("dsss-2mbps-short", 1_000_098, 0x12, 0x00a0),
            ("ofdm-54mbps", 1_000_022, 0x10, 0x00c0),
        ] {
            let bytes = written(&event(FrameKind::Rts), profile, Framing::Packet, &[]);
            assert_eq!(bytes[8..16], u64::to_le_bytes(from_us), "{profile}");
            assert_eq!((bytes[16], bytes[17]), (flags, 4), "{profile}");
            assert_eq!(bytes[18..22], [[0x92, 3], channel.to_le_bytes()].concat(), "{profile}");
            assert_eq!(bytes[22] as i8, -60, "{profile}");
        }
    }

    #[test]
    fn the_fcs_is_the_crc_that_everybody_checks_theirs_with() {
        assert_eq!(fcs(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_frame_of_802_11n_tells_its_mcs_and_has_qos_control() {
        let packet = [0x45, 1, 2];
        let phy = phy("ht40-mcs9").with_guard(GuardInterval::Short).in_band(crate::phy::Band::Ghz5);
        let mut event = event(FrameKind::Data);
        event.frame.rate = phy.data;
        let mut bytes = Vec::new();
        Monitor::new(&phy, &Radio::default(), Vec::new()).write(&event, Framing::Packet, &packet, &mut bytes);
        let header = HT_RADIOTAP_LEN as usize;
        assert_eq!(bytes[2..8], [26, 0, 0x2b, 0, 0x08, 0]);
        // The first bit of data comes 40 µs after the frame's.
        assert_eq!(bytes[8..16], 1_000_042_u64.to_le_bytes());
        assert_eq!(bytes[20..22], (OFDM | BAND_5_GHZ).to_le_bytes());
        assert_eq!(bytes[23..26], [MCS_KNOWN, MCS_40_MHZ | MCS_SHORT_GUARD, 9]);
        assert_eq!((bytes[header], &bytes[header + 24..header + 28]), (0x88, &[0, 0, 0xaa, 0xaa][..]));
        assert_eq!(bytes.len(), header + 24 + 2 + 8 + packet.len() + FCS);
    }

    #[test]
    fn a_frame_of_802_11ac_tells_its_mcs_its_streams_and_its_width() {
        let phy = phy("vht80-2ss-mcs9").with_guard(GuardInterval::Short);
        let mut event = event(FrameKind::Data);
        event.frame.rate = phy.data;
        let mut bytes = Vec::new();
        Monitor::new(&phy, &Radio::default(), Vec::new()).write(&event, Framing::Packet, &[0x45], &mut bytes);
        assert_eq!(bytes[2..8], [36, 0, 0x2b, 0, 0x20, 0]);
        // The first bit of data comes 44 µs after the frame's.
        assert_eq!(bytes[8..16], 1_000_046_u64.to_le_bytes());
        assert_eq!(bytes[20..22], (OFDM | BAND_5_GHZ).to_le_bytes());
        assert_eq!(bytes[24..36], [0x44, 0, VHT_SHORT_GUARD, 4, 0x92, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[36], 0x88);
    }
}
