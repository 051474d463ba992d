//! Messages that only nodes with the network's key can write. Each packet carries a time stamp and an integrity check
//! value, and each hop writes its own. The protocol decides how they stand in a packet.
//!
//! Time stamps are nanoseconds of the sender's clock, and grow. A receiver takes each of them once. It knows the last
//! ones of each neighbour, and may also compare them with its own clock. A stamp far ahead of that clock is never
//! taken: it would lock out all later messages once the sender's clock is right. A sender whose clock was that far
//! ahead leaves its high stamps behind. It does not forget them: if it was the clock's jump back that was wrong,
//! neighbours have taken them, and want newer ones.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;

use super::key::Key;
use super::shares::MOST_NEIGHBOURS;

/// One or two keys: the first signs, both are accepted, so that a network can change its key while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    keys: Vec<(u8, Key)>,
    /// The largest difference between a neighbour's clock and ours; `None`: any time stamp newer than the last is
    /// taken.
    clock_within: Option<Duration>,
}

/// Why keys are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysError {
    /// There is none, or there are three or more.
    NotOneOrTwo,
    /// Both keys have one id, and packets could not tell them apart.
    SameId,
}

impl Keys {
    /// Keys with their ids in packets.
    pub fn new(keys: Vec<(u8, Key)>, clock_within: Option<Duration>) -> Result<Keys, KeysError> {
        match &keys[..] {
            [_] => Ok(Keys { keys, clock_within }),
            [(a, _), (b, _)] if a == b => Err(KeysError::SameId),
            [_, _] => Ok(Keys { keys, clock_within }),
            _ => Err(KeysError::NotOneOrTwo),
        }
    }

    pub(crate) fn signing(&self) -> (u8, &Key) {
        let (id, key) = &self.keys[0];
        (*id, key)
    }

    pub(crate) fn find(&self, id: u8) -> Option<&Key> {
        self.keys.iter().find(|(known, _)| *known == id).map(|(_, key)| key)
    }
}

/// The parts of the IP packet that a check value covers together with the message: addresses and TTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) src: [u8; 4],
    pub(crate) dst: [u8; 4],
    pub(crate) ttl: u8,
}

/// Signs a message with the first key and that time stamp; `None` without room.
pub(crate) type Sign = fn(&Keys, &Envelope, u64, &[u8]) -> Option<Vec<u8>>;
/// The time stamp and the message, if the check value is right.
pub(crate) type Verify = for<'m> fn(&Keys, &Envelope, &'m [u8]) -> Option<(u64, &'m [u8])>;

/// A protocol's functions for time stamps and check values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuthForm {
    pub(crate) sign: Sign,
    pub(crate) verify: Verify,
    /// The bytes that a signature adds to a message.
    pub(crate) cost: usize,
}

/// Signs a node's messages and checks those of its neighbours, by keys and time stamps.
#[derive(Debug)]
pub struct Auth {
    pub(crate) keys: Keys,
    pub(crate) form: AuthForm,
    /// The wall clock's time at an instant, in nanoseconds.
    clock: (Instant, u64),
    signed: Signed,
    heard: BTreeMap<Ipv4Addr, NeighbourStamps>,
}

/// The largest number of packets that may overtake one, and the longest delay of an overtaken one, in nanoseconds.
const MOST_RECENT: usize = 64;
const LATEST: u64 = 500_000_000;

/// A stamp may be a year ahead of the receiver's clock. Clocks that continue from where they stopped need it.
const MOST_AHEAD: u64 = 365 * 86_400 * 1_000_000_000;
/// The beginning of 2025. A clock before that was never set, and stamps are not compared with it.
const SET_SINCE: u64 = 1_735_689_600 * 1_000_000_000;
/// A killed node may have signed stamps above the last one that it kept, but none so far above.
const UNKEPT: u64 = 2_000_000_000;

fn is_ahead(clock: u64, stamp: u64, most: u64) -> bool {
    clock >= SET_SINCE && stamp.saturating_sub(clock) > most
}

/// The first stamp of a node whose clock is at `clock`, and which has kept these stamps. Stamps of a clock that was far
/// ahead are left behind: no neighbour takes them. A clock above all stamps is enough by itself, so that repeated
/// starts push no stamp ahead of it.
pub fn first_stamp(clock: u64, kept: &[u64]) -> u64 {
    let highest = kept.iter().filter(|stamp| !is_ahead(clock, **stamp, MOST_AHEAD)).max();
    highest.filter(|highest| **highest >= clock).map_or(clock, |highest| highest.saturating_add(UNKEPT))
}

