//! A user's programs over two hops of radios in real time, with `train` at both ends.

use crate::host::{Host, OPEN, SSH, can_run};

/// A chain of three stations, a node at both ends, and what the programs ask at the far one. A namespace's name lies in
/// /run, which is the script's own.
const MESH: &str = r#"
mount -t tmpfs none /run
mkdir www; for n in $(seq 200); do head -c 2000 /dev/urandom > www/$n; done
head -c 300000 /dev/urandom > www/file; head -c 2000000 /dev/urandom > data
git init -q repo; head -c 200000 /dev/urandom > repo/file; touch repo/.git/git-daemon-export-ok
(cd repo; git add .; git -c user.name=a -c user.email=a@b.c commit -qm file)
$BARE air $CHAIN --prefix exec-radios --set topology.hops=2 > air.json 2> log4 &
until grep -q ready log4; do sleep 0.1; done
at() { local n=$1; shift; ip netns exec exec-radios-n$n "$@"; }
in_back() { local n=$1; shift; exec ip netns exec exec-radios-n$n "$@"; }
by_train() { at 0 $EXEC --sender train --receiver train -- "$@"; }
for n in 0 1 2; do at $n sysctl -qw net.ipv4.ip_forward=1; at $n ip link set lo up; done
at 0 ip route add 10.8.0.0/16 via 10.0.0.2; at 1 ip route add 10.8.0.0/16 via 10.0.0.3
at 1 ip route add 10.7.0.0/16 via 10.0.0.1; at 2 ip route add 10.7.0.0/16 via 10.0.0.2
node() {
    echo "node: { name: n$1, address: 10.$2.0.2/24 }
links: [{ kind: tun, name: hw0, kernel: 10.$2.0.1/24 }]
routes: [{ to: 0.0.0.0/0, link: hw0 }]
control: $PWD/$1.sock
$3" > $1.yaml
    in_back $1 $BARE node $1.yaml 2>> node.log &
    until $BARE status --control $PWD/$1.sock > /dev/null 2>&1; do sleep 0.1; done
}
forwards=
for port in 22 80 84 85 5201 9418; do forwards="$forwards{ listen: mesh:$port, to: 127.0.0.1:$port }, "; done
node 0 7 "socks5: { listen: 127.0.0.1:1080 }"
node 2 8 "forwards: [$forwards]
rules: [{ match: {}, sender: train, receiver: train }]"
in_back 2 python3 -m http.server 80 -b 127.0.0.1 -d www > log6 2>&1 &
in_back 2 python3 websocket.py serve 127.0.0.1 2>> log6 &
in_back 2 iperf3 -s -B 127.0.0.1 > log7 2>&1 &
in_back 2 git daemon --base-path=$PWD --listen=127.0.0.1 >> log6 2>&1 &
in_back 2 python3 names.py 2>> log6 &
in_back 2 python3 sink.py 2>> log6 &
has_ssh 10.8.0.2 127.0.0.1; in_back 2 /usr/sbin/sshd -D -f $PWD/sshd.conf -E $PWD/log6 &
until [ -e ready ] && [ -e names ] && [ -e sink ]; do sleep 0.1; done
until by_train curl -sf -o /dev/null http://10.8.0.2/1; do sleep 0.1; done
until by_train iperf3 -c 10.8.0.2 -n 1K > said 2>&1; do sleep 0.1; done
"#;

