//! The policy for ICMP errors, which keeps them from multiplying and from hitting bystanders.

use std::net::IpAddr;

use super::prefix::Prefix;
use super::{Loopback, is_unicast_destination, is_valid_source};
use crate::Cast;

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// The kind of error to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// IPv6 Parameter Problem code 2 about an option that asks for it even from a group (RFC 8200 §4.2, 10b).
    UnknownOption,
    /// IPv6 Parameter Problem about the fragment itself (RFC 8200 §4.5).
    Fragment,
    /// Any other error. Only whole packets and first fragments to one host get it.
    Other,
}

/// The packet that the error would be about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offender<'a> {
    /// The destination of the error, if it may be sent.
    pub(crate) src: IpAddr,
    /// The addressee. A group allows one kind of error in IPv6, and none in IPv4.
    pub(crate) dst: IpAddr,
    /// The addressee of its frame.
    pub(crate) cast: Cast,
    /// The protocol after all IP headers.
    pub(crate) protocol: u8,
    /// The type field, if `protocol` is ICMP or ICMPv6 and this fragment contains it.
    pub(crate) icmp_type: Option<u8>,
    /// 0 for a whole packet and for the first fragment.
    pub(crate) fragment_offset_bytes: u16,
    /// The subnets of our links, to recognise their broadcast addresses.
    pub(crate) subnets: &'a [Prefix],
    /// Allowed if the packet came over a link that stays within the host.
    pub(crate) loopback: Loopback,
}

/// RFC 1122 §3.2.2 and RFC 4443 §2.4 e. The rate limit comes after this check.
pub(crate) fn may_answer_with_error(packet: &Offender<'_>, error: ErrorKind) -> bool {
    let from_one = is_valid_source(packet.src, packet.loopback) && !is_broadcast(packet, packet.src);
    from_one && !is_about_error(packet) && is_addressed_well(packet, error) && is_fragment_well(packet, error)
}

/// Returns whether an ICMP message of that type is an error or a redirect.
pub(crate) fn is_icmp_error(protocol: u8, icmp_type: u8) -> bool {
    match protocol {
        // Unreachable, source quench, redirect, time exceeded, parameter problem (RFC 1122 §3.2.2).
        ICMP => matches!(icmp_type, 3 | 4 | 5 | 11 | 12),
        // Errors have the high bit clear (RFC 4443 §2.1); a redirect is treated as one (§2.4 e.2).
        ICMPV6 => icmp_type < 128 || icmp_type == 137,
        _ => false,
    }
}

fn is_about_error(packet: &Offender<'_>) -> bool {
    match packet.icmp_type {
        Some(icmp_type) => is_icmp_error(packet.protocol, icmp_type),
        // ICMP of an unknown type might be an error.
        None => matches!(packet.protocol, ICMP | ICMPV6),
    }
}

/// The packet must be addressed to us alone, by frame and by address. In IPv6 two errors may follow a packet to a
/// group. Path MTU discovery for multicast needs the one, and the option's own type asks for the other (RFC 4443 §2.4
/// e.3).
fn is_addressed_well(packet: &Offender<'_>, error: ErrorKind) -> bool {
    let to_one = is_unicast_destination(packet.dst) && !is_broadcast(packet, packet.dst);
    match packet.cast {
        Cast::Overheard => false,
        Cast::ToUs if to_one => true,
        Cast::ToUs | Cast::ToAll => may_follow_group(packet, error) && !packet.dst.is_unspecified(),
    }
}

/// Only the first fragment shows the kind of packet (RFC 1122 §3.2.2). In IPv6 an error about the fragment itself, or
/// one that an option asks for, goes out all the same (RFC 8200 §4.2, §4.5).
fn is_fragment_well(packet: &Offender<'_>, error: ErrorKind) -> bool {
    let is_about_it = packet.dst.is_ipv6() && error == ErrorKind::Fragment;
    packet.fragment_offset_bytes == 0 || is_about_it || may_follow_group(packet, error)
}

fn may_follow_group(packet: &Offender<'_>, error: ErrorKind) -> bool {
    packet.dst.is_ipv6() && error == ErrorKind::UnknownOption
}

