//! The routing daemon: namespaces that find each other over wires, lose links, and lose a daemon.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_host::Clock;
use rustix::process::{Pid, Signal, kill_process};

use crate::field::assert_none_refused;
use crate::folder::Folder;
use crate::namespace::{Namespace, can_run};
use crate::world::{PATIENCE, until, within_patience};

mod changed;
mod fence;
pub(crate) mod fleet;
mod forged;
mod paths;
mod signed;
mod switches;
mod trial;
mod watch;

const HOPWISE: &str = env!("CARGO_BIN_EXE_hopwise");
const PORT: u16 = 7_000;
/// Loses a neighbour in .4 s, and forgets numbers in 2.5 s.
const AODV: &str = "{ protocol: aodv, ttl_start: 35, hello_interval: 200ms, active_route_timeout: 500ms }";
/// Probes a next hop each .2 s and loses it when two answers are missing; forgets numbers in 2.5 s.
const DYMO: &str = "{ protocol: dymo, dymo: { hello_interval: 200ms, max_seqnum_lifetime: 2500ms, \
                    max_idletime: 2s, rreq_wait_time: 500ms } }";

struct Mesh {
    nodes: Vec<Namespace>,
    daemons: Vec<Option<Child>>,
    folder: Folder,
    routing: &'static str,
}

fn address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, node as u8 + 1)
}

impl Mesh {
    fn new(test: &str, nodes: usize, routing: &'static str) -> Mesh {
        let folder = Folder::new(test);
        let nodes: Vec<_> = (0..nodes).map(|_| Namespace::new()).collect();
        Mesh { daemons: nodes.iter().map(|_| None).collect(), nodes, folder, routing }
    }

    /// A wire with a device of this name at both ends, and no address.
    fn join(&self, a: usize, b: usize) -> String {
        let device = format!("mesh{a}{b}");
        self.nodes[a].join(&self.nodes[b], &device, "169.254.77.1/32", "169.254.77.2/32");
        for node in [a, b] {
            self.nodes[node].ip(&["addr", "flush", "dev", &device]);
        }
        device
    }

    fn log(&self, node: usize) -> String {
        fs::read_to_string(self.folder.join(format!("log{node}"))).unwrap_or_default()
    }

    /// Starts a daemon on these devices, and waits until it is ready.
    fn start(&mut self, node: usize, devices: &[String]) {
        self.start_with(node, devices, "");
    }

