use std::net::IpAddr;
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_core::endpoint::{ConnId, EndpointConfig, LinkConfig, ListenerId, Route};
use hopwise_core::ip::Prefix;
use hopwise_core::trace::{Lacking, TraceKind};
use hopwise_core::wire::{Flags, TcpOptions};
use hopwise_core::{Endpoint, NextHop};
use hopwise_testing::make;

use super::super::tests::packet;
use super::super::{Proxy, ProxyConfig};
use super::*;

mod crowd;
mod ports;

const FIXED: LinkId = LinkId(0);
const MOBILE: LinkId = LinkId(1);
const PORT: u16 = 5_001;

/// A TCP at either end and a proxy that cuts flows between them; packets take no time.
struct Path {
    now: Instant,
    proxy: Proxy,
    ends: [Endpoint; 2],
    addresses: [IpAddr; 2],
    /// All packets to and from the mobile are lost.
    is_faded: bool,
}

/// The second end has two addresses, as two mobiles have.
fn end(nth: u8, address: IpAddr) -> Endpoint {
    let everywhere = if address.is_ipv4() { "0.0.0.0/0" } else { "::/0" };
    let another = match address {
        IpAddr::V4(v4) => IpAddr::from((v4.to_bits() + 1).to_be_bytes()),
        IpAddr::V6(v6) => IpAddr::from((v6.to_bits() + (1 << 64)).to_be_bytes()),
    };
    let own = [address, another].map(Prefix::host);
    let link = LinkConfig::wire(0, 1500, own[..usize::from(nth)].to_vec());
    let to = everywhere.parse().expect("a prefix");
    let routes = vec![Route { to, link: LINK, via: NextHop::Link }];
    make::endpoint(EndpointConfig { routes, ..EndpointConfig::new(link, [nth; 32]) })
}

impl Path {
    fn new(agent: &str, addresses: [&str; 2]) -> Path {
        Path::with(agent, addresses, |_| {})
    }

    fn with(agent: &str, addresses: [&str; 2], change: impl FnOnce(&mut ProxyConfig)) -> Path {
        let mut config = ProxyConfig { trace_events: 1_000, ..ProxyConfig::new(FIXED, MOBILE, agent) };
        change(&mut config);
        let addresses = addresses.map(|text| text.parse().expect("an address"));
        let proxy = Proxy::new(config, Box::new(StandardAgents::default())).expect("an agent that there is");
        let ends = [(1, addresses[0]), (2, addresses[1])].map(|(nth, address)| end(nth, address));
        Path { now: Instant::from_millis(1), proxy, ends, addresses, is_faded: false }
    }

    fn v4() -> Path {
        Path::new("split:buffer=20000", ["10.0.0.1", "10.0.0.2"])
    }