fn is_broadcast(packet: &Offender<'_>, address: IpAddr) -> bool {
    packet.subnets.iter().any(|subnet| subnet.is_broadcast(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [ErrorKind; 3] = [ErrorKind::UnknownOption, ErrorKind::Fragment, ErrorKind::Other];

    fn udp<'a>(src: &str, dst: &str) -> Offender<'a> {
        Offender {
            src: src.parse().unwrap(),
            dst: dst.parse().unwrap(),
            cast: Cast::ToUs,
            protocol: 17,
            icmp_type: None,
            fragment_offset_bytes: 0,
            subnets: &[],
            loopback: Loopback::Refused,
        }
    }

    fn never(packet: &Offender<'_>) -> bool {
        KINDS.iter().all(|&kind| !may_answer_with_error(packet, kind))
    }

    #[test]
    fn a_packet_from_one_host_to_one_is_answered() {
        for packet in [udp("10.0.0.1", "10.0.0.2"), udp("fd00::1", "fd00::2")] {
            assert!(KINDS.iter().all(|&kind| may_answer_with_error(&packet, kind)));
        }
    }

    #[test]
    fn errors_and_redirects_are_never_answered() {
        for icmp_type in [3, 4, 5, 11, 12] {
            let packet =
                Offender { protocol: ICMP, icmp_type: Some(icmp_type), ..udp("10.0.0.1", "10.0.0.2") };
            assert!(never(&packet), "{icmp_type}");
        }
        for icmp_type in [1, 2, 3, 4, 127, 137] {
            let packet =
                Offender { protocol: ICMPV6, icmp_type: Some(icmp_type), ..udp("fd00::1", "fd00::2") };
            assert!(never(&packet), "{icmp_type}");
        }
    }

    #[test]
    fn echo_requests_are_answered_with_errors_but_unseen_types_are_not() {
        let v4 = Offender { protocol: ICMP, icmp_type: Some(8), ..udp("10.0.0.1", "10.0.0.2") };
        assert!(may_answer_with_error(&v4, ErrorKind::Other));
        let v6 = Offender { protocol: ICMPV6, icmp_type: Some(128), ..udp("fd00::1", "fd00::2") };
        assert!(may_answer_with_error(&v6, ErrorKind::Other));
        assert!(never(&Offender { icmp_type: None, ..v4 }));
        assert!(never(&Offender { icmp_type: None, ..v6 }));
    }

    #[test]
    fn sources_that_are_not_one_host_get_nothing() {
        for src in ["0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "250.1.1.1"] {
            assert!(never(&udp(src, "10.0.0.2")), "{src}");
        }
        for src in ["::", "ff02::1", "::1"] {
            assert!(never(&udp(src, "fd00::2")), "{src}");
        }
        let local = Offender { loopback: Loopback::Allowed, ..udp("127.0.0.1", "127.0.0.1") };
        assert!(may_answer_with_error(&local, ErrorKind::Other));
    }

    #[test]
    fn broadcast_of_a_subnet_counts_as_source_and_destination() {
        let subnets = ["10.7.0.1/16".parse().unwrap()];
        assert!(never(&Offender { subnets: &subnets, ..udp("10.7.0.3", "10.7.255.255") }));
        assert!(never(&Offender { subnets: &subnets, ..udp("10.7.255.255", "10.7.0.1") }));
        let other = Offender { subnets: &subnets, ..udp("10.7.0.3", "10.8.255.255") };
        assert!(may_answer_with_error(&other, ErrorKind::Other));
    }

    #[test]
    fn groups_are_answered_in_ipv6_only_and_with_one_error_only() {
        let frames = [(Cast::ToAll, "fd00::2"), (Cast::ToAll, "ff02::5"), (Cast::ToUs, "ff02::5")];
        for (cast, dst) in frames {
            let packet = Offender { cast, ..udp("fd00::1", dst) };
            assert!(may_answer_with_error(&packet, ErrorKind::UnknownOption), "{dst}");
            assert!(!may_answer_with_error(&packet, ErrorKind::Fragment), "{dst}");
            assert!(!may_answer_with_error(&packet, ErrorKind::Other), "{dst}");
        }
        for dst in ["224.0.0.5", "255.255.255.255", "0.0.0.0"] {
            assert!(never(&udp("10.0.0.1", dst)), "{dst}");
        }
        assert!(never(&udp("fd00::1", "::")), "nobody is no group");
        assert!(never(&Offender { cast: Cast::ToAll, ..udp("10.0.0.1", "10.0.0.2") }));
    }

    #[test]
    fn overheard_packets_are_nobody_elses_business() {
        assert!(never(&Offender { cast: Cast::Overheard, ..udp("10.0.0.1", "10.0.0.2") }));
        assert!(never(&Offender { cast: Cast::Overheard, ..udp("fd00::1", "fd00::2") }));
    }

    #[test]
    fn later_fragments_are_answered_only_about_themselves_or_on_request() {
        assert!(never(&Offender { fragment_offset_bytes: 8, ..udp("10.0.0.1", "10.0.0.2") }));
        let v6 = Offender { fragment_offset_bytes: 8, ..udp("fd00::1", "fd00::2") };
        assert!(may_answer_with_error(&v6, ErrorKind::UnknownOption));
        assert!(may_answer_with_error(&v6, ErrorKind::Fragment));
        assert!(!may_answer_with_error(&v6, ErrorKind::Other));
    }
}
