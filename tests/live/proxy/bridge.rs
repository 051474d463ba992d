//! `by: bridge`: the frames that the proxy leaves to the kernel's bridge.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use super::{By, Network, can_run};

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
    if !can_run(
        "a_frame_with_a_vlan_tag_crosses_the_bridge_once_and_keeps_its_tag",
        &["nft", "ethtool", "python3"],
    ) {
        return;
    }
    let network = Network::by("proxy-vlan", By::Bridge);
    let _running = network.proxy("none", "none");
    let mut hears = network.fixed.command(&["python3", "-c", HEAR]);
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
