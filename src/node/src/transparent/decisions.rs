//! The decisions about connections of hosts, by their addresses: a SYN that comes again gets the same one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;

/// Both ends of a connection, its host's first.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// Linux repeats a SYN for 127 seconds (tcp_syn_retries).
const REPEATED_FOR: Duration = Duration::from_secs(150);
/// The time that a caught SYN has until its connection stands: some of its repetitions.
pub(super) const STANDS_WITHIN: Duration = Duration::from_secs(15);
/// The time that it has where ways to a server without an answer are a crowd. The kernel answers its SYN twice within
/// this time.
const STANDS_WITHIN_A_CROWD: Duration = Duration::from_secs(2);
/// The time after which the kernel is asked whether a caught SYN has come in. Most connections stand within
/// milliseconds.
const COMES_IN_WITHIN: Duration = Duration::from_secs(1);
/// The time that each further copy of it has: a sender in a host's name may send many, and one of them would always be
/// on its way. A host repeats a SYN after a second.
const COPY_COMES_IN_WITHIN: Duration = Duration::from_millis(250);
/// The time between two copies that are caught: the kernel's sets have places for so many answers in a second.
const COPIES_APART: Duration = Duration::from_millis(500);
/// The copies of a SYN that are caught: a host sends fewer while it waits. Each may get an answer with another number,
/// and a packet that acknowledges any of them is taken for the host's.
const MOST_COPIES: u8 = 16;
/// Connections that went straight on are forgotten beyond this, the oldest first. Their SYNs are then decided anew.
const MOST_STRAIGHT: usize = 1 << 16;

/// The answer to a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The connection is new, and is being decided from now on.
    Decide,
    /// A copy of the SYN is being decided.
    Forget,
    Catch,
    LetGo,
}

#[derive(Debug)]
enum State<W> {
    Deciding {
        seq: u32,
    },
    /// The SYN was caught, and this waits for the connection.
    Waiting {
        seq: u32,
        since: Instant,
        /// The time of the last copy, until it is known to have come in.
        on_its_way_since: Option<Instant>,
        copies: u8,
        with: W,
    },
    Carried {
        seq: u32,
        /// The SYN of a later connection from the same port, once it has come.
        later: Option<u32>,
    },
    Straight {
        seq: u32,
        since: Instant,
        /// The kernel may still have a SYN of it, and would take no other one.
        was_caught: bool,
    },
}

#[derive(Debug)]
pub(super) struct Decisions<W> {
    states: BTreeMap<Ends, State<W>>,
    /// By age; some are forgotten already.
    straight: VecDeque<Ends>,
}

impl<W> Default for Decisions<W> {
    fn default() -> Decisions<W> {
        Decisions { states: BTreeMap::new(), straight: VecDeque::new() }
    }
}

impl<W> Decisions<W> {
    /// The answer to a SYN. `is_like` tells whether the firewall takes it for the SYN that this waits for, and
    /// `is_connected` whether the kernel still has the connection of a host.
    pub(super) fn about(
        &mut self,
        ends: Ends,
        seq: u32,
        is_like: impl Fn(&W) -> bool,
        is_connected: impl Fn(Ends) -> bool,
    ) -> Verdict {
        match self.states.get_mut(&ends) {
            // One of the two is not the host's. Its own connection stands if this one goes straight on: the chains tell
            // packets that go on with a caught SYN from the rest.
            Some(State::Deciding { seq: known }) => {
                return if *known == seq { Verdict::Forget } else { Verdict::LetGo };
            }
            Some(State::Waiting { seq: known, copies, .. }) if *known != seq || *copies == MOST_COPIES => {
                *copies = MOST_COPIES;
                return Verdict::LetGo;
            }
            // The end of this SYN would say nothing of the caught one. Hosts change a repetition, too: it has no ECN.
            Some(State::Waiting { with, .. }) if !is_like(with) => return Verdict::Forget,
            // The answer to the one before is on its way, and a host repeats its SYN later.
            Some(State::Waiting { on_its_way_since: Some(last), .. }) if last.elapsed() < COPIES_APART => {
                return Verdict::Forget;
            }
            // This copy may be lost on its way to the listener, though the one before was not.
            Some(State::Waiting { on_its_way_since, copies, .. }) => {
                *copies += 1;
                *on_its_way_since = Some(Instant::now());
                return Verdict::Catch;
            }
            // A host that has broken a connection off may use its port again before the relay has ended. Its SYN comes
            // again after that. If it has not ended by then, the kernel asks the host by which of the two it stands. A
            // kernel that knows the old one no longer would begin a new one, for which no way waits.
            Some(State::Carried { seq: known, later }) if *known != seq => {
                let is_copy = later.replace(seq) == Some(seq);
                return if is_copy && is_connected(ends) { Verdict::Catch } else { Verdict::Forget };
            }
            // A copy that was late. The connection stands without it.
            Some(State::Carried { .. }) => return Verdict::Forget,
            Some(State::Straight { seq: known, since, was_caught })
                if *known == seq || *was_caught && since.elapsed() < STANDS_WITHIN =>
            {
                return Verdict::LetGo;
            }
            Some(State::Straight { .. }) | None => {}
        }
        self.states.insert(ends, State::Deciding { seq });
        Verdict::Decide
    }

