//! Figures of a run.

use super::live::mesh::{HostRow, StationLink};
use super::result::{Completed, DatagramResult, FlowRow, ProbeResult, RoundTripQuantiles, RunResult};
use super::statistics::{Better, Figure};

/// A figure of a run, over all its flows.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The name in results, tables and files.
    pub name: &'static str,
    /// The name in words, where the name with spaces would not do; else empty.
    title: &'static str,
    /// Its meaning, and its unit.
    pub says: &'static str,
    /// The figure; none where the run has no such figure.
    pub of: fn(&RunResult) -> Option<f64>,
    /// The side that is better; none for a figure that is neither good nor bad in itself.
    pub better: Option<Better>,
}

impl Metric {
    /// The unit, which ends the name.
    pub fn unit(&self) -> &'static str {
        UNITS.iter().find(|(end, _)| self.name.ends_with(end)).map_or("", |(_, unit)| unit)
    }

    /// The name in words, without the unit.
    pub fn title(&self) -> String {
        let bare = || UNITS.iter().find_map(|(end, _)| self.name.strip_suffix(end)).unwrap_or(self.name);
        if self.title.is_empty() { bare().replace('_', " ") } else { self.title.to_owned() }
    }

    /// The name in words and the unit: `median round trip, ms`.
    pub fn title_with_unit(&self) -> String {
        let unit = self.unit();
        if unit.is_empty() { self.title() } else { format!("{}, {unit}", self.title()) }
    }

    /// The figure that arms may be compared by; none if it has no better side.
    pub fn figure(&self) -> Option<Figure> {
        Some(Figure { name: self.name, unit: self.unit(), better: self.better? })
    }
}

/// The ends of names that are units.
const UNITS: [(&str, &str); 3] = [("_kbps", "kbit/s"), ("_ms", "ms"), ("_s", "s")];

