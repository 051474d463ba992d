//! Prometheus' text format: the sums of the trace and of the counters.
//!
//! Every name and label is bounded: no address and no port of a connection becomes a label.
//!
//! Written by hand: a registry such as `prometheus-client` has counters of its own, and ours are in the trace's totals.

#[cfg(test)]
mod reference;
mod server;
mod sums;

use std::time::Duration;

use hopwise_core::agent::{AckRule, By};
use hopwise_core::trace::SentWhat;
use hopwise_core::trace::text::EVENT_NAMES;
use hopwise_host::CaptureCounts;
use tokio::net::TcpListener;

use super::counts::{OPEN, value};
use super::snapshot::{LinkSnapshot, Snapshot};
use super::users::Users;
use hopwise_daemon::table::{MetricsPage, escaped};

pub(super) use server::serve;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) use server::verdict;
use sums::RTT_BOUNDS_US;
pub(super) use sums::{Adder, Sums};

/// Serves the page of a daemon that has no names besides its addresses.
pub async fn serve_page(listener: TcpListener, page: impl Fn() -> String + Send + Sync + 'static) {
    serve(listener, Vec::new(), Users::of_machine(), page).await;
}

/// The text for a scrape; `captured` covers all captures since the start.
pub(super) fn text(sums: &Sums, snapshot: &Snapshot, captured: &CaptureCounts) -> String {
    let mut page = MetricsPage::default();
    let events = EVENT_NAMES.iter().zip(sums.events.iter().map(value));
    page.by(["hopwise_trace_events_total", "counter", "Trace events, by name."], "event", events);
    acks(&mut page, sums);
    rtt(&mut page, sums);
    totals(&mut page, snapshot);
    let help = "Packets that went no further, by reason.";
    page.by(["hopwise_drops_total", "counter", help], "reason", &snapshot.drops);
    links(&mut page, snapshot);
    page.alone("hopwise_connections", "gauge", "Connections in the table.", snapshot.connections_open);
    bounds(&mut page, snapshot);
    relays(&mut page, snapshot);
    captures(&mut page, snapshot, captured);
    page.text()
}

/// Totals of all connections, also of those that are gone.
fn totals(page: &mut MetricsPage, snapshot: &Snapshot) {
    let totals = &snapshot.totals;
    let help = "Segments with data, SYN, FIN or RST, by what they were.";
    page.by(["hopwise_segments_sent_total", "counter", help], "what", &totals.segments_sent);
    let help = "Bytes of payload sent, by what their segments were; those of new ones are the goodput.";
    page.by(["hopwise_payload_bytes_sent_total", "counter", help], "what", &totals.payload_bytes_sent);
    let help = "Segments found to be lost before a timeout, by what found it.";
    page.by(["hopwise_segments_lost_total", "counter", help], "by", &totals.segments_lost);
    let help = "Fast recoveries that began, by what found the loss.";
    page.by(["hopwise_fast_recoveries_total", "counter", help], "by", &totals.fast_recoveries);
    let help = "Losses that turned out to be none, by what showed it.";
    page.by(["hopwise_recoveries_undone_total", "counter", help], "by", &totals.undone);
    let of = |what: SentWhat| totals.segments_sent.get(what.name()).copied().unwrap_or(0);
    let again = [("fast-retransmit", of(SentWhat::Resent)), ("timeout", of(SentWhat::AfterTimeout))];
    let help = "Segments sent again, by cause; probes are not counted.";
    page.by(["hopwise_segments_retransmitted_total", "counter", help], "cause", again);
    let first = totals.timeouts.saturating_sub(totals.timeouts_repeated);
    let help =
        "Retransmission timers that ran out: first after an ACK of new data, or repeated after another one.";
    let timeouts = [("first", first), ("repeated", totals.timeouts_repeated)];
    page.by(["hopwise_timeouts_total", "counter", help], "cause", timeouts);
    page.alone("hopwise_acks_sent_total", "counter", "ACKs that left alone.", totals.pure_acks_sent);
}

