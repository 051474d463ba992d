//! Sizes of headers and options, and the room for payload that they leave in a packet.

use super::Opening;
use crate::tcp::config::TcpConfig;
use crate::tcp::connection::ends::Ends;
use crate::tcp::mtu::MtuSearch;
use crate::wire::OfferFlags;

/// The MSS of a peer that names none (RFC 9293 MUST-15).
const DEFAULT_MSS_V4: u16 = 536;
const DEFAULT_MSS_V6: u16 = 1220;
/// Fixed part of a TCP header.
const TCP_HEADER: u16 = 20;
/// Timestamps with their padding.
const TIMESTAMPS_LEN: u32 = 12;
/// Segments with less room for payload and options are not worth their headers, even if a peer or a path demands it.
/// RFC 9293 §3.7.1 has no floor, which attackers exploit.
const LEAST_ROOM: u32 = 48;
/// An IPv4 header has 40 octets of options at most.
const SOURCE_ROUTE_MOST: u32 = 40;

impl Opening {
    /// The MSS that our link allows (RFC 9293 MUST-67, RFC 6691).
    pub(crate) fn own_mss(&self, link_mtu: u16) -> u16 {
        link_mtu.saturating_sub(self.ip_header_len() + TCP_HEADER)
    }

    /// Payload of a full segment. RFC 9293 §3.7.1: it must fit the peer, the path and our own setting, less the options
    /// of every segment (RFC 6691).
    #[cold]
    pub(crate) fn full_payload(&self, mtu: &MtuSearch, config: &TcpConfig) -> u32 {
        let configured = u32::from(config.segment_bytes).max(1);
        let wanted = self.payload_of(mtu.size()).min(configured);
        // Limits from others have a floor; our own link's limit is exact.
        wanted.min(self.carried_by(mtu.link).max(1))
    }

    /// Payload of a packet of `size` octets.
    pub(crate) fn payload_of(&self, size: u16) -> u32 {
        self.room_in(size).saturating_sub(self.option_bytes())
    }

    /// Payload and TCP options of a packet of `size` octets. The peer's MSS excludes the fixed headers, and nothing
    /// else.
    pub(crate) fn room_in(&self, size: u16) -> u32 {
        let from_path = size.saturating_sub(self.ip_header_len() + TCP_HEADER);
        let room = u32::from(from_path.min(self.peer_mss)).saturating_sub(self.route_bytes());
        room.max(LEAST_ROOM)
    }

    /// Payload of a packet of `size` octets, without a floor.
    pub(crate) fn carried_by(&self, size: u16) -> u32 {
        u32::from(size).saturating_sub(self.header_bytes())
    }

    /// Size of a packet with `payload` octets.
    pub(crate) fn packet_of(&self, payload: u32) -> u16 {
        u16::try_from(payload + self.header_bytes()).unwrap_or(u16::MAX)
    }

    fn header_bytes(&self) -> u32 {
        u32::from(self.ip_header_len() + TCP_HEADER) + self.route_bytes() + self.option_bytes()
    }

    fn ip_header_len(&self) -> u16 {
        if self.ends.remote.ip.is_ipv4() { 20 } else { 40 }
    }

    fn route_bytes(&self) -> u32 {
        self.source_route.as_ref().map_or(0, |_| SOURCE_ROUTE_MOST)
    }

    /// Options on every data segment.
    fn option_bytes(&self) -> u32 {
        let timestamps = if self.agreed.timestamps { TIMESTAMPS_LEN } else { 0 };
        timestamps + self.notes_len()
    }

    /// The most that our own option takes, padded to whole words.
    fn notes_len(&self) -> u32 {
        let agreed = &self.agreed;
        if !agreed.tells_anything() {
            return 0;
        }
        let fields =
            2 * u32::from(agreed.has(OfferFlags::TELL_CWND) && !agreed.has(OfferFlags::TELL_IN_WINDOW))
                + u32::from(agreed.has(OfferFlags::TELL_DUP_COUNT))
                + u32::from(agreed.has(OfferFlags::TELL_ACK_AFTER));
        let notes = if fields > 0 { 5 + fields } else { 0 };
        let rate = if agreed.tell_ack_rate { 5 } else { 0 };
        (notes + rate).next_multiple_of(4)
    }
}

pub(super) fn default_mss(ends: &Ends) -> u16 {
    if ends.remote.ip.is_ipv4() { DEFAULT_MSS_V4 } else { DEFAULT_MSS_V6 }
}
