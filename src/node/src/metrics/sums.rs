//! Sums over the trace, for a scrape.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hopwise_agents::spec::MOST_SHADOWS;
use hopwise_core::agent::{AckRule, By};
use hopwise_core::trace::text::EVENT_NAMES;
use hopwise_core::trace::{TraceEvent, TraceKind};
use hopwise_host::{Observer, SeenPacket};

use crate::counts::{count, value};

/// Upper bounds of the round-trip histogram, in microseconds.
pub(super) const RTT_BOUNDS_US: [u32; 12] =
    [100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000];

/// Sums over the trace of one shard; its driver's thread adds and the endpoint reads.
#[derive(Debug)]
pub(crate) struct Sums {
    pub(super) events: [AtomicU64; EVENT_NAMES.len()],
    pub(super) decided: [[AtomicU64; AckRule::ALL.len()]; By::ALL.len()],
    pub(super) held: [AtomicU64; AckRule::ALL.len()],
    pub(super) shadow_acks: [AtomicU64; MOST_SHADOWS],
    pub(super) rtt_counts: [AtomicU64; RTT_BOUNDS_US.len() + 1],
    pub(super) rtt_sum_us: AtomicU64,
}

/// Adds up every event.
#[derive(Debug)]
pub(crate) struct Adder(pub(crate) Arc<Sums>);

impl Sums {
    pub(crate) fn new() -> Sums {
        let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
        Sums {
            events: std::array::from_fn(|_| AtomicU64::new(0)),
            decided: std::array::from_fn(|_| zeros()),
            held: zeros(),
            shadow_acks: std::array::from_fn(|_| AtomicU64::new(0)),
            rtt_counts: std::array::from_fn(|_| AtomicU64::new(0)),
            rtt_sum_us: AtomicU64::new(0),
        }
    }

    /// Totals of all shards.
    pub(crate) fn total(shards: &[Arc<Sums>]) -> Sums {
        let total = Sums::new();
        for shard in shards {
            for (sum, more) in total.all().zip(shard.all()) {
                sum.fetch_add(value(more), Ordering::Relaxed);
            }
        }
        total
    }

    /// All counters.
    pub(super) fn all(&self) -> impl Iterator<Item = &AtomicU64> {
        let Sums { events, decided, held, shadow_acks, rtt_counts, rtt_sum_us } = self;
        let one = std::slice::from_ref(rtt_sum_us);
        events
            .iter()
            .chain(decided.iter().flatten())
            .chain(held)
            .chain(shadow_acks)
            .chain(rtt_counts)
            .chain(one)
    }

    pub(super) fn add(&self, event: &TraceEvent) {
        let name = event.kind.name();
        if let Some(counter) = EVENT_NAMES.iter().position(|known| *known == name).map(|at| &self.events[at])
        {
            count(counter);
        }
        let rule_of = |rule| AckRule::ALL.iter().position(|known| *known == rule);
        match event.kind {
            TraceKind::AckDecided { by, why, .. } => {
                let decider = By::ALL.iter().position(|known| *known == by);
                if let Some((decider, rule)) = decider.zip(rule_of(why.rule)) {
                    count(&self.decided[decider][rule]);
                }
            }
            TraceKind::AckHeld { why, .. } => {
                if let Some(rule) = rule_of(why.rule) {
                    count(&self.held[rule]);
                }
            }
            TraceKind::ShadowAck { shadow, .. } => {
                if let Some(counter) = self.shadow_acks.get(usize::from(shadow)) {
                    count(counter);
                }
            }
            TraceKind::Rtt { sample_us, .. } => {
                let bucket = RTT_BOUNDS_US.iter().position(|bound| sample_us <= *bound);
                count(&self.rtt_counts[bucket.unwrap_or(RTT_BOUNDS_US.len())]);
                self.rtt_sum_us.fetch_add(u64::from(sample_us), Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

impl Observer for Adder {
    fn on_packet(&mut self, _seen: &SeenPacket<'_>) {}

    fn on_trace(&mut self, event: &TraceEvent) {
        self.0.add(event);
    }
}