    /// Returns what waited for the connection, if its SYN was caught.
    pub(super) fn goes_straight(&mut self, ends: Ends, seq: u32, now: Instant) -> Option<W> {
        let was_caught = matches!(self.states.get(&ends), Some(State::Waiting { .. }));
        let before = self.states.insert(ends, State::Straight { seq, since: now, was_caught });
        self.straight.push_back(ends);
        if self.straight.len() > MOST_STRAIGHT
            && let Some(oldest) = self.straight.pop_front()
        {
            self.forget_straight(oldest);
        }
        if let Some(State::Waiting { with, .. }) = before { Some(with) } else { None }
    }

    pub(super) fn is_caught(&mut self, ends: Ends, (seq, with): (u32, W), now: Instant) {
        self.states
            .insert(ends, State::Waiting { seq, since: now, on_its_way_since: Some(now), copies: 0, with });
    }

    /// The connection stands: it is carried from now on, with what waited for it.
    pub(super) fn stands(&mut self, ends: Ends) -> Option<W> {
        let state = self.states.get_mut(&ends)?;
        let State::Waiting { seq, .. } = *state else { return None };
        match std::mem::replace(state, State::Carried { seq, later: None }) {
            State::Waiting { with, .. } => Some(with),
            _ => None,
        }
    }

    /// Caught connections that have not stood for a while, and whose SYNs are not known to have come in. No copy of
    /// them has been caught just before `now`, nor since then.
    pub(super) fn late(&self, now: Instant) -> BTreeSet<Ends> {
        let is_late = |(.., since, last): &(Ends, u32, Instant, Option<Instant>)| {
            now.duration_since(*since) >= COMES_IN_WITHIN
                && last.is_some_and(|last| now.duration_since(last) >= COPY_COMES_IN_WITHIN)
        };
        self.waiting().filter(is_late).map(|(ends, ..)| ends).collect()
    }

    /// Caught connections that do not stand yet, with the numbers of their SYNs. None of these SYNs has been caught
    /// just before `now`, nor since then.
    pub(super) fn quiet(&self, now: Instant) -> BTreeSet<(Ends, u32)> {
        let is_quiet = |(.., since, last): &(Ends, u32, Instant, Option<Instant>)| {
            now.duration_since(last.unwrap_or(*since)) >= COPY_COMES_IN_WITHIN
        };
        self.waiting().filter(is_quiet).map(|(ends, seq, ..)| (ends, seq)).collect()
    }

    /// Caught connections that do not stand yet, the numbers of their SYNs, since when, and the times of copies not
    /// known to have come in.
    fn waiting(&self) -> impl Iterator<Item = (Ends, u32, Instant, Option<Instant>)> {
        self.states.iter().filter_map(|(ends, state)| match *state {
            State::Waiting { seq, since, on_its_way_since, .. } => {
                Some((*ends, seq, since, on_its_way_since))
            }
            _ => None,
        })
    }

    /// A caught SYN has come in. Its host decides about the rest.
    pub(super) fn has_come_in(&mut self, ends: Ends) {
        if let Some(State::Waiting { on_its_way_since, .. }) = self.states.get_mut(&ends) {
            *on_its_way_since = None;
        }
    }

