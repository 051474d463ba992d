//! Refusals of calls, with their advice.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};

use hopwise_agents::{SpecError, StandardAgents};
use hopwise_core::Endpoint;
use hopwise_core::endpoint::{
    AbortError, AgentChoice, ConnectError, ConnectOptions, ListenError, ListenOptions, RecvError, Rule,
    SendError,
};
use hopwise_core::trace::StateName;
use hopwise_testing::memory::End;

use super::net::{B, Net, PORT, Pair, SERVER, config, secs, v6};

#[test]
fn send_after_shutdown_is_refused_and_says_what_to_do() {
    let mut pair = Pair::new();
    pair.shutdown(End::A);
    let now = pair.net.now();
    let refusal = pair.net.hosts.a.send(now, pair.client, b"late").expect_err("closed by us");
    assert_eq!(refusal, SendError::NotOpen);
    assert!(refusal.to_string().contains("open another one"), "{refusal}");
    assert_eq!(pair.net.hosts.a.writable(pair.client), 0);
}

#[test]
fn nothing_can_be_done_by_name_after_close_or_abort() {
    let endings: [fn(&mut Pair); 2] = [|pair| pair.close(End::A), |pair| pair.abort(End::A)];
    for end in endings {
        let mut pair = Pair::new();
        end(&mut pair);
        let (now, id, a) = (pair.net.now(), pair.client, &mut pair.net.hosts.a);
        assert_eq!(a.send(now, id, b"x"), Err(SendError::NoConnection));
        assert_eq!(a.send_urgent(now, id, b"x"), Err(SendError::NoConnection));
        assert_eq!(a.recv(now, id, &mut [0; 9]), Err(RecvError::NoConnection));
        let refused = Err(AbortError::NoConnection);
        assert_eq!([a.shutdown(now, id), a.close(now, id), a.abort(now, id)], [refused; 3]);
        assert_eq!(a.consume(now, id, 1), refused);
        assert_eq!((a.readable(id), a.writable(id), a.urgent_unread(id)), (0, 0, 0));
        assert_eq!(a.ids().count(), 0);
        assert!(SendError::NoConnection.to_string().contains("closed or aborted by this side"));
    }
}

/// A connection that ends by itself may be watched until it has ended.
#[test]
fn a_closed_connection_can_be_asked_about_until_it_is_forgotten() {
    let mut pair = Pair::new();
    pair.close(End::A);
    pair.net.settle();
    assert_eq!(pair.info(End::A).state, StateName::FinWait2);
    pair.close(End::B);
    pair.net.settle();
    let (now, id, a) = (pair.net.now(), pair.client, &pair.net.hosts.a);
    assert_eq!(a.info(now, id).expect("still there").state, StateName::TimeWait);
    pair.net.wait(secs(61));
    let (now, id, a) = (pair.net.now(), pair.client, &pair.net.hosts.a);
    assert_eq!(a.info(now, id).err(), Some(AbortError::NoConnection));
    assert_eq!(a.options(id).err(), Some(AbortError::NoConnection));
    assert_eq!((a.trace_number(id), a.allocated(id), a.connections()), (None, None, 0));
}

#[test]
fn a_name_of_old_does_not_reach_the_connection_that_took_its_place() {
    let mut pair = Pair::new();
    let old = pair.client;
    pair.abort(End::A);
    pair.net.settle();
    let new = pair.net.connect();
    assert_ne!(old, new);
    let now = pair.net.now();
    assert_eq!(pair.net.hosts.a.abort(now, old), Err(AbortError::NoConnection));
    assert_eq!(pair.net.hosts.a.ids().collect::<Vec<_>>(), [new]);
}

// shows: MUST-46
#[test]
fn a_connection_to_more_than_one_host_or_to_no_port_is_refused() {
    let mut net = Net::new();
    let now = net.now();
    let places = [
        "224.0.0.1:7",
        "255.255.255.255:7",
        "10.0.0.255:7",
        "0.0.0.0:7",
        "[ff02::1]:7",
        "[::]:7",
        "10.0.0.2:0",
    ];
    for place in places {
        let to: SocketAddr = place.parse().expect("an address");
        let refusal = net.hosts.a.connect(now, to, &ConnectOptions::default()).expect_err(place);
        assert!(matches!(refusal, ConnectError::NotUnicast(said) if said == to), "{refusal:?}");
        assert!(refusal.to_string().contains(place), "{refusal}");
    }
    assert_eq!(net.hosts.a.connections(), 0);
    assert!(net.sent().is_empty());
}

#[test]
fn without_a_route_there_is_no_connection() {
    let mut net = Net::new();
    let now = net.now();
    for place in ["192.0.2.1:7", "[2001:db8::1]:7"] {
        let to: SocketAddr = place.parse().expect("an address");
        let refusal = net.hosts.a.connect(now, to, &ConnectOptions::default()).expect_err(place);
        assert!(matches!(refusal, ConnectError::NoRoute(said) if said == to.ip()), "{refusal:?}");
        assert!(refusal.to_string().contains("add one"), "{refusal}");
    }
}

