//! RFC 3561's rules as packet scripts: the input of a router and all its actions, line by line. Each file of
//! `tests/rfc3561` is one rule. The router is n1 (10.0.0.1). `tests/script/text.rs` describes the lines.

#[path = "script/text.rs"]
mod text;

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path as FilePath;
use std::time::Duration;

use hopwise_core::agent::{Path, PathEvent};
use hopwise_core::endpoint::PathSeam;
use hopwise_core::wire::{Ecn, IpHeader, IpView};
use hopwise_core::{Cast, Instant, LinkId, NextHop, QueueClass, Seq};
use hopwise_mesh::RoutingSetup;
use hopwise_mesh::aodv::messages::AodvMessage;
use hopwise_mesh::aodv::{Interface, PORT, Settings, routing};
use hopwise_mesh::{ControlMessage, Cx, RoutedPacket, Routing, RoutingOrder, RoutingVerdict, Undelivered};

use text::{Heard, name, node, print, read, time};

const LINK: LinkId = LinkId(0);

#[derive(Debug)]
struct NoConnections;

impl PathSeam for NoConnections {
    fn handle_path(&mut self, _: Instant, _: IpAddr, _: Option<(u16, u16)>, _: &PathEvent, _: &Path) {}

    fn ack_hints(&self, _: IpAddr, _: &mut dyn FnMut((u16, u16), Seq)) {}
}

/// A router, and its actions since the last check.
struct Stage {
    router: Box<dyn Routing>,
    now: Instant,
    done: Vec<String>,
}

impl Stage {
    fn new(settings: Settings, wakes_at: Instant) -> Stage {
        let interfaces = vec![Interface { link: LINK, address: node("n1") }];
        let setup = RoutingSetup { wakes_at, ..RoutingSetup::new(interfaces, 1) };
        Stage { router: routing(settings, setup), now: Instant::ZERO, done: Vec::new() }
    }

    fn act(&mut self, line: &str) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "<" => self.hear(rest),
            "ask" => return self.ask(rest),
            "send" => self.packet(&format!("n1>{rest}"), None),
            "pass" => {
                let (ends, from) = rest.split_once(" from ").expect("pass n3>n9 from n2");
                self.packet(ends, Some(node(from)));
            }
            "lost" => self.lost(rest),
            _ => self.wait(time(line.strip_prefix('+').unwrap_or_else(|| panic!("`{line}`")))),
        }
        self.drain();
    }

    fn hear(&mut self, rest: &str) {
        let (from, message) = rest.split_once(' ').expect("< n2 MESSAGE");
        let Heard { message, ttl, cast } = read(message);
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        let control = ControlMessage {
            link: LINK,
            from: Some(node(from).into()),
            cast,
            src: node(from).into(),
            dst: if cast == Cast::ToAll { Ipv4Addr::BROADCAST.into() } else { node("n1").into() },
            hop_limit: if cast == Cast::ToAll { ttl } else { 255 },
            message: &bytes,
        };
        self.router.handle_control(&Cx { now: self.now, endpoint: &NoConnections }, &control);
    }

    /// The node searches for that destination and has no reply yet. Other scripts cover its request.
    fn ask(&mut self, dst: &str) {
        self.packet(&format!("n1>{dst}"), None);
        self.drain();
        self.done.clear();
    }

    fn packet(&mut self, ends: &str, from: Option<Ipv4Addr>) {
        let (src, dst) = two(ends);
        let packet = data(src, dst);
        let routed = routed(&packet, from.map(IpAddr::V4));
        let verdict = self.router.route(&Cx { now: self.now, endpoint: &NoConnections }, &routed);
        self.done.push(match &verdict {
            RoutingVerdict::Forward { via: NextHop::Neighbour(IpAddr::V4(via)), .. } => {
                format!("{} DATA {ends}", name(*via))
            }
            RoutingVerdict::Forward { .. } | RoutingVerdict::Wrapped { .. } => panic!("{verdict:?}"),
            RoutingVerdict::Keep => "keep".to_owned(),
            RoutingVerdict::Drop(reason) => format!("drop {}", reason.name()),
        });
    }

    /// The link layer gave up a packet for a neighbour.
    fn lost(&mut self, rest: &str) {
        let (to, ends) = rest.split_once(' ').expect("lost n2 n3>n9");
        let (src, dst) = two(ends);
        let packet = data(src, dst);
        let is_own = src == node("n1");
        let routed = routed(&packet, (!is_own).then_some(src.into()));
        let cx = Cx { now: self.now, endpoint: &NoConnections };
        let kept = self.router.on_undelivered(&cx, (LINK, node(to).into()), &routed);
        self.done.push(if kept == Undelivered::Kept { "keep" } else { "drop undelivered" }.to_owned());
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.router.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.router.handle_timeout(&Cx { now: self.now, endpoint: &NoConnections });
            self.drain();
        }
        self.now = until;
    }

    fn drain(&mut self) {
        while let Some(order) = self.router.poll_order(self.now) {
            let line = match order {
                RoutingOrder::Send { to, class, packet, .. } => sent(to, class, &packet),
                RoutingOrder::Tell { peer: IpAddr::V4(peer), event, path, .. } => match path.hops_to_peer {
                    Some((hops, _)) => format!("tell {} {event:?} {hops}", name(peer)),
                    None => format!("tell {} {event:?}", name(peer)),
                },
                RoutingOrder::Reroute { via: IpAddr::V4(via), .. } => format!("reroute {}", name(via)),
                RoutingOrder::Dropped { reason, .. } => format!("drop {}", reason.name()),
                other => panic!("{other:?}"),
            };
            self.done.push(line);
        }
    }

    /// `n9 via n2`, or `n9 none`.
    fn route(&self, dst: &str) -> String {
        match self.router.next_hop(self.now, node(dst).into()) {
            Some((_, IpAddr::V4(via))) => {
                let hops = self.router.path(node(dst).into()).hops_to_peer.map_or(0, |(hops, _)| hops);
                format!("{dst} via {} hops {hops}", name(via))
            }
            _ => format!("{dst} none"),
        }
    }
}

