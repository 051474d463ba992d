//! The radio in real time under the kernels of several namespaces: reach, speed, and cleanup.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use hopwise_air::phy::Phy;
use hopwise_core::Instant;
use hopwise_host::Clock;
use rustix::process::{Pid, Signal, kill_process};

use crate::namespace::{Namespace, prefix};
use crate::world::{PATIENCE, until, within_patience};

mod ends;
mod facts;
mod left;
mod record;
mod trial;

const HOPWISE: &str = env!("CARGO_BIN_EXE_hopwise");
const PORT: u16 = 7_000;

/// A chain of nodes 200 m apart; nodes next but one are out of range.
struct Air {
    prefix: String,
    process: Child,
    log: PathBuf,
    nodes: Vec<Namespace>,
}

fn address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, node as u8 + 1)
}

impl Air {
    fn start(test: &str, hops: usize, sets: &[&str]) -> Air {
        Air::with_prefix(&prefix(test), hops, sets)
    }

    fn with_prefix(prefix: &str, hops: usize, sets: &[&str]) -> Air {
        Air::with_words(prefix, hops, sets, &[])
    }

    fn with_words(prefix: &str, hops: usize, sets: &[&str], words: &[&str]) -> Air {
        Air::printing_to(prefix, hops, sets, words, Stdio::piped())
    }

    fn printing_to(prefix: &str, hops: usize, sets: &[&str], words: &[&str], out: Stdio) -> Air {
        let log = std::env::temp_dir().join(format!("{prefix}.log"));
        let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/chain.yaml");
        let mut command = std::process::Command::new(HOPWISE);
        command.args(["air", "netns"]).arg(scenario).args(["--prefix", prefix, "--json"]);
        command.args(["--set", &format!("topology.hops={hops}")]);
        for set in sets {
            command.args(["--set", set]);
        }
        command.args(words);
        let to = File::create(&log).expect("the temporary folder can be written");
        let process = command.stdin(Stdio::null()).stdout(out).stderr(to).spawn();
        let nodes = (0..=hops).map(|n| Namespace::of_somebody(&format!("{prefix}-n{n}"))).collect();
        let mut air = Air { prefix: prefix.to_owned(), process: process.expect("it starts"), log, nodes };
        within_patience(until(|| air.log().contains("ready") || air.has_ended()));
        assert!(!air.has_ended(), "{}", air.log());
        air
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn tell(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it takes signals");
    }

    /// Ends it, and reads its report.
    fn end(mut self) -> serde_json::Value {
        self.tell(Signal::TERM);
        let mut report = String::new();
        let mut out = self.process.stdout.take().expect("it is piped");
        out.read_to_string(&mut report).expect("a report");
        serde_json::from_str(&report).expect("one object")
    }

    /// Answers every datagram to a node, for as long as the test lasts.
    fn echo(&self, node: usize) {
        let socket = self.nodes[node].run(|| UdpSocket::bind(("0.0.0.0", PORT)).expect("a free port"));
        thread::spawn(move || {
            let mut bytes = [0; 2_000];
            while let Ok((count, from)) = socket.recv_from(&mut bytes) {
                let _ = socket.send_to(&bytes[..count], from);
            }
        });
    }

    /// A socket whose reads have an end.
    fn socket(&self, node: usize) -> UdpSocket {
        let socket = self.nodes[node].run(|| UdpSocket::bind(("0.0.0.0", 0)).expect("a free port"));
        socket.set_read_timeout(Some(Duration::from_secs(2))).expect("a timeout above zero");
        socket
    }

    /// The frames that have come to a node's device.
    fn frames_in(&self, node: usize) -> u64 {
        let table = self.nodes[node].run(|| fs::read_to_string("/proc/thread-self/net/dev"));
        let table = table.expect("the kernel counts");
        let row = table.lines().find_map(|line| line.trim().strip_prefix("air0:")).expect("the device");
        row.split_whitespace().nth(1).and_then(|count| count.parse().ok()).expect("a count")
    }
}

impl Drop for Air {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.process), Signal::CONT);
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ = self.process.wait();
        if thread::panicking() {
            println!("--- {}\n{}", self.prefix, self.log());
        }
        let _ = fs::remove_file(&self.log);
    }
}

