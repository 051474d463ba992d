//! SYN cookies: the peer, not this host, remembers the handshake (RFC 4987 §3.6).
//!
//! The initial sequence number of the SYN-ACK is `[age:5 | MSS:3] + mask` and 24 bits that only we can compute. They
//! depend on addresses, ports, the peer's initial sequence number, the full age and the MSS. The mask hides age and MSS
//! from those who do not see our answers. Such an attacker guesses right once in 2^28; one who knows the mask of its
//! own flow does so once in 2^24. Window scale, SACK and ECN are kept in the timestamp, if there is one.

use std::net::SocketAddr;
use std::time::Duration;

use super::{Secrets, hash_flow};
use crate::narrow::{as_u8, low_u8, low_u32};
use crate::{Instant, Seq};

/// The MSS values of cookies. No peer needs less than the least: an IPv4 path of 68 bytes leaves that much for data.
pub(crate) const COOKIE_MSS: [u16; 8] = [28, 256, 536, 1000, 1220, 1360, 1440, 1460];
/// A cookie is valid until the end of the period after its own: between 64 and 128 s.
const PERIOD_NS: u64 = 64_000_000_000;
const AGES: u64 = 2;
/// The longest life of a cookie.
pub(crate) const COOKIE_LIFE: Duration = Duration::from_nanos(AGES * PERIOD_NS);

/// The handshake of a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CookieFlow {
    /// Our socket, to which the SYN came.
    pub(crate) local: SocketAddr,
    /// The sender of the SYN. Its address may be forged until the cookie comes back.
    pub(crate) remote: SocketAddr,
    /// The sequence number of the peer's SYN, which is that of its ACK less one.
    pub(crate) peer_isn: Seq,
}

impl CookieFlow {
    /// The initial sequence number of the SYN-ACK. The connection gets the greatest MSS of [`COOKIE_MSS`] that is not
    /// above the peer's.
    pub(crate) fn encode(&self, secrets: &Secrets, now: Instant, mss: u16) -> Seq {
        let class = as_u8(COOKIE_MSS.iter().rposition(|&class| class <= mss).unwrap_or(0));
        let period = now.0 / PERIOD_NS;
        let top = self.mask(secrets).wrapping_add(low_u8(period) << 3 | class);
        Seq(u32::from(top) << 24 | self.mac(secrets, period, class))
    }

    /// The MSS, if `cookie` (the acknowledgment number less one) is ours and not too old.
    pub(crate) fn decode(&self, secrets: &Secrets, now: Instant, cookie: Seq) -> Option<u16> {
        let top = ((cookie.0 >> 24) as u8).wrapping_sub(self.mask(secrets));
        let class = top & 7;
        let current = now.0 / PERIOD_NS;
        let age = low_u8(current).wrapping_sub(top >> 3) & 0x1f;
        let period = current.checked_sub(u64::from(age)).filter(|_| u64::from(age) < AGES)?;
        let genuine = self.mac(secrets, period, class) == cookie.0 & 0x00ff_ffff;
        genuine.then(|| COOKIE_MSS[usize::from(class)])
    }

    /// A name for a SYN and its repetitions. An attacker cannot choose SYNs with the names of others.
    pub(crate) fn name(&self, secrets: &Secrets) -> u64 {
        hash_flow(&secrets.syn_name, self.local, self.remote, &self.peer_isn.0.to_be_bytes())
    }

    fn mask(&self, secrets: &Secrets) -> u8 {
        low_u8(hash_flow(&secrets.cookie_mask, self.local, self.remote, &self.peer_isn.0.to_be_bytes()))
    }

    fn mac(&self, secrets: &Secrets, period: u64, class: u8) -> u32 {
        let mut message = [0; 13];
        message[..4].copy_from_slice(&self.peer_isn.0.to_be_bytes());
        message[4..12].copy_from_slice(&period.to_be_bytes());
        message[12] = class;
        low_u32(hash_flow(&secrets.cookie_mac, self.local, self.remote, &message)) & 0x00ff_ffff
    }
}

const OPTION_BITS: u32 = 6;
const OPTION_MASK: u32 = (1 << OPTION_BITS) - 1;
const NO_SCALE: u8 = 0xf;
const SACK: u32 = 1 << 4;
const ECN: u32 = 1 << 5;

/// The options in the timestamp of a SYN-ACK. A peer that forges its echo harms only itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CookieOptions {
    /// The shift that the peer's SYN offered; above 14 counts as 14 (RFC 7323 §2.3).
    pub(crate) wscale: Option<u8>,
    /// True if the SYN offered SACK, and our settings allow it (RFC 2018).
    pub(crate) sack: bool,
    /// True if the SYN offered ECN, and our settings allow it (RFC 3168 §6.1.1).
    pub(crate) ecn: bool,
}

impl CookieOptions {
    /// Decodes the TSecr of an ACK with a cookie, as [`cookie_timestamp`] made it.
    pub(crate) fn decode(ts_echo: u32) -> CookieOptions {
        let shift = (ts_echo & 0xf) as u8;
        CookieOptions {
            wscale: (shift != NO_SCALE).then_some(shift.min(14)),
            sack: ts_echo & SACK != 0,
            ecn: ts_echo & ECN != 0,
        }
    }

    fn bits(self) -> u32 {
        let shift = self.wscale.map_or(NO_SCALE, |shift| shift.min(14));
        u32::from(shift) | if self.sack { SACK } else { 0 } | if self.ecn { ECN } else { 0 }
    }
}

/// The newest TSval, not ahead of the clock, with the options in its low bits. Later timestamps of the connection must
/// not look older to the peer (RFC 7323 §5.3). It is at most 63 ticks behind.
pub(crate) fn cookie_timestamp(ts_clock: u32, options: CookieOptions) -> u32 {
    let behind = ts_clock.wrapping_sub(options.bits()) & OPTION_MASK;
    ts_clock.wrapping_sub(behind)
}

#[cfg(test)]
mod tests;
