//! `by: bridge`: the frames that the proxy leaves to the kernel's bridge, and the bridges that it refuses.

use std::io::{BufRead, BufReader, Read};
use std::process::{Output, Stdio};

use super::{By, Network};
use crate::world::{until, within_patience};

/// Prints the tag and the port of each TCP frame of the mobile's that comes in on the wire, until port 4000 has come.
const HEAR: &str = r"
import socket, struct, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.setsockopt(263, 8, 1)
s.bind(('wire', 3))
print('ready', flush=True)
port = 0
while port != 4000:
    frame, about, _, name = s.recvmsg(2000, 200)
    if name[2] == 4 or frame[23:24] != b'\6' or frame[26:30] != socket.inet_aton('10.9.0.2'):
        continue
    status, _, _, _, _, tag, kind = struct.unpack('IIIHHHH', about[0][2])
    port = struct.unpack('!H', frame[34:36])[0]
    print(port, f'{kind:x}:{tag:x}' if status & 0x10 else '-')
";

/// SYNs of the mobile's: of a VLAN, of a provider's VLAN, with a priority alone, and untagged.
const SAY: &str = r"
import socket, struct, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(('radio', 0))
to = bytes.fromhex(sys.argv[1].replace(':', ''))
for port, tag in [(4001, b'\x81\0\0\5'), (4002, b'\x88\xa8\0\7'), (4003, b'\x81\0\xe0\0'), (4000, b'')]:
    ip = struct.pack('!BBHHHBBH', 0x45, 0, 40, 1, 0, 64, 6, 0)
    ends = socket.inet_aton('10.9.0.2') + socket.inet_aton('10.9.0.1')
    total = sum(struct.unpack('!10H', ip + ends))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    ip = ip[:10] + struct.pack('!H', total ^ 0xffff)
    tcp = struct.pack('!HHIIBBHHH', port, 9, 1, 0, 0x50, 2, 1000, 0, 0)
    s.send(to + s.getsockname()[4] + tag + b'\x08\0' + ip + ends + tcp)
";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_frame_with_a_vlan_tag_crosses_the_bridge_once_and_keeps_its_tag() {
    needs!["nft", "ethtool", "python3", "timeout"];
    let network = Network::by("proxy-vlan", By::Bridge);
    let _running = network.proxy("none", "none");
    let mut hears = network.fixed.command(&["timeout", "300", "python3", "-c", HEAR]);
    let mut hears = hears.stdout(Stdio::piped()).spawn().expect("python runs");
    let mut heard = BufReader::new(hears.stdout.take().expect("its output"));
    let mut ready = String::new();
    heard.read_line(&mut ready).expect("it is ready");
    assert_eq!(ready, "ready\n");
    let address = network.fixed.output(&["cat", "/sys/class/net/wire/address"]).stdout;
    let said = network.mobile.output(&["python3", "-c", SAY, text(&address).trim()]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let mut rest = String::new();
    heard.read_to_string(&mut rest).expect("it ends");
    hears.wait().expect("it has ended");
    let mut seen: Vec<_> = rest.lines().collect();
    seen.sort_unstable();
    assert_eq!(seen, ["4000 -", "4001 8100:5", "4002 88a8:7", "4003 8100:e000"]);
}

impl Network {
    /// A proxy that is not expected to start.
    fn refuses_the_bridge(&self) -> Output {
        let config = self.path("proxy.yaml");
        let words = [env!("CARGO_BIN_EXE_hopwise"), "proxy", config.to_str().expect("a path in UTF-8")];
        // One that starts after all is ended.
        let ended = ["timeout", "-s", "INT", "300"].into_iter().chain(words);
        self.router.output(&ended.collect::<Vec<_>>())
    }
}

#[test]
fn a_bridge_that_is_not_all_between_two_ports_is_refused() {
    needs!["nft", "ethtool", "timeout"];
    let network = Network::by("proxy-ports", By::Bridge);
    network.proxy("none", "none").interrupt();
    let router = &network.router;
    let isolate = |is_on| {
        for port in ["wire", "radio"] {
            router.ip(&["link", "set", port, "type", "bridge_slave", "isolated", is_on]);
        }
    };
    let assert_refused = |reason: &str| {
        let said = network.refuses_the_bridge();
        let told = text(&said.stderr);
        assert!(said.status.code() == Some(1) && told.contains(reason), "{told}");
    };
    router.ip(&["link", "add", "lan", "type", "veth", "peer", "name", "far"]);
    router.ip(&["link", "set", "lan", "master", "bridge"]);
    assert_refused("its bridge bridge has other ports, too: lan; expected wire and radio alone");
    router.ip(&["link", "set", "lan", "nomaster"]);
    isolate("on");
    assert_refused("wire and radio are isolated from each other");
    isolate("off");
    router.ip(&["link", "set", "radio", "nomaster"]);
    assert_refused("radio is no port of its bridge bridge");
}

#[test]
fn a_bridge_that_changes_ends_the_proxy_and_no_connection() {
    needs!["nft", "ethtool"];
    let changes: [&[&[&str]]; 2] = [
        &[&["link", "set", "bridge", "address", "02:00:00:00:00:77"]],
        &[
            &["link", "add", "lan", "type", "veth", "peer", "name", "far"],
            &["link", "set", "lan", "master", "bridge"],
        ],
    ];
    for changes in changes {
        let network = Network::by("proxy-changes", By::Bridge);
        let mut running = network.proxy("none", "none");
        let transfer = network.transfer("cubic");
        transfer.wait_for(1_000_000);
        for change in changes {
            network.router.ip(change);
        }
        within_patience(until(|| running.0.try_wait().expect("a child").is_some()));
        assert!(network.log().contains("the bridge has changed"), "{}", network.log());
        transfer.wait_for(1_000_000);
    }
}

#[test]
fn filters_that_the_proxy_s_packets_never_meet_are_named_at_the_start() {
    needs!["nft", "ethtool"];
    let network = Network::by("proxy-filters", By::Bridge);
    network.proxy("none", "none").interrupt();
    assert!(!network.log().contains("these filters"), "{}", network.log());
    for rules in [
        "add table bridge walls; add chain bridge walls c { type filter hook forward priority 0; }",
        "add table netdev doors; add chain netdev doors c { type filter hook ingress device radio priority 9; }",
    ] {
        assert!(network.router.output(&["nft", rules]).status.success(), "{rules}");
    }
    network.proxy("none", "none").interrupt();
    assert!(network.log().contains("bridge walls, netdev doors"), "{}", network.log());
}
