//! Transparent nodes: hosts on the kernel's TCP on both sides of two nodes, which they know nothing of.

mod abandoned;
mod borrowed;
mod clashes;
mod compared;
mod contested;
mod crowds;
mod disowned;
mod forged;
mod freed;
mod hangs;
mod narrow;
mod opened;
mod programs;
mod walled;

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use rustix::net::{ipproto, sockopt};
use rustix::process::Signal;

use crate::field::{Daemon, HOPWISE, assert_none_refused, text};
use crate::folder::Folder;
use crate::namespace::Namespace;
use crate::world::{PATIENCE, until, within_patience};

const V4: [&str; 2] = ["10.1.0.2", "10.2.0.2"];
const V6: [&str; 2] = ["fd01::2", "fd02::2"];
const PORT: u16 = 5000;

/// host — first — last — server: two hosts, and two routers with a node each.
struct Chain {
    host: Namespace,
    first: Namespace,
    last: Namespace,
    server: Namespace,
    folder: Folder,
}

/// The host's address, as the host and the server see it.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    host: SocketAddr,
    by_server: SocketAddr,
}

impl Chain {
    fn new(test: &str) -> Chain {
        let folder = Folder::of_everybody(test);
        let [host, first, last, server] = [(); 4].map(|()| Namespace::new());
        for (left, right, device, net) in
            [(&host, &first, "lan0", 1), (&first, &last, "mid0", 5), (&last, &server, "lan1", 2)]
        {
            let ends = if net == 1 { [2, 1] } else { [1, 2] };
            let of = |end: u8| format!("10.{net}.0.{end}/24");
            left.join(right, device, &of(ends[0]), &of(ends[1]));
            for (namespace, end) in [(left, ends[0]), (right, ends[1])] {
                let address = format!("fd0{net}::{end}/64");
                namespace.ip(&["addr", "add", &address, "dev", device, "nodad"]);
            }
        }
        for router in [&first, &last] {
            router.sysctl("ipv4/ip_forward", "1");
            router.sysctl("ipv6/conf/all/forwarding", "1");
        }
        // A host's connection that goes straight on gets no answer while the last node has its port in the host's name.
        for (namespace, ports) in [(&host, "32768 46767"), (&last, "46768 60999")] {
            namespace.sysctl("ipv4/ip_local_port_range", ports);
        }
        for (namespace, to, via) in [
            (&host, "default", "10.1.0.1"),
            (&host, "default", "fd01::1"),
            (&server, "default", "10.2.0.1"),
            (&server, "default", "fd02::1"),
            (&first, "10.2.0.0/24", "10.5.0.2"),
            (&first, "10.7.2.0/24", "10.5.0.2"),
            (&first, "fd02::/64", "fd05::2"),
            (&last, "10.1.0.0/24", "10.5.0.1"),
            (&last, "10.7.1.0/24", "10.5.0.1"),
            (&last, "fd01::/64", "fd05::1"),
        ] {
            namespace.ip(&["route", "add", to, "via", via]);
        }
        Chain { host, first, last, server, folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }

    /// A node with the address 10.7.NET.2 in that namespace, and `more` in its file.
    fn node(&self, namespace: &Namespace, net: u8, more: &str) -> Daemon {
        self.node_by(&[HOPWISE, "node"], namespace, net, more)
    }

    /// The node, started by a command whose last word is the node's file.
    fn node_by(&self, command: &[&str], namespace: &Namespace, net: u8, more: &str) -> Daemon {
        let (config, log) = (self.path(&format!("{net}.yaml")), self.path(&format!("{net}.log")));
        let socket = self.path(&format!("{net}.sock"));
        let text = format!(
            "node: {{ name: n{net}, address: 10.7.{net}.2/24 }}\n\
             links: [{{ kind: tun, name: hw0, kernel: 10.7.{net}.1/24 }}]\n\
             routes: [{{ to: 0.0.0.0/0, link: hw0 }}]\ncontrol: {socket}\nstop_within: 1s\n{more}\n"
        );
        fs::write(&config, text).expect("the folder can be written");
        let into = fs::File::create(&log).expect("the folder can be written");
        let mut command = namespace.command(&[command, &[&config]].concat());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(into);
        let mut daemon = Daemon(command.spawn().expect("ip netns exec runs"));
        within_patience(until(|| {
            assert!(daemon.0.try_wait().expect("it is our child").is_none(), "{}", self.log(net));
            self.log(net).contains("ready")
        }));
        daemon
    }

    fn first(&self) -> Daemon {
        self.node(&self.first, 1, FIRST)
    }

    fn last(&self) -> Daemon {
        self.node(&self.last, 2, LAST)
    }

    fn log(&self, net: u8) -> String {
        fs::read_to_string(self.path(&format!("{net}.log"))).unwrap_or_default()
    }

    fn status(&self, namespace: &Namespace, net: u8) -> serde_json::Value {
        let socket = self.path(&format!("{net}.sock"));
        let told = namespace.output(&[HOPWISE, "status", "--json", "--control", &socket]);
        serde_json::from_slice(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:?}"))
    }

    fn count(&self, namespace: &Namespace, net: u8, what: &str) -> u64 {
        let status = self.status(namespace, net);
        status["relays"][format!("transparent-{what}")].as_u64().unwrap_or_else(|| panic!("{what}: {status}"))
    }

    fn at_first(&self, what: &str) -> u64 {
        self.count(&self.first, 1, what)
    }

    fn at_last(&self, what: &str) -> u64 {
        self.count(&self.last, 2, what)
    }

    /// A server that tells each client its address, and sends back each byte.
    fn serve(&self, port: u16) {
        serve_at(&self.server, port);
    }

    fn connect(&self, to: &str, port: u16) -> std::io::Result<TcpStream> {
        self.connect_by(&self.host, to, port)
    }

    fn connect_by(&self, host: &Namespace, to: &str, port: u16) -> std::io::Result<TcpStream> {
        let to = SocketAddr::new(to.parse::<IpAddr>().expect("an address"), port);
        host.run(|| {
            let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        })
    }

    /// Sends a number of bytes to the server and back, and compares them.
    fn exchange(&self, to: &str, bytes: usize) -> Seen {
        let stream = self.connect(to, PORT).expect("the server is reached");
        exchange_over(stream, bytes).expect("the connection holds")
    }

    /// Lets 120 connections exchange bytes at once, six of which break off.
    fn crowd(&self) {
        std::thread::scope(|scope| {
            for nth in 0..120_usize {
                scope.spawn(move || {
                    let mut stream = self.connect(V4[1], PORT).expect("the server is reached");
                    if nth % 20 == 7 {
                        stream.write_all(b"who am I\nand then").expect("it is open");
                        stream.read_exact(&mut [0; 1]).expect("the server answers");
                        sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("it is a socket");
                        return;
                    }
                    exchange_over(stream, 50_000 + nth).expect("the connection holds");
                });
            }
        });
    }

    fn tables(&self, namespace: &Namespace) -> String {
        text(&namespace.output(&["nft", "list", "tables"]).stdout)
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        for net in 1..=3 {
            assert_none_refused(&self.log(net));
        }
    }
}

const FIRST: &str = "transparent: { interfaces: [lan0], ports: [5000-5009], answers_within: 10s, to: [{ network: \
                     10.2.0.0/24, node: 10.7.2.2 }, { network: \"fd02::/64\", node: 10.7.2.2 }] }";
const LAST: &str = "transparent: { from: [10.7.1.2] }";

fn serve_at(server: &Namespace, port: u16) {
    let listener = server.run(|| TcpListener::bind(("::", port)).expect("the port is free"));
    server.spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || echo(client));
        }
    });
}