/// The stamps that this node signed, as far as a later one has to be above them: the highest one before each jump of
/// the clock.
#[derive(Debug)]
struct Signed {
    last: u64,
    tops: BTreeSet<u64>,
}

impl Signed {
    const MOST: usize = 8;

    fn new(first: u64) -> Signed {
        Signed { last: first, tops: BTreeSet::from([first]) }
    }

    /// The next stamp is above all that are not too far ahead of the clock. After the highest one there is none.
    fn next(&mut self, clock: u64, most: u64) -> Option<u64> {
        let top = self.tops.iter().rfind(|top| !is_ahead(clock, **top, most)).copied();
        let next = if let Some(top) = top { clock.max(top.checked_add(1)?) } else { clock };
        if let Some(top) = top.filter(|top| next - top <= most) {
            self.tops.remove(&top);
        }
        self.last = next;
        self.add(next);
        Some(next)
    }

    fn add(&mut self, top: u64) {
        self.tops.insert(top);
        if self.tops.len() > Signed::MOST
            && let Some(lowest) = self.tops.iter().find(|top| **top != self.last).copied()
        {
            self.tops.remove(&lowest);
        }
    }
}

/// The time stamps of one neighbour.
#[derive(Debug, Default)]
struct NeighbourStamps {
    /// Older stamps are refused.
    floor: u64,
    recent: BTreeSet<u64>,
}

impl NeighbourStamps {
    fn is_new(&mut self, stamp: u64) -> bool {
        if self.recent.is_empty() {
            self.floor = stamp;
        }
        if stamp < self.floor || !self.recent.insert(stamp) {
            return false;
        }
        let newest = self.recent.last().copied().unwrap_or(stamp);
        self.floor = self.floor.max(newest.saturating_sub(LATEST));
        self.recent = self.recent.split_off(&self.floor);
        while self.recent.len() > MOST_RECENT {
            self.floor = self.recent.pop_first().map_or(self.floor, |oldest| oldest.saturating_add(1));
        }
        true
    }
}

impl Auth {
    /// `first` is above all stamps that the node ever signed. It also counts as the clock's time until
    /// [`set_clock`](Auth::set_clock).
    pub(crate) fn new(keys: Keys, form: AuthForm, first: u64) -> Auth {
        Auth { keys, form, clock: (Instant::ZERO, first), signed: Signed::new(first), heard: BTreeMap::new() }
    }

    /// Sets the time of the wall clock, which may have been changed, and which goes on while the machine sleeps.
    pub(crate) fn set_clock(&mut self, now: Instant, wall: u64) {
        self.clock = (now, wall);
    }

    /// The message as it leaves.
    pub(crate) fn seal(&mut self, now: Instant, envelope: &Envelope, message: &[u8]) -> Option<Vec<u8>> {
        let stamp = self.stamp(now)?;
        (self.form.sign)(&self.keys, envelope, stamp, message)
    }

