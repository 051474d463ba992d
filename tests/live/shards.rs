//! Several queues, each with a stack that shares nothing with the other stacks.

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_core::endpoint::{ConnectOptions, ListenOptions, Route};
use hopwise_core::{LinkId, NextHop};
use hopwise_host::{Link, LinkCounters, LinkDrop, Shards, TunFast};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::field::{Field, PAGE, SOCKS5, THROUGH, text};
use crate::namespace::Namespace;
use crate::stream::{read_all, send_all};
use crate::world::{KERNELS, OURS, PATIENCE, stack_config, tun_config, until, within_patience};

fn start(namespace: &Namespace, queues: u16, routes: &[Route]) -> Shards {
    let opened = namespace.run(|| TunFast::open_queues(&tun_config(), queues));
    let queues = opened.expect("root may open a TUN device").into_iter();
    let links = queues.map(|queue| -> Vec<Box<dyn Link>> { vec![Box::new(queue)] }).collect();
    let config = |_, links: &[Box<dyn Link>]| {
        let mut config = stack_config(&*links[0]);
        config.endpoint.routes.extend(routes);
        config
    };
    let shards = Shards::start(links, config, || Box::new(StandardAgents::default()));
    shards.expect("the stacks start")
}

#[test]
fn a_flow_meets_its_shard_both_ways_and_also_after_a_rest() {
    needs![];
    // The kernel's own choice of a queue forgets a flow after three seconds.
    const REST: Duration = Duration::from_secs(4);
    const FLOWS: usize = 12;
    let namespace = Namespace::new();
    let shards = start(&namespace, 3, &[]);
    let listener = shards.listen(None, 80, &ListenOptions::default()).expect("the port is free");
    let kernel = namespace.run(|| TcpListener::bind((KERNELS, 0))).expect("the address is the kernel's");
    let to = kernel.local_addr().expect("it is bound");
    let mut kernels = Vec::new();
    let mut ours = within_patience(async {
        let mut ours = Vec::new();
        for _ in 0..FLOWS {
            let options = ConnectOptions::default();
            ours.push(shards.connect(to, &options).await.expect("the kernel accepts"));
            kernels.push(kernel.accept().expect("we connected").0);
            kernels.push(namespace.run(|| TcpStream::connect((OURS, 80))).expect("we listen"));
            ours.push(listener.accept().await.expect("the stacks live"));
        }
        tokio::time::sleep(REST).await;
        ours
    });
    for (number, kernel) in kernels.iter_mut().enumerate() {
        kernel.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        std::io::Write::write_all(kernel, &[number as u8]).expect("the connection holds");
    }
    within_patience(async {
        for stream in &mut ours {
            let mut byte = [0];
            stream.read_exact(&mut byte).await.expect("it meets its shard");
            stream.write_all(&byte).await.expect("the connection holds");
        }
    });
    let mut came = Vec::new();
    for kernel in &mut kernels {
        let mut byte = [0];
        std::io::Read::read_exact(kernel, &mut byte).expect("it comes back");
        came.push(usize::from(byte[0]));
    }
    came.sort_unstable();
    assert_eq!(came, (0..2 * FLOWS).collect::<Vec<_>>());
    let counters = shards.counters();
    assert!(counters.iter().all(|queue| queue.received.packets > 0), "one took all: {counters:?}");
    drop(ours);
    drop(listener);
    shards.stop(Duration::ZERO);
}

/// The kernel would give the second user queues of its own, and with them packets of the first one.
#[test]
fn a_second_user_of_a_device_with_several_queues_is_refused_until_the_first_has_gone() {
    needs![];
    let namespace = Namespace::new();
    let open = || namespace.run(|| TunFast::open_queues(&tun_config(), 2));
    let first = open().expect("root may open a TUN device");
    let said = open().map(drop).expect_err("one is enough").to_string();
    assert!(said.contains("hop0: claim it") && said.contains("another process has it open"), "{said}");
    drop(first);
    // A process that another test starts meanwhile holds it, too, until it becomes its command.
    within_patience(until(|| open().is_ok()));
}

/// The next program that opens this number of queues of the device. It prints to how many of them 64 flows of UDP came.
const NEXT_USER: &str = "
import fcntl, os, socket, struct
def queue():
    fd = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, 0x400454ca, struct.pack('16sH22x', b'hop0', 0x1101))
    return fd
fds = [queue() for _ in range(4)]
os.system('ip addr add 10.7.0.1/24 dev hop0; ip link set hop0 up')
for _ in range(64):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('10.7.0.2', 9))
def came(fd):
    try:
        return os.read(fd, 2000)[9:10] == b'\\x11' or came(fd)
    except BlockingIOError:
        return False
