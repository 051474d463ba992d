//! Any bytes, taken as what happens to a router: messages from neighbours, packets, lost links, time. Whatever comes,
//! what the router then wants is sound, its memory is bounded, and its timers end.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::agent::{Path, PathEvent};
use hopwise_core::endpoint::PathSeam;
use hopwise_core::wire::IpView;
use hopwise_core::{Cast, Instant, LinkId, Seq};
use hopwise_mesh::aodv::messages::Message;
use hopwise_mesh::aodv::{Config, Interface, Key, Rules, Settings, routing};
use hopwise_mesh::{Control, Cx, Order, Routed, Routing};

const LINK: LinkId = LinkId(0);

#[derive(Debug)]
struct Ends;

impl PathSeam for Ends {
    fn handle_path(&mut self, _: Instant, _: IpAddr, _: Option<(u16, u16)>, _: &PathEvent, _: &Path) {}

    fn ack_hints(&self, _: Instant, _: IpAddr, sink: &mut dyn FnMut((u16, u16), Seq)) {
        sink((40_000, 5_001), Seq(7));
    }
}

fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn router(byte: u8) -> Box<dyn Routing> {
    let rules = if byte & 1 == 0 { Rules::Rfc3561 } else { Rules::Ns2 };
    let settings = Settings {
        hello: byte & 2 != 0,
        rrep_ack: byte & 4 != 0,
        gratuitous: byte & 8 != 0,
        ack_seq: byte & 16 != 0,
        key: (byte & 32 != 0).then(|| Key::new([1; 32])),
        most_routes: 64,
        ..Settings::of(rules)
    };
    let wakes_at = if byte & 64 != 0 { Instant::from_secs(15) } else { Instant::ZERO };
    let interfaces = vec![Interface { link: LINK, address: address(1) }];
    routing(Config { settings, interfaces, serves: Vec::new(), seed: 1, counter: 0, wakes_at })
}

pub(crate) fn replay(bytes: &[u8]) {
    let Some((first, mut rest)) = bytes.split_first() else { return };
    let mut router = router(*first);
    let mut now = Instant::from_millis(1);
    while let [what, who, len, behind @ ..] = rest {
        let (data, behind) = behind.split_at(usize::from(*len).min(behind.len()));
        rest = behind;
        act(&mut *router, &mut now, (*what, *who), data);
        drain(&mut *router, now);
    }
    // Left alone it comes to rest, but for what it does every so often.
    for _ in 0..1_000 {
        let Some(at) = router.poll_timeout() else { return };
        assert!(at > now, "a timer that stays due");
        now = at;
        router.handle_timeout(&Cx { now, endpoint: &Ends });
        drain(&mut *router, now);
    }
}

fn act(router: &mut dyn Routing, now: &mut Instant, (what, who): (u8, u8), data: &[u8]) {
    let from = address(who % 8 + 2);
    let routed = |dst: u8, from| Routed {
        src: address(who % 8 + 1).into(),
        dst: address(dst).into(),
        from,
        hop_limit: 20,
        id: 1,
        packet: data,
    };
    let dst = data.first().copied().unwrap_or(9) % 16 + 2;
    match what % 6 {
        0 | 1 => {
            let control = Control {
                link: LINK,
                from: (what & 64 == 0).then(|| from.into()),
                cast: if what % 6 == 0 { Cast::ToAll } else { Cast::ToUs },
                src: from.into(),
                dst: address(1).into(),
                hop_limit: what / 6,
                message: data,
            };
            router.handle_control(&Cx { now: *now, endpoint: &Ends }, &control);
        }
        2 => drop(router.route(&Cx { now: *now, endpoint: &Ends }, &routed(dst, None))),
        3 => drop(router.route(&Cx { now: *now, endpoint: &Ends }, &routed(dst, Some(from.into())))),
        4 => {
            let back = (who & 128 != 0).then(|| from.into());
            let cx = Cx { now: *now, endpoint: &Ends };
            let _ = router.on_undelivered(&cx, LINK, from.into(), &routed(dst, back));
        }
        _ => {
            let until = *now + Duration::from_millis(u64::from(who) * 40);
            while let Some(at) = router.poll_timeout().filter(|at| *at <= until) {
                assert!(at > *now, "a timer that stays due");
                *now = at;
                router.handle_timeout(&Cx { now: *now, endpoint: &Ends });
                drain(router, *now);
            }
            *now = until;
            router.handle_timeout(&Cx { now: *now, endpoint: &Ends });
        }
    }
}

fn drain(router: &mut dyn Routing, now: Instant) {
    for _ in 0..10_000 {
        match router.poll_order(now) {
            Some(Order::Send { packet, .. }) => check(&packet),
            Some(_) => {}
            None => return,
        }
    }
    panic!("orders without end");
}

/// What is sent is a packet that was kept, or a message that reads as it was written.
fn check(packet: &[u8]) {
    let Ok(view) = IpView::parse(packet) else { return };
    if view.src == IpAddr::V4(address(1)) && view.protocol == 17 {
        let (message, extensions) = Message::parse(&view.payload[8..]).expect("a message of ours");
        let mut again = Vec::new();
        message.emit(&mut again);
        again.extend(extensions.bytes());
        assert_eq!(again, view.payload[8..]);
    }
}
