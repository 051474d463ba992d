//! Every receiver agent with every sender list: all bytes arrive, exactly, and in bounded time.

mod air;

use std::sync::Arc;
use std::time::Duration;

use hopwise_agents::Profile;
use hopwise_agents::param::DefaultValue;
use hopwise_agents::registry::{self, Descriptor, Kind};
use hopwise_agents::spec::parse_receiver;
use hopwise_core::agent::{AckRule, By, Why};
use hopwise_core::endpoint::{
    AgentChoice, ConnId, ConnectOptions, EndpointConfig, LinkConfig, ListenOptions, RecvError,
};
use hopwise_core::tcp::{Options, TcpConfig};
use hopwise_core::trace::TraceKind;
use hopwise_core::{Endpoint, Instant};
use hopwise_testing::make::endpoint;
use hopwise_testing::memory::{End, PathConfig, TwoHosts};

const BYTES: usize = 60_000;

/// A spec of the agent that is complete: one with a needed parameter gets a value, a wrapper gets something inside.
fn plain(agent: &Descriptor) -> String {
    let needed = agent.params.iter().any(|param| param.default == DefaultValue::Required);
    let (inner, given) = (if agent.wraps() { "(delayed)" } else { "" }, if needed { ":4" } else { "" });
    format!("{}{inner}{given}", agent.name)
}

fn receivers() -> Vec<String> {
    let plain = registry::all().filter(|agent| agent.kind() == Kind::Receiver).map(plain);
    let others =
        ["delayed:d=4,hold=400ms", "dup-count(immediate)", "dup-count(dca:hybrid)", "tda:early=1,repeat=on"];
    plain.chain(others.map(Into::into)).collect()
}

/// Lists with each owner of cwnd alone, with each narrower, and with all of them.
fn sender_lists() -> Vec<String> {
    let senders = registry::all().filter(|agent| agent.kind() == Kind::Sender);
    let (owners, narrowers): (Vec<_>, Vec<_>) = senders.partition(|agent| agent.owns_cwnd());
    let narrowers: Vec<String> = narrowers.iter().map(|agent| plain(agent)).collect();
    let mut lists = Vec::new();
    for owner in owners.iter().map(|agent| plain(agent)) {
        lists.push(format!("[{owner}]"));
        lists.extend(narrowers.iter().map(|narrower| format!("[{owner}, {narrower}]")));
        lists.push(format!("[{owner}, {}]", narrowers.join(", ")));
        lists.push(format!("[{owner}, tell-cwnd:window]"));
        lists.push(format!("[{owner}, limit:4, tell-cwnd:raw]"));
    }
    lists
}

/// A host on a path of five hops: agents that use the length find it neither short nor long.
fn host(address: &str, key: u8) -> Endpoint {
    let link = LinkConfig::wire(0, 1500, vec![address.parse().expect("a prefix")]);
    let mut config = EndpointConfig::new(link, [key; 32]);
    let mut tcp = TcpConfig::modern();
    tcp.hops.configured = Some(5);
    config.tcp = Arc::new(tcp);
    endpoint(config)
}

/// Two hosts, both with the pair of agents under test, and a connection between them.
struct Pair {
    hosts: TwoHosts<Endpoint>,
    client: ConnId,
    server: ConnId,
    name: String,
}

impl Pair {
    fn connect(receiver: &str, senders: &str, path: PathConfig, seed: u64) -> Pair {
        let [receiver, senders] = [receiver, senders].map(str::to_owned);
        let name = format!("{receiver} with {senders}, seed {seed}");
        let agents =
            AgentChoice { receiver: Some(receiver), senders: Some(senders), ..AgentChoice::default() };
        Pair::with(agents, path, name, seed)
    }

