//! The tests of one agent, wherever its crate is.

use super::receiver::ReceiverBench;
use super::{model, receiver};
use crate::descriptor::{Descriptor, Kind};
use crate::registry::Registry;

/// The tests of one agent. Ours can be named in its specs too, as in `own(delayed)`.
#[derive(Clone, Debug)]
pub struct Kit {
    agent: &'static Descriptor,
    agents: Registry,
}

/// The tests of this agent. They change nothing that other tests see.
///
/// # Panics
///
/// If the agent's description is wrong: with the message that its program would print.
#[track_caller]
pub fn of(agent: &'static Descriptor) -> Kit {
    let ours = Registry::ours();
    let is_ours = ours.all().any(|one| std::ptr::eq(one, agent));
    let agents = if is_ours { Ok(ours) } else { Registry::with(&[(agent, "//! A test.")]) };
    Kit { agent, agents: agents.unwrap_or_else(|error| panic!("{error}")) }
}

impl Kit {
    /// Plays a script on a new receiver agent with this spec, and compares it line by line with what really happened:
    ///
    /// ```text
    ///   0ms in         -> hold (count 1 of 2)
    ///  20ms ooo        -> ack 1 (not-in-order)
    ///  50ms in         -> hold (count 1 of 2)
    /// 150ms timer      -> ack 1 (deadline)
    /// ```
    ///
    /// A line is a time, an event and its outcome: how many segments an ACK newly covers, and why. The events `in`,
    /// `fill`, `ooo` and `dup` are arrivals. Their options are `push`, `ce`, `after=N`, `rate=N`, `rtt=T` and `NB`
    /// (bytes). The events `forced`, `fin` and `piggyback` are ACKs that the ledger decides. `set` changes what the
    /// agent sees: `cwnd=`, `hops=`, `rtt=` (the least), `srtt=`, `rttvar=` or `window=`. `wait` does nothing. A
    /// script does not cause `timer` and `ceiling`: these lines state when a deadline is due.
    #[track_caller]
    pub fn check(&self, spec: &str, script: &str) {
        receiver::play(ReceiverBench::among(&self.agents, spec), spec, script);
    }

    /// Plays random events on a receiver or a sender of random settings. After each of them the contract must hold: a
    /// receiver ends every hold and falls silent, a sender lets a segment leave sooner or later. A failure shows the
    /// smallest case.
    ///
    /// # Panics
    ///
    /// If the agent breaks its contract. Agents of base stations have no such model, and panic at once.
    #[track_caller]
    pub fn survives_any_order_of_events(&self) {
        match self.agent.kind() {
            Kind::Receiver => model::receiver_survives(&self.agents, self.agent, None),
            Kind::Sender => model::sender_survives(&self.agents, self.agent, None),
            Kind::BaseStation => panic!("agents of base stations have no model of random events"),
        }
    }
}

#[cfg(test)]
mod tests {
    use hopwise_core::Instant;
    use hopwise_core::agent::{AckRule, Arrival, RecvView, Why};

    use super::*;
    use crate::descriptor::Make;
    use crate::receiver::hold::{Decision, Holds, host, since};
    use crate::registry;

    /// Acknowledges every second segment.
    #[derive(Debug)]
    struct Sound;

    impl Holds for Sound {
        fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
            let why = Why::new(AckRule::Count, view.owed.segments, 2);
            Decision::counted(why, since(arrival, view) + std::time::Duration::from_millis(100))
        }
    }

    /// Its holds end before they begin.
    #[derive(Debug)]
    struct Broken;

    impl Holds for Broken {
        fn in_order(&mut self, _: &Arrival, _: &RecvView<'_>) -> Decision {
            Decision::Hold { until: Instant::ZERO, why: Why::plain(AckRule::Count) }
        }
    }

    const SOUND: Descriptor = Descriptor {
        name: "outside",
        rule: "acknowledges every second segment",
        source: "this test",
        params: &[],
        shorthand: None,
        make: Make::Receiver(|_| host(Sound)),
    };
    static OUTSIDE: Descriptor = SOUND;
    static BREAKS: Descriptor = Descriptor { make: Make::Receiver(|_| host(Broken)), ..SOUND };
    static NAMELESS: Descriptor = Descriptor { name: "", ..SOUND };

    #[test]
    fn an_agent_that_no_registry_knows_is_tested_alone_and_in_a_wrapper_of_ours() {
        let kit = of(&OUTSIDE);
        kit.check("outside", "0ms in -> hold (count 1 of 2)\n1ms in -> ack 2 (count 2 of 2)");
        kit.check(
            "dup-count(outside)",
            "0ms in -> hold (count 1 of 2)\n9ms ooo -> ack 1 (not-in-order) dup_count=1",
        );
        kit.survives_any_order_of_events();
        assert_eq!(registry::find("outside").count(), 0);
    }

    #[test]
    fn an_agent_of_ours_is_tested_by_its_description_too() {
        let delayed = registry::find("delayed").next().expect("it is ours");
        of(delayed).check("delayed:3", "0ms in -> hold (count 1 of 3)");
        let limit = registry::find("limit").next().expect("it is ours");
        of(limit).survives_any_order_of_events();
    }

    #[test]
    #[should_panic(expected = "before what it waits for")]
    fn an_agent_that_breaks_its_contract_does_not_survive() {
        of(&BREAKS).survives_any_order_of_events();
    }

    #[test]
    #[should_panic(expected = "the receiver agent ``: expected small letters")]
    fn a_wrong_description_fails_its_tests() {
        of(&NAMELESS);
    }
}
