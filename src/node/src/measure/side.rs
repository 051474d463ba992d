//! One end's view of a connection, as it tells the other end.

use hopwise_core::Instant;
use hopwise_core::agent::{HopSource, Path};
use hopwise_core::tcp::Info;
use hopwise_lab::shadow::Shadow;
use serde::{Deserialize, Serialize};

use hopwise_daemon::stations::StationSnapshot;

/// One end's view of a connection; empty for the kernel's TCP.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SideReport {
    pub(crate) local: String,
    pub(crate) remote: String,
    pub(crate) tcp: Option<TcpReport>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TcpReport {
    pub(crate) receiver: String,
    pub(crate) senders: String,
    /// The hops to the peer, or those from it if an end knows only these.
    pub hops: Option<u8>,
    #[serde(flatten)]
    pub(crate) path: PeerHops,
    pub(crate) rtt_us: Option<u64>,
    #[serde(flatten)]
    pub(crate) sent: SentCounts,
    #[serde(flatten)]
    pub(crate) acked: AckCounts,
    /// Receiver agents that watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) shadows: Vec<Shadow>,
    /// The facts about this end's own link on the way to the peer, if a driver tells them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<StationSnapshot>,
}

/// What an end sent, and lost of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SentCounts {
    pub(crate) segments_sent: u64,
    pub(crate) segments_retransmitted: u64,
    pub(crate) timeouts: u32,
    pub(crate) fast_retransmits: u32,
}

/// The pure ACKs of an end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AckCounts {
    pub(crate) acks_sent: u64,
    acks_repeated: u64,
}

/// The hops to the peer and back as an end counts them, and the source: `routing`, `ttl` or `config`. An end of an
/// older version sends none of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PeerHops {
    hops_to_peer: Option<u8>,
    hops_to_peer_source: Option<String>,
    hops_from_peer: Option<u8>,
    hops_from_peer_source: Option<String>,
}

impl PeerHops {
    fn of(path: &Path) -> PeerHops {
        let number = |hops: Option<(u8, HopSource)>| hops.map(|(hops, _)| hops);
        let source = |hops: Option<(u8, HopSource)>| hops.map(|(_, source)| source.name().to_owned());
        PeerHops {
            hops_to_peer: number(path.hops_to_peer),
            hops_to_peer_source: source(path.hops_to_peer),
            hops_from_peer: number(path.hops_from_peer),
            hops_from_peer_source: source(path.hops_from_peer),
        }
    }

    fn either(&self) -> Option<u8> {
        self.hops_to_peer.or(self.hops_from_peer)
    }

    pub(crate) fn way_there(&self) -> Option<(u8, String)> {
        Some((self.hops_to_peer?, self.hops_to_peer_source.clone()?))
    }

    pub(crate) fn way_back(&self) -> Option<(u8, String)> {
        Some((self.hops_from_peer?, self.hops_from_peer_source.clone()?))
    }
}

impl SideReport {
    pub(crate) fn of(now: Instant, info: &Info) -> SideReport {
        let stats = &info.stats;
        let path = PeerHops::of(&info.path);
        let tcp = TcpReport {
            receiver: info.receiver.clone(),
            senders: info.senders.clone(),
            hops: path.either(),
            path,
            rtt_us: info.path.rtt.smoothed.and_then(|rtt| u64::try_from(rtt.as_micros()).ok()),
            sent: SentCounts {
                segments_sent: stats.segments_sent,
                segments_retransmitted: stats.segments_retransmitted,
                timeouts: stats.timeouts,
                fast_retransmits: stats.fast_retransmits,
            },
            acked: AckCounts { acks_sent: stats.acks_sent, acks_repeated: stats.acks_repeated },
            shadows: Shadow::of(info),
            link: StationSnapshot::of_path(&info.path, now),
        };
        let (local, remote) = (info.flow.local.to_string(), info.flow.remote.to_string());
        SideReport { local, remote, tcp: Some(tcp) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_knows_the_way_back_alone_has_hops() {
        let (there, back) = ((3, HopSource::Routing), (1, HopSource::Ttl));
        for (to, from, hops) in
            [(None, Some(back), Some(1)), (Some(there), Some(back), Some(3)), (None, None, None)]
        {
            let path = Path { hops_to_peer: to, hops_from_peer: from, ..Path::default() };
            assert_eq!(PeerHops::of(&path).either(), hops);
        }
    }
}