print(sum(came(fd) for fd in fds))
";

/// Another program's flows would all come to the first queue.
#[test]
fn a_device_with_several_queues_that_was_there_deals_packets_as_it_did() {
    needs!["python3"];
    let namespace = Namespace::new();
    namespace.ip(&["tuntap", "add", "hop0", "mode", "tun", "multi_queue"]);
    namespace.run(|| drop(TunFast::open_queues(&tun_config(), 4).expect("root may open a TUN device")));
    let told = namespace.output(&["python3", "-c", NEXT_USER]);
    let queues: u32 = text(&told.stdout).trim().parse().unwrap_or_else(|_| panic!("{told:?}"));
    assert!(queues > 1, "{queues} queues");
}

/// A shard without the news would come down to 576 bytes by trial, after some timeouts.
/// Both parts of a SYN, to ten ports, and then ten whole ones.
const SEND_PARTS: &str = r"
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
ends = socket.inet_aton('10.7.0.2') + socket.inet_aton('10.7.0.1')
def send(nth, parts, payload):
    head = struct.pack('!BBHHHBBH', 0x45, 0, 20 + len(payload), nth, parts, 64, 6, 0)
    s.sendto(head + ends + payload, ('10.7.0.1', 0))
for nth in range(1, 11):
    tcp = struct.pack('!HHIIBBHHH', 4000 + nth, 80, 1, 0, 0x60, 2, 1000, 0, 0) + b'\2\4\5\xb4'
    send(nth, 0x2000, tcp[:8])
    send(nth, 1, tcp[8:])
    send(100 + nth, 0x4000, tcp)
";

#[test]
fn parts_of_tcp_packets_are_counted_where_no_queue_of_several_can_have_them() {
    needs!["python3"];
    let namespace = Namespace::new();
    let shards = start(&namespace, 2, &[]);
    let sent = namespace.output(&["python3", "-c", SEND_PARTS]);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let counted = |of: &dyn Fn(&LinkCounters) -> u64| shards.counters().iter().map(of).sum::<u64>();
    within_patience(until(|| counted(&|queue| queue.received.packets) >= 10));
    let parts = |queue: &LinkCounters| queue.drops.get(&LinkDrop::Fragment).copied().unwrap_or_default();
    within_patience(until(|| counted(&parts) == 20));
}

#[test]
fn every_shard_hears_that_its_path_has_become_smaller() {
    needs![];
    const FLOWS: u64 = 6;
    const BYTES: u64 = 2_000_000;
    let (here, far) = (Namespace::new(), Namespace::new());
    let to = "10.8.0.0/24".parse().expect("a prefix");
    let shards = start(&here, 3, &[Route { to, link: LinkId(0), via: NextHop::Link }]);
    here.sysctl("ipv4/ip_forward", "1");
    here.join(&far, "wire", "10.8.0.1/24", "10.8.0.2/24");
    far.ip(&["route", "add", "10.7.0.0/24", "via", "10.8.0.1"]);
    let listener = far.run(|| TcpListener::bind("10.8.0.2:0")).expect("the address is there");
    let address = listener.local_addr().expect("it is bound");
    let reader = std::thread::spawn(move || {
        let accept = |_| {
            let (mut stream, _) = listener.accept().expect("we connect");
            std::thread::spawn(move || read_all(&mut stream))
        };
        let readers: Vec<_> = (0..FLOWS).map(accept).collect();
        readers.into_iter().map(|reader| reader.join().expect("it ends").expect("it reads").0).sum::<u64>()
    });
    within_patience(async {
        let mut streams = Vec::new();
        for seed in 0..FLOWS {
            let options = ConnectOptions::default();
            let mut stream = shards.connect(address, &options).await.expect("the far kernel accepts");
            send_all(&mut stream, seed, BYTES).await.expect("the connection holds");
            until(|| stream.info().is_some_and(|info| info.stats.bytes_acked >= BYTES)).await;
            streams.push(stream);
        }
        here.ip(&["link", "set", "wire", "mtu", "1000"]);
        for (seed, stream) in (0..).zip(&mut streams) {
            send_all(stream, seed, BYTES).await.expect("the connection holds");
            stream.shutdown().await.expect("the connection holds");
        }
        for stream in &streams {
            until(|| stream.info().is_none_or(|info| info.stats.bytes_acked >= 2 * BYTES)).await;
            assert_eq!(stream.info().map(|info| info.path_mtu), Some(1000));
        }
    });
    assert_eq!(reader.join().expect("the readers end"), FLOWS * 2 * BYTES);
}