fn captures(page: &mut MetricsPage, snapshot: &Snapshot, captured: &CaptureCounts) {
    let running = snapshot.capture.as_ref();
    let has_failed = running.is_some_and(|capture| capture.last_error.is_some());
    page.alone("hopwise_capture_running", "gauge", "Whether a capture runs.", u8::from(running.is_some()));
    let help = "Whether the running capture could not write something.";
    page.alone("hopwise_capture_failed", "gauge", help, u8::from(has_failed));
    let help = "Trace events too fast for captures, so that packets have no reason.";
    for (family, help, count) in [
        ("hopwise_capture_packets_total", "Packets that captures wrote.", captured.packets_written),
        ("hopwise_capture_bytes_total", "Bytes that captures wrote.", captured.bytes_written),
        ("hopwise_capture_files_total", "Files that captures began.", captured.files_begun),
        ("hopwise_capture_events_lost_total", help, captured.events_missed),
    ] {
        page.alone(family, "counter", help, count);
    }
    let help = "Packets that captures lost, because they came too fast or the disk refused.";
    let lost = [("too-fast", captured.packets_missed), ("disk", captured.packets_unwritten)];
    page.by(["hopwise_capture_packets_lost_total", "counter", help], "reason", lost);
}

fn bounds(page: &mut MetricsPage, snapshot: &Snapshot) {
    let bounds = &snapshot.bounds;
    let help = "Connections, fragments, seats and bytes of memory that the node holds for peers and clients.";
    page.by(["hopwise_held", "gauge", help], "what", &bounds.held);
    let help = "The most connections, fragments, seats and bytes of memory that the node may hold.";
    page.by(["hopwise_held_most", "gauge", help], "what", &bounds.most);
    let help = "Connections, fragments and seats given up for the sake of others.";
    page.by(["hopwise_gave_way_total", "counter", help], "what", &bounds.gave_way);
}

fn relays(page: &mut MetricsPage, snapshot: &Snapshot) {
    let events = snapshot.relays.iter().filter(|(what, _)| !what.ends_with(OPEN));
    let help = "Events of SOCKS5 and of forwards, by name.";
    page.by(["hopwise_relay_total", "counter", help], "what", events);
    let open = snapshot.relays.iter().filter_map(|(what, count)| Some((what.strip_suffix(OPEN)?, count)));
    let help = "Connections that SOCKS5 and forwards carry.";
    page.by(["hopwise_relays_open", "gauge", help], "service", open);
}

fn acks(page: &mut MetricsPage, sums: &Sums) {
    page.family("hopwise_acks_decided_total", "counter", "ACKs decided, by whom and by which rule.");
    for (by, rules) in By::ALL.iter().zip(&sums.decided) {
        for (rule, counter) in AckRule::ALL.iter().zip(rules).filter(|(_, counter)| value(counter) > 0) {
            let labels = format_args!("by=\"{}\",rule=\"{}\"", by.name(), rule.name());
            page.line("hopwise_acks_decided_total", labels, value(counter));
        }
    }
    let held = AckRule::ALL.iter().map(|rule| rule.name()).zip(sums.held.iter().map(value));
    let help = "Segments not acknowledged at once, by rule.";
    page.by(["hopwise_acks_held_total", "counter", help], "rule", held.filter(|(_, count)| *count > 0));
    let shadows = sums.shadow_acks.iter().map(value).enumerate().filter(|(_, count)| *count > 0);
    let help = "ACKs that shadows would have sent, by place in the list, from 0.";
    page.by(["hopwise_shadow_acks_total", "counter", help], "shadow", shadows);
}

fn rtt(page: &mut MetricsPage, sums: &Sums) {
    page.family("hopwise_rtt_seconds", "histogram", "Round trips measured.");
    let mut below = 0;
    for (bound, counter) in RTT_BOUNDS_US.iter().zip(&sums.rtt_counts) {
        below += value(counter);
        let seconds = f64::from(*bound) / 1e6;
        page.line("hopwise_rtt_seconds_bucket", format_args!("le=\"{seconds}\""), below);
    }
    let all = below + value(&sums.rtt_counts[RTT_BOUNDS_US.len()]);
    page.line("hopwise_rtt_seconds_bucket", format_args!("le=\"+Inf\""), all);
    let sum = Duration::from_micros(value(&sums.rtt_sum_us)).as_secs_f64();
    page.line("hopwise_rtt_seconds_sum", format_args!(""), sum);
    page.line("hopwise_rtt_seconds_count", format_args!(""), all);
}

