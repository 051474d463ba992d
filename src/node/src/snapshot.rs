//! State of a node, as it goes over the control socket.

use std::collections::BTreeMap;
use std::time::Duration;

use hopwise_core::endpoint::Held;
use hopwise_core::tcp::Info;
use hopwise_core::trace::{DropReason, LostBy, Scarce, SentWhat, Totals, UndoneBy};
use hopwise_core::{Endpoint, Instant};
use hopwise_host::{LinkCounters, Shards, Stack};
use hopwise_lab::shadow::Shadow;
use hopwise_lab::units::Size;
use hopwise_lab::version;
use serde::{Deserialize, Serialize};

use hopwise_daemon::stations::StationSnapshot;

/// The largest number of connections that a snapshot lists; of more it has the number.
pub(crate) const MOST_SHOWN: usize = 1000;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    pub node: String,
    pub version: String,
    pub pid: u32,
    pub uptime_s: f64,
    pub addresses: Vec<String>,
    /// A device with several queues is one link.
    pub links: Vec<LinkSnapshot>,
    pub shards: Vec<ShardSnapshot>,
    /// All connections, also those that no program has accepted yet, or that it has left.
    pub connections_open: usize,
    pub connections: Vec<ConnSnapshot>,
    /// Dropped packets, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Totals of all connections since the start, also of those that are gone.
    #[serde(default)]
    pub totals: TotalsSnapshot,
    pub relays: BTreeMap<String, u64>,
    #[serde(default)]
    pub bounds: BoundsSnapshot,
    pub capture: Option<CaptureSnapshot>,
}

/// State of one shard, a stack that shares nothing with the others.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ShardSnapshot {
    pub(crate) connections_open: usize,
    pub(crate) received_packets: u64,
    pub(crate) sent_packets: u64,
}

/// The resources that the stacks hold because of their peers and the services because of their clients, their bounds,
/// and how often one made room, all by the same names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BoundsSnapshot {
    pub(crate) held: BTreeMap<String, u64>,
    pub(crate) most: BTreeMap<String, u64>,
    pub(crate) gave_way: BTreeMap<String, u64>,
}

impl BoundsSnapshot {
    /// The resources of the stacks.
    pub(super) fn of_shards(shards: &Shards) -> BoundsSnapshot {
        let mut bounds = BoundsSnapshot::default();
        for stack in shards.stacks() {
            stack.with(|_, endpoint| bounds.add_endpoint(endpoint));
        }
        bounds
    }

