//! SYNs to any address and port, which the program answers itself.

use std::net::SocketAddr;

use hopwise_core::Endpoint;
use hopwise_core::endpoint::{
    AnswersFor, ConnId, ConnectOptions, EventKind, ListenError, ListenOptions, ListenerId, SynAck,
};
use hopwise_core::tcp::CloseReason;
use hopwise_core::trace::{DropReason, StateName};
use hopwise_core::wire::Flags;
use hopwise_testing::memory::End;

use super::net::{Net, PORT, Pair, secs, v4, v6};

/// An address and a port that the server does not have.
const ELSEWHERE: SocketAddr = SocketAddr::new(v4(77), 4711);

/// A client that connects elsewhere, and an endpoint on its way that answers for everyone.
fn between() -> (Net, ListenerId) {
    let mut net = Net::with(|end, config| {
        if end == End::B {
            config.links[0].answers_for = AnswersFor::Everyone;
        }
    });
    let options = ListenOptions { syn_ack: SynAck::OnDemand, ..ListenOptions::default() };
    let listener = net.hosts.b.listen_everywhere(options).expect("there is none yet");
    (net, listener)
}

fn connect(net: &mut Net, to: SocketAddr) -> ConnId {
    let now = net.now();
    net.hosts.a.connect(now, to, &ConnectOptions::default()).expect("a route")
}

fn kinds(net: &mut Net, client: ConnId, server: ConnId) -> Vec<EventKind> {
    // Reads the queue of a pair.
    let mut pair = Pair { net: std::mem::replace(net, Net::new()), client, server };
    let kinds = pair.kinds(End::A);
    *net = pair.net;
    kinds
}

#[test]
fn a_syn_to_any_address_and_port_waits_for_the_programs_answer() {
    for elsewhere in [ELSEWHERE, SocketAddr::new(v6(77), 80)] {
        let (mut net, listener) = between();
        let client = connect(&mut net, elsewhere);
        net.wait(secs(5));
        let server = net.accept(listener);
        assert_eq!(net.hosts.b.flow(server).expect("it is there").local, elsewhere);
        assert!(net.sent_by(End::B).is_empty(), "nothing leaves before the answer, whatever comes again");
        let now = net.now();
        net.hosts.b.answer(now, server).expect("it waits");
        net.settle();
        let established = Some((StateName::Established, None));
        assert_eq!((net.hosts.a.state(client), net.hosts.b.state(server)), (established, established));
        let mut pair = Pair { net, client, server };
        pair.send(End::A, b"hello");
        pair.send(End::B, b"it is I");
        pair.net.settle();
        assert_eq!((pair.read(End::B), pair.read(End::A)), (b"hello".to_vec(), b"it is I".to_vec()));
    }
}

#[test]
fn a_program_that_does_not_want_a_connection_refuses_it_like_a_port_without_a_listener() {
    for act in [Endpoint::abort, Endpoint::close] {
        let (mut net, listener) = between();
        let client = connect(&mut net, ELSEWHERE);
        net.settle();
        let server = net.accept(listener);
        let now = net.now();
        act(&mut net.hosts.b, now, server).expect("it waits");
        net.settle();
        assert_eq!(kinds(&mut net, client, server), [EventKind::Closed(CloseReason::Refused)]);
        let sent = net.sent_by(End::B);
        assert_eq!(sent.len(), 1, "one reset and no more");
        assert!(sent[0].tcp().flags.contains(Flags::RST));
        assert_eq!(net.hosts.b.connections(), 0, "nothing is left of it");
    }
}

#[test]
fn an_unreachable_destination_is_told_by_icmp_from_its_own_address() {
    for (elsewhere, code, icmp_type) in [(ELSEWHERE, 1, 3), (SocketAddr::new(v6(77), 80), 3, 1)] {
        let (mut net, listener) = between();
        let client = connect(&mut net, elsewhere);
        net.settle();
        let server = net.accept(listener);
        let now = net.now();
        net.hosts.b.tell_unreachable(now, server, code).expect("it waits");
        net.settle();
        let told = EventKind::SoftError { icmp_type: 3, code };
        assert_eq!(kinds(&mut net, client, server), [told], "the connection believes the quoted SYN");
        let sent = net.sent_by(End::B);
        assert_eq!((sent[0].ip().src, sent[0].ip().payload[0]), (elsewhere.ip(), icmp_type));
        assert_eq!(net.hosts.b.connections(), 0);
    }
}

#[test]
fn a_client_that_resets_before_its_connection_is_read_is_reported_to_the_program() {
    let (mut net, listener) = between();
    let client = connect(&mut net, ELSEWHERE);
    net.settle();
    let server = net.accept(listener);
    let now = net.now();
    // The client has gone: its kernel answers the SYN-ACK with a reset.
    net.hosts.a.close(now, client).expect("it opens");
    net.hosts.b.answer(now, server).expect("it waits");
    net.settle();
    let (_, closed) = net.hosts.b.state(server).expect("the program still holds it");
    assert_eq!(closed, Some(CloseReason::Reset));
    let mut pair = Pair { net, client, server };
    assert_eq!(pair.kinds(End::B).last(), Some(&EventKind::Closed(CloseReason::Reset)));
    pair.close(End::B);
    assert_eq!(pair.net.hosts.b.connections(), 0);
}

#[test]
fn a_port_with_a_listener_of_its_own_is_not_among_all_others() {
    let (mut net, all) = between();
    let own = net.listen(ListenOptions::default());
    let _client = connect(&mut net, SocketAddr::new(v4(77), PORT));
    net.settle();
    let now = net.now();
    assert!(net.hosts.b.accept(now, all).is_none());
    assert!(net.hosts.b.accept(now, own).is_some());
    let again = net.hosts.b.listen_everywhere(ListenOptions::default());
    assert!(matches!(again, Err(ListenError::PortInUse(0))));
}

#[test]
fn an_endpoint_answers_for_itself_alone_unless_its_link_says_otherwise() {
    let mut net = Net::new();
    net.hosts.b.listen_everywhere(ListenOptions::default()).expect("there is none yet");
    connect(&mut net, ELSEWHERE);
    net.settle();
    assert!(net.hosts.b.drops(DropReason::NotOurs) > 0 && net.hosts.b.connections() == 0);
    connect(&mut net, SocketAddr::new(v4(2), 4711));
    net.settle();
    assert_eq!(net.hosts.b.connections(), 1, "each port of its own");
}
