//! The state that peers can make a node hold: connections without a reader, silent ones, and endless handshakes.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::field::{Field, PAGE, SOCKS5, THROUGH, text};
use crate::flood;
use crate::world::{until, within_patience};

/// Speaks TCP from unused addresses: each of them opens a connection and calls `opened`.
const SPEAKS: &str = r"
import random, select, socket, struct, sys
dst, port, count, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
seen = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
seen.bind(('wire0', 0x0800))
def sum16(data):
    data += b'\0' * (len(data) % 2)
    total = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
def say(src, sport, seq, ack, flags, window, data=b''):
    ends = socket.inet_aton(src) + socket.inet_aton(dst)
    def head(check):
        return struct.pack('!HHIIBBHHH', sport, port, seq, ack, 0x50, flags, window, check, 0)
    length = 20 + len(data)
    check = sum16(ends + struct.pack('!BBH', 0, 6, length) + head(0) + data)
    ip = struct.pack('!BBHHHBBH', 0x45, 0, 20 + length, 0, 0, 64, 6, 0) + ends
    raw.sendto(ip + head(check) + data, (dst, 0))
def open(src, sport, opened):
    for attempt in range(20):
        say(src, sport, 1, 0, 2, 0)
        found = False
        while not found and select.select([seen], [], [], 0.5)[0]:
            packet = seen.recv(65535)
            size = (packet[0] & 15) * 4
            if packet[9] != 6 or packet[12:16] != socket.inet_aton(dst):
                continue
            to, seq = struct.unpack('!H4s', packet[size + 2:size + 8])
            flags = packet[size + 13]
            if to == sport and flags & 0x12 == 0x12:
                opened((struct.unpack('!I', seq)[0] + 1) & 0xffffffff)
                found = True
        if found:
            return True
    return False
";

/// Connects `count` times, requests a page, closes, and takes none of it.
const TAKES_NOTHING: &str = r"
answered = 0
for nth in range(count):
    src, sport = '10.8.0.%d' % (1 + nth % 200), 20000 + nth
    ask = ('GET /%s HTTP/1.0\r\n\r\n' % path).encode()
    answered += open(src, sport, lambda ours: say(src, sport, 2, ours, 0x19, 0, ask))
print(answered)
";

/// Sends garbage, fragments and ICMP errors `count` times. In between, 20 peers send data with holes.
const DISTURBS: &str = r"
random.seed(7)
sources = ['10.8.0.%d' % host for host in range(201, 255)]
def ip(src, protocol, payload, fragment=0):
    ends = socket.inet_aton(src) + socket.inet_aton(dst)
    head = struct.pack('!BBHHHBBH', 0x45, 0, 0, random.randrange(1, 65536), fragment, 64, protocol, 0)
    try:
        raw.sendto(head + ends + payload, (dst, 0))
    except OSError:
        pass
def icmp_error():
    kind, code = random.choice([(3, 1), (3, 3), (3, 4), (11, 0), (12, 0)])
    inner = struct.pack('!BBHHHBBH', 0x45, 0, 1500, 1, 0x4000, 60, 6, 0)
    inner += socket.inet_aton(dst) + socket.inet_aton(random.choice(sources))
    inner += struct.pack('!HHI', port, random.randrange(65536), random.randrange(1 << 32))
    def message(check):
        return struct.pack('!BBHHH', kind, code, check, 0, random.choice([0, 68, 552, 1400])) + inner
    return message(0)[:2] + struct.pack('!H', sum16(message(0))) + message(0)[4:]
holes = []
def send_with_holes():
    src, sport, ours = random.choice(holes)
    at = 2 + 8 * random.randrange(1, 7000)
    say(src, sport, at, ours, 0x10, 1000, random.randbytes(random.randrange(1, 1000)))
for nth in range(20):
    src, sport = sources[nth], 30000 + nth
    open(src, sport, lambda ours: (say(src, sport, 2, ours, 0x10, 1000), holes.append((src, sport, ours))))
for nth in range(count):
    src = random.choice(sources)
    ip(src, random.choice([1, 6, 17, 50, 255]), random.randbytes(random.randrange(1400)))
    ip(src, 17, random.randbytes(8 * random.randrange(1, 170)), 0x2000 | random.choice([0, random.randrange(7000)]))
    ip(src, 1, icmp_error())
    if holes:
        send_with_holes()
print(len(holes))
";

