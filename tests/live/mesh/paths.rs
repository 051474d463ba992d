//! Nodes on the hosts of routing daemons: their connections learn their paths, and the bytes that arrived at the other
//! end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hopwise_mesh::aodv::messages::{AodvMessage, Extension, Rrep};
use hopwise_mesh::aodvv2::messages::{ACK_SEQ, RouteMessage};
use hopwise_mesh::rfc5444::{Packet, Tlv};
use hopwise_mesh::{aodv, rfc5444};
use serde_json::Value;

use super::*;
use crate::namespace::{Running, can_run};

/// The waits of a search end in a second or two; only the destination answers a request.
const OPEN_AODV: &str = "{ protocol: aodv, ttl_start: 35, hello_interval: 200ms, active_route_timeout: 500ms, \
                         node_traversal_time: 5ms, destination_only: true, ack_seq: true }";
const SIGNED_AODV: &str = "{ protocol: aodv, ttl_start: 35, hello_interval: 200ms, active_route_timeout: 500ms, \
                           node_traversal_time: 5ms, destination_only: true, ack_seq: true, key: shared }";
const OTHERS_AODV: &str = "{ protocol: aodv, ttl_start: 35, hello_interval: 200ms, active_route_timeout: 500ms, \
                           node_traversal_time: 5ms, destination_only: true, ack_seq: true, key: another }";
const SIGNED_DYMO: &str = "{ protocol: dymo, dymo: { hello_interval: 200ms, max_seqnum_lifetime: 2500ms, \
                           max_idletime: 2s, rreq_wait_time: 200ms, rreq_holddown_time: 200ms, \
                           ack_seq: true, key: shared } }";
const OTHERS_DYMO: &str = "{ protocol: dymo, dymo: { hello_interval: 200ms, max_seqnum_lifetime: 2500ms, \
                           max_idletime: 2s, rreq_wait_time: 200ms, rreq_holddown_time: 200ms, \
                           ack_seq: true, key: another } }";

/// A node on the host of one end's daemon.
fn inner(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, node as u8 + 11)
}

fn socket(mesh: &Mesh, node: usize) -> PathBuf {
    mesh.folder.join(format!("node{node}.sock"))
}

/// A daemon of routing and a node on a TUN device at either end, and a daemon between; a stream from node to node.
struct Beside {
    stream: TcpStream,
    written: u64,
    received: Arc<AtomicU64>,
    _nodes: Vec<Running>,
    line: Vec<String>,
    mesh: Mesh,
}

