//! The time that a captured frame takes on the air, by the rate and the modulation in its radiotap header.

use hopwise_air::phy::{Coding, Phy};

use super::packets::FCS;
use super::radiotap::Radiotap;

/// Radiotap's unit of rates.
const RATE: u64 = 500_000;

/// Nanoseconds, with preamble. None without a rate, as for a frame of 802.11n.
pub(super) fn nanos(bytes: &[u8]) -> Option<u64> {
    let header = Radiotap::read(bytes)?;
    let rate = u64::from(header.rate?);
    let mut phy = Phy::named(if header.has_short_preamble() { "dsss-2mbps-short" } else { "dsss-2mbps" })?;
    if header.is_ofdm() {
        phy.coding = Coding::ErpOfdm;
    }
    let fcs = if header.has_fcs() { 0 } else { FCS };
    let len = u32::try_from(bytes.len().checked_sub(header.len)? + fcs).ok()?;
    phy.data.bits_per_second = rate * RATE;
    Some(phy.airtime_ns(len, phy.data))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with TSFT, flags, rate and channel, and `len` bytes behind it.
    fn frame(flags: u8, rate: u8, channel: u16, len: usize) -> Vec<u8> {
        let mut bytes = vec![0, 0, 22, 0, 0x0f, 0, 0, 0];
        bytes.extend([0; 8]);
        bytes.extend([flags, rate, 0, 0]);
        bytes.extend(channel.to_le_bytes());
        bytes.resize(22 + len, 0);
        bytes
    }

    #[test]
    fn a_frame_takes_its_preamble_and_its_bits() {
        // An ACK at 1 and at 2 Mbit/s, with FCS and without.
        assert_eq!(nanos(&frame(0x10, 2, 0x00a0, 14)), Some(304_000));
        assert_eq!(nanos(&frame(0x12, 4, 0x00a0, 14)), Some(152_000));
        assert_eq!(nanos(&frame(0x02, 4, 0x00a0, 10)), Some(152_000));
        // 20 µs, three symbols and the extension at 24 Mbit/s.
        assert_eq!(nanos(&frame(0x10, 48, 0x00c0, 14)), Some(34_000));
        assert_eq!(nanos(&frame(0x10, 0, 0x00c0, 14)), None);
    }

    #[test]
    fn headers_that_are_cut_off_have_no_airtime() {
        let bytes = frame(0x10, 2, 0x00a0, 14);
        assert!((0..22).all(|len| nanos(&bytes[..len]).is_none()));
    }
}