/// Runs one of these scripts against the forward.
fn attack(field: &Field, script: &str, count: u64, path: &str) -> String {
    let (script, count) = (format!("{SPEAKS}{script}"), count.to_string());
    let said = field.web.output(&["python3", "-c", &script, "10.7.0.2", "8022", &count, path]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    text(&said.stdout).trim().to_owned()
}

const STUCK: u64 = 300;
const SILENT: usize = 40;
const DISTURBANCES: u64 = 3000;
const SEATS: &str = "connections: 30, reads_within: 500ms";
/// The limit for the whole process, whatever its peers do.
const MOST_BYTES: u64 = 160 << 20;

fn resident_bytes(process: u32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{process}/statm")).expect("it lives");
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("the second field");
    pages * 4096
}

/// A node with a web server behind a port of the mesh, and a page that no window takes at once.
fn served(test: &str) -> Field {
    let field = Field::new(test);
    let large = fs::File::create(field.path("www/large")).expect("the folder can be written");
    large.set_len(60_000).expect("it is a hole");
    field.web.ip(&["route", "add", "blackhole", "10.8.0.0/24"]);
    field
}

fn gets_the_page(field: &Field) -> bool {
    let page = field.web.output(&["curl", "-sS", "--max-time", "60", "http://10.7.0.2:8022/"]);
    text(&page.stdout) == PAGE
}

#[test]
fn peers_that_take_nothing_of_what_a_server_left_for_them_are_bounded() {
    needs!["curl", "python3"];
    let field = served("orphans");
    let _here = field.serve(&field.node, "127.0.0.1", "8000");
    // Few at a time: the server's own queue is short, and a connection beyond it is reset.
    let more = "forwards: [{ listen: mesh:8022, to: 127.0.0.1:8000, connections: 4 }]\n\
                bounds: { orphans: 100, orphan_memory: 4MiB }";
    let _daemon = field.daemon(more);
    assert_eq!(attack(&field, TAKES_NOTHING, STUCK, "large"), STUCK.to_string());
    let held = |what: &str| field.status()["bounds"]["held"][what].as_u64().expect("it is told");
    let gave_way = || {
        let told = field.status();
        let of = |what: &str| told["bounds"]["gave_way"][what].as_u64().unwrap_or(0);
        of("orphans") + of("orphan-memory")
    };
    within_patience(until(|| gave_way() > STUCK / 2));
    assert!(held("orphans") <= 100 && held("orphan-memory") <= 4 << 20, "{}", field.status()["bounds"]);
    assert!(gets_the_page(&field));
}

#[test]
fn silent_clients_keep_nobody_out_of_a_forward() {
    needs!["curl", "python3"];
    let field = served("silent");
    let _here = field.serve(&field.node, "127.0.0.1", "8000");
    let _daemon = field.daemon(&format!("forwards: [{{ listen: mesh:8022, to: 127.0.0.1:8000, {SEATS} }}]"));
    let connect = |_| TcpStream::connect("10.7.0.2:8022").expect("the forward listens");
    let silent: Vec<_> = field.web.run(|| (0..SILENT).map(connect).collect());
    within_patience(until(|| gets_the_page(&field)));
    assert!(field.status()["relays"]["forwards-gave-way"].as_u64().expect("it is counted") > 0);
    within_patience(until(|| field.log().contains("made room for others: ")));
    assert!(field.log().contains(" of forward mesh:8022"), "{}", field.log());
    drop(silent);
}

#[test]
fn a_source_that_fills_the_table_keeps_no_other_out() {
    needs!["curl", "python3"];
    let field = served("table");
    let _here = field.serve(&field.node, "127.0.0.1", "8000");
    let _daemon = field.daemon(
        "forwards: [{ listen: mesh:8022, to: 127.0.0.1:8000, connections: 100 }]\nbounds: { connections: 20 }",
    );
    let bounds = || field.status()["bounds"].take();
    let connect = |_| TcpStream::connect("10.7.0.2:8022").expect("the forward listens");
    let greedy: Vec<_> = field.web.run(|| (0..20).map(connect).collect());
    within_patience(until(|| bounds()["held"]["connections"] == 20));
    for (what, held, most) in [
        ("connections", 20, 20),
        ("forward mesh:8022", 20, 100),
        ("forward-lookups", 0, 32),
        ("handshakes", 0, 4096),
        ("fragments", 0, 256),
    ] {
        let told = bounds();
        assert_eq!(
            (&told["held"][what], &told["most"][what]),
            (&held.into(), &most.into()),
            "{what}: {told}"
        );
    }
    let page = text(&field.ask(&["status"]).stdout);
    assert!(page.contains("forward mesh:8022 20 of 100"), "{page}");
    field.web.ip(&["address", "add", "10.9.0.77/24", "dev", "wire0"]);
    let from = ["-sS", "--max-time", "60", "--interface", "10.9.0.77", "http://10.7.0.2:8022/"];
    let page = field.web.output(&[&["curl"], &from[..]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
    assert_eq!(bounds()["gave_way"]["connections"], 1);
    within_patience(until(|| field.log().contains("made room for others: 1 of connections;")));
    assert!(field.log().contains("bounds.connections: 20 are fewer than the 100 seats"), "{}", field.log());
    drop(greedy);
}

/// The bounds of this test, and of a node that has none in its file.
const TIGHT: &str = "bounds: { connections: 8192, orphans: 100, orphan_memory: 4MiB, memory: 16MiB }";
const DEFAULTS: &str = "";

/// Keeps clients connected that name no target, and clients that send a byte now and then. None gets far.
fn dawdle(field: &Field, stop: &AtomicBool) {
    let connect = |at: &str, says: &[u8]| {
        let client = TcpStream::connect(at).ok();
        client.and_then(|mut client| client.write_all(says).is_ok().then_some(client))
    };
    let of_socks5: Vec<_> = field.node.run(|| (0..50).map(|_| connect("127.0.0.1:1080", &[5])).collect());
    let mut of_forward: Vec<_> =
        field.web.run(|| (0..SILENT).map(|_| connect("10.7.0.2:8022", b"G")).collect());
    while !stop.load(Ordering::Relaxed) {
        for client in of_forward.iter_mut().step_by(2).flatten() {
            // It may have made room.
            let _ = client.write_all(b"E");
        }
        thread::park_timeout(Duration::from_millis(200));
    }
    drop((of_socks5, of_forward));
}

/// Ends the attacks when it is dropped, also where the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_node_that_is_attacked_in_every_way_at_once_stays_small_and_serves() {
    needs!["curl", "python3"];
    for (nth, (bounds, orphans)) in [(TIGHT, 100), (DEFAULTS, 4096)].into_iter().enumerate() {
        let field = served(&format!("mix-{nth}"));
        let _here = field.serve(&field.node, "127.0.0.1", "8000");
        let _there = field.serve(&field.web, "10.9.0.2", "80");
        let daemon = field.daemon(&format!(
            "forwards: [{{ listen: mesh:8022, to: 127.0.0.1:8000, {SEATS} }}]\n{SOCKS5}\n{bounds}"
        ));
        let (sent, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let ours = "10.7.0.2".parse().expect("an address");
        let is_served = || {
            let page = field.curl(&[&THROUGH[..], &["--max-time", "60", "http://10.9.0.2/"]].concat());
            gets_the_page(&field) && text(&page.stdout) == PAGE
        };
        let mut largest = 0;
        thread::scope(|scope| {
            let ends = Ends(&stop);
            scope.spawn(|| field.web.run(|| flood::run(ours, 8022, 500, &sent, &stop)));
            scope.spawn(|| dawdle(&field, &stop));
            let attacks = [(TAKES_NOTHING, STUCK), (DISTURBS, DISTURBANCES)];
            let attacks = attacks.map(|(script, count)| {
                let field = &field;
                scope.spawn(move || attack(field, script, count, "large"))
            });
            let mut pages = 0;
            while pages < 3 || !attacks.iter().all(thread::ScopedJoinHandle::is_finished) {
                within_patience(until(is_served));
                pages += 1;
                largest = largest.max(resident_bytes(daemon.0.id()));
            }
            drop(ends);
            let [_, holes] = attacks.map(|attack| attack.join().expect("it ends"));
            assert_ne!(holes, "0", "data with holes was sent");
        });
        largest = largest.max(resident_bytes(daemon.0.id()));
        eprintln!("{} MiB at most with `{bounds}`", largest >> 20);
        assert!(largest < MOST_BYTES, "{largest} bytes with `{bounds}`");
        let status = field.status();
        assert!(status["bounds"]["held"]["orphans"].as_u64() <= Some(orphans), "{status}");
        for reason in ["-checksum\":", "fragments-full\":"] {
            assert!(status["drops"].to_string().contains(reason), "{reason} {}", status["drops"]);
        }
    }
}
