//! The endings of a connection: the program's calls and the peer's view.

use hopwise_core::endpoint::{EventKind, ListenOptions, RecvError};
use hopwise_core::tcp::CloseReason;
use hopwise_core::trace::StateName;
use hopwise_core::wire::Flags;
use hopwise_core::{LinkEvent, LinkId, Machine};
use hopwise_testing::memory::End;

use super::net::{Net, Pair, Sent, pattern, secs};

fn resets(sent: &[Sent]) -> usize {
    sent.iter().filter(|sent| sent.tcp().flags.contains(Flags::RST)).count()
}

#[test]
fn a_side_that_has_shut_down_still_receives() {
    let mut pair = Pair::new();
    pair.send(End::A, b"request");
    pair.shutdown(End::A);
    pair.net.settle();
    assert_eq!(pair.read(End::B), b"request");
    assert_eq!(pair.info(End::B).state, StateName::CloseWait);
    let data = pattern(50_000, 9);
    assert_eq!(pair.send(End::B, &data), data.len());
    pair.net.wait(secs(2));
    assert!(pair.read(End::A) == data, "the half that is open works on");
    assert_eq!(pair.info(End::A).state, StateName::FinWait2);
    pair.net.wait(secs(3600));
    assert_eq!(pair.info(End::A).state, StateName::FinWait2, "whoever still reads may wait");
    pair.shutdown(End::B);
    pair.net.settle();
    let now = pair.net.now();
    assert_eq!(pair.net.hosts.a.recv(now, pair.client, &mut [0; 9]), Err(RecvError::Finished));
}

#[test]
fn close_delivers_what_was_sent_before() {
    let mut pair = Pair::new();
    let data = pattern(60_000, 4);
    assert_eq!(pair.send(End::A, &data), data.len());
    pair.close(End::A);
    pair.net.wait(secs(2));
    assert!(pair.read(End::B) == data);
    assert_eq!(pair.kinds(End::B).last(), Some(&EventKind::PeerClosed));
    pair.close(End::B);
    pair.net.wait(secs(61));
    assert_eq!((pair.net.hosts.a.connections(), pair.net.hosts.b.connections()), (0, 0));
    assert_eq!(resets(&pair.net.sent()), 0);
}

// shows: SHLD-3
#[test]
fn closing_with_data_unread_resets() {
    let mut pair = Pair::new();
    pair.kinds(End::A);
    pair.send(End::A, b"never read");
    pair.net.settle();
    pair.close(End::B);
    assert_eq!(resets(&pair.net.sent_by(End::B)), 1);
    pair.net.settle();
    assert_eq!(pair.kinds(End::A), [EventKind::Closed(CloseReason::Reset)]);
    assert_eq!(pair.net.hosts.b.connections(), 0);
}

// shows: SHLD-3
#[test]
fn data_that_comes_after_close_resets() {
    let mut pair = Pair::new();
    pair.close(End::B);
    pair.net.settle();
    pair.kinds(End::A);
    pair.send(End::A, b"too late");
    pair.net.settle();
    assert_eq!(resets(&pair.net.sent_by(End::B)), 1);
    assert_eq!(pair.kinds(End::A), [EventKind::Closed(CloseReason::Reset)]);
}

#[test]
fn closing_after_everything_was_read_does_not_reset() {
    let mut pair = Pair::new();
    pair.send(End::A, b"read");
    pair.net.settle();
    pair.read(End::B);
    pair.close(End::B);
    pair.close(End::A);
    pair.net.wait(secs(61));
    assert_eq!(resets(&pair.net.sent()), 0);
    assert_eq!((pair.net.hosts.a.connections(), pair.net.hosts.b.connections()), (0, 0));
}

#[test]
fn abort_sends_one_rst_and_forgets() {
    let mut pair = Pair::new();
    pair.send(End::A, &[1; 30_000]);
    pair.abort(End::A);
    let sent = pair.net.sent_by(End::A);
    assert_eq!(
        (resets(&sent), sent.last().map(|sent| sent.tcp().flags.contains(Flags::RST))),
        (1, Some(true))
    );
    assert_eq!(pair.net.hosts.a.connections(), 0);
    pair.net.settle();
    assert_eq!(pair.info(End::B).closed, Some(CloseReason::Reset));
}

