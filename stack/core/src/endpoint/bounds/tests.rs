mod floods;
mod full_table;
mod memory;
mod sources;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::super::{ConnId, ConnectOptions, Cookies, EndpointConfig, LinkConfig, ListenOptions, ListenerId};
use super::*;
use crate::agent::{
    AgentMaker, AgentSpecs, BadSpec, MakeReceiver, MakeSenders, MakeShadows, Owner as SenderOwner,
    SenderAgents,
};
use crate::secrets::Secrets;
use crate::tcp::connection::tests::{Each, Ten};
use crate::tcp::cx::LEAST_BYTES;
use crate::trace::DropReason;
use crate::wire::{Checksums, Flags, IpHeader, IpView, TcpHeader, TcpOptions, TcpView, protocol};
use crate::{LinkId, Machine, Payload, Rx, Seq};

const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const THEIRS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));
const PORT: u16 = 80;

struct Plain;

impl AgentMaker for Plain {
    fn receiver(&self, _: &str) -> Result<MakeReceiver, BadSpec> {
        Ok(Arc::new(|| Box::new(Each)))
    }
    fn shadows(&self, _: &str) -> Result<MakeShadows, BadSpec> {
        Ok(Arc::new(Vec::new))
    }
    fn senders(&self, _: &str) -> Result<MakeSenders, BadSpec> {
        Ok(Arc::new(|_| SenderAgents { owner: SenderOwner::Alone(Box::new(Ten)), others: Box::default() }))
    }
    fn default_specs(&self) -> AgentSpecs {
        let any = || "any".into();
        AgentSpecs { receiver: any(), senders: any(), shadows: any() }
    }
}

/// A server, and peers at ports of one address that a test controls.
struct Host {
    endpoint: Endpoint,
    listener: ListenerId,
    now: Instant,
    /// The peer that speaks.
    peer: IpAddr,
    /// The segments that left: port of the peer, number, flags and length.
    left: Vec<(u16, Seq, Flags, usize)>,
    /// The window of the newest of them.
    window: u16,
}

impl Host {
    fn new(bounds: Bounds) -> Host {
        Host::with(bounds, ListenOptions::default())
    }

    fn with(bounds: Bounds, options: ListenOptions) -> Host {
        let subnet = "10.0.0.1/24".parse().expect("a prefix");
        let config = EndpointConfig {
            bounds,
            ..EndpointConfig::new(LinkConfig::wire(0, 1500, vec![subnet]), [7; 32])
        };
        let mut endpoint = Endpoint::new(config, Box::new(Plain)).expect("the specs are not looked at");
        let listener = endpoint.listen(None, PORT, options).expect("the port is free");
        let now = Instant::from_secs(100);
        Host { endpoint, listener, now, peer: THEIRS, left: Vec::new(), window: 0 }
    }

    fn say(&mut self, port: u16, (seq, ack): (u32, Seq), flags: Flags, window: u16, payload: &[u8]) {
        let options = TcpOptions::default();
        let header = TcpHeader {
            src_port: port,
            dst_port: PORT,
            seq: Seq(seq),
            ack,
            flags,
            window,
            urgent: 0,
            options: &options,
        };
        let ip = IpHeader::plain(self.peer, OURS, protocol::TCP);
        let mut packet = Vec::new();
        ip.emit(header.len() + payload.len(), &mut packet);
        header.emit(self.peer, OURS, (payload, &[]), Checksums::Verify, &mut packet);
        self.endpoint.handle_packet(self.now, &Rx::new(LinkId(0), &packet));
        self.send();
    }

