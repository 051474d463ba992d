//! Counts the timeouts of senders while a link is out or announced to go.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hopwise_air::RadioWorld;
use hopwise_air::channel::Outage;
use hopwise_core::Instant;

use super::host::SimHost;
use super::plan::Plan;

/// Looks at all senders just before an outage is announced, and just before it ends. A look changes nothing.
#[derive(Debug)]
pub(super) struct OutageWatch {
    /// The instants of the looks to come, in turn before an announcement and before an end.
    looks: VecDeque<Instant>,
    /// The timeouts in the outages that are over, by flow and by the end that sends; none if the plan has no outage.
    over: Option<BTreeMap<(u16, u32), u32>>,
    /// All timeouts until the outage was announced that is under way.
    before: Option<BTreeMap<(u16, u32), u32>>,
}

impl OutageWatch {
    /// Each outage is announced `lead` before it begins: the base station acts from then on.
    pub(super) fn new(outages: &[Outage], lead: Duration) -> OutageWatch {
        let looks =
            merged(outages, lead).into_iter().flat_map(|ends| ends.map(|ns| Instant(ns.saturating_sub(1))));
        let over = (!outages.is_empty()).then(BTreeMap::new);
        OutageWatch { looks: looks.collect(), over, before: None }
    }

    /// The next look, if it is not after `until`.
    pub(super) fn next(&self, until: Instant) -> Option<Instant> {
        self.looks.front().copied().filter(|at| *at <= until)
    }

    /// The look for which it is time.
    pub(super) fn look(&mut self, plan: &Plan, world: &RadioWorld<SimHost>) {
        self.looks.pop_front();
        let now = timeouts(plan, world);
        match self.before.take() {
            None => self.before = Some(now),
            Some(before) => {
                let over = self.over.get_or_insert_default();
                for (end, count) in now {
                    *over.entry(end).or_default() += count - before.get(&end).copied().unwrap_or_default();
                }
            }
        }
    }

    /// The timeouts of one end while a link was out or announced to go, of `all` that it had until now.
    pub(super) fn timeouts(&self, end: (u16, u32), all: Option<u32>) -> Option<u32> {
        let over = self.over.as_ref()?.get(&end).copied().unwrap_or_default();
        let before = self.before.as_ref().map(|before| before.get(&end).copied().unwrap_or_default());
        Some(over + before.map_or(0, |before| all.unwrap_or_default().saturating_sub(before)))
    }
}

/// The announcements and ends of outages, in nanoseconds; overlapping outages are one.
fn merged(outages: &[Outage], lead: Duration) -> Vec<[u64; 2]> {
    let announced = |outage: &Outage| (Instant(outage.begins_ns) - lead).0;
    let mut all: Vec<[u64; 2]> = outages.iter().map(|outage| [announced(outage), outage.ends_ns]).collect();
    all.sort_unstable();
    let mut merged: Vec<[u64; 2]> = Vec::new();
    for [begins, ends] in all {
        match merged.last_mut() {
            Some([_, until]) if *until >= begins => *until = ends.max(*until),
            _ => merged.push([begins, ends]),
        }
    }
    merged
}

fn timeouts(plan: &Plan, world: &RadioWorld<SimHost>) -> BTreeMap<(u16, u32), u32> {
    let ends = plan.flows.iter().zip(0..).flat_map(|(flow, index)| [(index, flow.from), (index, flow.to)]);
    let of = |(index, node): (u16, u32)| {
        let result = world.machines().get(node as usize)?.result(world.now(), index)?;
        Some(((index, node), result.counted.timeouts?))
    };
    ends.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_that_overlap_or_touch_are_one() {
        let outage = |begins_ns, ends_ns| Outage { from: 0, to: 1, begins_ns, ends_ns, is_one_way: false };
        let outages = [outage(50, 60), outage(10, 20), outage(15, 18), outage(20, 30)];
        assert_eq!(merged(&outages, Duration::ZERO), [[10, 30], [50, 60]]);
        let announced = merged(&outages, Duration::from_nanos(12));
        assert_eq!(announced, [[0, 30], [38, 60]], "none before the run begins");
        assert_eq!(merged(&outages, Duration::from_nanos(20)), [[0, 60]], "the second during the first");
        assert_eq!(
            OutageWatch::new(&outages, Duration::ZERO).next(Instant(9)),
            Some(Instant(9)),
            "the last instant before it begins"
        );
        assert_eq!(OutageWatch::new(&outages, Duration::ZERO).next(Instant(8)), None);
    }
}
