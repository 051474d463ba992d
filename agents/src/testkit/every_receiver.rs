//! Tests that each registered receiver agent has to pass: bounded waits, answers that carry the ACK, hops that change.

use std::time::Duration;

use hopwise_core::agent::{By, Class};

use super::receiver::{CEILING, Carried, ReceiverBench};
use super::specs;
use crate::descriptor::Kind;
use crate::param::{Form, Value};
use crate::{Profile, registry, spec};

/// The value of this spec's `hold`, if it has one.
fn longest(spec: &str) -> Option<Duration> {
    let in_force = spec::parse_receiver(spec).expect("its own spec").parameters(Profile::Modern);
    let param = in_force.into_iter().find(|param| param.name == "hold")?;
    let form = registry::find(param.agent).find_map(|agent| agent.param("hold"))?.form;
    match form.parse(&param.value) {
        Some(Value::Time(hold)) => Some(hold),
        _ => panic!("{spec}: {param:?}"),
    }
}

/// Segments arrive each ms over a path whose length cycles through 2, 12 and 6 hops.
fn arrive(bench: &mut ReceiverBench, cwnd: u16, segments: u64) {
    let from = bench.now;
    for nth in 0..segments {
        bench.now = from + Duration::from_millis(nth);
        bench.show(Some(cwnd), Some([2, 12, 6][nth as usize % 3]), None);
        bench.arrive(Class::InOrder, Carried { push: nth + 1 == segments, ..Carried::PLAIN });
    }
}

/// The agent's own hold ends each wait: for one to six segments, for a small and a large window, on a changing path.
#[test]
fn the_agent_itself_acknowledges_what_waits_when_nothing_follows() {
    for spec in specs::shortest(Kind::Receiver) {
        for (segments, cwnd) in (1..=6).flat_map(|segments| [(segments, 1), (segments, 40)]) {
            let mut bench = ReceiverBench::new(&spec);
            arrive(&mut bench, cwnd, segments);
            while let Some(since) = bench.owed.since {
                let (due, who) = bench.next_deadline().expect("something ends the wait");
                assert_eq!(who, "timer", "{spec} leaves it to the ledger");
                let newest = bench.now.since(since);
                let hold = longest(&spec).unwrap_or_else(|| panic!("{spec} holds and has no `hold`"));
                assert!(
                    due.since(since) <= hold + newest && hold <= CEILING,
                    "{spec}: {:?}",
                    due.since(since)
                );
                bench.now = due;
                bench.time_out();
            }
        }
    }
}

/// After an ACK that the agent did not decide, nothing is held. Only a repeat may be due.
#[test]
fn an_answer_and_a_fin_take_along_what_waits() {
    for spec in specs::shortest(Kind::Receiver) {
        for (segments, by) in (1..=6).flat_map(|segments| [(segments, By::Piggyback), (segments, By::Forced)])
        {
            let mut bench = ReceiverBench::new(&spec);
            arrive(&mut bench, 40, segments);
            bench.force(by);
            assert_eq!((bench.owed.segments, bench.owed.since), (0, None), "{spec}");
            if let Some(due) = bench.agent.deadline() {
                bench.now = due;
                let outcome = bench.time_out();
                assert!(outcome.starts_with("repeat"), "{spec}, after {segments}: {outcome}");
            }
        }
    }
}

/// The ledger cuts what is longer, so that such a value would be accepted and not obeyed.
#[test]
fn no_receiver_accepts_a_hold_that_the_ledger_cuts() {
    for agent in registry::all().filter(|agent| agent.kind() == Kind::Receiver) {
        if let Some(Form::Time { max, .. }) = agent.param("hold").map(|param| param.form) {
            assert!(max <= CEILING, "{}: `hold` up to {max:?}; use `LONGEST_MS`", agent.name);
        }
    }
}

/// Without `Needs::hops` nothing reports that the hops are unknown.
#[test]
fn a_receiver_that_decides_by_hops_needs_them() {
    for spec in specs::shortest(Kind::Receiver) {
        let played = |hops| {
            let mut bench = ReceiverBench::new(&spec);
            bench.show(Some(20), hops, None);
            (0..40).map(|_| bench.play_line("in")).collect::<Vec<_>>()
        };
        let [unknown, short, long] = [None, Some(1), Some(255)].map(played);
        let decides = unknown != short || unknown != long;
        assert!(!decides || ReceiverBench::new(&spec).agent.needs().hops, "{spec} lacks `needs`");
    }
}