    fn send(&mut self) {
        let mut out = Vec::new();
        while self.endpoint.poll_transmit(self.now, LinkId(0), Payload::Inline, &mut out).is_some() {
            let ip = IpView::parse(&out).expect("a packet");
            let tcp = TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Verify).expect("a segment");
            self.window = tcp.window;
            self.left.push((tcp.dst_port, tcp.seq, tcp.flags, tcp.payload.len()));
            out.clear();
        }
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.endpoint.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.endpoint.handle_timeout(self.now);
            self.send();
        }
        self.now = until;
    }

    /// Opens a connection with this window of the peer; also returns the number after our SYN.
    fn open(&mut self, port: u16, window: u16) -> (ConnId, Seq) {
        self.open_unless_refused(port, window).expect("it has come in")
    }

    fn open_unless_refused(&mut self, port: u16, window: u16) -> Option<(ConnId, Seq)> {
        let before = self.endpoint.drops(DropReason::NoMemory);
        self.say(port, (0, Seq(0)), Flags::SYN, window, &[]);
        if self.endpoint.drops(DropReason::NoMemory) > before {
            return None;
        }
        // RSTs of connections that gave way may follow it.
        let ours = self.left.iter().rfind(|(to, ..)| *to == port).expect("a SYN-ACK").1 + 1;
        self.say(port, (1, ours), Flags::ACK, window, &[]);
        Some((self.endpoint.accept(self.now, self.listener).expect("it has come in"), ours))
    }

    fn write(&mut self, id: ConnId, bytes: usize) -> usize {
        let taken = self.endpoint.send(self.now, id, &vec![7; bytes]).unwrap_or(0);
        self.send();
        taken
    }

    /// The program has answered and left, and the peer takes no data.
    fn stuck(&mut self, port: u16, bytes: usize) {
        let (id, _) = self.open(port, 0);
        self.write(id, bytes);
        self.close(id);
    }

    fn close(&mut self, id: ConnId) {
        self.endpoint.close(self.now, id).expect("it is held");
        self.send();
    }

    /// The program leaves connections that are over.
    fn close_what_is_over(&mut self) {
        let ids: Vec<ConnId> = self.endpoint.ids().collect();
        for id in ids {
            if self.endpoint.state(id).is_some_and(|(_, reason)| reason.is_some()) {
                self.close(id);
            }
        }
    }

    fn resets(&self) -> Vec<u16> {
        self.left.iter().filter(|(.., flags, _)| flags.contains(Flags::RST)).map(|(port, ..)| *port).collect()
    }

    /// Compares the account with every connection.
    fn check(&self) {
        let Endpoint { table, account, .. } = &self.endpoint;
        let all: u64 = table.iter().map(|(_, entry)| u64::from(entry.conn.buffered())).sum();
        assert!(
            account.bytes <= all,
            "sends grow what is remembered of segments; all else is counted at once"
        );
        let orphan_bytes = table.iter().map(|(_, entry)| entry.footprint.orphan_bytes()).sum::<u64>();
        assert_eq!(account.orphan_bytes, orphan_bytes);
        for class in [
            Class::Stuck,
            Class::Orphan,
            Class::Holder,
            Class::Live,
            Class::TimeWait,
            Class::Over,
            Class::Gone,
        ] {
            let members = &account.members[class as usize];
            for (index, slot) in (0u32..).zip(members) {
                let footprint = table.get(*slot).expect("it is in the table").footprint;
                assert_eq!((footprint.class, footprint.index), (class, index));
            }
            let counted = table.iter().filter(|(_, entry)| entry.footprint.class == class).count();
            assert_eq!(members.len(), counted, "{class:?}");
        }
        if let Some(shares) = &account.shares {
            assert_eq!(**shares, shares_of(table));
        }
    }
}

fn key() -> KeyedState {
    Secrets::new([7; 32]).keyed_state()
}

fn bounds() -> Bounds {
    Bounds { orphans: 10, orphan_bytes: 1 << 30, time_waits: 10, buffer_bytes: 1 << 30 }
}