fn echo(client: TcpStream) {
    let (Ok(peer), Ok(mut out)) = (client.peer_addr(), client.try_clone()) else { return };
    let mut from = BufReader::new(client);
    let mut asked = String::new();
    if from.read_line(&mut asked).is_err() || out.write_all(format!("{peer}\n").as_bytes()).is_err() {
        return;
    }
    let mut bytes = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if out.write_all(&bytes[..read]).is_err() {
            return;
        }
    }
}

fn payload(bytes: usize) -> Vec<u8> {
    (0_u32..).map(|nth| nth.wrapping_mul(2_654_435_761).to_be_bytes()[0]).take(bytes).collect()
}

fn exchange_over(mut stream: TcpStream, bytes: usize) -> std::io::Result<Seen> {
    let sent = payload(bytes);
    let mut back = BufReader::new(stream.try_clone()?);
    stream.write_all(b"who am I\n")?;
    let mut told = String::new();
    back.read_line(&mut told)?;
    let writer = {
        let (mut stream, sent) = (stream.try_clone()?, sent.clone());
        std::thread::spawn(move || {
            stream.write_all(&sent)?;
            stream.shutdown(std::net::Shutdown::Write)
        })
    };
    let mut came = Vec::new();
    back.read_to_end(&mut came)?;
    writer.join().expect("it does not panic")?;
    assert!(came == sent, "{} of {bytes} bytes came, or others", came.len());
    let by_server: SocketAddr = told.trim().parse().expect("an address");
    let by_server = SocketAddr::new(by_server.ip().to_canonical(), by_server.port());
    Ok(Seen { host: stream.local_addr()?, by_server })
}

