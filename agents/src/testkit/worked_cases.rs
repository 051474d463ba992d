//! What every receiver agent makes of the cases that all of them meet, a script each: a transfer that ends, requests
//! with answers, less in flight than an ACK waits for, a path that changes. What only one agent's paper works out
//! stands in that agent's file.

mod end;
mod hops;
mod requests;
mod too_few;

use std::collections::BTreeSet;

use hopwise_core::agent::Class;

use super::receiver::{CEILING, Carried, Seat, check};
use super::specs;
use crate::descriptor::Kind;
use crate::param::Value;
use crate::{Profile, registry, spec};

/// A spec of each registered agent with its script.
type Case = [(&'static str, &'static str)];

fn play(case: &Case) {
    let names = case.iter().map(|(spec, _)| {
        let parsed = spec::parse_receiver(spec).expect("a spec in a test");
        parsed.spec().agent().name
    });
    let names: BTreeSet<_> = names.collect();
    let registered: BTreeSet<_> = registry::names(Kind::Receiver).collect();
    assert_eq!(names, registered, "every agent has its script");
    for (spec, script) in case {
        check(spec, script);
    }
}

#[test]
fn the_end_of_a_transfer() {
    play(end::SCRIPTS);
}

#[test]
fn requests_and_their_answers() {
    play(requests::SCRIPTS);
}

#[test]
fn no_agent_holds_a_single_segment_for_longer_than_its_hold() {
    for spec in specs::shortest(Kind::Receiver) {
        let in_force = spec::parse_receiver(&spec).expect("its own spec").parameters(Profile::Modern);
        let hold = in_force.iter().find(|param| param.name == "hold").map(|param| {
            let param_of = registry::find(param.agent).find_map(|agent| agent.param("hold"));
            match param_of.and_then(|form| form.form.parse(&param.value)) {
                Some(Value::Time(hold)) => hold,
                _ => panic!("{spec}: {param:?}"),
            }
        });
        let mut seat = Seat::new(&spec);
        seat.show(Some(40), Some(2), None);
        let outcome = seat.arrive(Class::InOrder, Carried { push: true, ..Carried::PLAIN });
        if outcome.starts_with("hold") {
            let (due, who) = seat.next_deadline().expect("something ends the wait");
            let held = due.since(seat.now);
            assert!(hold.is_some_and(|hold| held <= hold && hold <= CEILING), "{spec}: {held:?}");
            assert_eq!(who, "timer", "{spec} leaves it to the ledger");
        }
    }
}

#[test]
fn more_is_waited_for_than_is_in_flight() {
    play(too_few::SCRIPTS);
}

#[test]
fn hop_counts_that_change_in_the_middle_of_a_flow() {
    play(hops::SCRIPTS);
}