/// The lines of a family stand together, as the format requires.
fn links(page: &mut MetricsPage, snapshot: &Snapshot) {
    let packets = |link: &LinkSnapshot| [("in", link.received_packets), ("out", link.sent_packets)];
    let bytes = |link: &LinkSnapshot| [("in", link.received_bytes), ("out", link.sent_bytes)];
    let mut each = |family: &str, help: &str, directions: fn(&LinkSnapshot) -> [(&'static str, u64); 2]| {
        page.family(family, "counter", help);
        for link in &snapshot.links {
            for (direction, count) in directions(link) {
                let labels = format_args!("link=\"{}\",direction=\"{direction}\"", escaped(&link.name));
                page.line(family, labels, count);
            }
        }
    };
    each("hopwise_link_packets_total", "Packets over each link.", packets);
    each("hopwise_link_bytes_total", "Bytes over each link, IP headers counted.", bytes);
    page.family("hopwise_link_drops_total", "counter", "Packets that a link let go, by reason.");
    for link in &snapshot.links {
        for (reason, count) in &link.drops {
            let labels = format_args!("link=\"{}\",reason=\"{reason}\"", escaped(&link.name));
            page.line("hopwise_link_drops_total", labels, *count);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hopwise_core::agent::{AckRule, By, Why};
    use hopwise_core::trace::{TraceEvent, TraceKind};
    use hopwise_core::{Instant, Seq};

    use super::*;
    use crate::snapshot::{CaptureSnapshot, TotalsSnapshot};

    fn assert_has_lines(text: &str, lines: &[&str]) {
        for line in lines {
            assert!(text.lines().any(|found| found == *line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn events_become_lines_of_the_text_format() {
        let sums = Sums::new();
        let event = |kind| TraceEvent { now: Instant::ZERO, conn: 1, packet: 1, kind };
        let why = Why::new(AckRule::Count, 2, 2);
        sums.add(&event(TraceKind::AckDecided { number: Seq(1), decision: 1, by: By::Agent, why }));
        sums.add(&event(TraceKind::AckHeld { why, due_us: u32::MAX, basis: None }));
        for shadow in [1, u8::MAX] {
            sums.add(&event(TraceKind::ShadowAck { shadow, why }));
        }
        sums.add(&event(TraceKind::Rtt { sample_us: 2000, srtt_us: 2000, rto_us: 200_000 }));
        let other = Sums::new();
        other.add(&event(TraceKind::AckHeld { why, due_us: u32::MAX, basis: None }));
        let sums = Sums::total(&[Arc::new(sums), Arc::new(other)]);
        let text = text(&sums, &Snapshot::default(), &CaptureCounts::default());
        assert_has_lines(
            &text,
            &[
                "hopwise_trace_events_total{event=\"ack-decided\"} 1",
                "hopwise_acks_decided_total{by=\"agent\",rule=\"count\"} 1",
                "hopwise_acks_held_total{rule=\"count\"} 2",
                "hopwise_shadow_acks_total{shadow=\"1\"} 1",
                "hopwise_rtt_seconds_bucket{le=\"0.001\"} 0",
                "hopwise_rtt_seconds_bucket{le=\"0.003\"} 1",
                "hopwise_rtt_seconds_bucket{le=\"+Inf\"} 1",
                "hopwise_rtt_seconds_sum 0.002",
            ],
        );
    }

    #[test]
    fn totals_become_lines_of_the_text_format() {
        let relays = [("socks5-open", 2), ("socks5-accepted", 5)];
        let relays = relays.map(|(what, count)| (what.to_owned(), count)).into();
        let by = |cause: &str, count| [(cause.to_owned(), count)].into();
        let totals = TotalsSnapshot {
            segments_sent: [("resent".to_owned(), 43), ("after-timeout".to_owned(), 5)].into(),
            payload_bytes_sent: by("new", 9000),
            timeouts: 7,
            timeouts_repeated: 2,
            segments_lost: by("sack", 8),
            fast_recoveries: by("rack", 4),
            undone: by("d-sack", 3),
            ..TotalsSnapshot::default()
        };
        let snapshot = Snapshot { connections_open: 3, relays, totals, ..Snapshot::default() };
        let text = text(&Sums::new(), &snapshot, &CaptureCounts::default());
        let lines = [
            "hopwise_segments_sent_total{what=\"resent\"} 43",
            "hopwise_payload_bytes_sent_total{what=\"new\"} 9000",
            "hopwise_segments_retransmitted_total{cause=\"fast-retransmit\"} 43",
            "hopwise_segments_retransmitted_total{cause=\"timeout\"} 5",
            "hopwise_timeouts_total{cause=\"first\"} 5",
            "hopwise_timeouts_total{cause=\"repeated\"} 2",
            "hopwise_segments_lost_total{by=\"sack\"} 8",
            "hopwise_fast_recoveries_total{by=\"rack\"} 4",
            "hopwise_recoveries_undone_total{by=\"d-sack\"} 3",
            "hopwise_connections 3",
            "hopwise_relay_total{what=\"socks5-accepted\"} 5",
            "hopwise_relays_open{service=\"socks5\"} 2",
        ];
        assert_has_lines(&text, &lines);
        assert!(!text.contains("hopwise_relay_total{what=\"socks5-open\"}"), "no counter goes down: {text}");
    }

    /// Losses of a capture still count after its end.
    #[test]
    fn captures_say_what_they_lost_and_whether_one_fails() {
        let captured = CaptureCounts {
            packets_written: 5,
            bytes_written: 700,
            files_begun: 2,
            packets_missed: 3,
            events_missed: 4,
            packets_unwritten: 6,
            last_error: Some("No space left".into()),
        };
        let of = |capture: Option<CaptureSnapshot>| {
            text(&Sums::new(), &Snapshot { capture, ..Snapshot::default() }, &captured)
        };
        let sound = CaptureSnapshot::default();
        let full = CaptureSnapshot { last_error: captured.last_error.clone(), ..sound.clone() };
        for (capture, states) in [(None, [0, 0]), (Some(sound), [1, 0]), (Some(full), [1, 1])] {
            let text = of(capture);
            let lines = [
                &*format!("hopwise_capture_running {}", states[0]),
                &format!("hopwise_capture_failed {}", states[1]),
                "hopwise_capture_packets_total 5",
                "hopwise_capture_bytes_total 700",
                "hopwise_capture_files_total 2",
                "hopwise_capture_events_lost_total 4",
                "hopwise_capture_packets_lost_total{reason=\"too-fast\"} 3",
                "hopwise_capture_packets_lost_total{reason=\"disk\"} 6",
            ];
            assert_has_lines(&text, &lines);
        }
    }

    /// The name of a family, also for the series of a histogram.
    fn family(line: &str) -> &str {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name)
    }

    #[test]
    fn the_lines_of_a_family_stand_together_after_its_type() {
        let link = |name: &str| LinkSnapshot {
            name: name.to_owned(),
            drops: [("down".to_owned(), 1)].into(),
            ..LinkSnapshot::default()
        };
        let snapshot = Snapshot { links: vec![link("a"), link("b")], ..Snapshot::default() };
        let text = text(&Sums::new(), &snapshot, &CaptureCounts::default());
        let mut current = "";
        for line in text.lines() {
            match line.strip_prefix("# TYPE ") {
                Some(head) => current = head.split(' ').next().unwrap_or_default(),
                None if line.starts_with('#') => {}
                None => assert_eq!(family(line), current, "{text}"),
            }
        }
        assert!(text.contains("hopwise_link_drops_total{link=\"b\",reason=\"down\"} 1"), "{text}");
    }
}