const TOOLS: [&str; 1] = ["nft"];

#[test]
fn both_sides_see_their_addresses_and_every_byte() {
    needs!(&TOOLS);
    let chain = Chain::new("both");
    chain.serve(PORT);
    // All neighbours are known before a node may wait for them.
    for [_, server] in [V4, V6] {
        chain.exchange(server, 1000);
    }
    let (_last, _first) = (chain.last(), chain.first());
    for (nth, [host, server]) in [V4, V6].into_iter().enumerate() {
        let seen = chain.exchange(server, 3_000_000);
        let host: IpAddr = host.parse().expect("an address");
        assert_eq!((seen.host.ip(), seen.by_server.ip()), (host, host));
        let carried = nth as u64 + 1;
        assert_eq!((chain.at_first("caught"), chain.at_first("straight")), (carried, 0), "{}", chain.log(1));
        assert_eq!((chain.at_last("opened"), chain.at_last("opened-as-client")), (carried, carried));
    }
    within_patience(until(|| chain.at_first("open") == 0 && chain.at_last("open") == 0));
    let moved = chain.status(&chain.first, 1)["relays"]["bytes-to-mesh"].as_u64().expect("it is counted");
    assert!(moved >= 6_000_000, "{moved}");
}

/// The server has no route to the host: only the node's own address is answered.
#[test]
fn a_server_whose_answers_go_elsewhere_sees_the_node() {
    needs!(&TOOLS);
    let chain = Chain::new("elsewhere");
    chain.serve(PORT);
    chain.server.ip(&["route", "del", "default"]);
    let (_last, _first) = (chain.last(), chain.first());
    for _ in 0..2 {
        let seen = chain.exchange(V4[1], 100_000);
        assert_eq!(seen.by_server.ip(), IpAddr::from([10, 2, 0, 1]));
    }
    assert_eq!((chain.at_last("opened"), chain.at_last("opened-as-client")), (2, 0));
}

#[test]
fn who_is_not_reached_through_a_node_goes_straight_on() {
    needs!(&TOOLS);
    let chain = Chain::new("straight");
    chain.serve(PORT);
    // The router's own addresses are in the network of all.
    let all = FIRST.replace("10s", "300ms").replace(" }] }", " }, { network: 0.0.0.0/0, node: 10.7.2.2 }] }");
    let _first = chain.node(&chain.first, 1, &all);
    for nth in 1..=2 {
        let seen = chain.exchange(V4[1], 100_000);
        assert_eq!(seen.host, seen.by_server, "the kernel's own path keeps the port");
        assert_eq!((chain.at_first("no-node"), chain.at_first("caught")), (nth, 0));
    }
    // A port without a listener refuses as it would without a node.
    let _last = chain.last();
    within_patience(until(|| {
        let refused = chain.connect(V4[1], 5009).map(drop).map_err(|error| error.kind());
        assert_eq!(refused, Err(ErrorKind::ConnectionRefused));
        chain.at_first("no-target") > 0
    }));
    // Ports that the file does not name, and the router itself, are no business of the node's.
    chain.serve(6000);
    let before = chain.at_first("straight");
    assert!(exchange_over(chain.connect(V4[1], 6000).expect("it listens"), 1000).is_ok());
    let router = chain.connect("10.1.0.1", 5000).map(drop).map_err(|error| error.kind());
    assert_eq!((router, chain.at_first("straight")), (Err(ErrorKind::ConnectionRefused), before));
}