fn sent(to: NextHop, class: QueueClass, packet: &[u8]) -> String {
    let view = IpView::parse(packet).expect("a packet");
    let to = match to {
        NextHop::Neighbour(IpAddr::V4(to)) => name(to),
        _ => "all".to_owned(),
    };
    if class == QueueClass::Data {
        let (IpAddr::V4(src), IpAddr::V4(dst)) = (view.src, view.dst) else { panic!("IPv4") };
        return format!("{to} DATA {}>{}", name(src), name(dst));
    }
    assert_eq!(view.payload[..2], PORT.to_be_bytes());
    let (message, _) = AodvMessage::parse(&view.payload[8..]).expect("what we write is a message");
    format!("{to} {}", print(&message, view.hop_limit))
}

fn two(ends: &str) -> (Ipv4Addr, Ipv4Addr) {
    let (src, dst) = ends.split_once('>').unwrap_or_else(|| panic!("`{ends}`: expected n3>n9"));
    (node(src), node(dst))
}

fn data(src: Ipv4Addr, dst: Ipv4Addr) -> Vec<u8> {
    let header = IpHeader {
        src: src.into(),
        dst: dst.into(),
        protocol: 253,
        hop_limit: 20,
        ecn: Ecn::NotEct,
        dscp: 0,
        dont_fragment: true,
        id: 0,
        source_route: None,
    };
    let mut packet = Vec::new();
    header.emit(0, &mut packet);
    packet
}

fn routed(packet: &[u8], from: Option<IpAddr>) -> RoutedPacket<'_> {
    let view = IpView::parse(packet).expect("a packet");
    RoutedPacket { src: view.src, dst: view.dst, from, hop_limit: view.hop_limit, id: 1, packet }
}

/// `set KEY VALUE` lines come first; `wakes 15s` is a node that has lost its numbers.
fn setting(settings: &mut Settings, line: &str) -> Option<Instant> {
    let words: Vec<_> = line.split(' ').collect();
    let is_on = words.get(1) == Some(&"on");
    match words[0] {
        "gratuitous" => settings.gratuitous = is_on,
        "destination_only" => settings.destination_only = is_on,
        "rrep_ack" => settings.rrep_ack = is_on,
        "local_repair" => settings.local_repair = is_on,
        "hello" => settings.hello = is_on,
        "wakes" => return Some(Instant::ZERO + time(words[1])),
        other => panic!("no setting `{other}`"),
    }
    None
}

fn play(script: &str) {
    let lines =
        script.lines().enumerate().map(|(nth, line)| (nth + 1, line.split('#').next().unwrap_or("").trim()));
    let lines: Vec<_> = lines.filter(|(_, line)| !line.is_empty()).collect();
    let mut settings = Settings { jitter: Duration::ZERO, ..Settings::rfc3561() };
    let mut wakes_at = Instant::ZERO;
    let (sets, acts): (Vec<_>, Vec<_>) = lines.into_iter().partition(|(_, line)| line.starts_with("set "));
    for (_, line) in sets {
        wakes_at = setting(&mut settings, &line[4..]).unwrap_or(wakes_at);
    }
    let mut stage = Stage::new(settings, wakes_at);
    let mut done = Vec::new().into_iter();
    for (nth, line) in acts {
        if let Some(expected) = line.strip_prefix("> ") {
            let found: Option<String> = done.next();
            assert_eq!(found.as_deref(), Some(expected), "line {nth}, then {:?}", done.collect::<Vec<_>>());
            continue;
        }
        let left: Vec<_> = done.collect();
        assert!(left.is_empty(), "before line {nth}: it also did {left:#?}");
        if let Some(route) = line.strip_prefix("? ") {
            let dst = route.split(' ').next().expect("a node");
            assert_eq!(stage.route(dst), route, "line {nth}");
        } else {
            stage.act(line);
        }
        done = std::mem::take(&mut stage.done).into_iter();
    }
    let left: Vec<_> = done.collect();
    assert!(left.is_empty(), "at the end it also did {left:#?}");
}

#[test]
fn every_rule_holds_as_its_script_says() {
    let folder = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("tests/rfc3561");
    let mut scripts: Vec<_> =
        fs::read_dir(folder).expect("the folder").map(|e| e.expect("a file").path()).collect();
    scripts.sort();
    assert!(scripts.len() >= 20, "{} scripts", scripts.len());
    let mut failed = Vec::new();
    for path in scripts {
        let text = fs::read_to_string(&path).expect("a script");
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if let Err(panic) = std::panic::catch_unwind(|| play(&text)) {
            let why = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "it broke".to_owned());
            failed.push(format!("{stem}: {why}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
