//! Tracks our own Ethernet address, which may change while the device is used.
//!
//! The address is read before each ARP or NDP message of ours. It is also read when the kernel and the frame disagree
//! on whether the frame is for us. An idle link reads nothing.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use hopwise_core::{Cast, Instant};

use super::ethernet::{self, EthernetFrame, Mac, Protocol};
use super::{Raw, arp, ndp};

/// The least time between two reads because of frames, which any host can send.
const ASK_EVERY: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(super) struct OwnMac {
    pub(super) mac: Mac,
    /// The time of the last read because of a frame.
    asked_at: Option<Instant>,
}

impl OwnMac {
    pub(super) fn new(mac: Mac) -> OwnMac {
        OwnMac { mac, asked_at: None }
    }

    /// Returns whether to read the address. The kernel then calls a frame to our address another's, or the reverse.
    fn is_doubted(&mut self, now: Instant, to: Mac, cast: Cast) -> bool {
        let is_doubted = match cast {
            Cast::Overheard => to == self.mac,
            Cast::ToUs => to != self.mac,
            Cast::ToAll => false,
        };
        let is_due = self.asked_at.is_none_or(|at| now.since(at) >= ASK_EVERY);
        if is_doubted && is_due {
            self.asked_at = Some(now);
        }
        is_doubted && is_due
    }
}

impl Raw {
    pub(super) fn doubt_mac(&mut self, now: Instant, frame: &EthernetFrame, cast: Cast) {
        if self.own.is_doubted(now, frame.to, cast) {
            self.look_at_mac(now);
        }
    }

    /// Uses the device's current address from here on, and announces a new one to all neighbours.
    pub(super) fn look_at_mac(&mut self, now: Instant) {
        let (Some(mac), before) = (self.socket.mac(), self.own.mac) else { return };
        if mac == before {
            return;
        }
        self.own.mac = mac;
        let [before, mac_now] = [before, mac].map(|mac| hopwise_core::StationAddress(mac).to_string());
        tracing::warn!(
            device = self.tally.name,
            before,
            now = mac_now,
            "the device has another Ethernet address"
        );
        for address in self.addresses.clone() {
            match address {
                // RFC 5227 §3.
                IpAddr::V4(_) => {
                    let packet = arp::question(mac, address, address);
                    self.put_frame(now, ethernet::BROADCAST, Protocol::Arp, &packet);
                }
                // RFC 4861 §7.2.6.
                IpAddr::V6(ours) => {
                    let packet = ndp::answer(mac, ours, Ipv6Addr::UNSPECIFIED);
                    let to = ethernet::multicast(ndp::ALL_NODES);
                    self.put_frame(now, to, Protocol::Ipv6, &packet);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_the_kernel_sees_otherwise_is_a_doubt_once_a_second() {
        let (ours, theirs) = ([2; 6], [4; 6]);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        for (to, cast, expected) in [
            (ours, Cast::ToUs, false),
            (theirs, Cast::Overheard, false),
            ([0xff; 6], Cast::ToAll, false),
            (ours, Cast::Overheard, true),
            (theirs, Cast::ToUs, true),
        ] {
            let mut own = OwnMac::new(ours);
            assert_eq!(own.is_doubted(at(0), to, cast), expected, "{to:?} {cast:?}");
            assert!(!own.is_doubted(at(999), to, cast));
            assert_eq!(own.is_doubted(at(1_999), to, cast), expected, "{to:?} {cast:?}");
        }
    }
}