    /// Carries packets until there are none.
    fn settle(&mut self) {
        let Path { now, proxy, ends, is_faded, .. } = self;
        let mut packet = Vec::new();
        loop {
            let mut is_quiet = true;
            for (link, end) in [FIXED, MOBILE].into_iter().zip(ends.iter_mut()) {
                let is_lost = *is_faded && link == MOBILE;
                packet.clear();
                while end.poll_transmit(*now, LINK, Payload::Inline, &mut packet).is_some() {
                    is_quiet = false;
                    if !is_lost {
                        proxy.handle_packet(*now, &Rx::new(link, &packet));
                    }
                    packet.clear();
                }
                while proxy.poll_transmit(*now, link, Payload::Inline, &mut packet).is_some() {
                    is_quiet = false;
                    if !is_lost {
                        end.handle_packet(*now, &Rx::new(LINK, &packet));
                    }
                    packet.clear();
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    /// Lets this time pass, timer by timer.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        loop {
            let of_ends = self.ends.iter().filter_map(Endpoint::poll_timeout);
            let due = of_ends.chain(self.proxy.poll_timeout()).min();
            let Some(due) = due.filter(|due| *due <= end) else { break };
            self.now = self.now.max(due);
            self.proxy.handle_timeout(self.now);
            self.ends.iter_mut().for_each(|end| end.handle_timeout(self.now));
            self.settle();
        }
        self.now = end;
    }

    fn listen(&mut self, side: usize) -> ListenerId {
        self.ends[side].listen(None, PORT, ListenOptions::default()).expect("a free port")
    }

    fn connect(&mut self, from: usize) -> ConnId {
        let to = SocketAddr::new(self.addresses[1 - from], PORT);
        self.ends[from].connect(self.now, to, &ConnectOptions::default()).expect("a connection")
    }

    /// A connection from the fixed end to the mobile, which has accepted.
    fn connected(&mut self) -> (ConnId, ConnId) {
        let listener = self.listen(1);
        let ours = self.connect(0);
        self.pass(Duration::from_millis(10));
        let theirs = self.ends[1].accept(self.now, listener).expect("it has come");
        (ours, theirs)
    }

    fn read_all(&mut self, side: usize, conn: ConnId) -> Vec<u8> {
        let (first, second) = self.ends[side].peek(conn);
        let all = [first, second].concat();
        let _ = self.ends[side].consume(self.now, conn, all.len() as u32);
        all
    }

    fn closed(&mut self, side: usize) -> Option<CloseReason> {
        let mut why = None;
        while let Some(event) = self.ends[side].poll_event() {
            if let Event::Connection(_, EventKind::Closed(reason)) = event {
                why = Some(reason);
            }
        }
        why
    }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|nth| (nth * 7 % 251) as u8).collect()
}

#[test]
fn what_either_end_sends_the_other_gets_whole_whoever_opened() {
    for (addresses, opener) in [(["10.0.0.1", "10.0.0.2"], 0), (["fd00::1", "fd00::2"], 1)] {
        let mut path = Path::new("split:buffer=20000", addresses);
        let listener = path.listen(1 - opener);
        let ours = path.connect(opener);
        path.pass(Duration::from_millis(10));
        let theirs = path.ends[1 - opener].accept(path.now, listener).expect("it has come");
        let data = bytes(15_000);
        assert_eq!(path.ends[opener].send(path.now, ours, &data), Ok(data.len()));
        assert_eq!(path.ends[1 - opener].send(path.now, theirs, &data[..300]), Ok(300));
        path.ends[opener].shutdown(path.now, ours).expect("it is open");
        path.pass(Duration::from_millis(500));
        assert_eq!(path.read_all(1 - opener, theirs), data);
        assert_eq!(path.read_all(opener, ours), data[..300]);
        // The other direction stays open until it is closed, too.
        path.ends[1 - opener].send(path.now, theirs, &data[..50]).expect("half-closed");
        path.pass(Duration::from_millis(500));
        assert_eq!(path.read_all(opener, ours), data[..50]);
        path.ends[1 - opener].close(path.now, theirs).expect("it is open");
        path.pass(Duration::from_secs(70));
        assert_eq!(path.closed(opener), Some(CloseReason::Finished));
        assert_eq!(path.proxy.counts().flows, 0, "and it is forgotten");
    }
}

#[test]
fn data_is_acknowledged_that_the_mobile_has_not_got_but_no_more_than_the_buffer_holds() {
    let mut path = Path::v4();
    let (ours, theirs) = path.connected();
    path.is_faded = true;
    let data = bytes(60_000);
    let sent = path.ends[0].send(path.now, ours, &data).expect("it is open");
    path.pass(Duration::from_secs(3));
    assert_eq!(path.ends[1].readable(theirs), 0);
    let acknowledged = path.ends[0].info(path.now, ours).expect("it lives").stats.bytes_acked;
    assert!((20_000..=40_000).contains(&acknowledged), "{acknowledged} of {sent}");
    path.is_faded = false;
    let mut came = Vec::new();
    for _ in 0..200 {
        path.pass(Duration::from_millis(500));
        came.extend(path.read_all(1, theirs));
    }
    assert_eq!(came, data[..sent]);
}

#[test]
fn an_end_that_refuses_or_resets_is_heard_of_by_the_other() {
    let mut path = Path::v4();
    path.connect(0);
    path.pass(Duration::from_millis(100));
    assert_eq!(path.closed(0), Some(CloseReason::Refused), "nobody listens");
    let (_, theirs) = path.connected();
    path.ends[1].abort(path.now, theirs).expect("it is open");
    path.pass(Duration::from_millis(100));
    assert_eq!(path.closed(0), Some(CloseReason::Reset));
    path.pass(Duration::from_secs(1));
    assert_eq!(path.proxy.counts().flows, 0);
}

#[test]
fn connections_that_are_cut_end_with_the_proxy() {
    let mut path = Path::v4();
    path.connected();
    path.proxy.let_go(path.now);
    path.pass(Duration::from_millis(100));
    assert_eq!([path.closed(0), path.closed(1)], [Some(CloseReason::Reset); 2]);
}

#[test]
fn a_flow_whose_beginning_was_not_seen_is_not_cut() {
    let mut path = Path::v4();
    let (ours, theirs) = {
        // Around the proxy.
        let listener = path.listen(1);
        let ours = path.connect(0);
        let mut packet = Vec::new();
        for _ in 0..3 {
            for (from, to) in [(0, 1), (1, 0)] {
                packet.clear();
                while path.ends[from].poll_transmit(path.now, LINK, Payload::Inline, &mut packet).is_some() {
                    path.ends[to].handle_packet(path.now, &Rx::new(LINK, &packet));
                    packet.clear();
                }
            }
        }
        (ours, path.ends[1].accept(path.now, listener).expect("it has come"))
    };
    path.ends[0].send(path.now, ours, b"late").expect("it is open");
    path.pass(Duration::from_millis(100));
    assert_eq!(path.read_all(1, theirs), b"late");
    let mut told = Vec::new();
    path.proxy.drain_trace(&mut |event| told.push(event.kind));
    assert!(told.contains(&TraceKind::Fallback(Lacking::Beginning)), "{told:?}");
}

#[test]
fn connections_that_nobody_answers_keep_no_other_from_being_cut() {
    let mut path = Path::v4();
    path.proxy.config.most_flows = 3;
    path.listen(1);
    path.is_faded = true;
    for _ in 0..10 {
        path.connect(0);
        path.settle();
    }
    let counts = path.proxy.counts();
    assert_eq!((counts.flows, counts.gave_way, counts.untouched), (3, 7, 0));
    path.is_faded = false;
    path.pass(Duration::from_secs(30));
    let before = path.proxy.counts();
    let mobile = path.addresses[1];
    let is_cut =
        |path: &Path| path.proxy.relays.of(mobile).filter(|(_, relay)| relay.unanswered.is_none()).count();
    assert_eq!((before.flows, is_cut(&path)), (3, 3), "{before:?}");
    // Flows that both ends know of never give way.
    path.connect(0);
    path.pass(Duration::from_secs(1));
    let counts = path.proxy.counts();
    assert_eq!((counts.flows, counts.gave_way), (3, before.gave_way));
}
