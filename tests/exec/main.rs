//! `hopwise exec` as an ordinary user: programs as they are, in a network of their own. Each test is a script in a host
//! of its own, with a mount and a network namespace. A test that cannot run here prints its reason and passes.

mod host;
mod radios;

use host::{CLOSED, Host, OPEN, SSH, can_run};

/// Twenty files of 64 KiB with random bytes, and a web server at both families' addresses.
const WEB: &str = "\
mkdir www; for n in $(seq 20); do head -c 65536 /dev/urandom > www/$n; done
python3 -m http.server 80 -b 10.9.0.1 -d www > log4 2>&1 &
python3 -m http.server 80 -b fd09::1 -d www > log6 2>&1 &
until curl -sf -o /dev/null http://10.9.0.1/1 && curl -sf -o /dev/null 'http://[fd09::1]/1'; do sleep 0.1; done
";

#[test]
fn curl_fetches_over_both_families_through_either_kind_of_device() {
    let test = "curl_fetches_over_both_families_through_either_kind_of_device";
    if !can_run(test, &["curl", "python3"]) {
        return;
    }
    for device in [OPEN, CLOSED] {
        let host = Host::new(test, device);
        let script = "\
            exec_ -- curl -sf http://10.9.0.1/1 | cmp - www/1
            exec_ -- curl -sf -g 'http://[fd09::1]/2' | cmp - www/2
            exec_ -- cat /proc/net/dev | grep -c hop1 || true";
        let said = host.run(&[WEB, script].concat());
        let pairs = if device == OPEN { "0" } else { "1" };
        assert_eq!(said.trim(), pairs, "the pair's far end");
    }
}

#[test]
fn two_hundred_downloads_at_once_arrive_as_they_are() {
    let test = "two_hundred_downloads_at_once_arrive_as_they_are";
    if !can_run(test, &["curl", "python3", "xargs", "sha256sum"]) {
        return;
    }
    for device in [OPEN, CLOSED] {
        let host = Host::new(test, device);
        let script = "\
            for n in $(seq 200); do echo $((n % 20 + 1)); done > names
            each='curl -sf http://10.9.0.1/{} | sha256sum | sed s/-/{}/'
            exec_ -- sh -c \"xargs -P 200 -I {} sh -c '$each' < names\" | sort > came
            (cd www; sha256sum *) | sed 's/  /  /' | sort > sums
            wc -l < came
            sort -u came | tr -s ' ' > once; tr -s ' ' < sums | cmp - once";
        assert_eq!(host.run(&[WEB, script].concat()).trim(), "200");
    }
}

#[test]
fn a_destination_that_refuses_or_cannot_be_reached_is_told_from_one_that_answers() {
    let test = "a_destination_that_refuses_or_cannot_be_reached_is_told_from_one_that_answers";
    if !can_run(test, &["python3"]) {
        return;
    }
    let host = Host::new(test, CLOSED);
    let script = "\
        cat > connect.py <<'END'
import errno, socket, sys
for host in sys.argv[1:]:
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    try:
        socket.socket(family).connect((host, 81))
        print('connected')
    except OSError as error:
        print(errno.errorcode[error.errno])
END
        ip route add unreachable 10.66.0.0/16
        exec_ -- python3 connect.py 10.9.0.1 fd09::1 10.66.0.1 203.0.113.1 2001:db8::1";
    let said = host.run(script);
    let expected = ["ECONNREFUSED", "ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ENETUNREACH"];
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), expected);
}

#[test]
fn urgent_octets_come_in_their_place_either_way() {
    let test = "urgent_octets_come_in_their_place_either_way";
    if !can_run(test, &["python3"]) {
        return;
    }
    let script = "\
        cat > urgent.py <<'END'
import socket, sys
def says(stream):
    stream.sendall(b'abc')
    stream.send(b'U', socket.MSG_OOB)
    stream.sendall(b'def')
def hears(stream):
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    came = b''
    while len(came) < 7:
        came += stream.recv(7 - len(came)) or sys.exit('it ended')
    print(came.decode())
if sys.argv[1:]:
    client = socket.create_connection((sys.argv[1], 81))
    says(client)
    hears(client)
else:
    server = socket.create_server(('10.9.0.1', 81))
    open('ready', 'w').close()
    served, _ = server.accept()
    hears(served)
    says(served)
    served.recv(1)
END
        python3 urgent.py > heard & server=$!
        until [ -e ready ]; do sleep 0.1; done
        exec_ -- python3 urgent.py 10.9.0.1
        wait $server; cat heard";
    for device in [OPEN, CLOSED] {
        let said = Host::new(test, device).run(script);
        assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["abcUdef"; 2]);
    }
}

