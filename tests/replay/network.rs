//! The routers of a network, and their messages.

use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::wire::{IpView, protocol};
use hopwise_core::{Cast, Instant};
use hopwise_mesh::aodv::rfc3561::Aodv;
use hopwise_mesh::aodv::{self, Interface, Key};
use hopwise_mesh::aodvv2::{self, Aodvv2};
use hopwise_mesh::constants::RuleSet;
use hopwise_mesh::{ControlMessage, Cx, Keys, OnDemand, RoutedPacket, RoutingOrder, RoutingSetup, Trust};

use crate::input::Bits;
use crate::routers::{LINK, NOBODY, address, trust};

/// The header of UDP.
const UDP: usize = 8;

/// The protocol and its settings.
#[derive(Clone, Copy)]
pub(crate) struct Net {
    pub(crate) is_aodv: bool,
    hello: bool,
    gratuitous: bool,
    ack_seq: bool,
}

/// A message with the parts of its packet that a check value may cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) src: Ipv4Addr,
    pub(crate) dst: Ipv4Addr,
    pub(crate) ttl: u8,
    pub(crate) bytes: Vec<u8>,
}

impl Net {
    pub(crate) fn of(byte: Bits) -> Net {
        let [is_aodv, hello, gratuitous, ack_seq] = [0, 1, 2, 3].map(|bit| byte.has(bit));
        Net { is_aodv, hello, gratuitous, ack_seq }
    }
}

pub(crate) fn cx(now: Instant) -> Cx<'static> {
    Cx { now, endpoint: &NOBODY }
}

/// A router with these keys: their numbers in messages, and their bytes.
pub(crate) fn router(net: Net, own: u8, keys: &[(u8, u8)]) -> Box<dyn OnDemand> {
    let keys = keys.iter().map(|(id, byte)| (*id, Key::new([*byte; 32]))).collect();
    router_with(net, own, Keys::new(keys, None).expect("one or two keys"))
}

pub(crate) fn router_with(net: Net, own: u8, keys: Keys) -> Box<dyn OnDemand> {
    let trust = Trust { keys: Some(keys), ..trust() };
    let interfaces = vec![Interface { link: LINK, address: address(own) }];
    let setup = RoutingSetup { trust, ..RoutingSetup::new(interfaces, 1) };
    if net.is_aodv {
        let settings = aodv::Settings {
            hello: net.hello,
            gratuitous: net.gratuitous,
            ack_seq: net.ack_seq,
            gtsm: false,
            most_routes: 64,
            ..aodv::Settings::of(RuleSet::Standard)
        };
        return Box::new(Aodv::new(settings, setup));
    }
    let settings = aodvv2::Settings {
        hello: net.hello,
        ack_seq: net.ack_seq,
        most_routes: 64,
        ..aodvv2::Settings::default()
    };
    Box::new(Aodvv2::new(settings, setup))
}

/// A program's packet.
pub(crate) fn routed(src: Ipv4Addr, dst: Ipv4Addr) -> RoutedPacket<'static> {
    RoutedPacket { src: src.into(), dst: dst.into(), from: None, hop_limit: 64, id: 1, packet: &[0; 40] }
}

/// All messages that a router sends now.
pub(crate) fn drain(router: &mut dyn OnDemand, now: Instant) -> Vec<Said> {
    let mut all = Vec::new();
    for _ in 0..10_000 {
        match router.poll_order(now) {
            Some(RoutingOrder::Send { packet, .. }) => all.extend(said(&packet)),
            Some(_) => {}
            None => return all,
        }
    }
    panic!("orders without end");
}

/// Returns the messages that a router sends until then.
pub(crate) fn pass(router: &mut dyn OnDemand, mut now: Instant, until: Instant) -> Vec<Said> {
    let mut all = drain(router, now);
    while let Some(due) = router.poll_timeout().filter(|due| *due <= until) {
        assert!(due > now, "a timer that stays due");
        now = due;
        router.handle_timeout(&cx(now));
        all.extend(drain(router, now));
    }
    router.handle_timeout(&cx(until));
    all
}

pub(crate) fn hear(router: &mut dyn OnDemand, now: Instant, said: &Said) {
    let control = ControlMessage {
        link: LINK,
        from: Some(said.src.into()),
        cast: if said.dst == address(1) { Cast::ToUs } else { Cast::ToAll },
        src: said.src.into(),
        dst: said.dst.into(),
        hop_limit: said.ttl,
        message: &said.bytes,
    };
    router.handle_control(&cx(now), &control);
}

fn said(packet: &[u8]) -> Option<Said> {
    let view = IpView::parse(packet).ok().filter(|view| view.protocol == protocol::UDP)?;
    let (IpAddr::V4(src), IpAddr::V4(dst)) = (view.src, view.dst) else { return None };
    Some(Said { src, dst, ttl: view.hop_limit, bytes: view.payload.get(UDP..)?.to_vec() })
}