const PROGRAMS: &str = r#"
sum() { sha256sum | cut -d' ' -f1; }
[ $(by_train curl -sf http://10.8.0.2/file | sum) = $(sum < www/file) ] && echo file
each='curl -sf http://10.8.0.2/{} | sha256sum | sed s/-/{}/'
seq 200 > wanted
by_train sh -c "xargs -P 200 -I {} sh -c '$each' < wanted" | tr -s ' ' | sort > came
(cd www; sha256sum $(seq 200)) | tr -s ' ' | sort | cmp - came && echo downloads
by_train iperf3 -c 10.8.0.2 -n 200K -R > said && grep -q receiver said && echo iperf3
by_train git clone -q git://10.8.0.2/repo clone
[ $(sum < clone/file) = $(sum < repo/file) ] && echo clone
[ $(by_train ssh -i key $asks root@there sha256sum < www/file | cut -d' ' -f1) = $(sum < www/file) ] && echo ssh
by_train python3 websocket.py ask 10.8.0.2
echo 'hosts: dns' > nsswitch; mount --bind nsswitch /etc/nsswitch.conf
printf '%s\n' 'nameserver 10.0.0.3' 'options timeout:3 attempts:8' > resolv; mount --bind resolv /etc/resolv.conf
for n in $(seq 100); do echo "ahostsv4 10.1.0.$n $n"; echo "ahostsv6 fd01::$(printf %x $n) $n"; done > names
look='set -- $1; getent $1 h$3.mesh | grep -q "^$2 " && echo found'
by_train xargs -P 20 -I {} sh -c "$look" look {} < names > found
[ $(wc -l < found) = 200 ] && echo names
"#;

/// The same file by both, one after the other. On a machine that is busy the radios fall behind their time: the first
/// of some pairs that are equal counts.
const COMPARED: &str = r#"
in_back 2 $BARE recv --address 10.8.1.2/32 --receiver train > /dev/null 2>> log7 &
for try in 1 2 3 4 5; do
    rm -f sunk
    by_train bash -c 'cat data > /dev/tcp/10.8.0.2/85' & sent=$!
    for n in 0 2; do
        until $BARE status --control $PWD/$n.sock --json | python3 trained.py; do kill -0 $sent; sleep 0.1; done
    done
    wait $sent
    until [ -e sunk ]; do sleep 0.1; done
    at 0 $BARE send 10.8.1.2 --address 10.7.1.2/32 --sender train --file data --json > sent.json
    python3 compared.py $(cat sunk) $(sum < data) && break
done
"#;

/// Answers questions for `hN.mesh` by 10.1.0.N and fd01::N.
const NAMES: &str = r"
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(('10.0.0.3', 53))
open('names', 'w').close()
while True:
    query, client = server.recvfrom(512)
    end = query.index(b'\0', 12) + 5
    kind, nth = query[end - 4:end - 2], int(query[14:13 + query[12]])
    data = {b'\0\1': bytes([10, 1, 0, nth]), b'\0\x1c': b'\xfd\1' + bytes(13) + bytes([nth])}.get(kind, b'')
    head = query[:2] + b'\x81\x80\0\1\0' + bytes([len(data) > 0]) + b'\0\0\0\0'
    answer = b'\xc0\x0c' + kind + b'\0\1\0\0\0\x3c\0' + bytes([len(data)]) + data if data else b''
    server.sendto(head + query[12:end] + answer, client)
";

/// Writes the SHA-256 of each connection's bytes, and their kbit/s from the first to the last.
const SINK: &str = r"
import hashlib, os, socket, time
server = socket.create_server(('127.0.0.1', 85))
open('sink', 'w').close()
while True:
    client, _ = server.accept()
    data, since = [client.recv(65536)], time.monotonic()
    while data[-1]:
        data.append(client.recv(65536))
    took, whole = time.monotonic() - since, b''.join(data)
    with open('sinking', 'w') as file:
        print(hashlib.sha256(whole).hexdigest(), len(whole) * 8 / 1000 / took, file=file)
    os.rename('sinking', 'sunk')
";

const COMPARES: &str = r"
import json, sys
came, kbps, wanted = sys.argv[1], float(sys.argv[2]), sys.argv[3]
sent = json.load(open('sent.json'))
assert came == wanted and sent['sha256']['matches'], sent
ratio = kbps / sent['total']['goodput_kbps']
print(f'{kbps:.0f} kbit/s by exec, {ratio:.3f} of those by send')
sys.exit(not 0.9 <= ratio <= 1.1)
";

/// Both agents of some connection are `train`.
const TRAINED: &str = r#"
import json, sys
sys.exit(not any(json.dumps(one).count('"train"') == 2 for one in json.load(sys.stdin)['connections']))
"#;

#[test]
fn a_users_programs_run_over_radios_with_train_as_fast_as_a_measurement() {
    let test = "a_users_programs_run_over_radios_with_train_as_fast_as_a_measurement";
    if std::env::var_os("HOPWISE_LONG").is_none() {
        println!("skipped: {test}: takes some minutes; scripts/test --long runs it");
        return;
    }
    let programs = ["curl", "getent", "git", "iperf3", "python3", "sha256sum", "sysctl", "xargs"];
    if !can_run(test, &[&programs[..], &["ssh", "ssh-keygen", "/usr/sbin/sshd"]].concat()) {
        return;
    }
    let host = Host::new(test, OPEN);
    let files = [
        ("websocket.py", include_str!("websocket.py")),
        ("names.py", NAMES),
        ("sink.py", SINK),
        ("compared.py", COMPARES),
        ("trained.py", TRAINED),
    ];
    let files: String =
        files.iter().map(|(name, text)| format!("cat > {name} <<'END'\n{text}\nEND\n")).collect();
    let chain = concat!("CHAIN=", env!("CARGO_MANIFEST_DIR"), "/configs/chain.yaml\n");
    let said = host.run(&[SSH, &files, chain, MESH, PROGRAMS, COMPARED].concat());
    println!("{said}");
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[..7], ["file", "downloads", "iperf3", "clone", "ssh", "echoed", "names"]);
}