#[test]
fn names_are_looked_up_even_at_a_server_on_the_hosts_loopback() {
    let test = "names_are_looked_up_even_at_a_server_on_the_hosts_loopback";
    if !can_run(test, &["getent", "python3"]) {
        return;
    }
    let serve = "\
        cat > dns.py <<'END'
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind((sys.argv[1], 53))
open('ready', 'w').close()
while True:
    query, client = server.recvfrom(512)
    end = query.index(b'\\0', 12) + 5
    is_a = query[end - 4:end - 2] == b'\\0\\1'
    head = query[:2] + b'\\x81\\x80\\0\\1' + (b'\\0\\1' if is_a else b'\\0\\0') + b'\\0\\0\\0\\0'
    answer = b'\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\x3c\\0\\4\\x0a\\x09\\0\\x07' if is_a else b''
    server.sendto(head + query[12:end] + answer, client)
END
        echo 'hosts: dns' > nsswitch; mount --bind nsswitch /etc/nsswitch.conf
        echo nameserver $SERVER > resolv; mount --bind resolv /etc/resolv.conf
        python3 dns.py $SERVER & until [ -e ready ]; do sleep 0.1; done
        exec_ -- getent ahostsv4 camera.mesh | head -1
        exec_ -- grep -c 198.18.0.2 /etc/resolv.conf || true";
    for (server, replaced) in [("127.0.0.1", "1"), ("10.9.0.1", "0")] {
        for device in [OPEN, CLOSED] {
            let host = Host::new(test, device);
            let said = host.run(&format!("SERVER={server}\n{serve}"));
            assert!(said.starts_with("10.9.0.7 "), "{said}");
            assert_eq!(said.lines().last(), Some(replaced), "{server}");
        }
    }
}

#[test]
fn the_status_is_the_commands_and_so_is_the_signal_that_ends_it() {
    let test = "the_status_is_the_commands_and_so_is_the_signal_that_ends_it";
    if !can_run(test, &["python3"]) {
        return;
    }
    let host = Host::new(test, CLOSED);
    let script = "\
        set +e
        exec_ -- true; echo $?
        exec_ -- sh -c 'exit 7'; echo $?
        exec_ -- no-such-command 2> said; echo $?; grep -c no-such-command said
        exec_ -- /etc/passwd 2> said; echo $?
        exec_ -- sh -c 'kill -TERM $$'; echo $?
        exec_ -- id -u; exec_ -- id -g
        echo text | exec_ -- cat";
    let said = host.run(script);
    let expected = ["0", "7", "127", "1", "126", "143", "4242", "4242", "text"];
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), expected);
}

#[test]
fn a_signal_to_hopwise_reaches_the_command_and_a_terminals_comes_once() {
    let test = "a_signal_to_hopwise_reaches_the_command_and_a_terminals_comes_once";
    if !can_run(test, &["python3"]) {
        return;
    }
    let host = Host::new(test, CLOSED);
    // A shell starts background jobs with SIGINT ignored; python gives them the default.
    let script = "\
        cat > command.py <<'END'
import os, signal, sys, time
came = []
signal.signal(signal.SIGINT, lambda *_: came.append('int'))
print('tty' if os.isatty(0) else 'pipe', flush=True)
while not came:
    time.sleep(0.01)
time.sleep(0.3)
print(*came)
sys.exit(40 + len(came))
END
        cat > runs.py <<'END'
import os, pty, signal, subprocess, sys
command = sys.argv[1:]
plain = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
plain.stdout.readline()
plain.send_signal(signal.SIGINT)
print(plain.stdout.read().split()[-1].decode(), plain.wait())
child, terminal = pty.fork()
if child == 0:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execvp(command[0], command)
seen = b''
while b'tty' not in seen:
    seen += os.read(terminal, 1000)
os.write(terminal, b'\\x03')
_, status = os.waitpid(child, 0)
print('terminal', os.waitstatus_to_exitcode(status))
END
        python3 runs.py $EXEC -- python3 command.py";
    let said = host.run(script);
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["int", "41", "terminal", "41"]);
}

