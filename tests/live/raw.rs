//! The stack on an Ethernet device that the kernel uses as well: a neighbour's kernel is the peer.

use std::collections::HashMap;
use std::net::{IpAddr, TcpListener, TcpStream};

use hopwise_core::LinkId;
use hopwise_core::endpoint::{ConnectOptions, EndpointConfig, ListenOptions};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::CloseReason;
use hopwise_host::{
    Capture, CaptureSettings, CapturedLink, ConnectError, Framing, LinkError, Observer, Raw, RawConfig,
    Stack, StackConfig, describe,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::namespace::Namespace;
use crate::stream::{read_all, receive_all, send_all, write_all};
use crate::world::{until, within_patience};

const BYTES: u64 = 20_000_000;

/// Two namespaces on a wire; the stack is in the first, together with its kernel.
struct Wired {
    stack: Stack,
    here: Namespace,
    there: Namespace,
}

fn prefix(text: &str) -> Prefix {
    text.parse().expect("a prefix")
}

fn config(addresses: &[&str], offload: bool) -> RawConfig {
    RawConfig {
        device: "wire".into(),
        addresses: addresses.iter().map(|text| prefix(text)).collect(),
        offload,
    }
}

fn namespaces() -> (Namespace, Namespace) {
    let (here, there) = (Namespace::new(), Namespace::new());
    here.join(&there, "wire", "10.8.0.1/24", "10.8.0.2/24");
    for (namespace, address) in [(&here, "fd08::1/64"), (&there, "fd08::2/64")] {
        namespace.ip(&["addr", "add", address, "dev", "wire", "nodad"]);
    }
    (here, there)
}

impl Wired {
    fn new(addresses: &[&str], offload: bool) -> Wired {
        Wired::watched(addresses, offload, Vec::new())
    }

    fn watched(addresses: &[&str], offload: bool, observers: Vec<Box<dyn Observer>>) -> Wired {
        let (here, there) = namespaces();
        let config = config(addresses, offload);
        let link = Box::new(here.run(|| Raw::open(&config)).expect("root may open a packet socket"));
        let described = describe(&*link, LinkId(0), config.addresses);
        let key = hopwise_host::random_key().expect("the kernel has randomness");
        let config = StackConfig { observers, ..StackConfig::new(EndpointConfig::new(described, key)) };
        let stack = Stack::start(config, vec![link], Box::new(hopwise_agents::StandardAgents::default()));
        Wired { stack: stack.expect("the stack starts"), here, there }
    }

    fn we_send(&self, to: &str) {
        let to: IpAddr = to.parse().expect("an address");
        let listener = self.there.run(|| TcpListener::bind((to, 0))).expect("the address is the kernel's");
        let address = listener.local_addr().expect("it is bound");
        let reader = std::thread::spawn(move || read_all(&mut listener.accept()?.0));
        let sent = within_patience(async {
            let options = ConnectOptions::default();
            let mut stream = self.stack.connect(address, &options).await.expect("the kernel accepts");
            let sent = send_all(&mut stream, 1, BYTES).await.expect("the connection holds");
            stream.shutdown().await.expect("the connection holds");
            sent
        });
        assert_eq!(reader.join().expect("the reader ends").expect("the kernel reads"), (BYTES, sent));
    }

    fn the_kernel_sends(&self, to: &str) {
        let to: IpAddr = to.parse().expect("an address");
        let listener = self.stack.listen(Some(to), 80, ListenOptions::default()).expect("the port is free");
        let mut stream = self.there.run(|| TcpStream::connect((to, 80))).expect("we listen");
        let writer = std::thread::spawn(move || write_all(&mut stream, 2, BYTES));
        let received = within_patience(async {
            let mut stream = listener.accept().await.expect("the stack lives");
            receive_all(&mut stream).await.expect("the connection holds")
        });
        let sent = writer.join().expect("the writer ends").expect("the kernel writes");
        assert_eq!(received, (BYTES, sent));
    }

    fn tables(&self) -> String {
        String::from_utf8_lossy(&self.here.output(&["nft", "list", "tables"]).stdout).into_owned()
    }
}

#[test]
fn addresses_of_our_own_carry_both_directions_with_and_without_bundles() {
    needs!["nft"];
    for offload in [false, true] {
        let wired = Wired::new(&["10.8.0.7/24", "fd08::7/64"], offload);
        for (ours, theirs) in [("10.8.0.7", "10.8.0.2"), ("fd08::7", "fd08::2")] {
            wired.we_send(theirs);
            wired.the_kernel_sends(ours);
        }
        assert!(wired.tables().contains("hopwise_wire"));
        let Wired { stack, here, .. } = wired;
        stack.stop(std::time::Duration::ZERO);
        let left = here.output(&["nft", "list", "tables"]);
        assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    }
}

#[test]
fn a_kernel_that_shares_our_address_does_not_reset_our_connections() {
    needs!["nft"];
    let wired = Wired::new(&["10.8.0.1/24"], false);
    wired.we_send("10.8.0.2");
    wired.the_kernel_sends("10.8.0.1");
}

#[test]
fn a_table_that_a_crash_left_behind_is_replaced_and_a_second_user_is_refused() {
    needs!["nft"];
    let (here, _there) = namespaces();
    let table = "add table inet hopwise_wire; add chain inet hopwise_wire stale";
    assert!(here.output(&["nft", table]).status.success());
    let config = config(&["10.8.0.7/24"], false);
    let link = here.run(|| Raw::open(&config)).expect("root may open a packet socket");
    let rules = || String::from_utf8_lossy(&here.output(&["nft", "list", "ruleset"]).stdout).into_owned();
    assert!(rules().contains("ip daddr 10.8.0.7 drop") && !rules().contains("stale"), "{}", rules());
    let second = here.run(|| Raw::open(&config)).map(drop);
    assert!(matches!(&second, Err(LinkError::System { .. })), "{second:?}");
    assert!(rules().contains("ip daddr 10.8.0.7 drop"), "the first one's table stays");
    drop(link);
    assert_eq!(rules(), "");
}

#[test]
fn an_ethernet_that_goes_down_comes_back_and_one_that_vanishes_is_told_of() {
    needs!["nft"];
    let wired = Wired::new(&["10.8.0.7/24"], false);
    wired.we_send("10.8.0.2");
    wired.here.ip(&["link", "set", "wire", "down"]);
    wired.here.ip(&["link", "set", "wire", "up"]);
    wired.we_send("10.8.0.2");
    assert!(!wired.stack.counters().iter().any(|link| link.is_gone));
    wired.here.ip(&["link", "del", "wire"]);
    within_patience(until(|| wired.stack.counters().iter().any(|link| link.is_gone)));
}

#[test]
fn nobody_at_an_address_is_told_as_unreachable() {
    needs!["nft"];
    let wired = Wired::new(&["10.8.0.7/24", "fd08::7/64"], false);
    for nobody in ["10.8.0.99:80", "[fd08::99]:80"] {
        let options = ConnectOptions::default();
        let to = nobody.parse().expect("an address");
        let said = within_patience(wired.stack.connect(to, &options)).map(drop);
        assert!(matches!(said, Err(ConnectError::Failed(CloseReason::Unreachable))), "{nobody}: {said:?}");
    }
    assert!(wired.stack.counters()[0].drops.contains_key(&hopwise_host::LinkDrop::Unresolved));
    drop(wired.there);
}

#[test]
fn junk_on_an_ethernet_hurts_nobody() {
    const SEND_JUNK: &str = r"
import random, socket
random.seed(2)
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(('wire', 0))
for i in range(5000):
    kind = random.choice([b'\x08\x06', b'\x08\x00', b'\x86\xdd', random.randbytes(2)])
    arp, v4, v6 = bytes.fromhex('0001080006040001'), bytes.fromhex('45000028'), bytes.fromhex('6000000000183aff')
    body = random.choice([b'', arp, v4, v6]) + random.randbytes(random.choice([0, 5, 20, 40, 1400]))
    s.send(b'\xff' * 6 + random.randbytes(6) + kind + body)
";
    needs!["nft", "python3"];
    let wired = Wired::new(&["10.8.0.7/24", "fd08::7/64"], false);
    let listener = wired.stack.listen(None, 7, ListenOptions::default()).expect("the port is free");
    let kernel = wired.there.run(|| TcpStream::connect("10.8.0.7:7")).expect("we listen");
    let done = wired.there.output(&["python3", "-c", SEND_JUNK]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let echo = std::thread::spawn(move || {
        std::io::Write::write_all(&mut &kernel, b"still here")?;
        let mut back = [0; 10];
        std::io::Read::read_exact(&mut &kernel, &mut back).map(|()| back)
    });
    within_patience(async {
        let mut stream = listener.accept().await.expect("the stack lives");
        let mut said = [0; 10];
        stream.read_exact(&mut said).await.expect("the connection holds");
        stream.write_all(&said).await.expect("the connection holds");
    });
    assert_eq!(&echo.join().expect("the kernel's end ends").expect("it comes back"), b"still here");
    assert!(!wired.stack.counters()[0].drops.is_empty());
}

/// The fields of a file's frames, as tshark prints them.
fn frames(file: &str) -> Vec<HashMap<&'static str, String>> {
    const FIELDS: [&str; 12] = [
        "frame.time_delta",
        "eth.src",
        "eth.dst",
        "arp.opcode",
        "arp.dst.proto_ipv4",
        "icmpv6.type",
        "ip.src",
        "ipv6.src",
        "tcp.flags.syn",
        "tcp.flags.ack",
        "tcp.len",
        "frame.comment",
    ];
    let mut tshark = std::process::Command::new("tshark");
    // A port of chance may be one of a protocol of which Wireshark would put a whole stream together, byte by byte.
    tshark.args(["-o", "tcp.desegment_tcp_streams:FALSE", "-r", file, "-T", "fields"]);
    tshark.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let told = String::from_utf8_lossy(&tshark.output().expect("tshark runs").stdout).into_owned();
    let frame = |line: &str| FIELDS.into_iter().zip(line.split('\t').map(str::to_owned)).collect();
    told.lines().map(frame).collect()
}

#[test]
fn a_capture_of_an_ethernet_shows_who_is_sought_before_what_waited() {
    needs!["nft", "tshark"];
    let file = std::env::temp_dir().join(format!("hopwise-raw-{}.pcapng", std::process::id()));
    let capture = Capture::default();
    let wired = Wired::watched(&["10.8.0.7/24", "fd08::7/64"], false, vec![Box::new(capture.tap(0))]);
    let links = vec![CapturedLink { name: "wire".into(), framing: Framing::Ethernet }];
    let settings = CaptureSettings {
        path: file.clone(),
        rotate_bytes: None,
        files: std::num::NonZeroU32::MIN,
        links,
        wanted: vec![LinkId(0)],
        wall_clock_offset: std::time::Duration::ZERO,
        names: vec![Box::new(|_| None)],
    };
    capture.start(settings).expect("the folder can be written");
    wired.we_send("10.8.0.2");
    wired.we_send("fd08::2");
    capture.stop().expect("it runs");
    let file = file.to_str().expect("a path in UTF-8").to_owned();
    let macs: Vec<String> = [&wired.here, &wired.there]
        .map(|namespace| namespace.output(&["cat", "/sys/class/net/wire/address"]).stdout)
        .map(|told| String::from_utf8_lossy(&told).trim().to_owned())
        .into();
    let frames = frames(&file);
    let first = |wanted: &[(&str, &str)]| {
        // Some versions of tshark print flags as numbers.
        let says = |told: &str, value: &str| {
            told == value || (told == "True" && value == "1") || (told == "False" && value == "0")
        };
        let fits = |frame: &HashMap<&str, String>| {
            wanted.iter().all(|(field, value)| match *value {
                "*" => !frame[field].is_empty(),
                value => says(&frame[field], value),
            })
        };
        frames.iter().position(fits).unwrap_or_else(|| panic!("{wanted:?}: no frame"))
    };
    let [ours, theirs] = [&macs[0], &macs[1]];
    for (question, answer, family) in [
        (&[("arp.opcode", "1"), ("arp.dst.proto_ipv4", "10.8.0.2")][..], ("arp.opcode", "2"), "ip.src"),
        (&[("icmpv6.type", "135")], ("icmpv6.type", "136"), "ipv6.src"),
    ] {
        let syn = first(&[(family, "*"), ("tcp.flags.syn", "1"), ("tcp.flags.ack", "0")]);
        assert!(first(question) < first(&[answer]) && first(&[answer]) < syn, "{family}");
        assert_eq!([&frames[syn]["eth.src"], &frames[syn]["eth.dst"]], [ours, theirs]);
        let reason = &frames[syn]["frame.comment"];
        assert!(reason.contains("opens"), "what waited has lost its reason: {reason:?}");
    }
    assert!(frames.iter().all(|frame| frame["eth.dst"] != "00:00:00:00:00:00"));
    assert!(frames.iter().all(|frame| !frame["frame.time_delta"].starts_with('-')), "not in order");
    let data = frames.iter().find(|frame| !["", "0"].contains(&frame["tcp.len"].as_str()));
    assert_eq!(data.map(|frame| &frame["eth.src"]), Some(ours));
    std::fs::remove_file(&file).expect("it is there");
}

/// Questions and false answers with tags, then a question with a priority alone. It prints the addresses that get an
/// answer.
const SEND_TAGGED: &str = r"
import socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x806))
s.bind(('wire', 0x806))
mine, all, ours, false = s.getsockname()[4], b'\xff' * 6, socket.inet_aton('10.8.0.7'), b'\2\xde\xad\xbe\xef\1'
def arp(kind, mac, sender):
    return struct.pack('!HHHBBH', 0x806, 1, 0x800, 6, 4, kind) + mac + socket.inet_aton(sender) + bytes(6) + ours