#[test]
fn datagrams_cross_three_hops_and_take_the_time_of_their_frames() {
    needs!["ip"];
    let air = Air::start("hops", 3, &[]);
    air.echo(3);
    let (socket, clock) = (air.socket(0), Clock::start());
    let mut fastest = Duration::MAX;
    for nth in 0..20_u8 {
        let sent_at = clock.now();
        socket.send_to(&[nth; 100], (address(3), PORT)).expect("a way by the nodes between");
        let mut answer = [0; 200];
        // A late answer is not taken for the next one.
        while let Ok(100) = socket.recv(&mut answer) {
            if answer[0] == nth {
                fastest = fastest.min(clock.now().since(sent_at));
                break;
            }
        }
    }
    let phy = Phy::named("dsss-2mbps").expect("a profile");
    let air_takes = Duration::from_nanos(6 * phy.exchange_ns(128));
    println!("there and back over 3 hops: {fastest:.1?}, of which {air_takes:.1?} on the air");
    assert!(fastest >= air_takes, "nothing is faster than its frames");
    assert!(fastest < Duration::from_secs(1), "no answer came in time");
    let report = air.end();
    assert!(report["stations"][3]["frames_sent"].as_u64() > Some(20), "{report}");
}

#[test]
fn ping_finds_its_way_and_counts_the_hops() {
    needs!["ip", "ping"];
    let air = Air::start("ping", 3, &[]);
    let arguments = ["ping", "-n", "-c", "5", "-i", "0.2", "-W", "5", "10.0.0.4"];
    let output = air.nodes[0].output(&arguments);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("bytes from 10.0.0.4") && said.contains("ttl=62"), "{said}");
}

#[test]
fn who_is_out_of_range_hears_nothing() {
    needs!["ip"];
    let air = Air::start("range", 2, &[]);
    air.nodes[0].ip(&["route", "add", "255.255.255.255/32", "dev", "air0"]);
    let ear = air.nodes[1].run(|| UdpSocket::bind(("0.0.0.0", PORT)).expect("a free port"));
    ear.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero");
    let socket = air.socket(0);
    socket.set_broadcast(true).expect("a switch of the socket");
    for nth in 0..10_u8 {
        socket.send_to(&[nth; 500], (Ipv4Addr::BROADCAST, PORT)).expect("the device takes it");
        let mut heard = [0; 600];
        assert_eq!((ear.recv(&mut heard).expect("200 m"), heard[0]), (500, nth));
    }
    assert_eq!(air.frames_in(2), 0, "400 m");
    // Even a route that names it a neighbour does not help: no station answers for it.
    air.nodes[0].ip(&["route", "replace", "10.0.0.3/32", "dev", "air0"]);
    let before = air.frames_in(1);
    air.echo(2);
    let socket = air.socket(0);
    let _ = socket.send_to(&[1; 100], (address(2), PORT));
    assert!(socket.recv(&mut [0; 200]).is_err(), "400 m");
    assert!(air.frames_in(1) > before, "questions for its address were heard at 200 m");
    assert_eq!(air.frames_in(2), 0);
}

/// Sends this many bytes, and returns the time until the other end had them.
fn bulk(air: &Air, to: usize, bytes: usize) -> Duration {
    let listener = air.nodes[to].run(|| TcpListener::bind((address(to), PORT)).expect("a free port"));
    let reading = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody connects");
        let (mut total, mut chunk) = (0, vec![0; 1 << 16]);
        while let Ok(count @ 1..) = stream.read(&mut chunk) {
            total += count;
        }
        stream.write_all(&[1]).expect("the answer leaves");
        total
    });
    let clock = Clock::start();
    let at = SocketAddr::from((address(to), PORT));
    let stream = air.nodes[0].run(|| TcpStream::connect_timeout(&at, PATIENCE));
    let mut stream = stream.expect("a way over the hops");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero");
    stream.write_all(&vec![7; bytes]).expect("the path carries it");
    stream.shutdown(std::net::Shutdown::Write).expect("it is open");
    stream.read_exact(&mut [0]).expect("an answer");
    assert_eq!(reading.join().expect("it reads to the end"), bytes);
    clock.now().since(Instant::ZERO)
}

