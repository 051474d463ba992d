//! The state that peers can make a node hold: connections without a reader, silent ones, and endless handshakes.

use std::fs;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::field::{Field, PAGE, text};
use crate::flood;
use crate::namespace::can_run;
use crate::world::{until, within_patience};

/// Connects `count` times from unused addresses, requests a page, closes, and takes none of it.
const TAKES_NOTHING: &str = r"
import select, socket, struct, sys
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
answered = 0
for nth in range(count):
    src, sport = '10.8.0.%d' % (1 + nth % 200), 20000 + nth
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
                ours = struct.unpack('!I', seq)[0] + 1
                ask = ('GET /%s HTTP/1.0\r\n\r\n' % path).encode()
                say(src, sport, 2, ours, 0x19, 0, ask)
                answered, found = answered + 1, True
        if found:
            break
print(answered)
";

const STUCK: u64 = 300;
const SILENT: usize = 40;
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
    let test = "peers_that_take_nothing_of_what_a_server_left_for_them_are_bounded";
    if !can_run(test, &["curl", "python3"]) {
        return;
    }
    let field = served("orphans");
    let _here = field.serve(&field.node, "127.0.0.1", "8000");
    // Few at a time: the server's own queue is short, and a connection beyond it is reset.
    let more = "forwards: [{ listen: mesh:8022, to: 127.0.0.1:8000, connections: 4 }]\n\
                bounds: { orphans: 100, orphan_memory: 4MiB }";
    let _daemon = field.daemon(more);
    let count = STUCK.to_string();
    let said = field.web.output(&["python3", "-c", TAKES_NOTHING, "10.7.0.2", "8022", &count, "large"]);
    assert_eq!(text(&said.stdout).trim(), count, "{}", text(&said.stderr));
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
    if !can_run("silent_clients_keep_nobody_out_of_a_forward", &["curl", "python3"]) {
        return;
    }
    let field = served("silent");
    let _here = field.serve(&field.node, "127.0.0.1", "8000");
    let _daemon = field.daemon(&format!("forwards: [{{ listen: mesh:8022, to: 127.0.0.1:8000, {SEATS} }}]"));
    let connect = |_| TcpStream::connect("10.7.0.2:8022").expect("the forward listens");
    let silent: Vec<_> = field.web.run(|| (0..SILENT).map(connect).collect());
    within_patience(until(|| gets_the_page(&field)));
    assert!(field.status()["relays"]["forwards-gave-way"].as_u64().expect("it is counted") > 0);
    drop(silent);
}

#[test]
fn a_source_that_fills_the_table_keeps_no_other_out() {
    if !can_run("a_source_that_fills_the_table_keeps_no_other_out", &["curl", "python3"]) {
        return;
    }
    let field = served("table");
    let _here = field.serve(&field.node, "127.0.0.1", "8000");
    let _daemon = field.daemon(
        "forwards: [{ listen: mesh:8022, to: 127.0.0.1:8000, connections: 100 }]\nbounds: { connections: 20 }",
    );
    let bounds = || field.status()["bounds"].take();
    let connect = |_| TcpStream::connect("10.7.0.2:8022").expect("the forward listens");
    let greedy: Vec<_> = field.web.run(|| (0..20).map(connect).collect());
    within_patience(until(|| bounds()["held"]["connections"] == 20));
    field.web.ip(&["address", "add", "10.9.0.77/24", "dev", "wire0"]);
    let from = ["-sS", "--max-time", "60", "--interface", "10.9.0.77", "http://10.7.0.2:8022/"];
    let page = field.web.output(&[&["curl"], &from[..]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
    assert_eq!(bounds()["gave_way"]["connections"], 1);
    within_patience(until(|| field.log().contains("connections were reset to make room")));
    assert!(field.log().contains("bounds.connections: 20 are fewer than the 100 seats"), "{}", field.log());
    drop(greedy);
}

#[test]
fn a_node_that_is_attacked_in_every_way_at_once_stays_small_and_serves() {
    if !can_run("a_node_that_is_attacked_in_every_way_at_once_stays_small_and_serves", &["curl", "python3"]) {
        return;
    }
    let field = served("mix");
    let _here = field.serve(&field.node, "127.0.0.1", "8000");
    let daemon = field.daemon(&format!(
        "forwards: [{{ listen: mesh:8022, to: 127.0.0.1:8000, {SEATS} }}]\n\
         bounds: {{ connections: 8192, orphans: 100, orphan_memory: 4MiB, memory: 16MiB }}"
    ));
    let (sent, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let ours = "10.7.0.2".parse().expect("an address");
    thread::scope(|scope| {
        scope.spawn(|| field.web.run(|| flood::run(ours, 8022, 500, &sent, &stop)));
        let count = STUCK.to_string();
        let field = &field;
        let stuck = scope.spawn(move || {
            field.web.output(&["python3", "-c", TAKES_NOTHING, "10.7.0.2", "8022", &count, "large"])
        });
        let connect = |_| TcpStream::connect("10.7.0.2:8022").ok();
        let silent: Vec<_> = field.web.run(|| (0..SILENT).map(connect).collect());
        for _ in 0..3 {
            within_patience(until(|| gets_the_page(field)));
            assert!(resident_bytes(daemon.0.id()) < MOST_BYTES);
        }
        stuck.join().expect("it ends");
        stop.store(true, Ordering::Relaxed);
        drop(silent);
    });
    assert!(resident_bytes(daemon.0.id()) < MOST_BYTES);
    let bounds = &field.status()["bounds"];
    assert!(bounds["held"]["orphans"].as_u64() <= Some(100), "{bounds}");
}
