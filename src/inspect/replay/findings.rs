//! All that a replay tells of its connections.

use std::net::SocketAddr;

use hopwise_core::tcp::decisions::Tally;
use serde::Serialize;

use crate::failure::Failure;

/// Result of a replay, as the page and the JSON show it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Findings {
    pub(super) files: Vec<String>,
    /// The program that wrote the capture.
    pub(super) writer: String,
    pub(super) connections: Vec<Replayed>,
    /// Connections of which data never came.
    pub(super) without_arrivals: u64,
    /// Connections that were open before the log, or before a gap in it.
    pub(super) without_beginning: u64,
    /// Connections beyond the listed ones that do not differ.
    pub(super) not_listed: u64,
    /// The same for connections that differ.
    pub(super) different_not_listed: u64,
    pub(super) arrivals: u64,
    pub(super) acks: u64,
    /// Connections with a decision that differs.
    pub(super) different: u64,
    pub(super) notes: Vec<String>,
    pub(super) is_damaged: bool,
}

/// One direction of a connection: the data of `from` and the ACKs of `to`.
#[derive(Debug, Serialize)]
pub(super) struct Replayed {
    pub(super) number: String,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) receiver: String,
    pub(super) end: End,
    /// Segments with data, also those that came twice.
    pub(super) arrivals: u64,
    pub(super) live: Agent,
    /// ACKs that left, alone or with data.
    pub(super) left: u64,
    /// ACKs that went into others before they left.
    pub(super) merged: u64,
    pub(super) difference: Option<Differs>,
    /// The agents that got the same arrivals.
    pub(super) others: Vec<Agent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum End {
    /// With the connection.
    Closed,
    /// With the log.
    Open,
    /// With a gap in the log.
    Cut,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Agent {
    pub(super) spec: String,
    pub(super) acks: u64,
    /// Those that acknowledge no new segment: of data out of order or again, of a FIN, of the window.
    pub(super) without_segments: u64,
    /// Segments in order that these were the first to acknowledge.
    pub(super) segments: u64,
    pub(super) mean_wait_ms: f64,
    pub(super) longest_wait_ms: f64,
    /// ACKs at the same instant as the one before: they may leave as one.
    pub(super) at_once: u64,
}

/// The first decision that differs.
#[derive(Debug, Serialize)]
pub(super) struct Differs {
    /// Since the first packet of the capture.
    pub(super) time_s: f64,
    /// Its number in the file, where it was found.
    pub(super) frame: Option<u64>,
    pub(super) file: Option<String>,
    pub(super) call: String,
    pub(super) live: String,
    pub(super) replayed: String,
    #[serde(skip)]
    pub(super) packet: PacketName,
}

/// The name of a packet in `epb_packetid`, and its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PacketName {
    pub(super) id: u64,
    pub(super) has_left: bool,
}

impl Agent {
    #[expect(clippy::cast_precision_loss, reason = "times that are shown with a few digits")]
    pub(super) fn of(spec: String, tally: &Tally) -> Agent {
        let ms = |ns: u64| ns as f64 / 1e6;
        let mean_wait_ms =
            if tally.segments == 0 { 0.0 } else { ms(tally.waited_ns) / tally.segments as f64 };
        let Tally { acks, without_segments, segments, longest_ns, at_once, .. } = *tally;
        Agent {
            spec,
            acks,
            without_segments,
            segments,
            mean_wait_ms,
            longest_wait_ms: ms(longest_ns),
            at_once,
        }
    }
}

impl Findings {
    /// The failure of a replay that is not the same or not whole.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        match (self.different, self.is_damaged) {
            (0, false) => Ok(()),
            (0, true) => Err(Failure::failed("replay", "a part is damaged or unknown, as the notes say")),
            (1, _) => Err(Failure::failed("replay", "a decision of 1 connection differs")),
            (count, _) => Err(Failure::failed("replay", format!("decisions of {count} connections differ"))),
        }
    }
}