#[test]
fn data_that_a_command_has_sent_arrives_although_the_command_has_ended() {
    let test = "data_that_a_command_has_sent_arrives_although_the_command_has_ended";
    if !can_run(test, &["python3"]) {
        return;
    }
    for device in [OPEN, CLOSED] {
        let host = Host::new(test, device);
        let script = "\
            cat > take.py <<'END'
import hashlib, socket, time
server = socket.create_server(('10.9.0.1', 82))
open('ready', 'w').close()
client, _ = server.accept()
time.sleep(0.3)
hash, bytes = hashlib.sha256(), 0
while data := client.recv(65536):
    hash.update(data)
    bytes += len(data)
    time.sleep(0.001)
print(bytes, hash.hexdigest())
END
            cat > send.py <<'END'
import hashlib, socket
data = bytes(range(256)) * 16384
socket.create_connection(('10.9.0.1', 82)).sendall(data)
print(len(data), hashlib.sha256(data).hexdigest())
END
            python3 take.py > taken & taker=$!
            until [ -e ready ]; do sleep 0.1; done
            exec_ -- python3 send.py > sent
            wait $taker; cmp sent taken && cut -d' ' -f1 taken";
        assert_eq!(host.run(script).trim(), "4194304");
    }
}

/// One of the two is told to end, and the other one is told by a terminal's end that it was to survive.
#[test]
fn the_wait_for_data_that_nobody_takes_can_be_ended_and_ends_with_a_word() {
    let test = "the_wait_for_data_that_nobody_takes_can_be_ended_and_ends_with_a_word";
    if !can_run(test, &["python3"]) {
        return;
    }
    let host = Host::new(test, CLOSED);
    let script = "\
        cat > leave.py <<'END'
import socket, time
server = socket.create_server(('10.9.0.1', 82))
open('ready', 'w').close()
kept = []
while True:
    kept.append(server.accept())
END
        cat > fill.py <<'END'
import os, select, socket, sys
client = socket.create_connection(('10.9.0.1', 82))
client.setblocking(False)
while select.select([], [client], [], 0.5)[1]:
    client.send(bytes(65536))
with open(sys.argv[1], 'w') as file:
    print(os.getpid(), file=file)
END
        has_ended() { [ -s $1 ] && ! [ -e /proc/$(cat $1) ]; }
        python3 leave.py 2> log4 & until [ -e ready ]; do sleep 0.1; done
        (trap '' HUP; exec $EXEC -- python3 fill.py stays) 2> of-stays & stays=$!
        $EXEC -- python3 fill.py told 2> of-told & told=$!
        until has_ended told && has_ended stays; do sleep 0.1; done
        kill -HUP $stays
        while kill -TERM $told 2> /dev/null; do sleep 0.1; done
        wait $told || echo $?
        wait $stays && echo $?
        cat of-told of-stays";
    let said = host.run(script);
    let gave_up = "hopwise: gave up 1 connection: the command's last data may not have arrived";
    assert_eq!(said.lines().collect::<Vec<_>>(), ["143", "0", gave_up, gave_up]);
}

#[test]
fn a_system_without_namespaces_for_users_is_told_with_its_remedy() {
    let test = "a_system_without_namespaces_for_users_is_told_with_its_remedy";
    if !can_run(test, &[]) {
        return;
    }
    let host = Host::new(test, CLOSED);
    // The limit of a namespace of one's own.
    let script = "\
        set +e
        unshare -U -r sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && exec '$BARE' exec -- true' 2>&1
        echo $?";
    let said = host.run(script);
    assert!(said.contains("user.max_user_namespaces is 0"), "{said}");
    assert!(said.contains("sudo sysctl user.max_user_namespaces="), "{said}");
    assert_eq!(said.lines().last(), Some("125"), "{said}");
}

#[test]
fn root_s_command_has_a_host_name_of_its_own() {
    let test = "root_s_command_has_a_host_name_of_its_own";
    if !can_run(test, &["hostname"]) {
        return;
    }
    let host = Host::new(test, CLOSED);
    let script = "\
        unshare -u sh -c 'hostname before
            '$BARE' exec -- sh -c \"echo inside > /proc/sys/kernel/hostname; cat /proc/sys/kernel/hostname\"
            hostname'";
    assert_eq!(host.run(script).split_whitespace().collect::<Vec<_>>(), ["inside", "before"]);
}