    /// The same with `more` in its configuration.
    fn start_with(&mut self, node: usize, devices: &[String], more: &str) {
        let config = self.folder.join(format!("route{node}.yaml"));
        let state = self.folder.join(format!("state{node}"));
        let text = format!(
            "address: {}\nnetwork: 10.77.0.0/24\ninterfaces: [{}]\nstate: {}\nrouting: {}\n{more}",
            address(node),
            devices.join(", "),
            state.display(),
            self.routing
        );
        fs::write(&config, text).expect("the folder can be written");
        let log = File::create(self.folder.join(format!("log{node}"))).expect("the folder can be written");
        let mut command = self.nodes[node].command(&[HOPWISE, "route", &config.to_string_lossy()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.daemons[node] = Some(command.spawn().expect("ip netns exec runs"));
        within_patience(until(|| self.log(node).contains("ready")));
    }

    fn end(&mut self, node: usize, signal: Signal) {
        if let Some(mut daemon) = self.daemons[node].take() {
            let _ = kill_process(Pid::from_child(&daemon), signal);
            let _ = kill_process(Pid::from_child(&daemon), Signal::CONT);
            let _ = daemon.wait();
        }
    }

    fn tell(&self, node: usize, signal: Signal) {
        let daemon = self.daemons[node].as_ref().expect("it runs");
        kill_process(Pid::from_child(daemon), signal).expect("it takes signals");
    }

    /// The daemon's routes in the kernel's table.
    fn routes(&self, node: usize) -> String {
        let output = self.nodes[node].output(&["ip", "-4", "route", "show", "proto", "87"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits for a route in the kernel's table of the node `at`, while packets keep it alive.
    fn wait_for_way(&self, from: usize, to: usize, at: usize, way: &str) {
        let socket = self.nodes[from].run(|| UdpSocket::bind(("0.0.0.0", 0)).expect("a free port"));
        within_patience(until(|| {
            let _ = socket.send_to(&[0; 100], (address(to), PORT));
            self.routes(at).contains(way)
        }));
    }

    /// The number of these events at connections of the node on the first daemon's host, by the event's name in the
    /// trace.
    fn events(&self, name: &str) -> u64 {
        let metrics = SocketAddr::from(([127, 0, 0, 1], 9100));
        let Ok(mut stream) = self.nodes[0].run(|| TcpStream::connect(metrics)) else { return 0 };
        let mut text = String::new();
        let asked = stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n");
        let _ = asked.and_then(|()| stream.read_to_string(&mut text));
        let line = format!("{{event=\"{name}\"}} ");
        let count = text.lines().find_map(|text| text.split_once(&line).map(|(_, count)| count));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    /// A server that counts the bytes of each connection and answers with the number.
    fn serve(&self, node: usize) {
        let listener =
            self.nodes[node].run(|| TcpListener::bind((address(node), PORT)).expect("a free port"));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                thread::spawn(move || {
                    let (mut total, mut chunk) = (0_u64, vec![0; 1 << 16]);
                    while let Ok(bytes @ 1..) = stream.read(&mut chunk) {
                        total += bytes as u64;
                    }
                    let _ = stream.write_all(&total.to_be_bytes());
                });
            }
        });
    }

    fn connect(&self, from: usize, to: usize) -> std::io::Result<TcpStream> {
        let to = SocketAddr::from((address(to), PORT));
        self.nodes[from].run(|| TcpStream::connect_timeout(&to, Duration::from_secs(30)))
    }

    /// Sends this many bytes and waits until they are counted at the other end.
    fn transfer(stream: &mut TcpStream, bytes: usize) {
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero");
        stream.write_all(&vec![7; bytes]).expect("the path carries it");
        stream.shutdown(std::net::Shutdown::Write).expect("it is open");
        let mut answer = [0; 8];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(u64::from_be_bytes(answer), bytes as u64);
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        (0..self.daemons.len()).for_each(|node| self.end(node, Signal::TERM));
        (0..self.nodes.len()).for_each(|node| assert_none_refused(&self.log(node)));
        if thread::panicking() {
            for node in 0..self.nodes.len() {
                println!("--- node {node}\n{}", self.log(node));
            }
        }
    }
}

/// The loss of the node in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// Its kernel reports it.
    Link,
    /// The node falls silent without any report.
    Daemon,
}

fn line_of_five(test: &str, routing: &'static str, loss: Loss) {
    if !can_run(test, &["ip"]) {
        return;
    }
    let mut mesh = Mesh::new(test, 5, routing);
    let line: Vec<_> = (1..5).map(|node| mesh.join(node - 1, node)).collect();
    let around = mesh.join(1, 3);
    mesh.nodes[1].ip(&["link", "set", &around, "down"]);
    for node in 0..5_usize {
        let mut devices: Vec<_> = line[node.saturating_sub(1)..(node + 1).min(4)].to_vec();
        if node == 1 || node == 3 {
            devices.push(around.clone());
        }
        mesh.start(node, &devices);
    }
    mesh.serve(4);
    let clock = Clock::start();
    let mut stream = mesh.connect(0, 4).expect("a way over four hops");
    println!(
        "{routing}, {loss:?}: a route over 4 hops and a handshake: {:.1?}",
        clock.now().since(Instant::ZERO)
    );
    mesh.wait_for_way(0, 4, 0, "10.77.0.5 via 10.77.0.2");
    Mesh::transfer(&mut stream, 4 << 20);

    mesh.nodes[1].ip(&["link", "set", &around, "up"]);
    let mut stream = mesh.connect(0, 4).expect("the way is there still");
    stream.set_nodelay(true).expect("it is open");
    match loss {
        Loss::Link => mesh.nodes[2].ip(&["link", "set", &line[2], "down"]),
        Loss::Daemon => mesh.tell(2, Signal::STOP),
    }
    let cut = clock.now();
    let mut wrote = 0;
    while !mesh.routes(1).contains("10.77.0.5 via 10.77.0.4") {
        assert!(clock.now().since(cut) < PATIENCE, "no other way was taken");
        wrote += stream.write(&[7; 100]).expect("it is open");
        thread::yield_now();
    }
    println!("{routing}, {loss:?}: another way after {:.1?}", clock.now().since(cut));
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero");
    stream.shutdown(std::net::Shutdown::Write).expect("it is open");
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).expect("an answer over the other way");
    assert_eq!(u64::from_be_bytes(answer), wrote as u64);
}

#[test]
fn five_nodes_on_a_line_find_each_other_and_another_way_when_the_middle_is_cut() {
    let test = "five_nodes_on_a_line_find_each_other_and_another_way_when_the_middle_is_cut";
    line_of_five(test, AODV, Loss::Link);
}

#[test]
fn a_neighbour_that_says_hello_no_more_is_gone() {
    line_of_five("a_neighbour_that_says_hello_no_more_is_gone", AODV, Loss::Daemon);
}

#[test]
fn five_nodes_find_each_other_by_dymo_and_another_way_when_the_middle_is_cut() {
    let test = "five_nodes_find_each_other_by_dymo_and_another_way_when_the_middle_is_cut";
    line_of_five(test, DYMO, Loss::Link);
}

#[test]
fn a_next_hop_that_gives_dymo_no_sign_of_life_is_gone() {
    line_of_five("a_next_hop_that_gives_dymo_no_sign_of_life_is_gone", DYMO, Loss::Daemon);
}

#[test]
fn what_a_daemon_that_was_killed_left_behind_is_gone_and_the_next_one_routes() {
    daemon_killed("what_a_daemon_that_was_killed_left_behind_is_gone_and_the_next_one_routes", AODV);
}

#[test]
fn what_a_daemon_of_dymos_that_was_killed_left_behind_is_gone_and_the_next_one_routes() {
    daemon_killed("what_a_daemon_of_dymos_that_was_killed_left_behind_is_gone_and_the_next_one_routes", DYMO);
}

fn daemon_killed(test: &str, routing: &'static str) {
    if !can_run(test, &["ip"]) {
        return;
    }
    let mut mesh = Mesh::new(test, 3, routing);
    let line: Vec<_> = (1..3).map(|node| mesh.join(node - 1, node)).collect();
    for node in 0..3_usize {
        let devices = line[node.saturating_sub(1)..(node + 1).min(2)].to_vec();
        mesh.start(node, &devices);
    }
    mesh.serve(2);
    Mesh::transfer(&mut mesh.connect(0, 2).expect("a way over two hops"), 1 << 20);
    mesh.wait_for_way(0, 2, 1, "10.77.0.3");

    mesh.end(1, Signal::KILL);
    // Its routes go with the address of its TUN device. They stay if another device has that address, too.
    mesh.nodes[1].ip(&["addr", "add", "10.77.0.2/32", "dev", "lo"]);
    let left = ["route", "add", "10.77.0.99/32", "dev", &line[0], "proto", "87", "src", "10.77.0.2"];
    mesh.nodes[1].ip(&left);
    mesh.start(1, &line);
    assert!(mesh.log(1).contains("has routed before"), "{}", mesh.log(1));
    assert_eq!(mesh.log(1).contains("goes on from that number"), routing == DYMO, "{}", mesh.log(1));
    assert!(!mesh.routes(1).contains("10.77.0.99"), "{}", mesh.routes(1));
    let clock = Clock::start();
    let mut stream = mesh.connect(0, 2).expect("a way, once the node answers again");
    let after = clock.now().since(Instant::ZERO);
    println!("{routing}: a connection {after:.1?} after the daemon was started again");
    Mesh::transfer(&mut stream, 1 << 20);

    mesh.end(1, Signal::TERM);
    assert_eq!(mesh.routes(1), "", "routes are removed at the end");
    // The log is made anew at each start.
    mesh.start(1, &line);
    assert!(mesh.log(1).contains("goes on from"), "{}", mesh.log(1));
    assert!(!mesh.log(1).contains("asks and answers from then on"), "{}", mesh.log(1));
    Mesh::transfer(&mut mesh.connect(0, 2).expect("a way at once"), 1 << 20);
}
