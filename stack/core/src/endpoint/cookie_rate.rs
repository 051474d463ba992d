//! How many SYNs are answered with cookies, and which. The senders of a flood are made up and never come again, those
//! who mean it do: what was left unanswered is remembered for a while, and answered when it comes again.

use std::time::Duration;

use crate::Instant;
use crate::ip::{Taken, TokenBucket};
use crate::secrets::{CookieFlow, Secrets};

/// The first SYN is repeated after a second, the second after two more (RFC 6298 §2): the longer of them, and a margin.
const A_GENERATION: Duration = Duration::from_secs(4);
/// 100,000 SYNs a second over one generation mark a third of them; of strangers, one in ten is then taken for another.
const BITS: u32 = 21;

pub(super) struct CookieRate {
    strangers: TokenBucket,
    /// Those who come again have tokens of their own, or the flood would take them all.
    again: TokenBucket,
    /// Made when the first one goes unanswered; most endpoints never are flooded.
    unanswered: Option<Box<Unanswered>>,
}

impl CookieRate {
    pub(super) fn new(per_second: u32) -> CookieRate {
        let bucket = TokenBucket::new(per_second, per_second.div_ceil(10));
        CookieRate { strangers: bucket, again: bucket, unanswered: None }
    }

    pub(super) fn take(&mut self, now: Instant, secrets: &Secrets, syn: &CookieFlow) -> Taken {
        if self.strangers.take(now) == Taken::Granted {
            return Taken::Granted;
        }
        let name = syn.name(secrets);
        let unanswered = self.unanswered.get_or_insert_with(|| Box::new(Unanswered::new(now)));
        unanswered.grow_older(now);
        if unanswered.has(name) && self.again.take(now) == Taken::Granted {
            return Taken::Granted;
        }
        unanswered.insert(name);
        Taken::Refused
    }
}

/// Two Bloom filters: the newer is written, both are read, and the older one makes way.
struct Unanswered {
    newer: Vec<u64>,
    older: Vec<u64>,
    since: Instant,
}

impl Unanswered {
    fn new(now: Instant) -> Unanswered {
        let empty = || vec![0; 1 << (BITS - 6)];
        Unanswered { newer: empty(), older: empty(), since: now }
    }

    fn grow_older(&mut self, now: Instant) {
        let age = now.since(self.since);
        if age < A_GENERATION {
            return;
        }
        std::mem::swap(&mut self.newer, &mut self.older);
        self.newer.fill(0);
        if age >= A_GENERATION * 2 {
            self.older.fill(0);
        }
        self.since = now;
    }

    fn has(&self, name: u64) -> bool {
        [&self.newer, &self.older].iter().any(|bits| places(name).all(|(word, bit)| bits[word] & bit != 0))
    }

    fn insert(&mut self, name: u64) {
        places(name).for_each(|(word, bit)| self.newer[word] |= bit);
    }
}

/// Two bits, each by a part of the name.
fn places(name: u64) -> impl Iterator<Item = (usize, u64)> {
    [name, name >> BITS].into_iter().map(|part| {
        let bit = part & ((1 << BITS) - 1);
        ((bit >> 6) as usize, 1 << (bit & 63))
    })
}

#[cfg(test)]
mod tests;
