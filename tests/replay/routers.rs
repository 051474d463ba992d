//! Any bytes, taken as events of a router: messages from neighbours, packets, lost links, time. After any of these the
//! router's actions are sound, its memory is bounded, and its timers end.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::agent::{Path, PathEvent};
use hopwise_core::endpoint::PathSeam;
use hopwise_core::ip::Prefix;
use hopwise_core::wire::IpView;
use hopwise_core::{Cast, Instant, LinkId, Seq};
use hopwise_mesh::{ControlMessage, Cx, OnDemand, RoutedPacket, Routing, RoutingOrder, Trust};

pub(crate) const LINK: LinkId = LinkId(0);

/// A node's connections.
pub(crate) static NOBODY: Ends = Ends;

#[derive(Debug)]
pub(crate) struct Ends;

impl PathSeam for Ends {
    fn handle_path(&mut self, _: Instant, _: IpAddr, _: Option<(u16, u16)>, _: &PathEvent, _: &Path) {}

    fn ack_hints(&self, _: IpAddr, sink: &mut dyn FnMut((u16, u16), Seq)) {
        sink((40_000, 5_001), Seq(7));
    }
}

pub(crate) fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

/// The parts that differ between protocols: the hops of its messages, and the checks of the messages that it writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    pub(crate) hop_limit: Option<u8>,
    pub(crate) check: fn(&[u8]),
}

/// The limits on a router's neighbours: nothing outside of the network, and no more than a datagram holds.
pub(crate) fn trust() -> Trust {
    Trust { network: Some(network()), ..Trust::default() }
}

fn network() -> Prefix {
    Prefix::new(address(0).into(), 24).expect("a network")
}

/// Checks that all routes lead into the network.
impl<R: OnDemand> AsRouter for R {
    fn router(&mut self) -> &mut dyn Routing {
        self
    }

    fn look(&self, now: Instant) {
        for (dst, next_hop, ..) in self.routes(now) {
            assert!(
                [dst, next_hop].iter().all(|end| network().contains((*end).into())),
                "{dst} via {next_hop}"
            );
        }
    }
}

/// A router that can be looked at after each event.
pub(crate) trait AsRouter {
    fn router(&mut self) -> &mut dyn Routing;
    fn look(&self, now: Instant);
}

/// Data of an event; after a length of 255 two bytes hold the length, for whole datagrams.
pub(crate) fn data_of(len: u8, behind: &[u8]) -> (&[u8], &[u8]) {
    let (len, behind) = match (len, behind.split_first_chunk::<2>()) {
        (u8::MAX, Some((len, behind))) => (usize::from(u16::from_be_bytes(*len)), behind),
        _ => (usize::from(len), behind),
    };
    behind.split_at(len.min(behind.len()))
}

/// Applies all events to a router.
pub(crate) fn drive<R: AsRouter>(it: &mut R, manners: Manners, mut rest: &[u8]) {
    let mut now = Instant::from_millis(1);
    while let [what, who, len, behind @ ..] = rest {
        let (data, behind) = data_of(*len, behind);
        rest = behind;
        act(it.router(), manners, &mut now, (*what, *who), data);
        drain(it.router(), manners, now);
        it.look(now);
    }
    let router = it.router();
    // Without input a router comes to rest, except for its periodic actions.
    for _ in 0..1_000 {
        let Some(at) = router.poll_timeout() else { return };
        assert!(at > now, "a timer that stays due");
        now = at;
        router.handle_timeout(&Cx { now, endpoint: &Ends });
        drain(router, manners, now);
    }
}

fn act(router: &mut dyn Routing, manners: Manners, now: &mut Instant, (what, who): (u8, u8), data: &[u8]) {
    let from = address(who % 8 + 2);
    let routed = |dst: u8, from| RoutedPacket {
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
            let control = ControlMessage {
                link: LINK,
                from: (what & 64 == 0).then(|| from.into()),
                cast: if what % 6 == 0 { Cast::ToAll } else { Cast::ToUs },
                src: from.into(),
                dst: address(1).into(),
                hop_limit: manners.hop_limit.unwrap_or(what / 6),
                message: data,
            };
            router.handle_control(&Cx { now: *now, endpoint: &Ends }, &control);
        }
        2 => drop(router.route(&Cx { now: *now, endpoint: &Ends }, &routed(dst, None))),
        3 => drop(router.route(&Cx { now: *now, endpoint: &Ends }, &routed(dst, Some(from.into())))),
        4 => {
            let back = (who & 128 != 0).then(|| from.into());
            let cx = Cx { now: *now, endpoint: &Ends };
            let _ = router.on_undelivered(&cx, (LINK, from.into()), &routed(dst, back));
        }
        _ => {
            let until = *now + Duration::from_millis(u64::from(who) * 40);
            while let Some(at) = router.poll_timeout().filter(|at| *at <= until) {
                assert!(at > *now, "a timer that stays due");
                *now = at;
                router.handle_timeout(&Cx { now: *now, endpoint: &Ends });
                drain(router, manners, *now);
            }
            *now = until;
            router.handle_timeout(&Cx { now: *now, endpoint: &Ends });
        }
    }
}

fn drain(router: &mut dyn Routing, manners: Manners, now: Instant) {
    for _ in 0..10_000 {
        match router.poll_order(now) {
            Some(RoutingOrder::Send { packet, .. }) => check(&packet, manners),
            Some(_) => {}
            None => return,
        }
    }
    panic!("orders without end");
}

/// Checks that a sent packet is one that was kept, or a message of the protocol.
fn check(packet: &[u8], manners: Manners) {
    let Ok(view) = IpView::parse(packet) else { return };
    if view.src == IpAddr::V4(address(1)) && view.protocol == 17 {
        (manners.check)(&view.payload[8..]);
    }
}