    fn with(agents: AgentChoice, path: PathConfig, name: String, seed: u64) -> Pair {
        let mut hosts = TwoHosts::new(host("10.0.0.1/24", 1), host("10.0.0.2/24", 2), path, path, seed);
        let options = ListenOptions { agents: agents.clone(), ..ListenOptions::default() };
        let listener = hosts.b.listen(None, 7, options).expect("the port is free");
        let options = ConnectOptions { agents, ..ConnectOptions::default() };
        let client = hosts.a.connect(Instant::ZERO, "10.0.0.2:7".parse().expect("a socket"), &options);
        let client = client.expect("a route");
        let mut server = None;
        hosts.run(Instant::from_secs(60), |hosts| {
            server = server.or_else(|| hosts.b.accept(hosts.now(), listener));
            server.is_some()
        });
        let server = server.unwrap_or_else(|| panic!("{name}: no handshake within a minute"));
        Pair { hosts, client, server, name }
    }

    fn without_nagle(&mut self) {
        let now = self.hosts.now();
        for (end, id) in [(End::A, self.client), (End::B, self.server)] {
            let endpoint = self.hosts.machine(end);
            let options = endpoint.options(id).expect("open");
            endpoint.set_options(now, id, Options { nagle: false, ..options }).expect("open");
        }
    }

    /// Both ends send `BYTES` at once and close; both must end with exactly the other's bytes.
    fn exchange(self, limit: Instant) {
        self.exchange_and(limit, |_| {});
    }

    /// The same; `watch` is called after each step.
    fn exchange_and(mut self, limit: Instant, mut watch: impl FnMut(&mut TwoHosts<Endpoint>)) {
        let (client, server) = (self.client, self.server);
        let mut ends = [Side::new(End::A, client), Side::new(End::B, server)];
        let done = self.hosts.run(limit, |hosts| {
            for side in &mut ends {
                side.act(hosts);
            }
            watch(hosts);
            ends.iter().all(|side| side.is_done)
        });
        assert!(
            done,
            "{}: {:?} at {}",
            self.name,
            ends.each_ref().map(|side| side.received),
            self.hosts.now()
        );
    }
}

struct Side {
    end: End,
    id: ConnId,
    sent: usize,
    received: usize,
    is_done: bool,
}

impl Side {
    fn new(end: End, id: ConnId) -> Side {
        Side { end, id, sent: 0, received: 0, is_done: false }
    }