/// Ports of the kernel's clients that lead to the node's port 8022 on the first and on the second of two queues.
fn clients_of_both_shards() -> [u16; 4] {
    let to = |shard| move |port: &u16| hopwise_host::shard_of(*port, 8022, 2) == shard;
    let (mut first, mut second) = ((40_000..).filter(to(0)), (40_000..).filter(to(1)));
    [(); 2].map(|()| [first.next(), second.next()].map(Option::unwrap)).concat().try_into().expect("four")
}

/// The page of a scrape; Prometheus would refuse a series that stood there twice.
fn scrape(field: &Field) -> String {
    let page = text(&field.curl(&["http://127.0.0.1:9184/metrics"]).stdout);
    let series =
        || page.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    assert_eq!(series().map(|(name, _)| name).collect::<BTreeSet<_>>().len(), series().count(), "{page}");
    page
}

fn received_by(status: &serde_json::Value, shard: usize) -> u64 {
    status["shards"][shard]["received_packets"].as_u64().expect("a number")
}

#[test]
fn a_node_with_two_queues_serves_on_both_and_is_told_of_as_one() {
    needs!["curl", "python3", "tshark"];
    let field = Field::new("queues");
    let _there = field.serve(&field.web, "10.9.0.2", "80");
    let _here = field.serve(&field.node, "127.0.0.1", "8000");
    let services = format!(
        "{SOCKS5}\nmetrics: {{ listen: 127.0.0.1:9184 }}\n\
         forwards: [{{ listen: mesh:8022, to: 127.0.0.1:8000 }}]\nstop_within: 1s"
    );
    let kind = "kind: tun-fast, queues: 2";
    let mut daemon = field.daemon_over(kind, &format!("{services}\nrules: [{{ receiver: immediate }}]"));
    let file = field.path("a.pcapng");
    assert!(field.ask(&["capture", "start", &file]).status.success());
    for port in clients_of_both_shards() {
        let outward = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
        assert_eq!(text(&outward.stdout), PAGE, "{}", text(&outward.stderr));
        let (from, to) = (port.to_string(), "http://10.7.0.2:8022/");
        let inward = field.web.output(&["curl", "-sS", "--max-time", "60", "--local-port", &from, to]);
        assert_eq!(text(&inward.stdout), PAGE, "{}", text(&inward.stderr));
    }
    // Packets may come between the two requests.
    let (mut status, mut page, mut sum) = (field.status(), String::new(), 0);
    within_patience(until(|| {
        (status, page) = (field.status(), scrape(&field));
        sum = received_by(&status, 0) + received_by(&status, 1);
        page.contains(&format!("direction=\"in\"}} {sum}\n"))
    }));
    assert_eq!(status["links"].as_array().map(Vec::len), Some(1), "{status}");
    assert!([0, 1].iter().all(|shard| received_by(&status, *shard) > 20), "one took all: {status}");
    assert_eq!(status["links"][0]["received_packets"], sum, "{status}");
    assert!(page.contains("hopwise_relay_total{what=\"socks5-accepted\"} 4"), "{page}");
    assert!(field.ask(&["capture", "stop"]).status.success());
    let shown = |filter: &str| text(&field.node.output(&["tshark", "-r", &file, "-Y", filter]).stdout);
    assert!(shown("tcp").lines().count() as u64 > 40);
    assert_eq!(shown("ip.src == 10.7.0.2 && !frame.comment"), "");
    assert_eq!(shown("_ws.malformed || _ws.expert.severity == error"), "");
    // Later rules hold for every shard.
    field.config_over(kind, &format!("{services}\nrules: [{{ receiver: \"delayed:d=7\" }}]"));
    daemon.tell(Signal::HUP);
    within_patience(until(|| field.log().contains("rules reloaded")));
    let held: Vec<_> = field.web.run(|| {
        let connect = |_| TcpStream::connect("10.7.0.2:8022").expect("the node listens");
        (0..32).map(connect).collect()
    });
    // The kernel's clients are connected before the node has accepted them.
    let mut shards = Vec::new();
    within_patience(until(|| {
        let status = field.status();
        let connections = status["connections"].as_array().expect("a list");
        let with_it = connections.iter().filter(|conn| conn["receiver"] == "delayed:d=7");
        shards = with_it.map(|conn| conn["shard"].as_u64()).collect();
        shards.len() == held.len()
    }));
    assert!(shards.contains(&Some(0)) && shards.contains(&Some(1)), "{shards:?}");
    let seen = text(&field.ask(&["status"]).stdout);
    assert!(seen.contains("\nshards: ") && seen.contains("\n1."), "{seen}");
    assert!(text(&field.ask(&["status", "--watch", "--once"]).stdout).contains("\n0."));
    drop(held);
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    assert!(!field.node.output(&["ip", "link", "show", "hw0"]).status.success());
}