#[test]
fn a_node_carries_the_commands_connections_with_the_agents_that_are_asked_for() {
    let test = "a_node_carries_the_commands_connections_with_the_agents_that_are_asked_for";
    if !can_run(test, &["curl", "python3"]) {
        return;
    }
    let host = Host::new(test, CLOSED);
    let script = "\
        cat > node.yaml <<'END'
node: { name: a, address: [10.7.0.2/24] }
links: [ { kind: tun, name: hw0, kernel: [10.7.0.1/24] } ]
socks5: { listen: 127.0.0.1:1080 }
control: control.sock
END
        sed -i \"s,control.sock,$PWD/control.sock,\" node.yaml
        set +e; exec_ --sender newreno -- true 2> said; echo $?; grep -c 'hopwise node' said; set -e
        $BARE node node.yaml 2> node.log &
        until $BARE status --control $PWD/control.sock > /dev/null 2>&1; do sleep 0.1; done
        python3 -m http.server 83 -b 10.7.0.1 -d www > log7 2>&1 &
        until curl -sf -o /dev/null http://10.7.0.1:83/1; do sleep 0.1; done
        exec_ --node 127.0.0.1:1080 -- curl -sf http://10.7.0.1:83/1 | cmp - www/1
        grep -o '^10.7.0.2 ' log7
        exec_ --node 127.0.0.1:1080 -- curl -sf http://10.9.0.1/1 | cmp - www/1
        $EXEC --sender '[newreno, limit:4]' --receiver delayed:d=3 -- python3 -c '
import socket, time
held = socket.create_connection((\"10.7.0.1\", 83))
open(\"held\", \"w\").close()
while True:
    time.sleep(1)' & holds=$!
        until [ -e held ]; do sleep 0.1; done
        $BARE status --control $PWD/control.sock --json > status.json
        grep -o 'limit:4' status.json | head -1; grep -o 'delayed:d=3' status.json | head -1
        kill $holds";
    let said = host.run(&[WEB, script].concat());
    let expected = ["125", "1", "10.7.0.2", "limit:4", "delayed:d=3"];
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), expected);
}

#[test]
fn git_clones_and_iperf3_measures_both_ways() {
    let test = "git_clones_and_iperf3_measures_both_ways";
    if !can_run(test, &["git", "iperf3"]) {
        return;
    }
    for device in [OPEN, CLOSED] {
        let host = Host::new(test, device);
        let script = "\
            git init -q repo; head -c 3000000 /dev/urandom > repo/file
            (cd repo; git add .; git -c user.name=a -c user.email=a@b.c commit -qm file)
            touch repo/.git/git-daemon-export-ok
            git daemon --base-path=$PWD --listen=10.9.0.1 > log4 2>&1 &
            iperf3 -s -B 10.9.0.1 > log6 2>&1 &
            until (echo > /dev/tcp/10.9.0.1/9418) 2> /dev/null; do sleep 0.1; done
            until iperf3 -c 10.9.0.1 -n 1K > said 2>&1; do sleep 0.1; done
            exec_ -- git clone -q git://10.9.0.1/repo clone
            cmp repo/file clone/file && echo cloned
            exec_ -- iperf3 -c 10.9.0.1 -n 20M > said && exec_ -- iperf3 -c 10.9.0.1 -n 20M -R > said
            grep -c receiver said";
        assert_eq!(host.run(script).split_whitespace().collect::<Vec<_>>(), ["cloned", "1"]);
    }
}

#[test]
fn ssh_carries_a_file_and_its_status() {
    let test = "ssh_carries_a_file_and_its_status";
    if !can_run(test, &["ssh", "ssh-keygen", "/usr/sbin/sshd", "sha256sum"]) {
        return;
    }
    let host = Host::new(test, CLOSED);
    let script = "\
        mount -t tmpfs none /run; has_ssh 10.9.0.1 10.9.0.1
        /usr/sbin/sshd -D -f $PWD/sshd.conf -E log4 &
        until (echo > /dev/tcp/10.9.0.1/22) 2> /dev/null; do sleep 0.1; done
        head -c 3000000 /dev/urandom > data
        exec_ -- ssh -i key $asks root@there 'sha256sum; exit 9' < data > came || echo $?
        sha256sum data | cut -d' ' -f1 > sum; cut -d' ' -f1 came | cmp - sum && echo same";
    let said = host.run(&[SSH, script].concat());
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["9", "same"]);
}

#[test]
fn a_websocket_echoes_what_it_is_sent() {
    let test = "a_websocket_echoes_what_it_is_sent";
    if !can_run(test, &["python3"]) {
        return;
    }
    let host = Host::new(test, CLOSED);
    let program = include_str!("websocket.py");
    let script = "\
        python3 websocket.py serve 10.9.0.1 2> log4 & until [ -e ready ]; do sleep 0.1; done
        exec_ -- python3 websocket.py ask 10.9.0.1";
    let said = host.run(&format!("cat > websocket.py <<'END'\n{program}END\n{script}"));
    assert_eq!(said.trim(), "echoed");
}