/// Writes the table: what documents a metric is its meaning, and a text behind its name is its title.
macro_rules! metrics {
    ($($(#[doc = $says:literal])+ $better:ident $name:ident $($title:literal)? = $of:expr;)+) => {
        /// The first one is compared between arms, unless a trial names further ones.
        pub const METRICS: [Metric; [$(stringify!($name)),+].len()] = [$(Metric {
            name: stringify!($name),
            title: [$($title,)? ""][0],
            says: concat!($($says),+).trim_ascii(),
            of: $of,
            better: $better,
        }),+];
    };
}

const MORE: Option<Better> = Some(Better::More);
const LESS: Option<Better> = Some(Better::Less);
const NEITHER: Option<Better> = None;

metrics! {
    /// bytes in order to the programs, in kbit/s of counted time
    MORE goodput_kbps = |run| Some(run.total.goodput_kbps);
    /// Jain's index of the flows' goodputs: 1 for equal shares, 1/n if one has all
    MORE jain "Jain's index" = |run| Some(run.total.jain);
    /// mean of Jain's index over 100 intervals of the counted time
    MORE jain_over_time "Jain's index over time" = |run| run.total.jain_over_time;
    /// data segments sent, with those sent again
    NEITHER segments_sent = |run| sum(run, |flow| flow.segments_sent);
    /// data segments sent again
    LESS segments_retransmitted "segments sent again" = |run| sum(run, |flow| flow.segments_retransmitted);
    /// retransmission timeouts
    LESS timeouts = |run| sum(run, |flow| flow.timeouts.map(u64::from));
    /// recoveries that began without a timeout
    NEITHER fast_retransmits = |run| sum(run, |flow| flow.fast_retransmits.map(u64::from));
    /// pure ACKs sent
    NEITHER acks_sent = |run| sum(run, |flow| flow.acks_sent);
    /// ACKs that an agent sent again
    NEITHER acks_repeated = |run| sum(run, |flow| flow.acks_repeated);
    /// pure ACKs for each data segment sent
    NEITHER acks_per_segment = acks_per_segment;
    /// data segments that the receiver had already
    LESS segments_received_again = received_again;
    /// share of the arrived data segments that came above a hole, 0 to 1
    LESS out_of_order_share "share of segments above a hole" = out_of_order;
    /// most data segments that left upon one packet or timer
    NEITHER burst_longest "longest burst, segments" =
        |run| foreground(run).filter_map(|flow| flow.burst_longest).max().map(|longest| longest as f64);
    /// mean number of data segments that left upon one packet or timer; mean of the flows
    NEITHER burst_mean "mean burst, segments" = |run| mean(foreground(run).filter_map(|flow| flow.burst_mean));
    /// half of the round trips took no longer, in ms; mean of the flows
    LESS rtt_median_ms "median round trip" = |run| of_round_trips(run, |trips| trips.median_ms);
    /// 95 % of the round trips took no longer, in ms; mean of the flows
    LESS rtt_p95_ms "95 % round trip" = |run| of_round_trips(run, |trips| trips.p95_ms);
    /// 99 % of the round trips took no longer, in ms; mean of the flows
    LESS rtt_p99_ms "99 % round trip" = |run| of_round_trips(run, |trips| trips.p99_ms);
    /// mean smoothed round trip of live worlds, of any TCP, in ms; mean of the flows
    LESS rtt_ms "mean smoothed round trip" = |run| mean(foreground(run).filter_map(|flow| flow.rtt_ms));
    /// mean time of a transfer or a request with its response, in s
    LESS completion_s "mean completion time" = completion_s;
    /// half of these took no longer, in s; mean of the flows
    LESS completion_median_s "median completion time" = |run| of_completed(run, |completed| completed.median_s);
    /// 95 % of these took no longer, in s; mean of the flows
    LESS completion_p95_s "95 % completion time" = |run| of_completed(run, |completed| completed.p95_s);
    /// half of the probes were answered in this time, in ms; mean of the probes' flows
    LESS probe_median_ms "probe's median round trip" =
        |run| mean(probes(run).filter_map(|probe| Some(probe.round_trips?.median_ms)));
    /// 95 % of those that were answered took no longer, in ms; mean of the probes' flows
    LESS probe_p95_ms "probe's 95 % round trip" =
        |run| mean(probes(run).filter_map(|probe| Some(probe.round_trips?.p95_ms)));
    /// share of the probes that were not answered, 0 to 1
    LESS probe_loss "share of lost probes" = probe_loss;
    /// share of the datagrams at a rate that did not arrive, 0 to 1; mean of the flows
    LESS datagram_loss "share of lost datagrams" = |run| datagrams(run, |of| Some(of.loss));
    /// mean jitter of those that arrived (RFC 3550), in ms; mean of the flows
    LESS datagram_jitter_ms "datagrams' jitter" = |run| datagrams(run, |of| Some(of.times?.jitter_ms));
    /// their mean time from one program to the other, in ms; mean of the flows
    LESS datagram_delay_ms "mean one-way delay" = |run| datagrams(run, |of| Some(of.times?.delay_ms));
    /// half of them took no longer, in ms; mean of the flows
    LESS datagram_delay_median_ms "median one-way delay" = |run| datagrams(run, |of| Some(of.times?.delay_median_ms));
    /// 95 % of them took no longer, in ms; mean of the flows
    LESS datagram_delay_p95_ms "95 % one-way delay" = |run| datagrams(run, |of| Some(of.times?.delay_p95_ms));
    /// largest error of these delays by the nodes' clocks, in ms: 0 where all nodes have one; mean of the flows
    NEITHER datagram_delay_error_ms "one-way delay's error" = |run| datagrams(run, |of| Some(of.times?.delay_error_ms));
    /// frames of all radios, with RTS, CTS and MAC ACKs
    NEITHER frames_sent = |run| count(run.air.frames_sent);
    /// frames that a receiver lost to another frame
    LESS collisions = |run| count(run.air.collisions);
    /// packets that a radio gave up after its last try
    LESS retry_drops = |run| count(run.air.retry_drops);
    /// missing packets for which receivers of aggregates waited no longer
    LESS reorder_timeouts = |run| count(run.air.reorder_timeouts);
    /// those of them that came later and were dropped
    LESS reorder_late = |run| count(run.air.reorder_late);
    /// packets that interface queues dropped
    LESS queue_drops = |run| count(run.air.queue_drops);
    /// the part of queue_drops that is CoDel's
    NEITHER codel_drops = |run| count(run.air.codel_drops);
    /// packets that CoDel marked and did not drop
    NEITHER ce_marks = |run| count(run.air.ce_marks);
    /// mean time of a data segment at a hop, from the interface queue to its first frame, in ms; over all hops
    LESS queue_wait_ms "mean wait in a queue" = |run| run.air.queue_wait_ms;
    /// 95 % of these took no longer, in ms
    LESS queue_wait_p95_ms "95 % wait in a queue" = |run| run.air.queue_wait_p95_ms;
    /// the mean of the same for TCP's ACKs, in ms
    LESS ack_queue_wait_ms "ACKs' mean wait in a queue" = |run| run.air.ack_queue_wait_ms;
    /// time that radios sent, in s, summed over all of them: more than the run lasts
    NEITHER airtime_s = |run| run.air.airtime_s;
    /// the part of `airtime_s` for TCP's data, with its RTS, CTS and MAC ACKs
    NEITHER data_airtime_s = |run| run.air.data_airtime_s;
    /// the same for TCP's ACKs
    NEITHER ack_airtime_s = |run| run.air.ack_airtime_s;
    /// frames that were sent again, as the drivers of a mesh's radios count them
    LESS station_retries "frames sent again" = |run| of_links(run, |link| link.tx_retries);
    /// packets that the radios of a mesh gave up
    LESS station_failures "packets given up" = |run| of_links(run, |link| link.tx_failed);
    /// share of the time in which a mesh's channel was busy during the run, 0 to 1; mean of the hosts
    NEITHER channel_busy = |run| mean(hosts(run).filter_map(|host| host.channel?.busy_beside));
    /// searches for a route that began
    NEITHER route_discoveries = |run| count(run.routing.discoveries);
    /// routes that broke
    LESS route_failures = |run| count(run.routing.route_failures);
}

/// The metric of that name.
pub fn named(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

/// The metric that a user means: `-` stands for `_`, and the unit may be left out.
pub fn meant(text: &str) -> Option<&'static Metric> {
    let name = text.replace('-', "_");
    let bare = |metric: &&Metric| UNITS.iter().any(|(end, _)| metric.name.strip_suffix(end) == Some(&name));
    named(&name).or_else(|| METRICS.iter().find(bare))
}

/// The names of the figures that arms may be compared by.
pub(crate) fn names_of_figures() -> impl Iterator<Item = &'static str> {
    METRICS.iter().filter(|metric| metric.better.is_some()).map(|metric| metric.name)
}

fn count(counter: Option<u64>) -> Option<f64> {
    counter.map(|counter| counter as f64)
}

fn foreground(run: &RunResult) -> impl Iterator<Item = &FlowRow> {
    run.flows.iter().filter(|flow| !flow.background)
}

/// The number of flows that share a run's goodput; both directions of a flow are one.
pub fn shares(run: &RunResult) -> usize {
    foreground(run).filter(|flow| !flow.id.ends_with("-back")).count()
}

/// The sum over the flows that are not in the background; none if one of them does not tell it.
pub fn sum(run: &RunResult, of: fn(&FlowRow) -> Option<u64>) -> Option<f64> {
    count(foreground(run).map(of).sum())
}

/// Pure ACKs for each data segment sent, with retransmissions.
pub fn acks_per_segment(run: &RunResult) -> Option<f64> {
    let (acks, segments) = (sum(run, |flow| flow.acks_sent)?, sum(run, |flow| flow.segments_sent)?);
    (segments > 0.0).then(|| acks / segments)
}

/// Data segments that were sent and did not arrive.
pub(crate) fn segments_lost(run: &RunResult) -> Option<f64> {
    lost(sum(run, |flow| flow.segments_sent), sum(run, |flow| flow.segments_arrived))
}

/// Pure ACKs that were sent and did not arrive.
pub(crate) fn acks_lost(run: &RunResult) -> Option<f64> {
    lost(sum(run, |flow| flow.acks_sent), sum(run, |flow| flow.acks_arrived))
}

/// Lost ACKs for each lost data segment; none where no data was lost.
pub(crate) fn acks_lost_per_segment_lost(run: &RunResult) -> Option<f64> {
    let (acks, segments) = (acks_lost(run)?, segments_lost(run)?);
    (segments > 0.0).then(|| acks / segments)
}

/// A packet may arrive twice, if the ACK of its frame was lost: there is no less than nothing.
fn lost(sent: Option<f64>, arrived: Option<f64>) -> Option<f64> {
    Some((sent? - arrived?).max(0.0))
}

/// Segments that were retransmitted needlessly.
pub(crate) fn received_again(run: &RunResult) -> Option<f64> {
    sum(run, |flow| flow.segments_received_again)
}

/// The mean of the figures that are known; none without any.
pub(crate) fn mean(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = figures.fold((0.0, 0.0), |(sum, count), figure| (sum + figure, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

fn of_round_trips(run: &RunResult, of: fn(&RoundTripQuantiles) -> f64) -> Option<f64> {
    mean(foreground(run).filter_map(|flow| flow.round_trips.as_ref().map(of)))
}

fn of_completed(run: &RunResult, of: fn(&Completed) -> Option<f64>) -> Option<f64> {
    mean(foreground(run).filter_map(|flow| of(flow.completed.as_ref()?)))
}

fn out_of_order(run: &RunResult) -> Option<f64> {
    let (late, all) = (sum(run, |flow| flow.segments_out_of_order)?, sum(run, |flow| flow.segments_arrived)?);
    (all > 0.0).then(|| late / all)
}

fn probes(run: &RunResult) -> impl Iterator<Item = &ProbeResult> {
    run.flows.iter().filter_map(|flow| flow.probe.as_ref())
}

fn probe_loss(run: &RunResult) -> Option<f64> {
    let (sent, answered) =
        probes(run).fold((0, 0), |(sent, answered), probe| (sent + probe.sent, answered + probe.answered));
    (sent > 0).then(|| (sent - answered) as f64 / sent as f64)
}

fn hosts(run: &RunResult) -> impl Iterator<Item = &HostRow> {
    run.live.iter().filter_map(|live| live.mesh.as_ref()).flat_map(|mesh| &mesh.hosts)
}

/// The sum over all links of a mesh; none if a driver does not count it, or began anew in the run.
fn of_links(run: &RunResult, of: fn(&StationLink) -> Option<u64>) -> Option<f64> {
    let mut links = hosts(run).flat_map(|host| &host.links).peekable();
    links.peek()?;
    count(links.map(of).sum())
}

/// A probe stands in no total, but it is there to be measured.
fn datagrams(run: &RunResult, of: fn(&DatagramResult) -> Option<f64>) -> Option<f64> {
    let flows = run.flows.iter().filter(|flow| !flow.background || flow.probe.is_some());
    mean(flows.filter_map(|flow| of(flow.datagrams.as_ref()?)))
}

/// Mean completion time of all transfers and requests.
fn completion_s(run: &RunResult) -> Option<f64> {
    let completed: Vec<_> = foreground(run).filter_map(|flow| flow.completed).collect();
    let count: u64 = completed.iter().map(|completed| completed.count).sum();
    let total: f64 = completed.iter().filter_map(|c| Some(c.mean_s? * c.count as f64)).sum();
    (count > 0).then(|| total / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_stands_in_the_documentation_with_its_meaning() {
        let told = include_str!("../../docs/data.md");
        for Metric { name, says, .. } in METRICS {
            let row = format!("| `{name}` | {says} |\n");
            assert!(told.contains(&row), "docs/data.md lacks: {row}");
        }
        let of_field = told.split("\n## ").find(|part| part.starts_with("Columns of a recorded field"));
        let rows = |text: &str| text.matches("\n| `").count();
        let others = rows(told) - rows(of_field.expect("a table of its own"));
        assert_eq!(others, METRICS.len() + 6, "and it has no other");
    }
    #[test]
    fn a_figure_is_meant_with_dashes_and_without_its_unit_and_stands_for_one_alone() {
        for (text, name) in [
            ("completion-p95", "completion_p95_s"),
            ("completion_p95_s", "completion_p95_s"),
            ("goodput", "goodput_kbps"),
            ("rtt-median-ms", "rtt_median_ms"),
            ("jain", "jain"),
        ] {
            assert_eq!(meant(text).map(|metric| metric.name), Some(name), "{text}");
        }
        assert!(meant("completion_p9").is_none() && meant("").is_none());
        let bare = |metric: &Metric| {
            let unit = UNITS.iter().find_map(|(end, _)| metric.name.strip_suffix(end));
            unit.unwrap_or(metric.name).to_owned()
        };
        let all: std::collections::BTreeSet<_> = METRICS.iter().map(bare).collect();
        assert_eq!(all.len(), METRICS.len(), "no two differ in their units alone");
    }

    #[test]
    fn titles_are_words() {
        let title = |name: &str| named(name).map(Metric::title_with_unit);
        assert_eq!(title("probe_p95_ms").as_deref(), Some("probe's 95 % round trip, ms"));
        assert_eq!(title("goodput_kbps").as_deref(), Some("goodput, kbit/s"));
        assert!(METRICS.iter().all(|metric| !metric.title().contains('_')));
    }

    #[test]
    fn the_documentation_has_every_figure_with_its_better_side() {
        let told = include_str!("../../docs/statistics.md");
        for better in [Better::More, Better::Less] {
            let names = METRICS.iter().filter(|metric| metric.better == Some(better));
            let names: Vec<_> = names.map(|metric| format!("`{}`", metric.name)).collect();
            let line = format!("\n| {} | {} |\n", better.name(), names.join(", "));
            assert!(told.contains(&line), "docs/statistics.md lacks: {line}");
        }
        assert_eq!(METRICS[0].figure(), Some(crate::statistics::GOODPUT));
    }
}
