//! The agents that a connection gets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hopwise_agents::StandardAgents;
use hopwise_core::Endpoint;
use hopwise_core::agent::{AgentMaker, AgentSpecs, BadSpec, MakeReceiver, MakeSenders, MakeShadows};
use hopwise_core::endpoint::{AgentChoice, ConnectOptions, Direction, ListenOptions, Match, Rule};
use hopwise_testing::memory::End;

use super::net::{Net, PORT, Pair, SERVER, config, prefix, secs};

fn rule(matches: Match, receiver: &str) -> Rule {
    Rule { matches, receiver: Some(receiver.into()), ..Rule::default() }
}

fn anything() -> Match {
    Match::default()
}

/// Opens a connection from A to B where both have these rules, and returns the two sides' receivers.
fn receivers_under(rules: &[Rule]) -> [String; 2] {
    let mut pair = Net::with(|_, config| config.rules = rules.to_vec()).pair();
    [pair.info(End::A).receiver, pair.info(End::B).receiver]
}

#[test]
fn the_first_rule_that_matches_wins() {
    let port = |port| Match { port: Some(port), ..anything() };
    let rules = [
        rule(port(9), "delayed:d=9"),
        rule(port(PORT), "delayed:d=3"),
        rule(port(PORT), "delayed:d=4"),
        rule(anything(), "immediate"),
    ];
    assert_eq!(receivers_under(&rules), ["delayed:d=3", "delayed:d=3"]);
    assert_eq!(receivers_under(&rules[2..]), ["delayed:d=4", "delayed:d=4"]);
    assert_eq!(receivers_under(&rules[3..]), ["immediate", "immediate"]);
    assert_eq!(receivers_under(&rules[..1]), ["delayed", "delayed"], "the default where none matches");
}

#[test]
fn a_connection_names_the_rule_that_chose_its_agents() {
    let named = |rules: &[Rule]| {
        let pair = Net::with(|_, config| config.rules = rules.to_vec()).pair();
        pair.net.hosts.a.rule_of(pair.client)
    };
    let other = rule(Match { port: Some(9), ..anything() }, "delayed:d=9");
    assert_eq!(named(&[other.clone(), rule(anything(), "immediate")]), Some(1));
    assert_eq!(named(&[other]), None);
}

#[test]
fn rules_ask_who_opened() {
    let way = |direction| Match { direction: Some(direction), ..anything() };
    let rules = [rule(way(Direction::Outgoing), "immediate"), rule(way(Direction::Incoming), "delayed:d=4")];
    assert_eq!(receivers_under(&rules), ["immediate", "delayed:d=4"]);
}

/// `from` is the opener and `to` the other end, on both sides alike.
#[test]
fn rules_ask_for_both_addresses_in_the_direction_of_the_opening() {
    let from = |text| Match { from: Some(prefix(text)), ..anything() };
    let to = |text| Match { to: Some(prefix(text)), ..anything() };
    for (matches, holds) in [
        (from("10.0.0.1/32"), true),
        (from("10.0.0.2/32"), false),
        (from("10.0.0.0/24"), true),
        (from("10.0.1.0/24"), false),
        (from("fd00::/8"), false),
        (to("10.0.0.2/32"), true),
        (to("10.0.0.1/32"), false),
        (to("0.0.0.0/0"), true),
        (Match { to: Some(prefix("10.0.0.2/32")), ..from("10.0.0.1/32") }, true),
        (Match { to: Some(prefix("10.0.0.3/32")), ..from("10.0.0.1/32") }, false),
    ] {
        let expected = if holds { "immediate" } else { "delayed" };
        assert_eq!(receivers_under(&[rule(matches, "immediate")]), [expected; 2], "{matches:?}");
    }
}

#[test]
fn what_a_rule_leaves_out_stays_as_the_endpoint_has_it() {
    let defaults = AgentSpecs {
        receiver: "delayed:d=3".into(),
        senders: "[newreno]".into(),
        shadows: "[immediate]".into(),
    };
    let mut pair = Net::with(|_, config| {
        config.agents = defaults.clone().into();
        config.rules = vec![Rule { senders: Some("[cubic, limit:4]".into()), ..Rule::default() }];
    })
    .pair();
    let info = pair.info(End::A);
    assert_eq!(
        (&*info.receiver, &*info.senders, &*info.shadows),
        ("delayed:d=3", "[cubic, limit:4]", "[immediate]")
    );
}

#[test]
fn a_choice_for_one_connection_goes_before_every_rule_and_leaves_the_rest_to_it() {
    let mut net = Net::with(|_, config| {
        config.rules = vec![Rule { senders: Some("[newreno]".into()), ..rule(anything(), "delayed:d=3") }];
    });
    let choice = |receiver: &str| AgentChoice { receiver: Some(receiver.into()), ..AgentChoice::default() };
    let listener = net.listen(ListenOptions { agents: choice("delayed:d=5"), ..ListenOptions::default() });
    let client =
        net.connect_with(&ConnectOptions { agents: choice("immediate"), ..ConnectOptions::default() });
    let other = net.connect();
    net.settle();
    let server = net.accept(listener);
    let (now, a) = (net.now(), &net.hosts.a);
    let agents = |info: hopwise_core::tcp::Info| (info.receiver, info.senders);
    let named = |receiver: &str| (receiver.to_owned(), "[newreno]".to_owned());
    assert_eq!(agents(a.info(now, client).expect("open")), named("immediate"));
    assert_eq!(agents(a.info(now, other).expect("open")), named("delayed:d=3"));
    assert_eq!(agents(net.hosts.b.info(now, server).expect("open")), named("delayed:d=5"));
    assert_eq!((a.rule_of(client), a.rule_of(other)), (None, Some(0)));
}

