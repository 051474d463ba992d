//! CoDel (RFC 8289): drops from a flow whose packets have waited too long for a whole interval, at a growing rate.

use std::collections::VecDeque;
use std::time::Duration;

use super::{FqCodelConfig, Queued};
use crate::Instant;

/// A state of dropping that ended this many intervals ago is forgotten.
const MEMORY: u32 = 16;

/// CoDel's state of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Codel {
    /// When packets will have waited too long for an interval, if they do now.
    above_from: Option<Instant>,
    is_dropping: bool,
    next: Instant,
    /// Drops since dropping began, and their number when it last began.
    count: u32,
    last_count: u32,
}

/// The distance to the next drop.
fn law(interval: Duration, count: u32) -> Duration {
    let square = interval.as_nanos().pow(2) / u128::from(count.max(1));
    Duration::from_nanos(u64::try_from(square.isqrt()).unwrap_or(u64::MAX))
}

impl Codel {
    /// Takes a flow's next packet. `mark` marks a packet, if its flow takes marks; others are dropped into `lost`.
    pub(super) fn pop(
        &mut self,
        (config, now): (&FqCodelConfig, Instant),
        waiting: &mut VecDeque<Queued>,
        lost: &mut Vec<Queued>,
        mut mark: impl FnMut(&mut Queued) -> bool,
    ) -> Option<Queued> {
        let Some(mut head) = waiting.pop_front() else {
            (self.is_dropping, self.above_from) = (false, None);
            return None;
        };
        let is_due = self.is_due(config, now, &head, waiting.is_empty());
        if !self.is_dropping {
            if !is_due {
                return Some(head);
            }
            self.begin(config, now);
            if mark(&mut head) {
                return Some(head);
            }
            lost.push(head);
            let head = waiting.pop_front();
            self.look(config, now, head.as_ref(), waiting.is_empty());
            return head;
        }
        self.is_dropping = is_due;
        while self.is_dropping && now >= self.next {
            self.count = self.count.saturating_add(1);
            if mark(&mut head) {
                self.next += law(config.interval, self.count);
                return Some(head);
            }
            lost.push(head);
            let next = waiting.pop_front();
            self.is_dropping = self.look(config, now, next.as_ref(), waiting.is_empty());
            head = next?;
            if self.is_dropping {
                self.next += law(config.interval, self.count);
            }
        }
        Some(head)
    }

    /// The same as [`is_due`](Self::is_due) for a flow that may have no packet any more.
    fn look(&mut self, config: &FqCodelConfig, now: Instant, head: Option<&Queued>, is_last: bool) -> bool {
        match head {
            Some(head) => self.is_due(config, now, head, is_last),
            None => {
                self.above_from = None;
                false
            }
        }
    }

    /// Returns whether packets have waited too long for an interval.
    fn is_due(&mut self, config: &FqCodelConfig, now: Instant, head: &Queued, is_last: bool) -> bool {
        if now.since(head.at) < config.target || is_last {
            self.above_from = None;
            return false;
        }
        now >= *self.above_from.get_or_insert(now + config.interval)
    }

    /// Dropping begins. Soon after the last time it begins with the rate that it then ended with.
    fn begin(&mut self, config: &FqCodelConfig, now: Instant) {
        self.is_dropping = true;
        let more = self.count - self.last_count;
        let is_soon = now < self.next + config.interval * MEMORY;
        self.count = if more > 1 && is_soon { more } else { 1 };
        self.last_count = self.count;
        self.next = now + law(config.interval, self.count);
    }
}