tags = [b'\x81\0\0\x64', b'\x88\xa8\0\x64', b'\x88\xa8\0\x07\x81\0\0\x64', b'\x81\0\xef\xff']
for nth, tag in enumerate(tags):
    s.send(all + mine + tag + arp(1, mine, f'10.8.0.{31 + nth}'))
    s.send(all + mine + tag + arp(2, false, '10.8.0.2'))
s.send(all + mine + b'\x81\0\xe0\0' + arp(1, mine, '10.8.0.40'))
answered = []
while '10.8.0.40' not in answered:
    frame, about = s.recvfrom(2000)
    if about[2] != 4 and frame[20:22] == b'\0\2' and frame[28:32] == ours:
        answered.append(socket.inet_ntoa(frame[38:42]))
print(*answered)
";

#[test]
fn a_frame_of_a_vlan_is_not_for_the_device_below_it_and_one_with_a_priority_alone_is() {
    needs!["nft", "python3"];
    let wired = Wired::new(&["10.8.0.7/24"], false);
    wired.we_send("10.8.0.2");
    let done = wired.there.output(&["python3", "-c", SEND_TAGGED]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "10.8.0.40\n");
    let drops = wired.stack.counters()[0].drops.clone();
    assert_eq!(drops.get(&hopwise_host::LinkDrop::Vlan), Some(&8), "{drops:?}");
    wired.we_send("10.8.0.2");
}

#[test]
fn a_device_that_gets_another_ethernet_address_goes_on_with_it() {
    const ANOTHER: &str = "02:00:00:00:00:77";
    needs!["nft"];
    let wired = Wired::new(&["10.8.0.7/24", "fd08::7/64"], false);
    let both = [("10.8.0.7", "10.8.0.2"), ("fd08::7", "fd08::2")];
    for (ours, theirs) in both {
        wired.we_send(theirs);
        wired.the_kernel_sends(ours);
    }
    wired.here.ip(&["link", "set", "wire", "address", ANOTHER]);
    for (ours, theirs) in both {
        wired.the_kernel_sends(ours);
        wired.we_send(theirs);
        let known = wired.there.output(&["ip", "neigh", "show", ours]).stdout;
        let known = String::from_utf8_lossy(&known);
        assert!(known.contains(ANOTHER), "{known}");
    }
}