    fn act(&mut self, hosts: &mut TwoHosts<Endpoint>) {
        let (now, id) = (hosts.now(), self.id);
        let endpoint = hosts.machine(self.end);
        if self.sent < BYTES {
            let chunk: Vec<u8> =
                (self.sent..BYTES.min(self.sent + 8192)).map(|at| byte(self.end, at)).collect();
            self.sent += endpoint.send(now, id, &chunk).expect("open");
            if self.sent == BYTES {
                endpoint.shutdown(now, id).expect("open");
            }
        }
        let mut buffer = [0; 4096];
        while !self.is_done {
            match endpoint.recv(now, id, &mut buffer) {
                Ok(0) => break,
                Ok(len) => {
                    for got in &buffer[..len] {
                        assert_eq!(*got, byte(self.end.other(), self.received), "at {}", self.received);
                        self.received += 1;
                    }
                }
                Err(RecvError::Finished) => self.is_done = self.received == BYTES,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// The byte that an end sends at a place of its stream.
fn byte(from: End, at: usize) -> u8 {
    (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ if from == End::A { 0x55 } else { 0xaa }
}

fn for_each_pair(path: PathConfig, limit: Instant) {
    for receiver in receivers() {
        for senders in sender_lists() {
            Pair::connect(&receiver, &senders, path, 11).exchange(limit);
        }
    }
}

#[test]
fn every_pair_finishes_over_a_clean_path() {
    let path = PathConfig::clean(Duration::from_millis(10)).with(|path| path.bits_per_second = 2_000_000);
    for_each_pair(path, Instant::from_secs(30));
}

#[test]
fn every_pair_finishes_over_a_path_that_loses_one_in_a_hundred() {
    let path = PathConfig::clean(Duration::from_millis(10)).with(|path| path.loss_ppm = 10_000);
    for_each_pair(path, Instant::from_secs(60));
}

#[test]
fn every_pair_finishes_over_a_path_that_loses_one_in_ten() {
    let path = PathConfig::clean(Duration::from_millis(10)).with(|path| path.loss_ppm = 100_000);
    for_each_pair(path, Instant::from_secs(300));
}

#[test]
fn every_pair_finishes_over_a_path_that_reorders_and_repeats() {
    let path = PathConfig::clean(Duration::from_millis(10)).with(|path| {
        path.reorder_ppm = 50_000;
        path.reorder_by = Duration::from_millis(8);
        path.duplicate_ppm = 20_000;
    });
    for_each_pair(path, Instant::from_secs(60));
}

/// The time of the slowest of several exchanges. Requests have one segment, and so have their responses. An agent may
/// hold its ACK, and that must not hold the exchange.
fn slowest_exchange(mut pair: Pair) -> Duration {
    let (client, server) = (pair.client, pair.server);
    let turns = (0..5).map(|turn| {
        let began = pair.hosts.now();
        pair.hosts.a.send(began, client, &[turn; 100]).expect("open");
        let mut answered = false;
        let done = pair.hosts.run(began + Duration::from_secs(5), |hosts| {
            let now = hosts.now();
            if !answered && hosts.b.readable(server) == 100 {
                answered = true;
                hosts.b.consume(now, server, 100).expect("open");
                hosts.b.send(now, server, &[turn; 100]).expect("open");
            }
            hosts.a.readable(client) == 100
        });
        assert!(done, "{}: no answer", pair.name);
        let now = pair.hosts.now();
        pair.hosts.a.consume(now, client, 100).expect("open");
        now.since(began)
    });
    turns.max().expect("some turns")
}

const ROUND_TRIP: Duration = Duration::from_millis(20);
const AT_ONCE: Duration = Duration::from_millis(21);

#[test]
fn no_pair_delays_an_exchange_of_single_segments() {
    for receiver in receivers() {
        for senders in sender_lists() {
            let mut pair = Pair::connect(&receiver, &senders, PathConfig::clean(ROUND_TRIP / 2), 3);
            let name = pair.name.clone();
            // With cwnd in their window field data segments carry no ACK; the test below shows the effect of Nagle's
            // rule on that.
            if senders.contains(":window") {
                pair.without_nagle();
            }
            let took = slowest_exchange(pair);
            assert!(took <= AT_ONCE, "{name}: {took:?}");
        }
    }
}

/// Agents that hold a segment although the peer has announced that no other comes.
const WAITING: [&str; 1] = ["adw"];

/// An end that sends cwnd in its window field acknowledges by pure ACKs alone, and its own agent holds these. Under
/// Nagle's rule the other end's next response waits for the ACK of the last one. The cost is the hold, and no more.
#[test]
fn with_cwnd_in_the_window_field_nagle_waits_for_the_hold_and_no_longer() {
    let mut waited = Vec::new();
    for receiver in receivers() {
        for senders in sender_lists().into_iter().filter(|list| list.contains(":window")) {
            let pair = Pair::connect(&receiver, &senders, PathConfig::clean(ROUND_TRIP / 2), 3);
            let name = pair.name.clone();
            let took = slowest_exchange(pair);
            assert!(took <= AT_ONCE + hold_of(&receiver), "{name}: {took:?}");
            if took > AT_ONCE {
                waited.push(receiver.clone());
            }
        }
    }
    // If the peer's agent does not use cwnd, the window field is not agreed on.
    waited.dedup();
    assert_eq!(waited, WAITING);
}

/// The hold of an agent's parameters; zero for an agent without one.
fn hold_of(receiver: &str) -> Duration {
    let spec = parse_receiver(receiver).expect("a spec");
    let holds = spec.parameters(Profile::Modern).into_iter().filter(|param| param.name == "hold");
    let millis = holds.map(|param| param.value.trim_end_matches("ms").parse().expect("milliseconds"));
    Duration::from_millis(millis.max().unwrap_or(0))
}

// shows: MUST-40
#[test]
fn no_receiver_holds_an_ack_beyond_the_ceiling() {
    for receiver in receivers() {
        let mut pair = Pair::connect(&receiver, "[newreno]", PathConfig::clean(Duration::from_millis(1)), 5);
        let (began, client) = (pair.hosts.now(), pair.client);
        pair.hosts.a.send(began, client, &[1; 100]).expect("open");
        pair.hosts.drain_trace(End::B, &mut |_| {});
        let acked = pair.hosts.run(began + Duration::from_millis(499), |hosts| {
            let now = hosts.now();
            hosts.a.info(now, client).expect("open").flight.bytes == 0 && now > began
        });
        assert!(acked, "{}", pair.name);
        let mut decided = 0;
        pair.hosts.drain_trace(End::B, &mut |event| {
            decided += u32::from(matches!(event.kind, TraceKind::AckDecided { .. }));
        });
        assert_eq!(decided, 1, "{}", pair.name);
    }
}

/// An agent's decision and its reason; for the live agent without the ledger's decisions for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decided {
    Held(Why),
    Acked(Why),
}

fn live(kind: &TraceKind) -> Option<Decided> {
    match *kind {
        TraceKind::AckHeld { why, .. } => Some(Decided::Held(why)),
        TraceKind::AckDecided { by: By::Agent | By::Repeat, why, .. } => Some(Decided::Acked(why)),
        TraceKind::AckDecided { why, .. } => (why.rule == AckRule::Ceiling).then_some(Decided::Acked(why)),
        _ => None,
    }
}

fn shadow(kind: &TraceKind) -> Option<Decided> {
    match *kind {
        TraceKind::ShadowHeld { shadow: 0, why } => Some(Decided::Held(why)),
        TraceKind::ShadowAck { shadow: 0, why } => Some(Decided::Acked(why)),
        _ => None,
    }
}

#[test]
fn a_shadow_of_the_live_agent_agrees_with_it_decision_for_decision() {
    let lossy = PathConfig::clean(Duration::from_millis(10)).with(|path| {
        path.loss_ppm = 30_000;
        path.reorder_ppm = 30_000;
        path.reorder_by = Duration::from_millis(8);
        path.duplicate_ppm = 10_000;
        path.bits_per_second = 5_000_000;
    });
    for receiver in receivers() {
        let agents = AgentChoice {
            receiver: Some(receiver.clone()),
            senders: Some("[newreno, tell-cwnd, ask-rate:4]".into()),
            shadows: Some(format!("[{receiver:?}, immediate]")),
        };
        let (mut of_live, mut of_shadow) = (Vec::new(), Vec::new());
        let pair = Pair::with(agents, lossy, receiver.clone(), 17);
        pair.exchange_and(Instant::from_secs(300), |hosts| {
            for (nth, end) in [End::A, End::B].into_iter().enumerate() {
                hosts.drain_trace(end, &mut |event| {
                    of_live.extend(live(&event.kind).map(|decided| (nth, event.now, decided)));
                    of_shadow.extend(shadow(&event.kind).map(|decided| (nth, event.now, decided)));
                });
            }
        });
        assert!(of_live.len() > 40, "{receiver}: {}", of_live.len());
        if let Some(at) = (0..of_live.len()).find(|at| of_shadow.get(*at) != of_live.get(*at)) {
            panic!("{receiver}: decision {at} is {:?}, the shadow's {:?}", of_live[at], of_shadow.get(at));
        }
        assert_eq!(of_live.len(), of_shadow.len(), "{receiver}");
    }
}