#[test]
fn a_killed_node_lets_new_connections_pass_and_says_what_it_cut() {
    needs!(&TOOLS);
    let chain = Chain::new("killed");
    chain.serve(PORT);
    let (_last, mut first) = (chain.last(), chain.first());
    let mut cut = chain.connect(V4[1], PORT).expect("it is carried");
    cut.write_all(b"who am I\n").expect("it is open");
    let mut told = [0; 1];
    cut.read_exact(&mut told).expect("the server answers");
    assert_eq!(chain.at_first("open"), 1);
    assert!(chain.tables(&chain.first).contains("hopwise_transparent"));
    let carried = || fs::read_to_string(chain.path("1.sock.carried")).unwrap_or_default();
    within_patience(until(|| carried().contains(" to ")));
    first.tell(Signal::KILL);
    let _ = first.ended();
    // The rest of the line may have come before.
    let mut rest = Vec::new();
    let ended = cut.read_to_end(&mut rest).map_err(|error| error.kind());
    assert_eq!(ended.map(drop), Err(ErrorKind::ConnectionReset), "no end that looks like that of the data");
    within_patience(until(|| !chain.tables(&chain.first).contains("hopwise_transparent")));
    for [_, server] in [V4, V6] {
        let seen = chain.exchange(server, 100_000);
        assert_eq!(seen.host, seen.by_server);
    }
    let _again = chain.first();
    let said = chain.log(1);
    let cut = cut.local_addr().expect("it had one");
    assert!(
        said.contains("cut the connections that it carried") && said.contains(&format!("{cut} to ")),
        "{said}"
    );
    chain.exchange(V4[1], 100_000);
    assert_eq!(chain.at_first("caught"), 1);
}

#[test]
fn a_rule_and_a_route_that_a_killed_node_left_are_found_and_removed_by_doctor() {
    needs!(&TOOLS);
    let chain = Chain::new("left");
    let doctor = |more: &[&str]| text(&chain.first.output(&[&[HOPWISE, "doctor"], more].concat()).stdout);
    let left = || {
        let script =
            "ip rule; ip -6 rule; ip route show table all; ip -6 route show table all; iptables-save";
        let said = text(&chain.first.output(&["sh", "-c", script]).stdout);
        let ours = ["fwmark 0x4000000", "proto 87", "HOPWISE-T"];
        said.lines().filter(|line| ours.iter().any(|word| line.contains(word))).collect::<Vec<_>>().join("\n")
    };
    let mut first = chain.first();
    let of_one_that_runs = left();
    assert!(doctor(&["--repair"]).contains("no killed transparent node left"));
    assert_eq!(left(), of_one_that_runs);
    first.tell(Signal::KILL);
    let _ = first.ended();
    within_patience(until(|| !chain.tables(&chain.first).contains("hopwise_transparent")));
    assert!(left().contains("fwmark"), "the kernel keeps them: {}", left());
    let found = doctor(&[]);
    assert!(found.contains("a killed transparent node left the rule and the route of table"), "{found}");
    assert!(found.contains("[transparent-left]"), "{found}");
    let repaired = doctor(&["--repair"]);
    assert!(repaired.contains("ok       transparent"), "{repaired}");
    assert_eq!(left(), "");
}

/// A third node on the way from the last one to the server leads back to the last one.
#[test]
fn a_connection_that_comes_round_is_refused_and_goes_straight_on() {
    needs!(&TOOLS);
    let chain = Chain::new("loop");
    chain.serve(PORT);
    let turn = Namespace::new();
    turn.sysctl("ipv4/ip_forward", "1");
    chain.last.join(&turn, "lan2", "10.3.0.1/24", "10.3.0.2/24");
    turn.join(&chain.server, "lan3", "10.4.0.1/24", "10.4.0.2/24");
    chain.server.ip(&["addr", "add", "10.6.0.2/32", "dev", "lo"]);
    for (namespace, to, via) in [
        (&chain.first, "10.6.0.0/24", "10.5.0.2"),
        (&chain.last, "10.6.0.0/24", "10.3.0.2"),
        (&chain.last, "10.7.3.0/24", "10.3.0.2"),
        (&turn, "10.6.0.0/24", "10.4.0.2"),
        (&turn, "10.7.2.0/24", "10.3.0.1"),
        (&turn, "10.1.0.0/24", "10.3.0.1"),
        (&chain.server, "10.1.0.0/24", "10.4.0.1"),
    ] {
        namespace.ip(&["route", "add", to, "via", via]);
    }
    let way = |interface: &str| {
        format!(
            "transparent: {{ interfaces: [{interface}], answers_within: 10s, to: [{{ network: 10.6.0.0/24, node: \
             10.7.2.2 }}] }}"
        )
    };
    let _last = chain.node(&chain.last, 2, "transparent: { from: [10.7.1.2, 10.7.3.2] }");
    let _turn = chain.node(&turn, 3, &way("lan2"));
    let _first = chain.node(&chain.first, 1, &way("lan0"));
    let seen = chain.exchange("10.6.0.2", 100_000);
    assert_eq!(seen.by_server.ip(), IpAddr::from([10, 1, 0, 2]));
    assert_eq!((chain.at_first("caught"), chain.at_last("looped"), chain.at_last("opened")), (1, 1, 1));
    assert_eq!(chain.count(&turn, 3, "no-target"), 1);
}