/// A shadow counts the ACKs that it would have sent in the live agent's place.
#[test]
fn shadows_are_counted_and_change_nothing() {
    let run = |shadows: &str| {
        let mut net = Net::with(|_, config| config.agents.shadows = Some(shadows.into()));
        let listener = net.listen(ListenOptions::default());
        let client = net.connect();
        net.settle();
        let server = net.accept(listener);
        let mut pair = Pair { net, client, server };
        pair.send(End::A, &[1; 60_000]);
        pair.net.wait(secs(2));
        assert_eq!(pair.read(End::B).len(), 60_000);
        let packets: Vec<_> = pair.net.sent().into_iter().map(|sent| (sent.at, sent.packet)).collect();
        (pair.info(End::B), packets)
    };
    let (alone, bare) = run("[]");
    let (watched, same) = run("[immediate, delayed:d=4]");
    assert_eq!(alone.shadow_acks, [0_u64; 0]);
    assert!(bare == same, "a shadow puts nothing on the wire");
    let [immediate, fourth] = watched.shadow_acks[..] else { panic!("{:?}", watched.shadow_acks) };
    assert_eq!(immediate, watched.stats.segments_in_order, "one for each segment");
    let live = watched.stats.acks_sent;
    assert!(immediate > live && live > fourth && fourth > 0, "{immediate} {live} {fourth}");
}

#[test]
fn what_the_receiver_agent_is_decides_how_many_acks_leave() {
    let acks_of = |receiver: &str| {
        let mut net = Net::with(|_, config| config.agents.receiver = Some(receiver.into()));
        net.listen(ListenOptions::default());
        let now = net.now();
        let id = net.hosts.a.connect(now, SERVER, &ConnectOptions::default()).expect("a route");
        net.settle();
        let now = net.now();
        assert_eq!(net.hosts.a.send(now, id, &[1; 28_960]), Ok(28_960));
        net.sent();
        net.wait(secs(2));
        net.sent_by(End::B).len()
    };
    assert_eq!(acks_of("immediate"), 20);
    assert_eq!(acks_of("delayed:d=2"), 10);
    assert!(acks_of("delayed:d=4") < 10);
}

#[test]
fn rules_set_later_hold_for_connections_that_begin_later() {
    let mut net = Net::new();
    let listener = net.listen(ListenOptions::default());
    let before = net.connect();
    net.settle();
    net.accept(listener);
    net.hosts.a.set_rules(vec![rule(anything(), "delayed:d=5")]).expect("the spec is right");
    let after = net.connect();
    net.settle();
    net.accept(listener);
    let now = net.now();
    let receiver = |id| net.hosts.a.info(now, id).expect("still named").receiver;
    assert_eq!([receiver(before), receiver(after)], ["delayed", "delayed:d=5"]);
}

#[test]
fn rules_with_a_wrong_spec_change_nothing() {
    let mut net = Net::with(|_, config| config.rules = vec![rule(anything(), "immediate")]);
    net.hosts.a.set_rules(vec![rule(anything(), "sometimes")]).expect_err("no such agent");
    let mut pair = net.pair();
    assert_eq!(pair.info(End::A).receiver, "immediate");
}

/// Counts the specs that it reads.
struct Counting {
    standard: StandardAgents,
    read: Arc<AtomicU32>,
}

impl AgentMaker for Counting {
    fn receiver(&self, spec: &str) -> Result<MakeReceiver, BadSpec> {
        self.read.fetch_add(1, Ordering::Relaxed);
        self.standard.receiver(spec)
    }

    fn shadows(&self, list: &str) -> Result<MakeShadows, BadSpec> {
        self.read.fetch_add(1, Ordering::Relaxed);
        self.standard.shadows(list)
    }

    fn senders(&self, list: &str) -> Result<MakeSenders, BadSpec> {
        self.read.fetch_add(1, Ordering::Relaxed);
        self.standard.senders(list)
    }

    fn default_specs(&self) -> AgentSpecs {
        self.standard.default_specs()
    }
}

#[test]
fn a_spec_is_read_when_it_is_given_and_never_for_a_connection() {
    let mut net = Net::new();
    let read = Arc::new(AtomicU32::new(0));
    let count = || read.load(Ordering::Relaxed);
    let mut config = config(End::B);
    config.rules = vec![Rule { senders: Some("[newreno]".into()), ..rule(anything(), "delayed:d=3") }];
    let maker = Counting { standard: StandardAgents::default(), read: Arc::clone(&read) };
    net.hosts.b = Endpoint::new(config, Box::new(maker)).expect("specs are right");
    assert_eq!(count(), 3 + 2, "three defaults, and two of the rule");
    let agents = AgentChoice { receiver: Some("immediate".into()), ..AgentChoice::default() };
    let listener = net.listen(ListenOptions { agents, ..ListenOptions::default() });
    assert_eq!(count(), 6, "and the listener's");
    for _ in 0..3 {
        net.connect();
        net.settle();
        let server = net.accept(listener);
        let info = net.hosts.b.info(net.now(), server).expect("open");
        assert_eq!((&*info.receiver, &*info.senders), ("immediate", "[newreno]"));
    }
    assert_eq!(count(), 6);
    net.hosts.b.set_rules(Vec::new()).expect("no spec is wrong");
    assert_eq!(count(), 9, "the defaults once more");
}
