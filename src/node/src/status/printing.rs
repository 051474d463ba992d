//! Prints the state of a node: a page, and the columns of its connections.

use std::collections::BTreeMap;

use hopwise_lab::units::Size;

use crate::snapshot::{ConnSnapshot, LinkSnapshot, ShardSnapshot, Snapshot, counted};
use hopwise_daemon::stations::table_of;

/// The state as a page; `all` also shows what is zero.
pub(crate) fn page(snapshot: &Snapshot, all: bool) -> String {
    let Snapshot { node, addresses, pid, uptime_s, version, .. } = snapshot;
    let mut lines =
        vec![format!("{node} at {}, pid {pid}, up {uptime_s:.0} s, hopwise {version}", addresses.join(" "))];
    lines.extend(snapshot.links.iter().map(link));
    if snapshot.shards.len() > 1 {
        let shards: Vec<_> = snapshot.shards.iter().map(shard).collect();
        lines.push(format!("shards: {}", shards.join("; ")));
    }
    lines.push(format!("totals: {}", snapshot.totals.summary()));
    if !snapshot.drops.is_empty() {
        lines.push(format!("drops: {}", counts(&snapshot.drops)));
    }
    let relays = snapshot.relays.iter().filter(|(_, count)| all || **count > 0);
    let relays: BTreeMap<_, _> = relays.map(|(name, count)| (name.clone(), *count)).collect();
    if !relays.is_empty() {
        lines.push(format!("relays: {}", counts(&relays)));
    }
    if !snapshot.bounds.held.is_empty() {
        lines.push(format!("held: {}", snapshot.bounds.summary(all)));
    }
    if let Some(capture) = &snapshot.capture {
        let (file, packets, lost) = (&capture.file, capture.packets_written, capture.packets_lost());
        let error = capture.last_error.iter().map(|error| format!("; last error: {error}"));
        lines.push(format!("capture: {file}, {packets} packets, {lost} lost{}", error.collect::<String>()));
    }
    lines.push(snapshot.connections_line());
    if !snapshot.connections.is_empty() {
        lines.extend(hopwise_daemon::table::lines(
            &COLUMNS,
            &snapshot.connections.iter().map(cells).collect::<Vec<_>>(),
        ));
    }
    lines.extend(stations(&snapshot.connections));
    for conn in &snapshot.connections {
        lines.extend(conn.shadows.iter().map(|shadow| format!("shadow of {}: {shadow}", id_of(conn))));
    }
    lines.join("\n") + "\n"
}

/// Each station that gets packets of connections first.
fn stations(connections: &[ConnSnapshot]) -> Vec<String> {
    let links = connections.iter().filter_map(|conn| conn.link.as_ref());
    let stations: BTreeMap<_, _> = links.map(|link| (&link.station, link)).collect();
    if stations.is_empty() { Vec::new() } else { table_of(stations.into_values()) }
}

fn link(link: &LinkSnapshot) -> String {
    let gone = if link.gone { " (gone)" } else { "" };
    let drops =
        if link.drops.is_empty() { String::new() } else { format!("; dropped {}", counts(&link.drops)) };
    format!(
        "link {}{gone}: in {} packets, {}; out {} packets, {}{drops}",
        link.name,
        link.received_packets,
        Size(link.received_bytes),
        link.sent_packets,
        Size(link.sent_bytes),
    )
}

fn shard(shard: &ShardSnapshot) -> String {
    let ShardSnapshot { connections_open, received_packets, sent_packets } = shard;
    format!("{}, in {received_packets} packets, out {sent_packets}", counted(*connections_open))
}

fn counts(counts: &BTreeMap<String, u64>) -> String {
    let parts: Vec<_> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    parts.join(", ")
}

pub(crate) const COLUMNS: [&str; 12] = [
    "id",
    "local",
    "remote",
    "state",
    "receiver",
    "sender",
    "cwnd",
    "flight",
    "rtt ms",
    "resent",
    "acks/seg",
    "delivered",
];

pub(crate) fn cells(conn: &ConnSnapshot) -> Vec<String> {
    vec![
        id_of(conn),
        conn.local.clone(),
        conn.remote.clone(),
        conn.state.clone(),
        conn.receiver.clone(),
        conn.sender.clone(),
        Size(conn.cwnd_bytes).to_string(),
        Size(conn.flight_bytes).to_string(),
        conn.rtt_ms.map_or_else(|| "-".to_owned(), rtt),
        format!("{}/{}", conn.segments_retransmitted, conn.segments_sent),
        conn.acks_per_segment.map_or_else(|| "-".to_owned(), |share| format!("{share:.2}")),
        Size(conn.bytes_delivered).to_string(),
    ]
}

