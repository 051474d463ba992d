//! The number of hops between the two hosts, and its source: routing, the configuration, or the hop limit of arriving
//! segments.

use super::ingress::Arrived;
use crate::agent::{HopSource, Path};
use crate::tcp::config::TcpConfig;
use crate::tcp::cx::Cx;
use crate::trace::TraceKind;

/// Counts hops by the hop limit of a segment. Routing and the configuration take precedence.
#[inline]
pub(super) fn count(cx: &mut Cx<'_>, arrived: &Arrived<'_>, config: &TcpConfig, path: &mut Path) {
    if path.hops_from_peer.is_none_or(|(_, source)| source == HopSource::Ttl) {
        let counted = config.hops.hops(arrived.hop_limit, arrived.crossings);
        set_from_peer(cx, path, counted.map(|hops| (hops, HopSource::Ttl)));
    }
}

/// Takes the hops from routing, and returns whether the number of hops from the peer is known. An earlier number from
/// routing is dropped if routing no longer knows it.
pub(super) fn route(cx: &mut Cx<'_>, reported: &Path, path: &mut Path) -> bool {
    path.hops_to_peer = reported.hops_to_peer.or(path.hops_to_peer.filter(not_by_routing));
    let from_peer = reported.hops_from_peer.or(path.hops_from_peer.filter(not_by_routing));
    set_from_peer(cx, path, from_peer);
    from_peer.is_some()
}

fn set_from_peer(cx: &mut Cx<'_>, path: &mut Path, hops: Option<(u8, HopSource)>) {
    if path.hops_from_peer != hops {
        path.hops_from_peer = hops;
        let (hops, source) = hops.map_or((0, None), |(hops, source)| (hops, Some(source)));
        cx.trace(TraceKind::Hops { from_peer: hops, source });
    }
}

fn not_by_routing((_, source): &(u8, HopSource)) -> bool {
    *source != HopSource::Routing
}