#[test]
fn the_kernels_tcp_crosses_two_hops_at_the_radios_pace() {
    needs!["ip"];
    let air = Air::start("tcp", 2, &[]);
    const BYTES: usize = 400_000;
    let took = bulk(&air, 2, BYTES);
    // Both hops share the air; ACKs, gaps and backoffs come on top.
    let phy = Phy::named("dsss-2mbps").expect("a profile");
    let segments = BYTES.div_ceil(1_460) as u64;
    let least = Duration::from_nanos(segments * 2 * phy.exchange_ns(1_500));
    println!("{BYTES} B over 2 hops in {took:.1?}; their frames alone take {least:.1?}");
    assert!(took > least, "no faster than the frames");
    // The usual time is twice the time on an idle machine.
    assert!(took < 20 * least, "{}", air.log());
    let report = air.end();
    assert!(report["stations"][1]["airtime_s"].as_f64() > Some(least.as_secs_f64() / 3.0), "{report}");
}

#[test]
fn the_routing_daemon_finds_ways_over_the_radio() {
    needs!["ip"];
    let air = Air::start("aodv", 2, &["routing={ protocol: aodv }"]);
    let folder = std::env::temp_dir().join(prefix("aodv"));
    fs::create_dir_all(&folder).expect("the temporary folder can be written");
    let routes = |node: usize| {
        let output = air.nodes[node].output(&["ip", "-4", "route", "show", "proto", "87"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(routes(0), "", "none is given");
    let daemon = |node: usize| {
        let config = folder.join(format!("{node}.yaml"));
        let text = format!(
            "address: {}\nnetwork: 10.0.0.0/24\ninterfaces: [air0]\nstate: {}\nrouting: {{ protocol: aodv }}\n",
            address(node),
            folder.join(format!("state{node}")).display()
        );
        fs::write(&config, text).expect("the folder can be written");
        air.nodes[node].start(&[HOPWISE, "route", &config.to_string_lossy()])
    };
    let daemons: Vec<_> = (0..3).map(daemon).collect();
    air.echo(2);
    let socket = air.socket(0);
    within_patience(until(|| {
        socket.send_to(&[0; 100], (address(2), PORT)).is_ok() && socket.recv(&mut [0; 200]).is_ok()
    }));
    assert!(routes(0).contains("10.0.0.3 via 10.0.0.2"), "{}", routes(0));
    drop(daemons);
    let _ = fs::remove_dir_all(&folder);
}

/// A daemon at either end on the kernel's device, and between them a kernel that forwards.
#[test]
fn nodes_on_the_devices_carry_a_connection_over_two_hops() {
    needs!["ip", "nft"];
    let air = Air::start("node", 2, &[]);
    let folder = std::env::temp_dir().join(prefix("node"));
    fs::create_dir_all(&folder).expect("the temporary folder can be written");
    let daemon = |node: usize, other: usize, forward: &str| {
        let config = folder.join(format!("{node}.yaml"));
        let (here, there, via) = (address(node), address(other), address(1));
        let text = format!(
            "node: {{ name: n{node}, address: {here}/24 }}\nlinks: [{{ kind: raw, name: air0 }}]\n\
             routes: [{{ to: {there}/32, link: air0, via: {via} }}]\nforwards: [{forward}]\n"
        );
        fs::write(&config, text).expect("the folder can be written");
        air.nodes[node].start(&[HOPWISE, "node", &config.to_string_lossy()])
    };
    let daemons = [
        daemon(0, 2, "{ listen: 127.0.0.1:7001, to: mesh:10.0.0.3:7002 }"),
        daemon(2, 0, "{ listen: mesh:7002, to: 127.0.0.1:7000 }"),
    ];
    let server = air.nodes[2].run(|| TcpListener::bind(("127.0.0.1", PORT)).expect("a free port"));
    thread::spawn(move || {
        for mut stream in server.incoming().flatten() {
            let mut bytes = Vec::new();
            let _ = stream.read_to_end(&mut bytes).and_then(|_| stream.write_all(&bytes));
        }
    });
    let sent: Vec<u8> = (0..20_000_u32).map(|n| (n % 251) as u8).collect();
    let talk = || -> std::io::Result<Vec<u8>> {
        let mut stream = air.nodes[0].run(|| TcpStream::connect(("127.0.0.1", 7_001)))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&sent)?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut back = Vec::new();
        stream.read_to_end(&mut back)?;
        Ok(back)
    };
    // Wait until both daemons are there.
    within_patience(until(|| talk().is_ok_and(|back| back == sent)));
    drop(daemons);
    let report = air.end();
    // Segments of 1,460 bytes go over the node between in both directions, each with its CTS, ACKs and RTS.
    assert!(report["stations"][1]["frames_sent"].as_u64() > Some(4 * 2 * 14), "{report}");
    let _ = fs::remove_dir_all(&folder);
}

/// Two endpoints on TUN devices, behind the kernels of the chain's ends. Those kernels are routers too, and no hops.
#[test]
fn dca_on_a_tun_counts_the_hops_of_the_radio_alone() {
    needs!["ip"];
    let air = Air::start("hopcount", 2, &["radio.profile=dsss-11mbps"]);
    for (node, subnet, via) in
        [(0, "10.8.0.0/24", 1), (1, "10.8.0.0/24", 2), (1, "10.7.0.0/24", 0), (2, "10.7.0.0/24", 1)]
    {
        air.nodes[node].ip(&["route", "add", subnet, "via", &address(via).to_string()]);
        air.nodes[node].sysctl("ipv4/ip_forward", "1");
    }
    // Up to `near` hops a window shares an ACK; beyond them each segment has one.
    let measured = |more: &[&str]| {
        let receiver = "dca:near=2,far=9,mid-limit=1,first=490ms,factor=9,again=off";
        let recv = ["recv", "--address", "10.8.0.2/24", "--kernel", "10.8.0.1/24", "--receiver", receiver];
        let _recv = air.nodes[2].start(&[&[HOPWISE], &recv[..], more].concat());
        let send = ["send", "10.8.0.2", "--bytes", "100kB", "--sender", "[newreno, limit:10, tell-cwnd]"];
        let send =
            [&[HOPWISE], &send[..], &["--address", "10.7.0.2/24", "--kernel", "10.7.0.1/24", "--json"]];
        let mut sent = None;
        // Wait until the other end listens.
        within_patience(until(|| {
            let output = air.nodes[0].output(&send.concat());
            sent = serde_json::from_slice::<serde_json::Value>(&output.stdout).ok();
            output.status.success()
        }));
        sent.expect("one object")["flows"][0].clone()
    };
    let flow = measured(&["--shadows", "[immediate, \"delayed:d=4\"]"]);
    assert_eq!((&flow["hops"], &flow["hops_source"]), (&2.into(), &"ttl".into()), "{flow}");
    assert_eq!((&flow["hops_back"], &flow["hops_back_source"]), (&2.into(), &"ttl".into()), "{flow}");
    let number = |flow: &serde_json::Value, key: &str| flow[key].as_u64().expect("a number");
    assert!(
        2 * number(&flow, "acks_sent") < number(&flow, "segments_sent"),
        "a window shares an ACK: {flow}"
    );
    let shadow = &flow["shadows"][0];
    assert!(shadow["receiver"] == "immediate" && number(shadow, "acks") > 60, "{flow}");
    let flow = measured(&["--hops", "3"]);
    assert_eq!((&flow["hops"], &flow["hops_source"]), (&3.into(), &"config".into()), "{flow}");
    assert!(number(&flow, "acks_sent") > 60, "each segment has an ACK: {flow}");
    let flow = measured(&["--crossings", "1"]);
    assert_eq!((&flow["hops"], &flow["hops_source"]), (&3.into(), &"ttl".into()), "{flow}");
}

#[test]
fn iperf3_runs_over_the_radio() {
    needs!["ip", "iperf3"];
    let air = Air::start("iperf", 1, &["radio.profile=dsss-11mbps"]);
    let _server = air.nodes[1].start(&["iperf3", "-s"]);
    within_patience(until(|| air.nodes[1].has_listener(5201)));
    let arguments = ["iperf3", "-c", "10.0.0.2", "-u", "-b", "500k", "-t", "2", "--json"];
    within_patience(until(|| {
        let output = air.nodes[0].output(&arguments);
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        // With --json it ends with 0 also when it could not connect. A client that is held up sends less.
        output.status.success()
            && said["error"].is_null()
            && said["end"]["sum"]["packets"].as_u64() > Some(30)
    }));
}

/// The worst lateness behind real time in its log.
fn said_behind_ms(air: &Air) -> u64 {
    let log = air.log();
    let said = log.split("behind real time by up to ").skip(1).filter_map(|said| said.split(' ').next());
    said.filter_map(|ms| ms.parse().ok()).max().unwrap_or(0)
}

#[test]
fn a_radio_that_falls_behind_real_time_says_so() {
    needs!["ip"];
    let air = Air::start("late", 1, &[]);
    air.echo(1);
    let socket = air.socket(0);
    within_patience(async {
        until(|| socket.send_to(&[0; 100], (address(1), PORT)).is_ok() && socket.recv(&mut [0; 200]).is_ok())
            .await;
        // Send more than the radio can in that time. The test may be held up before it stops the radio.
        while said_behind_ms(&air) <= 200 {
            (0..40).for_each(|_| drop(socket.send_to(&[1; 1_400], (address(1), PORT))));
            for signal in [Signal::STOP, Signal::CONT] {
                air.tell(signal);
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        }
    });
    let report = air.end();
    assert!(report["behind"]["worst_s"].as_f64() > Some(0.2), "{report}");
    assert!(report["behind"]["times"].as_u64() > Some(0), "{report}");
}

#[test]
fn a_device_that_somebody_removes_ends_it_with_an_error_that_names_it() {
    let test = "a_device_that_somebody_removes_ends_it_with_an_error_that_names_it";
    needs!["ip"];
    let mut air = Air::start(test, 1, &[]);
    let removed = air.nodes[1].output(&["ip", "link", "del", "air0"]);
    assert!(removed.status.success(), "{removed:?}");
    within_patience(until(|| air.has_ended()));
    assert!(air.log().contains("the device air0 of "), "{}", air.log());
}

/// Times as in the kernels' own captures: both can be merged. The radio's own clock begins with the world.
#[test]
fn captures_have_the_time_of_day_and_the_radios_own_time_beside() {
    needs!["ip"];
    let prefix = prefix("capture");
    let out = std::env::temp_dir().join(format!("{prefix}-captures"));
    let began = Clock::start().wall_offset();
    let air = Air::with_words(&prefix, 1, &[], &["--capture", "--out", &out.to_string_lossy()]);
    air.echo(1);
    let socket = air.socket(0);
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero");
    socket.send_to(&[1; 100], (address(1), PORT)).expect("a neighbour");
    socket.recv(&mut [0; 200]).expect("an answer");
    air.end();
    let ended = Clock::start().wall_offset();
    let file = fs::read(out.join("n0.pcapng")).expect("a capture");
    let mut reader = pcap_file::pcapng::PcapNgReader::new(&file[..]).expect("pcapng");
    let (mut frames, mut commented) = (0, 0);
    while let Some(block) = reader.next_block() {
        let Some(packet) = block.expect("whole blocks").into_owned().into_enhanced_packet() else { continue };
        let tsft = u64::from_le_bytes(packet.data[8..16].try_into().expect("a radiotap header"));
        let world_began = packet.timestamp - Duration::from_micros(tsft.saturating_sub(192));
        assert!(began <= world_began && packet.timestamp <= ended, "{:?}, TSFT {tsft}", packet.timestamp);
        assert!(packet.timestamp - began >= Duration::from_micros(tsft.saturating_sub(192)));
        frames += 1;
        commented += u32::from(packet.options.len() > 1);
    }
    assert!(frames >= 8 && commented == frames, "{frames} {commented}");
    let _ = fs::remove_dir_all(&out);
}