// shows: MUST-42
#[test]
fn a_port_is_listened_on_once_at_each_address() {
    let mut net = Net::new();
    let b = &mut net.hosts.b;
    let mut listen = |local| b.listen(local, PORT, ListenOptions::default());
    for local in [None, Some(B), Some(v6(2))] {
        let first = listen(local).expect("not taken");
        let refusal = listen(local).expect_err("taken");
        assert!(matches!(refusal, ListenError::PortInUse(PORT)), "{refusal:?} after {first:?}");
        assert!(refusal.to_string().contains("choose another port"), "{refusal}");
    }
}

#[test]
fn a_port_is_free_again_when_its_listener_has_gone() {
    let mut net = Net::new();
    let (now, b) = (net.now(), &mut net.hosts.b);
    let first = b.listen(None, PORT, ListenOptions::default()).expect("a free port");
    b.stop_listening(now, first);
    let second = b.listen(None, PORT, ListenOptions::default()).expect("free again");
    assert_ne!(first, second);
    // The old name does not stop the new one.
    b.stop_listening(now, first);
    assert!(b.listen(None, PORT, ListenOptions::default()).is_err());
    assert_eq!(b.accept(now, first), None);
}

#[test]
fn nobody_listens_at_a_strange_address_or_at_port_0() {
    let mut net = Net::new();
    let strange: IpAddr = "10.0.0.99".parse().expect("an address");
    let refusal = net.hosts.b.listen(Some(strange), PORT, ListenOptions::default()).expect_err("not ours");
    assert!(matches!(refusal, ListenError::NotOurs(said) if said == strange), "{refusal:?}");
    assert!(refusal.to_string().contains("10.0.0.99 is no address of ours: give it to a link"), "{refusal}");
    let refusal = net.hosts.b.listen(None, 0, ListenOptions::default()).expect_err("no port");
    assert!(refusal.to_string().contains("choose one from 1 to 65535"), "{refusal}");
}

fn receiver(spec: &str) -> AgentChoice {
    AgentChoice { receiver: Some(spec.into()), ..AgentChoice::default() }
}

fn senders(spec: &str) -> AgentChoice {
    AgentChoice { senders: Some(spec.into()), ..AgentChoice::default() }
}

fn shadows(spec: &str) -> AgentChoice {
    AgentChoice { shadows: Some(spec.into()), ..AgentChoice::default() }
}

/// A spec in its place, and the part of it that is wrong.
fn wrong_specs() -> [(AgentChoice, &'static str); 4] {
    [
        (receiver("delayd:d=3"), "delayd"),
        (receiver("delayed:x=3"), "x"),
        (senders("[cubic, nosuch]"), "nosuch"),
        (shadows("[immediate, cubic]"), "cubic"),
    ]
}

/// Checks that the refusal names the wrong part, and its place in the text.
fn assert_names(refusal: &(dyn Error + Send + Sync + 'static), part: &str) {
    let said = refusal.downcast_ref::<SpecError>().expect("of the spec");
    assert_eq!(&said.spec[said.place.clone()], part, "{said}");
    let text = said.to_string();
    assert!(text.contains(&format!("`{part}`")) && text.contains("accepted"), "{text}");
}

#[test]
fn a_wrong_agent_at_connect_is_named_with_its_place() {
    for (agents, part) in wrong_specs() {
        let mut net = Net::new();
        let now = net.now();
        let options = ConnectOptions { agents, ..ConnectOptions::default() };
        let Err(ConnectError::Agents(refusal)) = net.hosts.a.connect(now, SERVER, &options) else {
            panic!("{options:?} was taken");
        };
        assert_names(&*refusal, part);
        assert_eq!(net.hosts.a.connections(), 0);
    }
}

#[test]
fn a_wrong_agent_at_listen_is_named_with_its_place() {
    for (agents, part) in wrong_specs() {
        let mut net = Net::new();
        let options = ListenOptions { agents, ..ListenOptions::default() };
        let Err(ListenError::Agents(refusal)) = net.hosts.b.listen(None, PORT, options) else {
            panic!("it was taken");
        };
        assert_names(&*refusal, part);
        net.listen(ListenOptions::default());
    }
}

#[test]
fn a_wrong_agent_in_the_configuration_is_named_with_its_place() {
    for (choice, part) in wrong_specs() {
        let mut in_rule = config(End::A);
        let AgentChoice { receiver, senders, shadows } = choice.clone();
        in_rule.rules.push(Rule { receiver, senders, shadows, ..Rule::default() });
        let mut as_default = config(End::A);
        let specs = &mut as_default.agents;
        specs.receiver = choice.receiver.or(specs.receiver.take());
        specs.senders = choice.senders.or(specs.senders.take());
        specs.shadows = choice.shadows.or(specs.shadows.take());
        for config in [in_rule, as_default] {
            let refusal = Endpoint::new(config, Box::new(StandardAgents::default())).expect_err("wrong");
            assert_names(&*refusal, part);
        }
    }
}

#[test]
fn a_full_table_says_which_setting_to_raise() {
    let mut net = Net::with(|_, config| config.most_connections = 2);
    let ids = [net.connect(), net.connect()];
    let now = net.now();
    let refusal = net.hosts.a.connect(now, SERVER, &ConnectOptions::default()).expect_err("full");
    assert!(matches!(refusal, ConnectError::TableFull { most: 2 }), "{refusal:?}");
    assert!(refusal.to_string().contains("raise `most_connections`"), "{refusal}");
    net.hosts.a.abort(now, ids[0]).expect("open");
    net.settle();
    net.connect();
}