/// Round trips within a host take some microseconds: a zero would say that none was measured.
fn rtt(millis: f64) -> String {
    if millis < 1.0 { format!("{millis:.3}") } else { format!("{millis:.1}") }
}

fn id_of(conn: &ConnSnapshot) -> String {
    conn.shard.map_or_else(|| conn.id.to_string(), |shard| format!("{shard}.{}", conn.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::CaptureSnapshot;

    #[test]
    fn the_page_says_it_all_in_columns() {
        let conn = ConnSnapshot {
            id: 1,
            local: "10.7.0.2:80".into(),
            remote: "10.9.0.2:4000".into(),
            state: "established".into(),
            receiver: "delayed:d=3".into(),
            sender: "[cubic]".into(),
            cwnd_bytes: 14_600,
            acks_per_segment: Some(0.34),
            ..ConnSnapshot::default()
        };
        let snapshot = Snapshot {
            node: "n2".into(),
            addresses: vec!["10.7.0.2/24".into()],
            links: vec![LinkSnapshot { name: "hw0".into(), received_bytes: 2048, ..LinkSnapshot::default() }],
            connections_open: 1,
            connections: vec![conn],
            drops: BTreeMap::from([("paws".to_owned(), 2)]),
            ..Snapshot::default()
        };
        let page = page(&snapshot, false);
        assert!(page.starts_with("n2 at 10.7.0.2/24, pid 0, up 0 s"), "{page}");
        assert!(
            page.contains("drops: paws 2\n")
                && page.contains(
                    "link hw0: in 0 packets, 2.0 KiB; out 0 packets, 0 B\ntotals: sent 0 segments, "
                ),
            "{page}"
        );
        assert!(page.contains("\n1 connection\nid  local "), "{page}");
        assert!(page.contains("delayed:d=3  [cubic]  14.2 KiB  0 B     -       0/0     0.34"), "{page}");
    }

    #[test]
    fn zeros_are_shown_where_all_is_asked_for() {
        let mut snapshot =
            Snapshot { relays: BTreeMap::from([("refused".to_owned(), 0)]), ..Snapshot::default() };
        snapshot.bounds.add("orphans", [0, 4096, 0]);
        assert!(page(&snapshot, false).contains("\nheld: nothing\n"), "{}", page(&snapshot, false));
        snapshot.bounds.add("connections", [3, 1000, 7]);
        let short = page(&snapshot, false);
        assert!(short.contains("\nheld: connections 3 of 1000, 7 made room for connections\n"), "{short}");
        let whole = page(&snapshot, true);
        assert!(whole.contains("held: connections 3 of 1000, orphans 0 of 4096, 7 made"), "{whole}");
        assert!(whole.contains("\nrelays: refused 0\n") && !short.contains("relays"), "{whole}");
    }

    #[test]
    fn a_capture_that_fails_says_why() {
        let mut capture = CaptureSnapshot { file: "a.pcapng".into(), ..CaptureSnapshot::default() };
        let shown = |capture: &CaptureSnapshot| {
            page(&Snapshot { capture: Some(capture.clone()), ..Snapshot::default() }, false)
        };
        assert!(shown(&capture).contains("\ncapture: a.pcapng, 0 packets, 0 lost\n"), "{}", shown(&capture));
        (capture.packets_missed, capture.packets_unwritten) = (2, 3);
        capture.last_error = Some("No space left".into());
        let wanted = "\ncapture: a.pcapng, 0 packets, 5 lost; last error: No space left\n";
        assert!(shown(&capture).contains(wanted), "{}", shown(&capture));
    }

    #[test]
    fn shards_are_told_apart_where_there_are_several() {
        let shard = |open| ShardSnapshot { connections_open: open, received_packets: 8, sent_packets: 9 };
        let conn = ConnSnapshot { shard: Some(1), id: 4, ..ConnSnapshot::default() };
        let alone = Snapshot { shards: vec![shard(1)], ..Snapshot::default() };
        assert!(!page(&alone, false).contains("shards"), "{}", page(&alone, false));
        let two =
            Snapshot { shards: vec![shard(0), shard(1)], connections: vec![conn], ..Snapshot::default() };
        let page = page(&two, false);
        let wanted = "shards: 0 connections, in 8 packets, out 9; 1 connection, in 8 packets, out 9\n";
        assert!(page.contains(wanted) && page.contains("\n1.4 "), "{page}");
    }
}