#[test]
fn an_opening_that_is_given_up_leaves_nothing() {
    let endings: [fn(&mut Net, hopwise_core::endpoint::ConnId); 2] = [
        |net, id| net.hosts.a.close(net.hosts.now(), id).expect("held"),
        |net, id| net.hosts.a.abort(net.hosts.now(), id).expect("held"),
    ];
    for end in endings {
        let mut net = Net::new();
        let id = net.connect();
        end(&mut net, id);
        net.wait(secs(300));
        assert_eq!(net.hosts.a.connections(), 0);
        assert_eq!(net.events(End::A), []);
    }
}

#[test]
fn stop_listening_aborts_what_nobody_accepted_and_nothing_else() {
    let mut net = Net::new();
    let listener = net.listen(ListenOptions::default());
    let accepted = net.connect();
    net.settle();
    let server = net.accept(listener);
    let waiting = net.connect();
    net.settle();
    let half_open = net.connect();
    net.wait(super::net::ROUND_TRIP * 3 / 4); // Its SYN has come, the answer is under way.
    assert_eq!(net.hosts.b.connections(), 3);
    let now = net.now();
    net.hosts.b.stop_listening(now, listener);
    net.settle();
    assert_eq!(net.hosts.b.connections(), 1);
    let closed = |id| net.hosts.a.info(net.now(), id).expect("held").closed;
    assert_eq!(closed(waiting), Some(CloseReason::Reset));
    assert!(matches!(closed(half_open), Some(CloseReason::Reset | CloseReason::Refused)));
    assert_eq!(closed(accepted), None);
    assert_eq!(net.hosts.b.info(net.now(), server).expect("open").state, StateName::Established);
    let late = net.connect();
    net.settle();
    assert_eq!(net.hosts.a.info(net.now(), late).expect("held").closed, Some(CloseReason::Refused));
}

#[test]
fn shutdown_twice_is_no_more_than_once() {
    let mut pair = Pair::new();
    pair.shutdown(End::A);
    pair.net.settle();
    pair.shutdown(End::A);
    pair.net.settle();
    let fins = |sent: Vec<Sent>| sent.iter().filter(|sent| sent.tcp().flags.contains(Flags::FIN)).count();
    assert_eq!(fins(pair.net.sent_by(End::A)), 1);
    assert_eq!(pair.info(End::A).state, StateName::FinWait2);
}

#[test]
fn both_may_close_at_once() {
    let mut pair = Pair::new();
    pair.shutdown(End::A);
    pair.shutdown(End::B);
    pair.net.hosts.flush();
    pair.net.settle();
    for end in [End::A, End::B] {
        assert_eq!(pair.info(end).state, StateName::TimeWait);
        assert_eq!(pair.kinds(end).last(), Some(&EventKind::Closed(CloseReason::Finished)));
    }
    pair.net.wait(secs(61));
    for end in [End::A, End::B] {
        assert_eq!(pair.info(end).state, StateName::Closed, "held by name until it is let go");
        pair.close(end);
        assert_eq!(pair.net.hosts.machine(end).connections(), 0);
    }
}

/// A report of the link layer: the next hop did not answer a request for its address.
#[test]
fn a_neighbour_that_is_not_there_ends_an_attempt_to_open_and_no_connection() {
    let undelivered = |net: &mut Net, id| {
        let sent = net.sent_by(End::A).pop().expect("something is under way");
        let (now, to) = (net.now(), sent.ip().dst);
        let event = LinkEvent::NotDelivered { to, id: 1, packet: &sent.packet };
        net.hosts.a.handle_link_event(now, LinkId(0), &event);
        let info = net.hosts.a.info(net.now(), id).ok();
        info.and_then(|info| info.closed)
    };
    let mut net = Net::new();
    net.cut();
    let opening = net.connect();
    assert_eq!(undelivered(&mut net, opening), Some(CloseReason::Unreachable));
    let mut pair = Pair::new();
    pair.net.cut();
    pair.send(End::A, b"on its way");
    assert_eq!(undelivered(&mut pair.net, pair.client), None);
    assert_eq!(pair.info(End::A).state, StateName::Established);
}
