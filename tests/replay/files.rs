//! Any text is the file of a node, of a routing daemon or of a proxy, or a file that a daemon has left: the state of a
//! routing daemon, or old values of the system. A configuration is taken, or refused at a place inside of it. A router
//! of any configuration that is taken comes to rest between its timers.

use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_mesh::OnDemand;
use hopwise_node::fuzzing as node;
use hopwise_router::proxy::fuzzing as proxy;
use hopwise_router::route::fuzzing as route;

use crate::input::Input;
use crate::network::{cx, drain, routed};
use crate::refusals::check_refusal;

/// Timers of one router.
const MOST_TIMERS: usize = 200;

pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let kind = input.octet() % 5;
    let times = if kind == 3 {
        [seconds(&mut input), seconds(&mut input), seconds(&mut input)]
    } else {
        [Duration::ZERO; 3]
    };
    let wall = if kind == 3 { u64::from(input.long()) << 32 } else { 0 };
    let Ok(text) = str::from_utf8(input.rest()) else { return };
    match kind {
        0 => check_refusal(text, node::file(text).err()),
        1 => match route::file(text) {
            Ok(mut router) => comes_to_rest(&mut *router),
            Err(refused) => check_refusal(text, Some(refused)),
        },
        2 => check_refusal(text, proxy::file(text).err()),
        3 => route::state(text, times, wall),
        _ => hopwise_host::fuzzing::left(text),
    }
}

/// Up to the longest time that a file system has.
fn seconds(input: &mut Input<'_>) -> Duration {
    let word = u64::from(input.word());
    Duration::from_secs(word << (input.octet() % 48))
}

fn comes_to_rest(router: &mut dyn OnDemand) {
    let mut now = Instant::from_millis(1);
    router.handle_timeout(&cx(now));
    let _ = router.route(&cx(now), &routed(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 9)));
    for _ in 0..MOST_TIMERS {
        drop(drain(router, now));
        let Some(due) = router.poll_timeout() else { return };
        assert!(due > now, "a timer that stays due");
        now = due;
        router.handle_timeout(&cx(now));
    }
}
