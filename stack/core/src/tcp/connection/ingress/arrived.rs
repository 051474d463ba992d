//! A segment that arrives.

use crate::narrow::as_u32;
use crate::wire::{Ecn, SourceRoute, TcpView};

/// A segment with the fields of its packet that matter.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) segment: &'a TcpView<'a>,
    pub(crate) ecn: Ecn,
    /// The hop limit on arrival.
    pub(crate) hop_limit: u8,
    /// The crossings of the link that it came over.
    pub(crate) crossings: u8,
    /// Payload bytes per segment when the link coalesced several.
    pub(crate) segment_bytes: Option<u16>,
    /// The reverse route, if the packet came by a source route.
    pub(crate) source_route: Option<&'a SourceRoute>,
}

impl Arrived<'_> {
    /// The number of segments that came as one; a segment without payload counts too.
    pub(in crate::tcp::connection) fn segments(&self) -> u32 {
        segments_in(as_u32(self.segment.payload.len()), self.segment_bytes)
    }
}

pub(in crate::tcp::connection) fn segments_in(bytes: u32, segment_bytes: Option<u16>) -> u32 {
    segment_bytes.map_or(1, |each| bytes.div_ceil(u32::from(each).max(1))).max(1)
}
