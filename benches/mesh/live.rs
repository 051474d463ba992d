//! Daemons in four namespaces on a line: the time in which the first connection from end to end finds its route and
//! opens.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_host::Clock;

use crate::namespace::{Namespace, obstacle};
use crate::row::{Better, Row};

const HOPWISE: &str = env!("CARGO_BIN_EXE_hopwise");
const NODES: usize = 4;
const PORT: u16 = 7_000;
const TIMES: usize = 15;
/// The goal.
const MOST_MS: f64 = 50.0;
/// Routes are soon gone when nothing flows, and the first ring is the whole line.
const ROUTING: &str = "{ protocol: aodv, ttl_start: 35, hello_interval: 200ms, active_route_timeout: 300ms }";

pub(crate) fn rows() -> Vec<Row> {
    if let Some(why) = obstacle() {
        eprintln!("  left out: {why}");
        return Vec::new();
    }
    let line = Line::new();
    let mut times: Vec<f64> = (0..TIMES).map(|_| line.opened_ms()).collect();
    times.sort_by(f64::total_cmp);
    let (median, worst) = (times[TIMES / 2], times[TIMES - 1]);
    let row = |name, ms| Row::beside(name, "ms", Better::Less, ms, ("the limit", MOST_MS)).meant_to_be(1.0);
    vec![row("a route over 4 namespaces, and a handshake", median), row("the same, the longest of 15", worst)]
}

struct Line {
    daemons: Vec<Child>,
    nodes: Vec<Namespace>,
    folder: PathBuf,
}

fn address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 78, 0, node as u8 + 1)
}

impl Line {
    fn new() -> Line {
        let folder = std::env::temp_dir().join(format!("hopbench-mesh-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder can be written");
        let nodes: Vec<_> = (0..NODES).map(|_| Namespace::new()).collect();
        for node in 1..NODES {
            let device = format!("line{node}");
            nodes[node - 1].join(&nodes[node], &device, "169.254.78.1/32", "169.254.78.2/32");
            for end in [node - 1, node] {
                nodes[end].ip(&["addr", "flush", "dev", &device]);
            }
        }
        let mut line = Line { daemons: Vec::new(), nodes, folder };
        (0..NODES).for_each(|node| line.start(node));
        let listener = line.nodes[NODES - 1].run(|| TcpListener::bind((address(NODES - 1), PORT)));
        let listener = listener.expect("a free port");
        thread::spawn(move || listener.incoming().for_each(drop));
        line
    }

    fn start(&mut self, node: usize) {
        let devices: Vec<_> = (node.max(1)..=(node + 1).min(NODES - 1)).map(|n| format!("line{n}")).collect();
        let (config, log) =
            (self.folder.join(format!("{node}.yaml")), self.folder.join(format!("{node}.log")));
        let text = format!(
            "address: {}\nnetwork: 10.78.0.0/24\ninterfaces: [{}]\nstate: {}\nrouting: {ROUTING}\n",
            address(node),
            devices.join(", "),
            self.folder.join(format!("{node}.state")).display()
        );
        fs::write(&config, text).expect("the folder can be written");
        let mut command = self.nodes[node].command(&[HOPWISE, "route", &config.to_string_lossy()]);
        let file = File::create(&log).expect("the folder can be written");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        self.daemons.push(command.spawn().expect("ip netns exec runs"));
        until("a daemon is ready", || fs::read_to_string(&log).is_ok_and(|text| text.contains("ready")));
    }

    fn has_way(&self) -> bool {
        let output = self.nodes[0].output(&["ip", "-4", "route", "show", "proto", "87"]);
        String::from_utf8_lossy(&output.stdout).contains(&address(NODES - 1).to_string())
    }

    /// Opens a connection when no route is known any more.
    fn opened_ms(&self) -> f64 {
        until("routes run out", || !self.has_way());
        let to = SocketAddr::from((address(NODES - 1), PORT));
        let opened = self.nodes[0].run(|| {
            let clock = Clock::start();
            TcpStream::connect_timeout(&to, Duration::from_secs(30)).map(|_| clock.now().since(Instant::ZERO))
        });
        opened.expect("a way over three hops").as_secs_f64() * 1e3
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = Clock::start();
    while !is_so() {
        assert!(clock.now().since(Instant::ZERO) < Duration::from_secs(60), "{what}: not in a minute");
        thread::yield_now();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
