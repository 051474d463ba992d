//! Replies that follow lost ones.

use super::*;

/// The first reply is lost after node 0. The second reply has an equal number, since the source has not learned it.
#[test]
fn a_destinations_second_reply_goes_on_once_the_route_of_the_first_has_run_out() {
    let mut alone = Alone::new(settings());
    for (id, after) in [(1, 0), (2, 10)] {
        alone.now += seconds(after);
        alone.hear(3, Cast::ToAll, &bytes_of(&AodvMessage::Rreq(request(id, 3, 2, Some(5))), &[]));
        let rrep = Rrep {
            is_repair: false,
            wants_ack: false,
            prefix_size: 0,
            hop_count: 0,
            dst: address(2),
            // Node 0's own number of a route that has run out is one higher, and the request tells of it.
            dst_seq: 4 + id,
            origin: address(3),
            lifetime_ms: 6_000,
        };
        let sent = messages(&alone.hear_message(2, &AodvMessage::Rrep(rrep)));
        let to = NextHop::Neighbour(address(3).into());
        assert!(matches!(sent[..], [(next, AodvMessage::Rrep(_))] if next == to), "{sent:?}");
    }
}