    /// A caught SYN did not come in, or its host has reset the answer: it goes straight on when it comes again. Returns
    /// what waited for it, if it did.
    pub(super) fn gives_up(&mut self, ends: Ends, now: Instant) -> Option<W> {
        let Some(&State::Waiting { seq, .. }) = self.states.get(&ends) else { return None };
        self.goes_straight(ends, seq, now)
    }

    pub(super) fn ended(&mut self, ends: Ends) {
        self.states.remove(&ends);
    }

    /// Gives up caught connections that have not come to stand and are in the way after the time that they have waited.
    /// Forgets connections whose SYN does not come again.
    pub(super) fn clean(&mut self, now: Instant, is_in_way: impl Fn(Ends, Duration) -> bool) {
        while let Some(oldest) = self.straight.front().copied() {
            let oldest_state = self.states.get(&oldest);
            if matches!(oldest_state, Some(State::Straight { since, .. }) if now.duration_since(*since) < REPEATED_FOR)
            {
                break;
            }
            self.straight.pop_front();
            self.forget_straight(oldest);
        }
        let is_late = |(ends, _, since, _): &(Ends, u32, Instant, _)| {
            let waits = now.duration_since(*since);
            waits >= STANDS_WITHIN_A_CROWD && is_in_way(*ends, waits)
        };
        let late: Vec<_> = self.waiting().filter(is_late).map(|(ends, ..)| ends).collect();
        for ends in late {
            self.gives_up(ends, now);
        }
    }

