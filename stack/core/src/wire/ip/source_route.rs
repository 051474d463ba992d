//! IPv4 source routes (RFC 791 §3.1, RFC 1122 §3.2.1.8).

use std::net::Ipv4Addr;

use arrayvec::ArrayVec;

use crate::narrow::as_u8;
use crate::trace::DropReason;

const LOOSE: u8 = 131;
const STRICT: u8 = 137;
/// Kind, length and pointer; the pointer counts from 1, so the first address is at 4.
const FIXED_LEN: usize = 3;
const FIRST_POINTER: usize = 4;

/// The hops before the destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRoute {
    kind: RouteKind,
    /// 1. Never empty: an empty route is no route.
    hops: ArrayVec<Ipv4Addr, { SourceRoute::MAX_HOPS }>,
}

/// The rule for routers between the listed hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// Other routers may lie between the hops.
    Loose,
    /// Each hop is a neighbour of the one before it.
    Strict,
}

impl SourceRoute {
    /// The number of hops that fit in 40 bytes of options.
    pub const MAX_HOPS: usize = 9;

    /// `None` if there are no hops, or too many.
    pub fn new(kind: RouteKind, hops: &[Ipv4Addr]) -> Option<SourceRoute> {
        let hops = ArrayVec::try_from(hops).ok().filter(|hops| !hops.is_empty())?;
        Some(SourceRoute { kind, hops })
    }

    /// Strict or loose, as the IPv4 option says (RFC 791 §3.1).
    pub fn kind(&self) -> RouteKind {
        self.kind
    }

    /// In the order of travel, without the destination.
    pub fn hops(&self) -> &[Ipv4Addr] {
        &self.hops
    }

    pub(super) fn is_source_route(kind: u8) -> bool {
        kind == LOOSE || kind == STRICT
    }

    /// The reverse route, from the option of a packet that arrived: the recorded hops, the last one first. The sender's
    /// own address may be recorded too, but is not a hop (RFC 1122 §3.2.1.8, case B). A route with hops left to visit
    /// would need a router, and is refused.
    pub(super) fn way_back(option: &[u8], src: Ipv4Addr) -> Result<Option<SourceRoute>, DropReason> {
        let (kind, pointer, recorded) = read_option(option).ok_or(DropReason::IpMalformed)?;
        if pointer <= option.len() {
            return Err(DropReason::SourceRoute);
        }
        let mut hops: ArrayVec<Ipv4Addr, { Self::MAX_HOPS }> =
            recorded.iter().rev().map(|octets| Ipv4Addr::from(*octets)).collect();
        if hops.last() == Some(&src) {
            hops.pop();
        }
        Ok((!hops.is_empty()).then_some(SourceRoute { kind, hops }))
    }

    /// The last address of an unfinished route; `None` if the route is completed or malformed.
    pub(super) fn remaining_destination(option: &[u8]) -> Option<Ipv4Addr> {
        let (_, pointer, addresses) = read_option(option)?;
        if pointer > option.len() {
            return None;
        }
        addresses.last().map(|octets| Ipv4Addr::from(*octets))
    }

    pub(super) fn option_len(&self) -> usize {
        FIXED_LEN + 4 * self.hops.len()
    }

    /// Writes all hops but the first, then the destination; `out` is zeroed and long enough.
    #[cold]
    pub(super) fn write_option(&self, dst: Ipv4Addr, out: &mut [u8]) -> Ipv4Addr {
        out[0] = match self.kind {
            RouteKind::Loose => LOOSE,
            RouteKind::Strict => STRICT,
        };
        out[1] = as_u8(self.option_len());
        out[2] = as_u8(FIRST_POINTER);
        let stations = self.hops[1..].iter().chain([&dst]);
        for (place, station) in out[FIXED_LEN..].chunks_exact_mut(4).zip(stations) {
            place.copy_from_slice(&station.octets());
        }
        self.hops[0]
    }
}

/// Kind, pointer and addresses of a whole option; `None` if its fields contradict each other.
fn read_option(option: &[u8]) -> Option<(RouteKind, usize, &[[u8; 4]])> {
    let kind = if option[0] == LOOSE { RouteKind::Loose } else { RouteKind::Strict };
    let pointer = usize::from(*option.get(2)?);
    let (addresses, rest) = option[FIXED_LEN..].as_chunks::<4>();
    let points_at_address = pointer >= FIRST_POINTER && pointer.is_multiple_of(4);
    (rest.is_empty() && points_at_address && addresses.len() <= SourceRoute::MAX_HOPS)
        .then_some((kind, pointer, addresses))
}
