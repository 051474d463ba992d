//! A program adds an agent of its own. The table is that of a whole process, so this file has one test.

use hopwise_agents::agent::{
    AckRule, Arrival, Decision, Descriptor, Form, Holds, Make, RecvView, Why, host, params,
};
use hopwise_agents::registry::{self, Kind, NotAdded};
use hopwise_agents::{StandardAgents, validate_receiver, validate_senders};
use hopwise_core::agent::AgentMaker;

params! {
    /// the number of segments that an ACK waits for
    n: u32 = Form::count("segments", 1, 9).is(3),
}

static DESCRIPTOR: Descriptor = Descriptor {
    name: "nth",
    rule: "acknowledges every n-th segment",
    source: "this test",
    params: Params::TABLE,
    shorthand: Some("n"),
    make: Make::Receiver(|args| host(Nth(Params::of(args)))),
};

#[derive(Debug)]
struct Nth(Params);

impl Holds for Nth {
    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        let why = Why::new(AckRule::Count, view.owed.segments, self.0.n);
        Decision::counted(why, arrival.now + std::time::Duration::from_millis(100))
    }
}

#[test]
fn an_agent_of_ones_own_is_named_like_ours_and_added_once() {
    registry::add(&[(&DESCRIPTOR, "//! Rule: every n-th.\n")]).expect("it is right");
    assert_eq!(validate_receiver("nth:n=4").as_deref().expect("a spec"), "nth:4");
    assert_eq!(validate_receiver("dup-count(nth)").as_deref().expect("a spec"), "dup-count(nth)");
    let agents = StandardAgents::default();
    assert!(agents.receiver("nth:4").is_ok() && agents.shadows("[delayed, nth]").is_ok());

    let refused = |spec| validate_receiver(spec).expect_err("it is wrong").to_string();
    assert!(refused("mth").contains("did you mean `nth`?"), "{}", refused("mth"));
    assert!(refused("nth:10").contains("`n` cannot be `10`"), "{}", refused("nth:10"));
    assert!(refused("nth:10").contains("accepted: a whole number of segments from 1 to 9, as in `n=3`"));
    let as_sender = validate_senders("nth").expect_err("it is a receiver").to_string();
    assert!(as_sender.contains("`nth` is a receiver agent, and a sender agent is wanted"), "{as_sender}");

    assert_eq!(registry::names(Kind::Receiver).last(), Some("nth"));
    assert_eq!(registry::header(&DESCRIPTOR).rule, "every n-th.");
    assert_eq!(registry::in_force().own.len(), 1);
    assert_eq!(registry::add(&[]), Err(NotAdded::TooLate));
}