    fn forget_straight(&mut self, ends: Ends) {
        if let Some(State::Straight { .. }) = self.states.get(&ends) {
            self.states.remove(&ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(port: u16) -> Ends {
        (SocketAddr::from(([10, 1, 0, 2], port)), SocketAddr::from(([10, 2, 0, 2], 80)))
    }

    fn like(_: &&str) -> bool {
        true
    }

    #[tokio::test(start_paused = true)]
    async fn a_syn_that_comes_again_gets_the_same_decision_and_a_new_one_is_decided_anew() {
        let mut decisions = Decisions::<&str>::default();
        let now = Instant::now();
        assert_eq!(decisions.about(ends(1), 7, like, |_| true), Verdict::Decide);
        assert_eq!(decisions.about(ends(1), 7, like, |_| true), Verdict::Forget);
        decisions.goes_straight(ends(1), 7, now);
        assert_eq!(decisions.about(ends(1), 7, like, |_| true), Verdict::LetGo);
        assert_eq!(decisions.about(ends(1), 8, like, |_| true), Verdict::Decide);
        decisions.is_caught(ends(1), (8, "way"), now);
        tokio::time::advance(COPIES_APART).await;
        assert_eq!(decisions.about(ends(1), 8, like, |_| true), Verdict::Catch);
        assert_eq!((decisions.stands(ends(2)), decisions.stands(ends(1))), (None, Some("way")));
        assert_eq!(decisions.stands(ends(1)), None);
        decisions.ended(ends(1));
        assert_eq!(decisions.about(ends(1), 9, like, |_| true), Verdict::Decide);
    }

    /// Caught at once, it would find a kernel without the old connection, and no way that waits for it.
    #[tokio::test(start_paused = true)]
    async fn a_port_that_is_used_again_waits_for_the_end_of_its_former_connection() {
        let mut decisions = Decisions::<&str>::default();
        let carried = |decisions: &mut Decisions<&str>| {
            decisions.is_caught(ends(1), (8, "way"), Instant::now());
            assert_eq!(decisions.stands(ends(1)), Some("way"));
        };
        carried(&mut decisions);
        assert_eq!(decisions.about(ends(1), 8, like, |_| true), Verdict::Forget, "a copy that was late");
        assert_eq!(decisions.about(ends(1), 9, like, |_| true), Verdict::Forget);
        decisions.ended(ends(1));
        assert_eq!(decisions.about(ends(1), 9, like, |_| true), Verdict::Decide);
        carried(&mut decisions);
        assert_eq!(decisions.about(ends(1), 9, like, |_| true), Verdict::Forget);
        assert_eq!(
            decisions.about(ends(1), 9, like, |_| false),
            Verdict::Forget,
            "the kernel has no old one"
        );
        assert_eq!(decisions.about(ends(1), 9, like, |_| true), Verdict::Catch, "the kernel asks the host");
    }

    #[tokio::test(start_paused = true)]
    async fn a_caught_syn_that_did_not_come_in_goes_straight_on_when_it_comes_again() {
        let mut decisions = Decisions::<&str>::default();
        let now = Instant::now();
        decisions.is_caught(ends(1), (8, "way"), now);
        assert!(decisions.late(now).is_empty());
        assert_eq!(decisions.late(now + COMES_IN_WITHIN), [ends(1)].into());
        assert_eq!(decisions.gives_up(ends(1), now), Some("way"));
        assert_eq!(decisions.about(ends(1), 8, like, |_| true), Verdict::LetGo);
        assert!(
            decisions.gives_up(ends(1), now).is_none() && decisions.late(now + COMES_IN_WITHIN).is_empty()
        );
        decisions.is_caught(ends(2), (8, "way"), now);
        assert_eq!(decisions.stands(ends(2)), Some("way"));
        assert!(decisions.gives_up(ends(2), now).is_none(), "it has stood meanwhile");
    }

    #[tokio::test(start_paused = true)]
    async fn each_copy_of_a_caught_syn_that_has_come_in_is_asked_for_once_and_waits_for_its_host() {
        let mut decisions = Decisions::<&str>::default();
        let now = Instant::now();
        decisions.is_caught(ends(1), (8, "way"), now);
        decisions.has_come_in(ends(1));
        assert!(decisions.late(now + COMES_IN_WITHIN).is_empty());
        assert_eq!(decisions.about(ends(1), 8, like, |_| true), Verdict::Catch);
        assert_eq!(decisions.late(now + COMES_IN_WITHIN), [ends(1)].into());
        decisions.has_come_in(ends(1));
        assert!(decisions.late(now + COMES_IN_WITHIN).is_empty());
        assert_eq!(decisions.stands(ends(1)), Some("way"));
    }

    /// The kernel may be asked about a copy while it is between two chains.
    #[tokio::test(start_paused = true)]
    async fn a_copy_that_was_caught_just_now_is_still_on_its_way() {
        let mut decisions = Decisions::<&str>::default();
        decisions.is_caught(ends(1), (8, "way"), Instant::now());
        for _ in 1..MOST_COPIES {
            tokio::time::advance(COPIES_APART).await;
            let asked = Instant::now();
            assert_eq!(decisions.about(ends(1), 8, like, |_| true), Verdict::Catch);
            assert!(decisions.late(asked).is_empty() && decisions.late(Instant::now()).is_empty());
        }
        tokio::time::advance(COPY_COMES_IN_WITHIN).await;
        assert_eq!(decisions.late(Instant::now()), [ends(1)].into());
        tokio::time::advance(COPIES_APART - COPY_COMES_IN_WITHIN).await;
        let asked = Instant::now();
        assert_eq!(decisions.late(asked), [ends(1)].into());
        // A copy that comes while the kernel is asked.
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(decisions.about(ends(1), 8, like, |_| true), Verdict::Catch);
        assert!(decisions.late(asked).is_empty(), "the answer is about an earlier copy");
    }

    /// A reset may still be on its way behind the SYN or its copy.
    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_syn_or_copy_was_caught_just_now_is_not_quiet() {
        let mut decisions = Decisions::<&str>::default();
        decisions.is_caught(ends(1), (8, "way"), Instant::now());
        assert!(decisions.quiet(Instant::now()).is_empty());
        tokio::time::advance(COPY_COMES_IN_WITHIN).await;
        assert_eq!(decisions.quiet(Instant::now()), [(ends(1), 8)].into());
        decisions.has_come_in(ends(1));
        let asked = Instant::now();
        assert_eq!(decisions.quiet(asked), [(ends(1), 8)].into());
        assert_eq!(decisions.about(ends(1), 8, like, |_| true), Verdict::Catch);
        assert!(decisions.quiet(asked).is_empty());
        tokio::time::advance(COPY_COMES_IN_WITHIN).await;
        assert_eq!(decisions.quiet(Instant::now()), [(ends(1), 8)].into());
        assert_eq!(decisions.stands(ends(1)), Some("way"));
        assert!(decisions.quiet(Instant::now()).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_syn_that_is_not_like_the_caught_one_is_not_caught() {
        let mut decisions = Decisions::<&str>::default();
        decisions.is_caught(ends(1), (8, "way"), Instant::now());
        tokio::time::advance(COPIES_APART).await;
        for (seq, is_like, verdict) in
            [(8, true, Verdict::Catch), (8, false, Verdict::Forget), (9, false, Verdict::LetGo)]
        {
            assert_eq!(decisions.about(ends(1), seq, |_| is_like, |_| true), verdict, "{seq}");
        }
        assert_eq!(decisions.stands(ends(1)), Some("way"));
    }

    /// One of the two SYNs is not the host's, whichever came first.
    #[tokio::test(start_paused = true)]
    async fn two_syns_with_the_ports_of_a_connection_keep_none_of_them_back() {
        let mut decisions = Decisions::<&str>::default();
        assert_eq!(decisions.about(ends(1), 7, like, |_| true), Verdict::Decide);
        assert_eq!(decisions.about(ends(1), 8, like, |_| true), Verdict::LetGo);
        decisions.is_caught(ends(1), (7, "way"), Instant::now());
        tokio::time::advance(COPIES_APART).await;
        assert_eq!(decisions.about(ends(1), 7, like, |_| true), Verdict::Catch);
        for seq in [8, 7] {
            assert_eq!(decisions.about(ends(1), seq, like, |_| true), Verdict::LetGo, "{seq}");
        }
        decisions.gives_up(ends(1), Instant::now());
        assert_eq!(
            decisions.about(ends(1), 8, like, |_| true),
            Verdict::LetGo,
            "the kernel has the first one"
        );
        tokio::time::advance(STANDS_WITHIN).await;
        assert_eq!(decisions.about(ends(1), 8, like, |_| true), Verdict::Decide);
    }

    #[tokio::test(start_paused = true)]
    async fn copies_at_once_are_not_caught_and_copies_beyond_a_bound_go_straight_on() {
        let mut decisions = Decisions::<&str>::default();
        decisions.is_caught(ends(1), (8, "way"), Instant::now());
        for _ in 0..MOST_COPIES {
            assert_eq!(
                decisions.about(ends(1), 8, like, |_| true),
                Verdict::Forget,
                "its answer is on the way"
            );
            tokio::time::advance(COPIES_APART).await;
            assert_eq!(decisions.about(ends(1), 8, like, |_| true), Verdict::Catch);
        }
        assert_eq!(decisions.about(ends(1), 8, like, |_| true), Verdict::LetGo);
        assert_eq!(decisions.stands(ends(1)), Some("way"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_to_nothing_is_forgotten() {
        let mut decisions = Decisions::<&str>::default();
        let now = Instant::now();
        decisions.goes_straight(ends(1), 7, now);
        decisions.is_caught(ends(2), (7, "way"), now);
        decisions.is_caught(ends(3), (7, "way"), now);
        decisions.clean(now + STANDS_WITHIN_A_CROWD, |_, waits| waits >= STANDS_WITHIN);
        assert_eq!(decisions.stands(ends(3)), Some("way"));
        decisions.is_caught(ends(3), (7, "way"), now);
        decisions.clean(now + STANDS_WITHIN_A_CROWD, |other, _| other == ends(3));
        assert_eq!(decisions.stands(ends(3)), None);
        decisions.clean(now + STANDS_WITHIN, |_, waits| waits >= STANDS_WITHIN);
        assert_eq!(decisions.stands(ends(2)), None);
        assert_eq!(decisions.about(ends(1), 7, like, |_| true), Verdict::LetGo);
        assert_eq!(decisions.about(ends(2), 7, like, |_| true), Verdict::LetGo);
        decisions.clean(now + STANDS_WITHIN + REPEATED_FOR, |_, _| false);
        assert!(decisions.states.is_empty() && decisions.straight.is_empty());
        for port in 0..=u16::MAX {
            decisions.goes_straight(ends(port), 7, now);
        }
        decisions.goes_straight((ends(1).1, ends(1).0), 7, now);
        assert_eq!(decisions.states.len(), MOST_STRAIGHT);
    }
}