    /// Adds a resource by its name: what is held, the most of that, and how often one made room.
    pub(super) fn add(&mut self, name: &str, [held, most, gave_way]: [u64; 3]) {
        for (counts, count) in
            [(&mut self.held, held), (&mut self.most, most), (&mut self.gave_way, gave_way)]
        {
            let sum = counts.entry(name.to_owned()).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    fn add_endpoint(&mut self, endpoint: &Endpoint) {
        let (held, most) = (endpoint.holds(), endpoint.may_hold());
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let of = |of: fn(&Held) -> usize| (count(of(&held)), count(of(&most)));
        let bytes = |of: fn(&Held) -> u64| (of(&held), of(&most));
        for (scarce, (held, most)) in [
            (Scarce::Connections, of(|held| held.connections)),
            (Scarce::Orphans, of(|held| held.orphans)),
            (Scarce::OrphanBytes, bytes(|held| held.orphan_bytes)),
            (Scarce::TimeWaits, of(|held| held.time_waits)),
            (Scarce::BufferBytes, bytes(|held| held.buffer_bytes)),
            (Scarce::Handshakes, of(|held| held.handshakes)),
        ] {
            self.add(scarce.name(), [held, most, endpoint.gave_way(scarce)]);
        }
        let gave_way = endpoint.drops(DropReason::FragmentsFull);
        self.add("fragments", [count(held.fragments), count(most.fragments), gave_way]);
        self.add("fragment-memory", [held.fragment_bytes, most.fragment_bytes, 0]);
    }

    /// The held resources, and those that made room. Without `all`, resources of which nothing is held are left out.
    pub(crate) fn summary(&self, all: bool) -> String {
        let size = |name: &str, value: u64| {
            if name.ends_with("memory") { Size(value).to_string() } else { value.to_string() }
        };
        let most = |name: &str| self.most.get(name).copied().unwrap_or(0);
        let mut parts: Vec<String> = self
            .held
            .iter()
            .filter(|(_, held)| all || **held > 0)
            .map(|(name, held)| format!("{name} {} of {}", size(name, *held), size(name, most(name))))
            .collect();
        let gave_way = self.gave_way.iter().filter(|(_, count)| **count > 0);
        parts.extend(gave_way.map(|(name, count)| format!("{count} made room for {name}")));
        if parts.is_empty() {
            parts.push("nothing".to_owned());
        }
        parts.join(", ")
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LinkSnapshot {
    pub name: String,
    pub received_packets: u64,
    pub received_bytes: u64,
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub drops: BTreeMap<String, u64>,
    pub gone: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ConnSnapshot {
    /// The shard, if there are several; each numbers its own connections.
    pub(crate) shard: Option<u16>,
    pub(crate) id: u32,
    pub(crate) local: String,
    pub(crate) remote: String,
    pub(crate) state: String,
    pub(crate) receiver: String,
    pub(crate) sender: String,
    /// Receiver agents that watch.
    #[serde(default)]
    pub(crate) shadows: Vec<Shadow>,
    /// The hops to the peer and from it, and their source: `routing`, `ttl` or `config`.
    pub hops: Option<u8>,
    pub(crate) hops_source: Option<String>,
    pub(crate) hops_back: Option<u8>,
    pub(crate) hops_back_source: Option<String>,
    /// Options that the peer did not agree to; agents then follow their written fallbacks.
    pub(crate) receiver_lacks: Vec<String>,
    pub(crate) sender_lacks: Vec<String>,
    pub(crate) cwnd_bytes: u64,
    pub(crate) flight_bytes: u64,
    pub(crate) rtt_ms: Option<f64>,
    pub(crate) rto_ms: f64,
    /// Over the last round trip that was full of data.
    pub(crate) delivery_kbps: Option<f64>,
    pub(crate) pacing_kbps: Option<f64>,
    /// The time with data in flight, and its parts that were limited by the peer's window and by a full send buffer.
    pub(crate) busy_s: f64,
    pub(crate) held_by_window_s: f64,
    pub(crate) held_by_buffer_s: f64,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_delivered: u64,
    pub(crate) segments_sent: u64,
    pub(crate) segments_retransmitted: u64,
    pub(crate) segments_received: u64,
    pub(crate) timeouts: u32,
    pub(crate) fast_retransmits: u32,
    pub(crate) acks_sent: u64,
    pub(crate) acks_repeated: u64,
    /// Pure ACKs for each received data segment; `None` before the first.
    pub(crate) acks_per_segment: Option<f64>,
    /// The facts about our own link on the way to the peer, if a driver tells them.
    pub(crate) link: Option<StationSnapshot>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CaptureSnapshot {
    pub file: String,
    pub(crate) packets_written: u64,
    pub(crate) bytes_written: u64,
    /// More than the files that stay after rotation.
    pub(crate) files_begun: u64,
    pub(crate) packets_missed: u64,
    pub(crate) events_missed: u64,
    pub(crate) packets_unwritten: u64,
    pub(crate) last_error: Option<String>,
}

impl CaptureSnapshot {
    pub(crate) fn packets_lost(&self) -> u64 {
        self.packets_missed.saturating_add(self.packets_unwritten)
    }

    /// Returns whether the capture is complete.
    pub(crate) fn is_whole(&self) -> bool {
        self.packets_lost() == 0 && self.events_missed == 0 && self.last_error.is_none()
    }

    /// The file and its content, then each problem.
    pub fn summary(&self) -> Vec<String> {
        let CaptureSnapshot { file, packets_written, bytes_written, files_begun, .. } = self;
        let mut parts = vec![format!("{file}: {packets_written} packets, {}", Size(*bytes_written))];
        if *files_begun > 1 {
            parts[0].push_str(&format!(", in {files_begun} files, of which the newest stay"));
        }
        for (count, why) in [
            (self.packets_missed, "packets came too fast for the queue"),
            (self.events_missed, "trace events came too fast, so some packets have no reason"),
            (self.packets_unwritten, "packets could not be written"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {why}"));
            }
        }
        parts.extend(self.last_error.iter().map(|error| format!("last error: {error}")));
        parts
    }
}

impl Snapshot {
    /// The state that only the stacks know. It holds each endpoint's lock in turn, and looks at a bounded number of
    /// connections.
    pub(crate) fn of_shards(shards: &Shards) -> Snapshot {
        let uptime = shards.clock().now().since(Instant::ZERO);
        let mut snapshot = Snapshot {
            version: version::with_commit().to_owned(),
            pid: std::process::id(),
            uptime_s: uptime.as_secs_f64(),
            ..Snapshot::default()
        };
        let mut totals = Totals::default();
        let are_several = shards.stacks().len() > 1;
        for (number, stack) in (0..).zip(shards.stacks()) {
            snapshot.add(are_several.then_some(number), stack);
            stack.with(|_, endpoint| totals.add(endpoint.totals()));
        }
        snapshot.totals = TotalsSnapshot::of(&totals);
        snapshot
    }

    /// The number of connections, and of those in the table below it.
    pub(crate) fn connections_line(&self) -> String {
        let (open, shown) = (self.connections_open, self.connections.len());
        // Below the limit the table lacks only those that no program has accepted yet, or that it has left.
        match open.saturating_sub(shown) {
            0 => counted(open),
            more if shown >= MOST_SHOWN => format!("{}, {more} of them not shown", counted(open)),
            without => format!("{}, and {without} without a program", counted(shown)),
        }
    }

    fn add(&mut self, shard: Option<u16>, stack: &Stack) {
        let room = MOST_SHOWN.saturating_sub(self.connections.len());
        let connections_open = stack.with(|now, endpoint| {
            self.connections.extend(connections(now, endpoint, shard).take(room));
            for reason in DropReason::ALL.iter().filter(|reason| endpoint.drops(**reason) > 0) {
                *self.drops.entry(reason.name().to_owned()).or_default() += endpoint.drops(*reason);
            }
            endpoint.connections()
        });
        self.connections_open += connections_open;
        let mut of_shard = ShardSnapshot { connections_open, ..ShardSnapshot::default() };
        for counters in stack.counters() {
            of_shard.received_packets += counters.received.packets;
            of_shard.sent_packets += counters.sent.packets;
            self.add_link(&counters);
        }
        self.shards.push(of_shard);
    }

    /// Queues of one device are summed up.
    fn add_link(&mut self, counters: &LinkCounters) {
        let LinkCounters { name, received, sent, drops, is_gone } = counters;
        let known = self.links.iter().position(|link| link.name == *name);
        let at = known.unwrap_or_else(|| {
            self.links.push(LinkSnapshot { name: name.clone(), ..LinkSnapshot::default() });
            self.links.len() - 1
        });
        let link = &mut self.links[at];
        link.received_packets += received.packets;
        link.received_bytes += received.bytes;
        link.sent_packets += sent.packets;
        link.sent_bytes += sent.bytes;
        link.gone |= is_gone;
        for (reason, count) in drops {
            *link.drops.entry(reason.name().to_owned()).or_default() += count;
        }
    }
}

fn connections(now: Instant, endpoint: &Endpoint, shard: Option<u16>) -> impl Iterator<Item = ConnSnapshot> {
    endpoint.ids().filter_map(move |id| {
        let info = endpoint.info(now, id).ok()?;
        let number = endpoint.trace_number(id).unwrap_or(0);
        Some(ConnSnapshot { shard, ..ConnSnapshot::of(now, number, &info) })
    })
}

pub(crate) fn counted(connections: usize) -> String {
    let many = if connections == 1 { "" } else { "s" };
    format!("{connections} connection{many}")
}

fn kbps(bytes_per_s: u64) -> f64 {
    bytes_per_s as f64 * 8.0 / 1000.0
}

impl ConnSnapshot {
    pub(crate) fn of(now: Instant, id: u32, info: &Info) -> ConnSnapshot {
        let stats = &info.stats;
        let data_segments = stats.segments_in_order + stats.segments_out_of_order + stats.segments_duplicate;
        ConnSnapshot {
            shard: None,
            id,
            local: info.flow.local.to_string(),
            remote: info.flow.remote.to_string(),
            state: info.state.name().to_owned(),
            receiver: info.receiver.clone(),
            sender: info.senders.clone(),
            shadows: Shadow::of(info),
            hops: info.path.hops_to_peer.map(|(hops, _)| hops),
            hops_source: info.path.hops_to_peer.map(|(_, source)| source.name().to_owned()),
            hops_back: info.path.hops_from_peer.map(|(hops, _)| hops),
            hops_back_source: info.path.hops_from_peer.map(|(_, source)| source.name().to_owned()),
            receiver_lacks: info.receiver_lacks.iter().map(|what| what.name().to_owned()).collect(),
            sender_lacks: info.senders_lack.iter().map(|what| what.name().to_owned()).collect(),
            cwnd_bytes: info.allowed_bytes,
            delivery_kbps: info.delivery_rate.map(kbps),
            pacing_kbps: info.pacing_rate.map(kbps),
            busy_s: info.busy_time.busy.as_secs_f64(),
            held_by_window_s: info.busy_time.held_by_window.as_secs_f64(),
            held_by_buffer_s: info.busy_time.held_by_buffer.as_secs_f64(),
            flight_bytes: info.flight.bytes,
            rtt_ms: info.path.rtt.smoothed.map(millis),
            rto_ms: millis(info.rto),
            bytes_acked: stats.bytes_acked,
            bytes_delivered: stats.bytes_received,
            segments_sent: stats.segments_sent,
            segments_retransmitted: stats.segments_retransmitted,
            segments_received: stats.segments_received,
            timeouts: stats.timeouts,
            fast_retransmits: stats.fast_retransmits,
            acks_sent: stats.acks_sent,
            acks_repeated: stats.acks_repeated,
            acks_per_segment: share(stats.acks_sent, data_segments),
            link: StationSnapshot::of_path(&info.path, now),
        }
    }
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// As f64 only for people to read.
#[expect(clippy::cast_precision_loss, reason = "a ratio that is shown with two decimals")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

// The totals of a node's connections in its state.

/// Totals of all connections: sent and lost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TotalsSnapshot {
    /// Segments with data, SYN, FIN or RST, by kind.
    pub(crate) segments_sent: BTreeMap<String, u64>,
    /// Bytes of payload, by the same kinds.
    pub(crate) payload_bytes_sent: BTreeMap<String, u64>,
    pub(crate) segments_retransmitted: u64,
    pub(crate) pure_acks_sent: u64,
    pub(crate) timeouts: u64,
    /// The timeouts among them that follow a timeout at once.
    pub(crate) timeouts_repeated: u64,
    /// By the mechanism that found the loss.
    pub(crate) segments_lost: BTreeMap<String, u64>,
    /// By the mechanism that found the loss.
    pub(crate) fast_recoveries: BTreeMap<String, u64>,
    /// Losses that proved false.
    pub(crate) recoveries_undone: u64,
    /// The same by their evidence.
    pub(crate) undone: BTreeMap<String, u64>,
}

impl TotalsSnapshot {
    pub(crate) fn of(totals: &Totals) -> TotalsSnapshot {
        let what = SentWhat::ALL.map(SentWhat::name);
        let lost_by = LostBy::ALL.map(LostBy::name);
        TotalsSnapshot {
            segments_sent: by_name(what, totals.sent),
            payload_bytes_sent: by_name(what, totals.sent_bytes),
            segments_retransmitted: totals.segments_retransmitted(),
            pure_acks_sent: totals.pure_acks,
            timeouts: totals.timeouts,
            timeouts_repeated: totals.timeouts_repeated,
            segments_lost: by_name(lost_by, totals.lost),
            fast_recoveries: by_name(lost_by, totals.recoveries),
            recoveries_undone: totals.undone.iter().sum(),
            undone: by_name(UndoneBy::ALL.map(UndoneBy::name), totals.undone),
        }
    }

    /// The totals in one line.
    pub(crate) fn summary(&self) -> String {
        let sent = self.segments_sent.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let recoveries = self.fast_recoveries.iter().filter(|(_, count)| **count > 0);
        let recoveries: Vec<_> = recoveries.map(|(by, count)| format!("{count} by {by}")).collect();
        let recoveries = if recoveries.is_empty() { "none".to_owned() } else { recoveries.join(", ") };
        let TotalsSnapshot { segments_retransmitted, pure_acks_sent, timeouts, recoveries_undone, .. } = self;
        format!(
            "sent {sent} segments, {segments_retransmitted} of them again, and {pure_acks_sent} ACKs; \
             {timeouts} timeouts; fast recoveries: {recoveries}; {recoveries_undone} losses that were none"
        )
    }
}

fn by_name<const N: usize>(names: [&str; N], counts: [u64; N]) -> BTreeMap<String, u64> {
    names.into_iter().map(str::to_owned).zip(counts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopwise_host::{LinkDrop, Traffic};

    #[test]
    fn a_capture_that_lost_something_is_not_whole() {
        let whole = CaptureSnapshot {
            file: "a.pcapng".into(),
            packets_written: 7,
            bytes_written: 2048,
            files_begun: 1,
            ..CaptureSnapshot::default()
        };
        assert!(whole.is_whole());
        assert_eq!(whole.summary(), ["a.pcapng: 7 packets, 2.0 KiB"]);
        let full = CaptureSnapshot {
            files_begun: 3,
            packets_missed: 2,
            packets_unwritten: 5,
            last_error: Some("No space left".into()),
            ..whole
        };
        assert!(!full.is_whole());
        assert_eq!(full.packets_lost(), 7);
        let expected = [
            "a.pcapng: 7 packets, 2.0 KiB, in 3 files, of which the newest stay",
            "2 packets came too fast for the queue",
            "5 packets could not be written",
            "last error: No space left",
        ];
        assert_eq!(full.summary(), expected);
    }

    #[test]
    fn queues_of_one_device_are_one_link() {
        let queue = |name: &str, packets| LinkCounters {
            name: name.into(),
            received: Traffic { packets, bytes: 100 * packets },
            sent: Traffic { packets: 1, bytes: 50 },
            drops: BTreeMap::from([(LinkDrop::Down, packets)]),
            is_gone: packets > 2,
        };
        let mut snapshot = Snapshot::default();
        for counters in [queue("hw0", 2), queue("hw1", 7), queue("hw0", 3)] {
            snapshot.add_link(&counters);
        }
        let [first, second] = &snapshot.links[..] else { panic!("{:?}", snapshot.links) };
        assert_eq!((&*first.name, first.received_packets, first.received_bytes), ("hw0", 5, 500));
        assert_eq!((first.sent_packets, first.sent_bytes, first.gone), (2, 100, true));
        assert_eq!((first.drops["down"], second.received_packets), (5, 7));
    }

    #[test]
    fn connections_that_end_by_themselves_are_told_beside_those_that_are_shown() {
        let summary = |shown: usize, open| {
            let connections = vec![ConnSnapshot::default(); shown];
            Snapshot { connections_open: open, connections, ..Snapshot::default() }.connections_line()
        };
        assert_eq!((summary(0, 0), summary(1, 1)), ("0 connections".to_owned(), "1 connection".to_owned()));
        assert_eq!(summary(0, 1), "0 connections, and 1 without a program");
        assert_eq!(summary(1, 3), "1 connection, and 2 without a program");
        assert_eq!(summary(MOST_SHOWN, MOST_SHOWN), "1000 connections");
        assert_eq!(summary(MOST_SHOWN, 1200), "1200 connections, 200 of them not shown");
    }

    #[test]
    fn totals_are_told_in_a_line() {
        let mut totals = Totals { pure_acks: 7, timeouts: 1, ..Totals::default() };
        totals.sent[SentWhat::New as usize] = 40;
        totals.sent[SentWhat::Resent as usize] = 2;
        totals.sent[SentWhat::AfterTimeout as usize] = 1;
        totals.recoveries[LostBy::Rack as usize] = 3;
        let snapshot = TotalsSnapshot::of(&totals);
        assert_eq!((snapshot.segments_sent["resent"], snapshot.fast_recoveries["rack"]), (2, 3));
        assert_eq!(
            snapshot.summary(),
            "sent 43 segments, 3 of them again, and 7 ACKs; 1 timeouts; fast recoveries: 3 by rack; 0 losses that \
             were none"
        );
    }
}