/// Addresses of the last node's machine and of that node, a broadcast of its link, and addresses of nobody.
const OF_NO_HOST: [[u8; 4]; 6] =
    [[10, 2, 0, 1], [10, 7, 2, 2], [10, 2, 0, 255], [255; 4], [240, 0, 0, 1], [0, 0, 0, 5]];

#[test]
fn strangers_and_wrong_headers_are_refused() {
    needs!(&TOOLS);
    let chain = Chain::new("strangers");
    let _last = chain.node(&chain.last, 2, "transparent: { from: [10.5.0.1], targets: [10.2.0.0/24] }");
    let says = |namespace: &Namespace, bytes: Vec<u8>| {
        let outcome = namespace.run(|| {
            let mut stream =
                TcpStream::connect_timeout(&"10.7.2.2:7300".parse().expect("it is one"), PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(&bytes)?;
            stream.read(&mut [0; 1])
        });
        outcome.map_err(|error| error.kind())
    };
    let reset = Err(ErrorKind::ConnectionReset);
    // The kernel of the last node's own host is no node of the file.
    assert_eq!(says(&chain.last, b"anything".to_vec()), reset);
    assert_eq!((chain.at_last("not-allowed"), chain.at_last("bad-header")), (1, 0));
    assert_eq!(says(&chain.first, b"GET / HTTP/1.1\r\n\r\n".to_vec()), reset);
    assert_eq!((chain.at_last("not-allowed"), chain.at_last("bad-header")), (1, 1));
    let header = |from: [u8; 4], to: [u8; 4]| {
        let signature = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x12";
        [&signature[..], &from, &to, &[0x9c, 0x40, 0, 80, 0xe7, 0, 3, 1, 56, 0]].concat()
    };
    // A target outside the list.
    assert_eq!(says(&chain.first, header([10, 1, 0, 2], [10, 9, 0, 2])), reset);
    for from in OF_NO_HOST {
        assert_eq!(says(&chain.first, header(from, [10, 2, 0, 2])), reset, "{from:?}");
    }
    assert_eq!((chain.at_last("not-allowed"), chain.at_last("opened")), (8, 0));
}

/// `classes` give some connections a port of their own over Hopwise, by which the rules of both nodes choose.
#[test]
fn rules_choose_the_agents_of_both_ends_by_address_port_and_dscp() {
    needs!(&TOOLS);
    let chain = Chain::new("classes");
    (5000..5003).for_each(|port| chain.serve(port));
    let rules = "rules: [{ match: { port: 7301 }, receiver: \"delayed:d=5\", sender: [newreno, limit:9] }, { match: { \
                 port: 7302 }, receiver: immediate }]";
    let classes = "classes: [{ ports: [5001], port: 7301 }, { dscp: 46, to: 10.2.0.2, port: 7302 }]";
    let with = |file: &str| format!("{}, {classes} }}\n{rules}", file.trim_end_matches(" }"));
    let (_last, _first) =
        (chain.node(&chain.last, 2, &with(LAST)), chain.node(&chain.first, 1, &with(FIRST)));
    let expected = [(5000, 0, 7300), (5001, 0, 7301), (5002, 46, 7302)];
    for (nth, (port, dscp, mesh_port)) in expected.into_iter().enumerate() {
        let mut stream = chain.host.run(|| {
            use rustix::net::{AddressFamily, SocketType, connect, socket};
            let socket =
                socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP)).expect("a socket");
            sockopt::set_ip_tos(&socket, dscp << 2).expect("it is a number");
            let to: SocketAddr = format!("{}:{port}", V4[1]).parse().expect("an address");
            connect(&socket, &to).expect("the server is reached");
            TcpStream::from(socket)
        });
        stream.write_all(b"who am I\n").expect("it is open");
        stream.read_exact(&mut [0; 1]).expect("the server answers");
        for (namespace, net) in [(&chain.first, 1), (&chain.last, 2)] {
            let status = chain.status(namespace, net);
            let connections = status["connections"].as_array().expect("a list").clone();
            let end = format!(":{mesh_port}");
            let ours = connections.iter().find(|one| {
                let is_end = |key: &str| one[key].as_str().is_some_and(|address| address.ends_with(&end));
                is_end("local") || is_end("remote")
            });
            let ours = ours.unwrap_or_else(|| panic!("{mesh_port} in {status}")).to_string();
            let wanted = ["", "delayed:d=5", "immediate"][nth];
            assert!(ours.contains(wanted), "{wanted} in {ours}");
            assert_eq!(ours.contains("limit:9"), nth == 1, "{ours}");
        }
    }
}