impl Beside {
    /// Starts the daemons. The first and the last daemon have `routing`, and the nodes' connections have `rule`.
    fn new(test: &str, routing: [&'static str; 2], rule: &str) -> Beside {
        let mut mesh = Mesh::new(test, 3, routing[0]);
        let line: Vec<_> = (1..3).map(|node| mesh.join(node - 1, node)).collect();
        mesh.start(1, &line);
        for node in [0, 2] {
            mesh.routing = routing[node / 2];
            let more = format!("serves: [{}]\nnodes: [{}]\n", inner(node), socket(&mesh, node).display());
            mesh.start_with(node, &line[node / 2..node / 2 + 1], &more);
        }
        let nodes = [0, 2].map(|node| start_node(&mesh, node, rule)).into();
        let received = Arc::new(AtomicU64::new(0));
        let server = mesh.nodes[2].run(|| TcpListener::bind(("127.0.0.1", PORT)).expect("a free port"));
        let count = Arc::clone(&received);
        thread::spawn(move || {
            let mut sink = vec![0; 1 << 16];
            for mut stream in server.incoming().flatten() {
                while let Ok(bytes @ 1..) = stream.read(&mut sink) {
                    count.fetch_add(bytes as u64, Ordering::Relaxed);
                }
            }
        });
        let entrance = SocketAddr::from(([127, 0, 0, 1], 7001));
        let connected = mesh.nodes[0].run(|| TcpStream::connect_timeout(&entrance, Duration::from_secs(30)));
        let stream = connected.expect("the forward listens");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout above zero");
        Beside { stream, written: 0, received, _nodes: nodes, line, mesh }
    }

    /// The first node's status of its connection over the mesh.
    fn connection(&self) -> Value {
        let control = socket(&self.mesh, 0).to_string_lossy().into_owned();
        let told = self.mesh.nodes[0].output(&[HOPWISE, "status", "--json", "--control", &control]);
        let status: Value = serde_json::from_slice(&told.stdout).unwrap_or_default();
        status["connections"][0].clone()
    }

    fn hops(&self) -> Option<u64> {
        self.connection()["hops"].as_u64()
    }

    fn acked(&self) -> u64 {
        self.connection()["bytes_acked"].as_u64().expect("a connection")
    }

    fn write(&mut self, bytes: usize) {
        self.stream.write_all(&vec![7; bytes]).expect("it is taken");
        self.written += bytes as u64;
    }

    /// Writes this many bytes, and waits until the other end's program has all that were ever written.
    fn send(&mut self, bytes: usize) {
        self.write(bytes);
        within_patience(until(|| self.received.load(Ordering::Relaxed) == self.written));
    }

    /// Waits until the route is known, while packets keep it alive, and until all packets have come.
    fn find_the_way(&mut self) {
        within_patience(until(|| {
            self.write(100);
            self.hops() == Some(2)
        }));
        self.send(100);
    }

    /// Cuts the link from the daemon in the middle to the last one, and heals it.
    fn cut_and_heal(&mut self) {
        self.mesh.nodes[1].ip(&["link", "set", &self.line[1], "down"]);
        within_patience(until(|| self.hops().is_none()));
        self.mesh.nodes[1].ip(&["link", "set", &self.line[1], "up"]);
        within_patience(until(|| self.hops() == Some(2)));
    }

    /// The reverse path drops the packets of the other end's node; routing messages pass.
    fn without_acks(&mut self, what: impl FnOnce(&mut Beside)) {
        let from = inner(2).to_string();
        within_patience(until(|| self.connection()["flight_bytes"] == 0));
        self.mesh.nodes[1].ip(&["rule", "add", "from", &from, "blackhole"]);
        what(self);
        self.mesh.nodes[1].ip(&["rule", "del", "from", &from, "blackhole"]);
    }
}

fn start_node(mesh: &Mesh, node: usize, rule: &str) -> Running {
    let forwards = if node == 0 {
        format!("forwards: [{{ listen: 127.0.0.1:7001, to: mesh:{}:7002 }}]\n", inner(2))
    } else {
        "forwards: [{ listen: mesh:7002, to: 127.0.0.1:7000 }]\n".to_owned()
    };
    let text = format!(
        "node: {{ name: n{node}, address: [{own}/32] }}\n\
         links: [{{ kind: tun, name: hw0, kernel: [10.99.0.1/32] }}]\n\
         routes: [{{ to: 0.0.0.0/0, link: hw0 }}]\ncontrol: {control}\n\
         metrics: {{ listen: 127.0.0.1:9100 }}\nrules: [{rule}]\n{forwards}",
        own = inner(node),
        control = socket(mesh, node).display()
    );
    let config = mesh.folder.join(format!("node{node}.yaml"));
    fs::write(&config, text).expect("the folder can be written");
    let log = mesh.folder.join(format!("node{node}.log"));
    let to = File::create(&log).expect("the folder can be written");
    let mut command = mesh.nodes[node].command(&[HOPWISE, "node", &config.to_string_lossy()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(to);
    let running = Running(command.spawn().expect("ip netns exec runs"));
    // The control socket is there before the forwards are.
    within_patience(until(|| fs::read_to_string(&log).is_ok_and(|log| log.contains("ready"))));
    // Packets for the node go to its device, whatever routing does with its network.
    mesh.nodes[node].ip(&["route", "replace", &inner(node).to_string(), "dev", "hw0"]);
    running
}

/// The nodes' connections get the hops from routing, freeze when it loses the route, and go on when it is found again.
#[test]
fn connections_of_a_node_hear_of_paths_from_the_routing_daemon() {
    let test = "connections_of_a_node_hear_of_paths_from_the_routing_daemon";
    needs!["ip"];
    let mut beside = Beside::new(test, [DYMO; 2], "{ receiver: dca, sender: [newreno, elfn] }");
    beside.send(100_000);
    beside.find_the_way();
    beside.without_acks(freezes_when_the_way_is_lost);
    beside.mesh.nodes[1].ip(&["link", "set", &beside.line[1], "up"]);
    beside.find_the_way();
}

/// Without data in flight a connection does not freeze: data is there before the link goes.
fn freezes_when_the_way_is_lost(beside: &mut Beside) {
    let before = beside.mesh.events("frozen");
    // A daemon that was held up is lost as a neighbour.
    let is_sound = before == 0 || beside.mesh.log(0).contains(" gone ");
    assert!(is_sound, "the way is there, and {before} froze");
    within_patience(until(|| {
        beside.write(100);
        let connection = beside.connection();
        connection["flight_bytes"].as_u64() > Some(0) && connection["hops"] == 2
    }));
    beside.mesh.nodes[1].ip(&["link", "set", &beside.line[1], "down"]);
    within_patience(until(|| {
        beside.write(100);
        beside.hops().is_none() && beside.mesh.events("frozen") > before
    }));
}

/// Probes come soon, and start a search for the route as soon as there is one.
const PGY: &str = "{ receiver: dup-count(delayed), sender: [newreno, \"elfn:probe=200ms\", pgy] }";

/// The claim of a forged message: the flow's ports and a number.
type Claim = ((u16, u16), u32);

fn claimed(((ours, theirs), seq): Claim) -> Vec<u8> {
    [&ours.to_be_bytes()[..], &theirs.to_be_bytes(), &seq.to_be_bytes()].concat()
}

/// A RREP from the far node to the near one, as a neighbour might forge it; it offers no useful route.
fn forged_aodv(claim: Claim) -> Vec<u8> {
    let rrep = Rrep {
        is_repair: false,
        wants_ack: false,
        prefix_size: 0,
        hop_count: 3,
        dst: inner(2),
        dst_seq: 0,
        origin: inner(0),
        lifetime_ms: 1,
    };
    let mut message = Vec::new();
    AodvMessage::Rrep(rrep).emit(&mut message);
    Extension { kind: 0x57, data: &claimed(claim) }.emit(&mut message);
    message
}

fn forged_dymo(claim: Claim) -> Vec<u8> {
    let (to, other) = (inner(2), inner(0));
    let rrep = RouteMessage { hop_limit: 17, to, seq: 1, metric: 3, validity: None, other, other_seq: None };
    let mut message = rrep.rrep();
    message.tlvs.push(Tlv { kind: ACK_SEQ, extension: 0, value: claimed(claim) });
    Packet::of(message).bytes().expect("short enough")
}

/// Sends forged messages from the middle daemon's own address, with old and future numbers from all around the circle.
fn forge(beside: &Beside, (port, forged): (u16, fn(Claim) -> Vec<u8>)) {
    let connection = beside.connection();
    let port_of = |end: &str| {
        let end: SocketAddr = connection[end].as_str().and_then(|end| end.parse().ok()).expect("an end");
        end.port()
    };
    let ports = (port_of("local"), port_of("remote"));
    beside.mesh.nodes[1].run(|| {
        let socket = UdpSocket::bind((address(1), 0)).expect("its own address");
        socket.set_ttl(255).expect("a TTL");
        for step in 0..64_u32 {
            let message = forged((ports, step.wrapping_mul(1 << 26).wrapping_add(17)));
            socket.send_to(&message, (address(0), port)).expect("a neighbour");
        }
    });
}

/// Arrivals older than ten seconds are not reported; a machine may be that slow now and then.
const MOST_ROUNDS: u64 = 10;

/// A node whose ACKs are lost learns of arrivals from the route that is found again, and its `snd_una` stays.
fn hears_what_has_arrived(test: &str, routing: &'static str, forger: (u16, fn(Claim) -> Vec<u8>)) {
    if !can_run(test, &["ip"]) {
        return;
    }
    let mut beside = Beside::new(test, [routing; 2], PGY);
    beside.send(50_000);
    beside.find_the_way();
    // A daemon that was held up has been lost and found before.
    let before = beside.mesh.events("highest-ack-raised");
    let mut rounds = 0;
    while beside.mesh.events("highest-ack-raised") == before {
        rounds += 1;
        assert!(rounds < MOST_ROUNDS, "nothing was heard of arrivals");
        beside.without_acks(|beside| {
            let acked = beside.acked();
            beside.send(2_000);
            forge(beside, forger);
            beside.cut_and_heal();
            assert_eq!(beside.acked(), acked, "only an ACK acknowledges");
        });
    }
    assert!(beside.mesh.events("highest-ack-raised") <= before + rounds, "made-up numbers were believed");
    beside.send(50_000);
    within_patience(until(|| beside.connection()["flight_bytes"] == 0));
    if routing.contains("key") {
        within_patience(until(|| beside.mesh.log(0).contains("reason=\"routing-refused\"")));
    }
}

#[test]
fn a_sender_hears_what_has_arrived_from_the_route_that_is_found_again() {
    let test = "a_sender_hears_what_has_arrived_from_the_route_that_is_found_again";
    hears_what_has_arrived(test, SIGNED_AODV, (aodv::PORT, forged_aodv));
}

#[test]
fn a_sender_hears_what_has_arrived_from_dymos_route_that_is_found_again() {
    let test = "a_sender_hears_what_has_arrived_from_dymos_route_that_is_found_again";
    hears_what_has_arrived(test, SIGNED_DYMO, (rfc5444::PORT, forged_dymo));
}

#[test]
fn without_a_key_made_up_numbers_reach_the_sender_and_move_nothing() {
    let test = "without_a_key_made_up_numbers_reach_the_sender_and_move_nothing";
    hears_what_has_arrived(test, OPEN_AODV, (aodv::PORT, forged_aodv));
}

#[test]
fn nodes_with_different_keys_find_routes_and_believe_nothing_of_arrivals() {
    let test = "nodes_with_different_keys_find_routes_and_believe_nothing_of_arrivals";
    needs!["ip"];
    for routing in [[SIGNED_AODV, OTHERS_AODV], [SIGNED_DYMO, OTHERS_DYMO]] {
        let mut beside = Beside::new(test, routing, PGY);
        beside.send(50_000);
        let mut rounds = 0;
        while !beside.mesh.log(0).contains("reason=\"routing-refused\"") {
            rounds += 1;
            assert!(rounds < MOST_ROUNDS, "nothing was refused");
            beside.without_acks(|beside| {
                beside.send(2_000);
                beside.cut_and_heal();
            });
            beside.send(50_000);
        }
        assert_eq!(beside.mesh.events("highest-ack-raised"), 0);
    }
}