#[test]
fn of_too_many_orphans_those_go_first_whose_peer_takes_nothing() {
    let mut host = Host::new(bounds());
    let (healthy, _) = host.open(999, 60_000);
    host.close(healthy);
    for port in 1000..1015 {
        host.wait(Duration::from_millis(1));
        host.stuck(port, 5000);
        host.check();
    }
    assert_eq!(host.endpoint.holds().orphans, 10);
    assert_eq!(host.resets(), [1000, 1001, 1002, 1003, 1004, 1005], "the oldest of them");
    assert_eq!(host.endpoint.gave_way(Scarce::Orphans), 6);
}

#[test]
fn orphans_whose_buffers_are_too_large_give_way() {
    let mut host = Host::new(Bounds { orphans: 1000, orphan_bytes: 200_000, ..bounds() });
    for port in 1000..1040 {
        host.stuck(port, 20_000);
        host.check();
        assert!(host.endpoint.holds().orphan_bytes <= 200_000);
    }
    assert!(host.endpoint.gave_way(Scarce::OrphanBytes) > 20);
    assert_eq!(host.endpoint.holds().buffer_bytes, host.endpoint.holds().orphan_bytes);
}

#[test]
fn an_orphan_that_waits_for_its_peers_end_gives_way_too() {
    let mut host = Host::new(bounds());
    for port in 1000..1012 {
        host.wait(Duration::from_millis(1));
        let (id, _) = host.open(port, 60_000);
        host.close(id);
        let fin = host.left.last().expect("a FIN").1 + 1;
        host.say(port, (1, fin), Flags::ACK, 60_000, &[]);
    }
    host.check();
    assert_eq!((host.endpoint.holds().orphans, host.resets()), (10, vec![1000, 1001]));
}

#[test]
fn the_oldest_time_wait_ends_early() {
    let mut host = Host::new(bounds());
    for port in 1000..1015 {
        let (id, _) = host.open(port, 60_000);
        host.close(id);
        let fin = host.left.last().expect("a FIN").1 + 1;
        host.say(port, (1, fin), Flags::ACK | Flags::FIN, 60_000, &[]);
        host.check();
    }
    assert_eq!((host.endpoint.holds().time_waits, host.endpoint.connections()), (10, 10));
    assert_eq!((host.endpoint.gave_way(Scarce::TimeWaits), host.resets()), (5, vec![]));
}

#[test]
fn a_host_that_closes_everything_lets_all_of_it_finish() {
    let mut host = Host::new(bounds());
    for port in 1000..1020 {
        host.open(port, 60_000);
    }
    host.endpoint.close_all(host.now);
    host.send();
    host.check();
    assert_eq!((host.endpoint.holds().orphans, host.resets()), (20, vec![]));
}

#[test]
fn a_handshake_that_nobody_answers_makes_room_for_a_new_one() {
    let mut host = Host::with(bounds(), ListenOptions { half_open: 8, ..ListenOptions::default() });
    for port in 1000..1008 {
        host.say(port, (0, Seq(0)), Flags::SYN, 60_000, &[]);
    }
    host.wait(Duration::from_secs(1));
    host.say(2000, (0, Seq(0)), Flags::SYN, 60_000, &[]);
    assert_eq!(host.endpoint.gave_way(Scarce::Handshakes), 0, "they may still be answered: it gets a cookie");
    host.wait(Duration::from_secs(3));
    for port in 3000..3004 {
        host.say(port, (0, Seq(0)), Flags::SYN, 60_000, &[]);
    }
    assert_eq!((host.endpoint.gave_way(Scarce::Handshakes), host.endpoint.connections()), (4, 8));
    assert_eq!(host.resets(), [], "the address may be made up");
    let ours = host.left.iter().rfind(|(port, ..)| *port == 3003).expect("a SYN-ACK").1 + 1;
    host.say(3003, (1, ours), Flags::ACK, 60_000, &[]);
    assert!(host.endpoint.accept(host.now, host.listener).is_some());
}