    /// The received message, if a holder of the key wrote it and it did not come before.
    pub(crate) fn open<'m>(
        &mut self,
        now: Instant,
        envelope: &Envelope,
        message: &'m [u8],
    ) -> Option<&'m [u8]> {
        let (stamp, inner) = (self.form.verify)(&self.keys, envelope, message)?;
        self.is_new(now, envelope.src.into(), stamp).then_some(inner)
    }

    fn clock(&self, now: Instant) -> u64 {
        let (at, wall) = self.clock;
        wall.saturating_add(u64::try_from(now.since(at).as_nanos()).unwrap_or(u64::MAX))
    }

    /// The largest difference between a stamp and the receiver's clock, by `clock_within`.
    fn within(&self) -> Option<u64> {
        self.keys.clock_within.map(|within| u64::try_from(within.as_nanos()).unwrap_or(u64::MAX))
    }

    /// A stamp that is further ahead of the clock binds nobody.
    fn most_ahead(&self) -> u64 {
        self.within().map_or(MOST_AHEAD, |within| within.min(MOST_AHEAD))
    }

    /// The stamp for the next packet. No two packets have one stamp.
    fn stamp(&mut self, now: Instant) -> Option<u64> {
        let clock = self.clock(now);
        self.signed.next(clock, self.most_ahead())
    }

    /// The last stamp that was used, then the stamps that were left behind.
    pub(crate) fn signed(&self) -> Vec<u64> {
        let Signed { last, tops } = &self.signed;
        std::iter::once(*last).chain(tops.iter().copied().filter(|top| top != last)).collect()
    }

    /// The newest stamp of each neighbour.
    pub(crate) fn heard(&self) -> Vec<(Ipv4Addr, u64)> {
        let newest = |(from, heard): (&Ipv4Addr, &NeighbourStamps)| Some((*from, *heard.recent.last()?));
        self.heard.iter().filter_map(newest).collect()
    }

    /// Refuses what neighbours had signed when an earlier start of this node last heard them, and signs nothing with
    /// the stamps of that start.
    pub(crate) fn remember(&mut self, signed: &[u64], heard: &[(Ipv4Addr, u64)]) {
        signed.iter().for_each(|stamp| self.signed.add(*stamp));
        for (from, stamp) in heard.iter().take(MOST_NEIGHBOURS) {
            let known = NeighbourStamps { floor: stamp.saturating_add(1), recent: BTreeSet::from([*stamp]) };
            self.heard.insert(*from, known);
        }
    }

    fn is_new(&mut self, now: Instant, from: Ipv4Addr, stamp: u64) -> bool {
        let clock = self.clock(now);
        let is_within = |within| clock < SET_SINCE || clock.abs_diff(stamp) <= within;
        let is_near = !is_ahead(clock, stamp, MOST_AHEAD) && self.within().is_none_or(is_within);
        // Clocks of all nodes may have been ahead together for a while. Stamps of that time bind no node now.
        let most = self.most_ahead();
        if self.heard.get(&from).is_some_and(|heard| is_ahead(clock, heard.floor, most)) {
            self.heard.remove(&from);
        }
        let has_room = self.heard.len() < MOST_NEIGHBOURS || self.heard.contains_key(&from);
        is_near && has_room && self.heard.entry(from).or_default().is_new(stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rfc5444::icv;

    const FROM: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const FORM: AuthForm = AuthForm { sign: |_, _, _, _| None, verify: |_, _, _| None, cost: 0 };

    fn keys(clock_within: Option<Duration>) -> Keys {
        Keys::new(vec![(1, Key::new([1; 32]))], clock_within).expect("one key")
    }

    #[test]
    fn one_key_or_two_of_different_numbers_make_a_set() {
        let key = |id| (id, Key::new([id; 32]));
        assert_eq!(Keys::new(vec![], None), Err(KeysError::NotOneOrTwo));
        assert_eq!(Keys::new(vec![key(1), key(1)], None), Err(KeysError::SameId));
        assert_eq!(Keys::new(vec![key(1), key(2), key(3)], None), Err(KeysError::NotOneOrTwo));
        let two = Keys::new(vec![key(2), key(1)], None).expect("two keys");
        assert_eq!((two.signing().0, two.find(1).is_some(), two.find(3)), (2, true, None));
    }

    #[test]
    fn a_network_changes_its_key_while_it_runs() {
        let form = AuthForm { sign: icv::sign, verify: icv::verify, cost: icv::COST };
        let keys = |ids: &[u8]| {
            let keys = ids.iter().map(|id| (*id, Key::new([*id; 32]))).collect();
            Keys::new(keys, None).expect("one or two")
        };
        let envelope = Envelope { src: FROM.octets(), dst: [224, 0, 0, 109], ttl: 255 };
        let (mut near, mut far) = (Auth::new(keys(&[1]), form, 0), Auth::new(keys(&[1]), form, 0));
        let is_heard = |near: &mut Auth, far: &mut Auth| {
            let signed = near.seal(Instant::ZERO, &envelope, &[0]).expect("there is room");
            far.open(Instant::ZERO, &envelope, &signed).is_some()
        };
        assert!(is_heard(&mut near, &mut far));
        far.keys = keys(&[1, 2]);
        near.keys = keys(&[2, 1]);
        assert!(is_heard(&mut near, &mut far), "the new one signs at one of them");
        (near.keys, far.keys) = (keys(&[2]), keys(&[2]));
        assert!(is_heard(&mut near, &mut far));
        near.keys = keys(&[1]);
        assert!(!is_heard(&mut near, &mut far), "the old one is gone");
    }

    #[test]
    fn stamps_follow_the_clock_and_never_stand_still() {
        let mut auth = Auth::new(keys(None), FORM, 1_000);
        let at = |ns| Instant::ZERO + Duration::from_nanos(ns);
        let stamps = [at(5), at(5), at(5), at(9), at(2)].map(|now| auth.stamp(now));
        assert_eq!(stamps, [1_005, 1_006, 1_007, 1_009, 1_010].map(Some));
        let mut auth = Auth::new(keys(None), FORM, u64::MAX - 1);
        assert_eq!([at(0), at(5)].map(|now| auth.stamp(now)), [Some(u64::MAX), None]);
    }

    #[test]
    fn a_packet_may_be_overtaken_by_some_others_and_no_further() {
        let second = 1_000_000_000;
        let mut heard = NeighbourStamps::default();
        for (stamp, is_new) in [
            (5 * second, true),
            (5 * second - 1, false),
            (6 * second, true),
            (5 * second + 600_000_000, true),
            (5 * second + 600_000_000, false),
            (5 * second + 499_999_999, false),
            (u64::MAX, true),
            (6 * second + 1, false),
        ] {
            assert_eq!(heard.is_new(stamp), is_new, "{stamp}");
        }
        let mut heard = NeighbourStamps::default();
        assert!((0..200).all(|n| heard.is_new(1_000 + 2 * n)));
        assert!(heard.recent.len() <= MOST_RECENT);
        assert!(!heard.is_new(1_001) && heard.is_new(1_397) && !heard.is_new(1_397));
    }

    #[test]
    fn a_stamp_far_ahead_locks_nothing_out_unless_the_own_clock_was_never_set() {
        let now = Instant::ZERO;
        let is_new = |clock, ahead: u64| Auth::new(keys(None), FORM, clock).is_new(now, FROM, clock + ahead);
        assert!(is_new(SET_SINCE, MOST_AHEAD) && !is_new(SET_SINCE, MOST_AHEAD + 1));
        assert!(is_new(SET_SINCE - 1, MOST_AHEAD + 1));
        let mut auth = Auth::new(keys(None), FORM, SET_SINCE);
        assert!(!auth.is_new(now, FROM, u64::MAX) && auth.is_new(now, FROM, SET_SINCE));
        for (kept, expected) in [
            (0, SET_SINCE),
            (SET_SINCE, SET_SINCE + UNKEPT),
            (u64::MAX, SET_SINCE),
            (SET_SINCE - 1, SET_SINCE),
        ] {
            assert_eq!(first_stamp(SET_SINCE, &[kept]), expected);
        }
        assert_eq!(first_stamp(5, &[SET_SINCE]), SET_SINCE + UNKEPT);
    }

    #[test]
    fn what_an_earlier_start_has_heard_is_not_heard_again() {
        let (now, other) = (Instant::ZERO, Ipv4Addr::new(10, 0, 0, 2));
        let mut before = Auth::new(keys(None), FORM, SET_SINCE);
        let stamps = [3, 9, 7].map(|ns| SET_SINCE + ns);
        stamps.iter().for_each(|stamp| assert!(before.is_new(now, FROM, *stamp)));
        assert_eq!(before.heard(), [(FROM, SET_SINCE + 9)]);
        let mut after = Auth::new(keys(None), FORM, SET_SINCE);
        after.remember(&[], &before.heard());
        let is_new = |auth: &mut Auth, ns| auth.is_new(now, FROM, SET_SINCE + ns);
        assert_eq!(
            [3, 8, 9, 10, 9, 10].map(|ns| is_new(&mut after, ns)),
            [false, false, false, true, false, false]
        );
        assert!(after.is_new(now, other, SET_SINCE + 3));
        let mut late = Auth::new(keys(None), FORM, SET_SINCE);
        late.remember(&[], &[(FROM, SET_SINCE + MOST_AHEAD + 1)]);
        assert!(is_new(&mut late, 3), "its clock was far ahead then");
    }

    #[test]
    fn a_clock_that_jumps_far_back_and_is_right_again_costs_no_neighbour() {
        let (now, day) = (Instant::ZERO, 86_400 * 1_000_000_000);
        let right = SET_SINCE + 600 * day;
        for jumps in [&[right + day, right - 463 * day][..], &[right + day, right + 3_472 * day]] {
            let mut neighbour = Auth::new(keys(None), FORM, right);
            let mut node = Auth::new(keys(None), FORM, right);
            for clock in jumps {
                node.set_clock(now, *clock);
                let stamp = node.stamp(now).expect("there are more");
                neighbour.is_new(now, FROM, stamp);
            }
            let mut again = Auth::new(keys(None), FORM, first_stamp(jumps[1], &node.signed()));
            again.remember(&node.signed(), &[]);
            for node in [&mut node, &mut again] {
                node.set_clock(now, right);
                let stamp = node.stamp(now).expect("there are more");
                assert!(stamp > right + day && stamp < right + 2 * day, "{jumps:?}: {stamp}");
            }
            let stamp = again.stamp(now).expect("there are more");
            assert!(neighbour.is_new(now, FROM, stamp), "{jumps:?}");
        }
    }

    #[test]
    fn stamps_of_many_jumps_take_little_room() {
        let mut signed = Signed::new(SET_SINCE + 20 * MOST_AHEAD);
        (0..40).rev().for_each(|year| signed.add(SET_SINCE + year * 2 * MOST_AHEAD));
        let next = signed.next(SET_SINCE, MOST_AHEAD);
        assert_eq!((signed.tops.len(), next), (Signed::MOST, Some(signed.last)));
        assert!(signed.tops.contains(&signed.last));
    }

    #[test]
    fn starts_in_a_row_push_no_stamp_ahead_of_the_clock() {
        let (now, mut kept) = (Instant::ZERO, SET_SINCE);
        for start in 1..=20 {
            let clock = SET_SINCE + start * 10_000_000;
            let mut auth = Auth::new(keys(None), FORM, first_stamp(clock, &[kept]));
            auth.set_clock(now, clock);
            let stamps = [now; 5].map(|now| auth.stamp(now).expect("there are more"));
            assert!(stamps.iter().all(|stamp| (kept + 1..clock + 10).contains(stamp)), "{start}: {stamps:?}");
            kept = auth.signed.last;
        }
    }

    #[test]
    fn a_clock_that_is_set_while_the_node_runs_is_followed() {
        let (now, hour, second) = (Instant::from_secs(9), 3_600_000_000_000, 1_000_000_000);
        let right = SET_SINCE + hour;
        let mut strict = Auth::new(keys(Some(Duration::from_secs(30))), FORM, 5);
        assert!(strict.is_new(now, FROM, right), "nothing is held against a clock that was never set");
        strict.set_clock(now, right);
        let is_new = |auth: &mut Auth, stamp| auth.is_new(now, FROM, stamp);
        assert!(is_new(&mut strict, right + 29 * second) && !is_new(&mut strict, right + 31 * second));
        assert_eq!(strict.stamp(now), Some(right));
        // The clock is an hour ahead for a moment.
        let mut open = Auth::new(keys(None), FORM, right);
        for (auth, after) in [(&mut strict, right + 1), (&mut open, right + hour + 1)] {
            auth.set_clock(now, right + hour);
            assert_eq!(auth.stamp(now), Some(right + hour));
            auth.set_clock(now, right);
            assert_eq!(auth.stamp(now), Some(after), "those who take any clock want growing stamps");
        }
        let later = now + Duration::from_secs(2);
        assert_eq!(strict.stamp(later), Some(right + 2 * second));
    }

    #[test]
    fn a_stamp_is_taken_once_and_where_clocks_are_held_against_each_other_only_in_time() {
        let now = Instant::from_secs(100);
        let second = 1_000_000_000;
        let mut open = Auth::new(keys(None), FORM, 0);
        assert!(open.is_new(now, FROM, 7) && !open.is_new(now, FROM, 7) && open.is_new(now, FROM, u64::MAX));
        let mut strict = Auth::new(keys(Some(Duration::from_secs(10))), FORM, SET_SINCE);
        for (stamp, is_new) in [(111, false), (100, true), (100, false), (89, false), (110, true)] {
            assert_eq!(strict.is_new(now, FROM, SET_SINCE + stamp * second), is_new, "{stamp} s");
        }
    }
}
