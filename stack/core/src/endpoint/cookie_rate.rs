//! Limits the SYNs that are answered with cookies, and selects them. Most floods use forged senders, which never repeat
//! a SYN; real clients do. An unanswered SYN is therefore remembered for a while, and answered when it comes again.
//!
//! This helps while a flood does not repeat its SYNs, up to about 150,000 of them a second. More would fill the
//! filters, and unknown senders would pass for known ones.

use std::time::Duration;

use crate::Instant;
use crate::ip::{Taken, TokenBucket};
use crate::secrets::{CookieFlow, Secrets};

/// A client repeats its SYN after one second, then after two more (RFC 6298 §2): the longer wait, and a margin.
const UNANSWERED_FOR: Duration = Duration::from_secs(4);
/// Real clients repeat a SYN after one second at the earliest; two generations are half of that.
const ANSWERED_FOR: Duration = Duration::from_millis(250);

pub(super) struct CookieRate {
    strangers: TokenBucket,
    /// Repeated SYNs have tokens of their own, or the flood would take them all.
    again: TokenBucket,
    /// Allocated with the first unanswered SYN; most endpoints never see a flood.
    names: Option<Box<Names>>,
}

struct Names {
    unanswered: Recent,
    /// A sender that repeats its SYN at full speed would take the tokens of other repeaters.
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
            // With 100,000 names a second, a third of the bits are set in a generation. Then one in five to ten unknown
            // senders passes for a known one.
            Box::new(Names {
                unanswered: Recent::new(now, UNANSWERED_FOR, 21),
                answered: Recent::new(now, ANSWERED_FOR, 18),
            })
        });
        unanswered.grow_older(now);
        answered.grow_older(now);
        let is_known = unanswered.has(name);
        // An answer may be lost: a third SYN must pass too.
        unanswered.insert(name);
        if !is_known || answered.has(name) || self.again.take(now) == Taken::Refused {
            return Taken::Refused;
        }
        answered.insert(name);
        Taken::Granted
    }
}

/// Names of the last one to two generations, in two Bloom filters. The newer is written, both are read, and the older
/// one expires.
struct Recent {
    newer: Vec<u64>,
    older: Vec<u64>,
    since: Instant,
    generation: Duration,
    bits: u32,
}

impl Recent {
    /// Each filter has 2 to the power of `bits` bits.
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

    /// The two bits of a name, one from each part of it.
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