#[test]
fn a_listener_without_cookies_takes_new_handshakes_too() {
    let options = ListenOptions { half_open: 1, cookies: Cookies::Never, ..ListenOptions::default() };
    let mut host = Host::with(bounds(), options);
    host.say(1000, (0, Seq(0)), Flags::SYN, 60_000, &[]);
    host.say(1001, (0, Seq(0)), Flags::SYN, 60_000, &[]);
    assert_eq!(host.endpoint.drops(DropReason::SynQueueFull), 1);
    host.wait(Duration::from_secs(4));
    let (id, _) = host.open(1002, 60_000);
    assert_eq!(host.endpoint.flow(id).map(|flow| flow.remote), Some(SocketAddr::new(THEIRS, 1002)));
}

#[test]
fn a_bound_is_shared_out_so_that_nothing_is_lost() {
    let whole = Bounds { orphans: 10, orphan_bytes: 101, time_waits: 3, buffer_bytes: 7 };
    let part = Bounds { orphans: 3, orphan_bytes: 26, time_waits: 1, buffer_bytes: 2 };
    assert_eq!((whole.of_one_in(4), whole.of_one_in(0)), (part, whole));
}

#[derive(Clone, Debug)]
enum Step {
    Open { window: u16, bytes: usize },
    Hear { nth: usize, window: u16 },
    Fin(usize),
    Close(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (prop::sample::select(vec![0, 1000, 60_000]), 0..80_000_usize)
            .prop_map(|(window, bytes)| Step::Open { window, bytes }),
        3 => (0..64_usize, prop::sample::select(vec![0, 60_000])).prop_map(|(nth, window)| Step::Hear { nth, window }),
        1 => (0..64_usize).prop_map(Step::Fin),
        3 => (0..64_usize).prop_map(Step::Close),
        2 => (0..8000_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn classes_hold_what_they_say_and_no_more_than_is_allowed(steps in prop::collection::vec(step(), 1..120)) {
        let allowed = Bounds { orphans: 6, orphan_bytes: 200_000, time_waits: 3, buffer_bytes: 600_000 };
        let mut host = Host::new(allowed);
        let mut open: Vec<(ConnId, u16)> = Vec::new();
        for (step, port) in steps.into_iter().zip(1000..) {
            match step {
                Step::Open { window, bytes } => {
                    // If the excess is held by connections that cannot give way, no new one is taken.
                    let Some((id, _)) = host.open_unless_refused(port, window) else { continue };
                    host.write(id, bytes);
                    open.push((id, port));
                }
                Step::Hear { nth, window } => {
                    let Some((_, port)) = open.get(nth).copied() else { continue };
                    // All segments sent on it have arrived.
                    let of_it = host.left.iter().filter(|(to, ..)| *to == port);
                    let end = of_it.map(|(_, seq, flags, len)| {
                        *seq + *len as u32 + u32::from(flags.intersects(Flags::SYN | Flags::FIN))
                    });
                    let Some(end) = end.reduce(Seq::max) else { continue };
                    host.say(port, (1, end), Flags::ACK, window, &[]);
                }
                Step::Fin(nth) => {
                    let Some((_, port)) = open.get(nth).copied() else { continue };
                    let ours = host.left.iter().rfind(|(to, ..)| *to == port).expect("a SYN-ACK").1;
                    host.say(port, (1, ours), Flags::ACK | Flags::FIN, 60_000, &[]);
                }
                Step::Close(nth) => {
                    if nth < open.len() {
                        let (id, _) = open.remove(nth);
                        let _ = host.endpoint.close(host.now, id);
                        host.send();
                    }
                }
                Step::Wait(ms) => host.wait(Duration::from_millis(ms)),
            }
            host.check();
            let held = host.endpoint.holds();
            prop_assert!(held.orphans <= allowed.orphans && held.orphan_bytes <= allowed.orphan_bytes);
            prop_assert!(held.time_waits <= allowed.time_waits);
        }
    }
}
