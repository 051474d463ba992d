//! How many SYNs are answered with cookies, and which. The senders of most floods are made up and never come again,
//! those who mean it do: what was left unanswered is remembered for a while, and answered when it comes again.
//!
//! That helps as long as a flood does not repeat its SYNs, and up to some 150,000 of them a second: more fill the
//! filters, and strangers are taken for acquaintances.

use std::time::Duration;

use crate::Instant;
use crate::ip::{Taken, TokenBucket};
use crate::secrets::{CookieFlow, Secrets};

/// The first SYN is repeated after a second, the second after two more (RFC 6298 §2): the longer of them, and a margin.
const UNANSWERED_FOR: Duration = Duration::from_secs(4);
/// Nobody who means it repeats a SYN sooner than after a second, and two generations are half of that.
const ANSWERED_FOR: Duration = Duration::from_millis(250);

pub(super) struct CookieRate {
    strangers: TokenBucket,
    /// Those who come again have tokens of their own, or the flood would take them all.
    again: TokenBucket,
    /// Made when the first one goes unanswered; most endpoints never are flooded.
    names: Option<Box<Names>>,
}

struct Names {
    unanswered: Recent,
    /// Who repeats a SYN as fast as it can would take the tokens of those who come again.
    answered: Recent,
}

impl CookieRate {
    pub(super) fn new(per_second: u32) -> CookieRate {
        let bucket = TokenBucket::new(per_second, per_second.div_ceil(10));
        CookieRate { strangers: bucket, again: bucket, names: None }
    }

    pub(super) fn take(&mut self, now: Instant, secrets: &Secrets, syn: &CookieFlow) -> Taken {
        if self.strangers.take(now) == Taken::Granted {
            return Taken::Granted;
        }
        let name = syn.name(secrets);
        let Names { unanswered, answered } = &mut **self.names.get_or_insert_with(|| {
            // 100,000 names a second over a generation mark a third of the bits; of strangers one in ten to five is
            // then taken for another.
            Box::new(Names {
                unanswered: Recent::new(now, UNANSWERED_FOR, 21),
                answered: Recent::new(now, ANSWERED_FOR, 18),
            })
        });
        unanswered.grow_older(now);
        answered.grow_older(now);
        let is_known = unanswered.has(name);
        // An answer may be lost on its way: whoever comes a third time is known, too.
        unanswered.insert(name);
        if !is_known || answered.has(name) || self.again.take(now) == Taken::Refused {
            return Taken::Refused;
        }
        answered.insert(name);
        Taken::Granted
    }
}

/// Names of the last one to two generations: two Bloom filters, of which the newer is written, both are read, and the
/// older one makes way.
struct Recent {
    newer: Vec<u64>,
    older: Vec<u64>,
    since: Instant,
    generation: Duration,
    bits: u32,
}

impl Recent {
    /// With 2 to the `bits` bits each.
    fn new(now: Instant, generation: Duration, bits: u32) -> Recent {
        let empty = || vec![0; 1 << (bits - 6)];
        Recent { newer: empty(), older: empty(), since: now, generation, bits }
    }

    fn grow_older(&mut self, now: Instant) {
        let age = now.since(self.since);
        if age < self.generation {
            return;
        }
        std::mem::swap(&mut self.newer, &mut self.older);
        self.newer.fill(0);
        if age >= self.generation * 2 {
            self.older.fill(0);
        }
        self.since = now;
    }

    fn has(&self, name: u64) -> bool {
        let all = |filter: &Vec<u64>| self.places(name).all(|(word, bit)| filter[word] & bit != 0);
        all(&self.newer) || all(&self.older)
    }

    fn insert(&mut self, name: u64) {
        for (word, bit) in self.places(name) {
            self.newer[word] |= bit;
        }
    }

    /// Two bits, each by a part of the name.
    fn places(&self, name: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let bits = self.bits;
        [name, name >> bits].into_iter().map(move |part| {
            let bit = part & ((1 << bits) - 1);
            ((bit >> 6) as usize, 1 << (bit & 63))
        })
    }
}

#[cfg(test)]
mod tests;
