//! The command as a daemon and as a measuring pair, with programs and kernels around it.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::field::{Field, HOPWISE, PAGE, SOCKS5, THROUGH, text};
use crate::namespace::{Namespace, Running, can_run};
use crate::world::{PATIENCE, until, within_patience};

/// The commands stand in the README, and are run as they stand there.
#[test]
fn the_readmes_steps_fetch_a_page_from_a_kernel_in_another_namespace() {
    if !can_run("the_readmes_steps_fetch_a_page", &["curl", "python3"]) {
        return;
    }
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("it is there");
    let section = readme.split("\n## On Linux\n").nth(1).expect("the README shows it");
    let section = section.split("\n## ").next().expect("it ends");
    let blocks = section.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let blocks: Vec<&str> = blocks.collect();
    assert!(blocks[0].lines().count() < 10, "the README promises under ten lines");
    // A user who types them is slower than a script, and recv listens by then.
    let typing =
        "for _ in $(seq 600); do ip netns exec web ss -Hltn | grep -q :5201 && break; sleep .1; done";
    let steps = blocks.concat().replace("\nhopwise send ", &format!("\n{typing}\nhopwise send "));
    let host = Namespace::new();
    let name = format!("hoplive-{}-web", std::process::id());
    let folder = PathBuf::from(HOPWISE).parent().expect("a folder").to_string_lossy().into_owned();
    let script = format!(
        "set -e\nmkdir -p /run/hopwise\nmount -t tmpfs none /run/hopwise\nPATH={folder}:$PATH\n\
         trap 'kill $(jobs -p) 2> /dev/null; wait; ip netns del {name}' EXIT\n{}",
        steps.replace(" web", &format!(" {name}"))
    );
    let mut command = host.command(&["bash", "-c", &script]);
    let done = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("bash runs");
    let shown = text(&done.stdout);
    assert!(done.status.success(), "{shown}{}", text(&done.stderr));
    assert!(shown.contains("Directory listing for /"), "{shown}{}", text(&done.stderr));
    for part in [
        "n2 at 10.7.0.2/24 fd07::2/64, ",
        "Frame 4 (10.7.0.2:",
        "hopwise_acks_decided_total{",
        "id  local",
        "tun          /dev/net/tun can be opened",
        "[newreno, limit:40]",
    ] {
        assert!(shown.contains(part), "{part}: {shown}{}", text(&done.stderr));
    }
}

#[test]
fn a_page_comes_over_ipv6() {
    if !can_run("a_page_comes_over_ipv6", &["curl", "python3"]) {
        return;
    }
    let field = Field::new("v6");
    let _daemon = field.daemon(SOCKS5);
    let _server = field.serve(&field.node, "fd07::1", "8006");
    let page = field.curl(&[&THROUGH[..], &["-g", "http://[fd07::1]:8006/"]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
}

#[test]
fn a_second_daemon_on_the_same_device_is_refused() {
    if !can_run("a_second_daemon_on_the_same_device_is_refused", &[]) {
        return;
    }
    let field = Field::new("second");
    let _daemon = field.daemon("");
    let second = field.node.output(&[HOPWISE, "node", &field.path("node.yaml")]);
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stderr).contains("hw0: "), "{}", text(&second.stderr));
    assert!(text(&second.stderr).contains("another process has it open"), "{}", text(&second.stderr));
}

/// The kernel only reports that the argument is invalid.
#[test]
fn a_device_that_is_no_tun_is_called_by_what_would_be_one() {
    if !can_run("a_device_that_is_no_tun_is_called_by_what_would_be_one", &[]) {
        return;
    }
    let field = Field::new("no-tun");
    field.node.ip(&["tuntap", "add", "many", "mode", "tun", "multi_queue"]);
    let measure = |device: &str| {
        field.node.output(&[HOPWISE, "send", "10.8.0.1", "--address", "10.8.0.2/24", "--tun", device])
    };
    let listen = field.node.output(&[HOPWISE, "recv", "--address", "10.8.0.2/24", "--tun", "wire0"]);
    let node = |link: &str| {
        let path = field.path("node.yaml");
        let text =
            format!("node: {{ name: n2, address: 10.8.0.2/24 }}\nlinks: [{{ {link}, name: wire0 }}]\n");
        fs::write(&path, text).expect("the folder can be written");
        field.node.output(&[HOPWISE, "node", &path])
    };
    let (one, several) = ("no TUN of one queue: expected", "no TUN of several queues: expected");
    for (refused, device, problem) in [
        (measure("wire0"), "wire0", one),
        (measure("many"), "many", one),
        (listen, "wire0", one),
        (node("kind: tun"), "wire0", one),
        (node("kind: tun-fast"), "wire0", one),
        (node("kind: tun-fast, queues: 2"), "wire0", several),
    ] {
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        let expected = format!("open a link: {device}: the device is there, and is {problem} a name that");
        assert!(said.contains(&expected) && said.contains("ip tuntap add NAME mode tun"), "{said}");
    }
}

#[test]
fn a_daemon_that_is_told_to_end_leaves_nothing_behind() {
    if !can_run("a_daemon_that_is_told_to_end_leaves_nothing_behind", &["curl", "python3"]) {
        return;
    }
    let field = Field::new("end");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let mut daemon = field.daemon(SOCKS5);
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    assert!(!field.folder.join("control.sock").exists());
    let device = field.node.output(&["ip", "link", "show", "hw0"]);
    assert!(!device.status.success(), "{}", text(&device.stdout));
    // A crash leaves a socket, and the next start clears it.
    let killed = field.daemon(SOCKS5);
    killed.tell(Signal::KILL);
    drop(killed);
    assert!(field.folder.join("control.sock").exists());
    let _again = field.daemon(SOCKS5);
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
}

/// A client of a forward that reads a large file; its first byte has come.
fn reader_of(field: &Field, file: &str) -> TcpStream {
    let mut client = field.node.run(|| TcpStream::connect("127.0.0.1:8080").expect("it listens"));
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    client.write_all(format!("GET /{file} HTTP/1.0\r\n\r\n").as_bytes()).expect("it is open");
    client.read_exact(&mut [0]).expect("it comes");
    client
}

const FORWARD: &str = "forwards: [{ listen: 127.0.0.1:8080, to: mesh:10.9.0.2:80 }]";

#[test]
fn who_is_served_when_the_daemon_is_told_to_end_is_served_to_the_end() {
    if !can_run("who_is_served_when_the_daemon_is_told_to_end_is_served_to_the_end", &["python3"]) {
        return;
    }
    const BYTES: usize = 30_000_000;
    let field = Field::new("finishes");
    fs::write(field.path("www/large"), vec![7; BYTES]).expect("the folder can be written");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let mut daemon = field.daemon(&format!("{FORWARD}\nstop_within: 100s"));
    let mut client = reader_of(&field, "large");
    daemon.tell(Signal::TERM);
    let refused = || field.node.run(|| TcpStream::connect("127.0.0.1:8080").is_err());
    within_patience(until(refused));
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).expect("it is served");
    assert!(rest.len() > BYTES && rest.ends_with(&[7; 1000]), "{} bytes came", rest.len());
    drop(client);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    assert!(field.log().contains("ended in order"), "{}", field.log());
}

#[test]
fn who_does_not_end_in_time_is_reset_and_so_is_its_peer() {
    if !can_run("who_does_not_end_in_time_is_reset_and_so_is_its_peer", &["python3"]) {
        return;
    }
    const BYTES: u64 = 1 << 30;
    let field = Field::new("resets");
    let large = fs::File::create(field.path("www/large")).expect("the folder can be written");
    large.set_len(BYTES).expect("it is a hole");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let mut daemon = field.daemon(&format!("{FORWARD}\nstop_within: 300ms"));
    let mut client = reader_of(&field, "large");
    let of_peer = || text(&field.web.output(&["ss", "-Htn", "state", "connected", "dst", "10.7.0.2"]).stdout);
    assert!(of_peer().contains("10.7.0.2"), "{}", of_peer());
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    // The daemon has gone, and its RST has ended the connection of the peer.
    assert_eq!(of_peer(), "");
    let heard = std::io::copy(&mut client, &mut std::io::sink()).map_err(|error| error.kind());
    assert_eq!(heard, Err(ErrorKind::ConnectionReset));
    assert!(field.log().contains("reset at the deadline clients=1"), "{}", field.log());
}

/// The other end never answers, and the daemon ends before that is known.
#[test]
fn who_is_not_connected_in_time_hears_no_clean_end() {
    if !can_run("who_is_not_connected_in_time_hears_no_clean_end", &[]) {
        return;
    }
    let field = Field::new("unconnected");
    // Otherwise the kernel reports after some seconds that the neighbour is missing.
    field.node.ip(&["neigh", "add", "10.9.0.99", "lladdr", "02:00:00:00:00:99", "dev", "wire0"]);
    let forward = "forwards: [{ listen: 127.0.0.1:8080, to: mesh:10.9.0.99:80 }]";
    let mut daemon = field.daemon(&format!("{forward}\nstop_within: 300ms"));
    let mut client = field.node.run(|| TcpStream::connect("127.0.0.1:8080").expect("it listens"));
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    within_patience(until(|| field.status()["connections_open"] == 1));
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    let heard = client.read(&mut [0; 1]).map_err(|error| error.kind());
    assert_eq!(heard, Err(ErrorKind::ConnectionReset));
    assert!(field.log().contains("reset at the deadline clients=1"), "{}", field.log());
}

/// A socket like systemd's own: a daemon is no longer root when it reports ready.
pub(crate) fn systemd(path: impl AsRef<Path>) -> UnixDatagram {
    let systemd = UnixDatagram::bind(&path).expect("the folder can be written");
    let anybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(path, anybody).expect("it is ours");
    systemd.set_read_timeout(Some(PATIENCE)).expect("it can wait");
    systemd
}

/// The kernel queues a daemon's notifications, and the queue is full here.
#[test]
fn a_systemd_that_reads_nothing_holds_up_no_daemon() {
    if !can_run("a_systemd_that_reads_nothing_holds_up_no_daemon", &[]) {
        return;
    }
    let field = Field::new("deaf");
    let _deaf = systemd(field.path("notify"));
    let other = UnixDatagram::unbound().expect("a socket");
    other.set_nonblocking(true).expect("it is open");
    let full = std::iter::repeat_with(|| other.send_to(b"STATUS=busy", field.path("notify")));
    let full = full.take(1 << 20).find_map(Result::err).expect("a queue has an end");
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    let mut daemon = field.daemon("");
    assert_eq!(field.status()["connections_open"], 0);
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    assert_eq!(field.log().matches("systemd was not told").count(), 2, "{}", field.log());
}

#[test]
fn systemd_is_told_when_the_daemon_is_ready_and_when_it_ends() {
    if !can_run("systemd_is_told_when_the_daemon_is_ready", &[]) {
        return;
    }
    let field = Field::new("notify");
    let systemd = systemd(field.path("notify"));
    let heard = || {
        let mut told = [0; 64];
        // A process that was stopped meanwhile has to call again: the kernel does not resume a call with a timeout.
        let mut answers = std::iter::repeat_with(|| systemd.recv(&mut told));
        let heard =
            answers.find(|heard| !matches!(heard, Err(error) if error.kind() == ErrorKind::Interrupted));
        let bytes = heard.expect("it never ends").expect("it is told");
        text(&told[..bytes])
    };
    let mut daemon = field.daemon("");
    assert_eq!(heard().trim(), "READY=1");
    assert_eq!(heard().trim(), "WATCHDOG=1", "it says again and again that it lives");
    daemon.tell(Signal::TERM);
    let last = std::iter::repeat_with(heard).find(|told| told.trim() != "WATCHDOG=1");
    assert_eq!(last.as_deref().map(str::trim), Some("STOPPING=1"));
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
}

#[test]
fn a_device_that_vanishes_ends_the_daemon_with_an_error() {
    if !can_run("a_device_that_vanishes_ends_the_daemon_with_an_error", &[]) {
        return;
    }
    let field = Field::new("vanish");
    let mut daemon = field.daemon("");
    field.node.ip(&["link", "del", "hw0"]);
    assert_eq!(daemon.ended(), Some(1));
    assert!(field.log().contains("hw0: the device is gone"), "{}", field.log());
}

#[test]
fn a_hangup_reads_the_rules_anew_and_a_wrong_file_changes_nothing() {
    if !can_run("a_hangup_reads_the_rules_anew", &["curl", "python3"]) {
        return;
    }
    let field = Field::new("hangup");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let daemon = field.daemon(&format!("{SOCKS5}\nmetrics: {{ listen: 127.0.0.1:9184 }}"));
    let reload = |more: &str| {
        field.config(&format!("{SOCKS5}\nmetrics: {{ listen: 127.0.0.1:9184 }}\n{more}"));
        daemon.tell(Signal::HUP);
    };
    for (more, logged) in [
        ("rules: [{ receiver: \"delayed:d=9\" }]", "rules reloaded\n"),
        ("rules: [{ receiver: immediate }]\nstop_within: 1s", "reloaded; what else has changed in the file"),
    ] {
        reload(more);
        within_patience(until(|| field.log().contains(logged)));
    }
    let wrong =
        ["rules: [{ receiver: sometimes }]", "rules: [{ receiver: delayed }]\nhost: {}", "rules: [{ match:"];
    for (nth, more) in wrong.iter().enumerate() {
        reload(more);
        within_patience(until(|| field.log().matches("the old rules stay").count() == nth + 1));
    }
    fs::remove_file(field.path("node.yaml")).expect("it is there");
    daemon.tell(Signal::HUP);
    within_patience(until(|| field.log().matches("the old rules stay").count() == wrong.len() + 1));
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
    let metrics = text(&field.curl(&["http://127.0.0.1:9184/metrics"]).stdout);
    assert!(metrics.contains("hopwise_acks_decided_total{by=\"agent\",rule=\"each\"}"), "{metrics}");
    assert!(metrics.contains("hopwise_relay_total{what=\"socks5-accepted\"} 1"), "{metrics}");
}

#[test]
fn forwards_lead_both_ways() {
    if !can_run("forwards_lead_both_ways", &["curl", "python3"]) {
        return;
    }
    let field = Field::new("forwards");
    let _there = field.serve(&field.web, "10.9.0.2", "80");
    let _here = field.serve(&field.node, "127.0.0.1", "8000");
    let _daemon = field.daemon(
        "hosts: { web: 10.9.0.2 }\nforwards:\n  - { listen: 127.0.0.1:8080, to: mesh:web:80 }\n  \
         - { listen: mesh:8022, to: 127.0.0.1:8000 }",
    );
    let outward = field.curl(&["http://127.0.0.1:8080/"]);
    assert_eq!(text(&outward.stdout), PAGE, "{}", text(&outward.stderr));
    let inward = field.web.output(&["curl", "-sS", "--max-time", "60", "http://10.7.0.2:8022/"]);
    assert_eq!(text(&inward.stdout), PAGE, "{}", text(&inward.stderr));
}

#[test]
fn a_bad_link_with_offload_still_carries_every_byte() {
    if !can_run("a_bad_link_with_offload_still_carries_every_byte", &["curl", "python3"]) {
        return;
    }
    let field = Field::new("bad");
    let large: Vec<u8> =
        (0..2_000_000_u32).map(|nth| nth.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    fs::write(field.path("www/large"), &large).expect("the folder can be written");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let fault = "fault: { seed: 4, drop: 1%, duplicate: 1%, reorder: 1%, delay: 1ms }";
    let _daemon = field.daemon_over(&format!("kind: tun-fast, {fault}"), SOCKS5);
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/large"]].concat());
    assert!(page.stdout == large, "{} bytes came: {}", page.stdout.len(), text(&page.stderr));
}

/// The wire's device is the kernel's as before, and a second host with its own address at the same time.
#[test]
fn a_raw_link_without_root_leaves_no_rule_behind() {
    if !can_run("a_raw_link_without_root_leaves_no_rule_behind", &["curl", "python3", "nft"]) {
        return;
    }
    let field = Field::new("raw");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let path = field.path("node.yaml");
    let socket = field.path("control.sock");
    let text_of = format!(
        "node: {{ name: n2, address: 10.9.0.7/24 }}\nlinks: [{{ kind: raw, name: wire0 }}]\n\
         control: {socket}\nuser: nobody\n{SOCKS5}\n"
    );
    fs::write(&path, text_of).expect("the folder can be written");
    let mut daemon = field.spawn(&path);
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}{}", text(&page.stderr), field.log());
    let rules = |field: &Field| text(&field.node.output(&["nft", "list", "ruleset"]).stdout);
    assert!(rules(&field).contains("10.9.0.7"), "the kernel is kept quiet: {}", rules(&field));
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    assert_eq!(rules(&field), "", "{}", field.log());
}

#[test]
fn iperf3_and_ssh_run_through_forwards_unmodified() {
    let commands = ["iperf3", "ssh", "ssh-keygen", "sshd"];
    if !can_run("iperf3_and_ssh_run_through_forwards_unmodified", &commands) {
        return;
    }
    let field = Field::new("programs");
    let key = field.path("key");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &key]).status();
    assert!(made.is_ok_and(|status| status.success()));
    fs::copy(field.path("key.pub"), field.path("authorized")).expect("the folder can be written");
    let settings = format!(
        "Port 2222\nListenAddress 10.9.0.2\nHostKey {key}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\n\
         PermitRootLogin prohibit-password\nStrictModes no\n",
        field.path("authorized")
    );
    fs::write(field.path("sshd"), settings).expect("the folder can be written");
    fs::create_dir_all("/run/sshd").expect("sshd wants it");
    let sshd = text(&field.web.output(&["sh", "-c", "command -v sshd"]).stdout);
    let _sshd = field.web.start(&[sshd.trim(), "-D", "-f", &field.path("sshd")]);
    // One server for each client: between two clients a server stops listening for a moment.
    let iperf3 = |port| field.web.start(&["iperf3", "-s", "-B", "10.9.0.2", "-p", port]);
    let _iperf3 = [iperf3("5201"), iperf3("5202")];
    let _daemon = field.daemon(
        "forwards:\n  - { listen: 127.0.0.1:8022, to: mesh:10.9.0.2:2222 }\n  \
         - { listen: 127.0.0.1:5201, to: mesh:10.9.0.2:5201 }\n  \
         - { listen: 127.0.0.1:5202, to: mesh:10.9.0.2:5202 }",
    );
    let known = format!("UserKnownHostsFile={}", field.path("known"));
    let options = ["-o", "StrictHostKeyChecking=accept-new", "-o", &known, "-o", "BatchMode=yes"];
    within_patience(until(|| [2222, 5201, 5202].into_iter().all(|port| field.web.has_listener(port))));
    let what = ["-p", "8022", "-i", &key, "root@127.0.0.1", "head -c 1000000 /dev/zero | sha256sum"];
    let told = field.node.output(&[&["ssh"], &options[..], &what].concat());
    let expected = "d29751f2649b32ff572b5e0a9f541ea660a50f94ff0beedfb0b692b924cc8025";
    assert!(text(&told.stdout).starts_with(expected), "{}{}", text(&told.stdout), text(&told.stderr));
    for words in [&["-p", "5201", "-n", "20M"][..], &["-p", "5202", "-n", "20M", "-R"]] {
        let told = field.node.output(&[&["iperf3", "-c", "127.0.0.1"], words].concat());
        assert!(told.status.success(), "{}{}", text(&told.stdout), text(&told.stderr));
    }
}

#[test]
fn a_daemon_with_a_user_works_without_any_capability() {
    if !can_run("a_daemon_with_a_user_works_without_any_capability", &["curl", "python3"]) {
        return;
    }
    let field = Field::new("user");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let mut daemon = field.daemon(&format!("{SOCKS5}\nuser: nobody"));
    let facts = fs::read_to_string(format!("/proc/{}/status", daemon.0.id())).expect("it lives");
    let fact = |name: &str| {
        let line = facts.lines().find_map(|line| line.strip_prefix(name));
        line.expect("the kernel tells").trim().to_owned()
    };
    assert!(!fact("Uid:").contains("0\t"), "{facts}");
    for set in ["CapInh:", "CapPrm:", "CapEff:"] {
        assert_eq!(fact(set).trim_start_matches('0'), "", "{set} {facts}");
    }
    assert_eq!(fact("NoNewPrivs:"), "1");
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
    assert_eq!(field.status()["node"], "n2", "root may still ask");
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
}

/// The kernel's TCP neither reads nor sends the options of our agents.
#[test]
fn status_says_who_the_agents_are_what_they_lack_and_how_far_the_peer_is() {
    if !can_run("status_says_who_the_agents_are", &["python3"]) {
        return;
    }
    let field = Field::new("lacks");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let _daemon = field.daemon(
        "forwards: [{ listen: 127.0.0.1:8080, to: mesh:10.9.0.2:80 }]\n\
         rules: [{ receiver: dca, sender: [newreno, pgy, \"ask-rate:4\"], shadows: [immediate, \"delayed:d=4\"] }]",
    );
    let _open = field.node.run(|| TcpStream::connect("127.0.0.1:8080").expect("it listens"));
    let found = || {
        let status = field.status();
        let of_ours = |conn: &&serde_json::Value| conn["state"] == "established";
        status["connections"].as_array().and_then(|all| all.iter().find(of_ours)).cloned()
    };
    let mut conn = None;
    within_patience(until(|| {
        conn = found();
        conn.is_some()
    }));
    let conn = conn.expect("it was found");
    for (key, expected) in [
        ("receiver", serde_json::json!("dca")),
        ("sender", serde_json::json!("[newreno, pgy, ask-rate:4]")),
        ("receiver_lacks", serde_json::json!(["peer-cwnd"])),
        ("sender_lacks", serde_json::json!(["dup-count", "rate-request"])),
        // The hops come from the hop limit, which shows the reverse path alone. The step through the kernel to the
        // device is no hop.
        ("hops", serde_json::json!(null)),
        ("hops_back", serde_json::json!(1)),
        ("hops_back_source", serde_json::json!("ttl")),
    ] {
        assert_eq!(conn[key], expected, "{key}: {conn}");
    }
    let shadows = conn["shadows"].as_array().expect("a list");
    let names: Vec<_> = shadows.iter().map(|shadow| &shadow["receiver"]).collect();
    assert_eq!(names, ["immediate", "delayed:4"], "{conn}");
    let table = text(&field.ask(&["status"]).stdout);
    assert!(table.contains(": immediate would have sent "), "{table}");
    assert!(table.contains("dca") && table.contains("[newreno, pgy, ask-rate:4]"), "{table}");
}

/// The file's checks count on it.
#[test]
fn who_listens_at_every_ipv6_address_takes_ipv4_wherever_it_runs() {
    if !can_run("who_listens_at_every_ipv6_address_takes_ipv4_wherever_it_runs", &["curl", "python3"]) {
        return;
    }
    let field = Field::new("everywhere");
    field.node.sysctl("ipv6/bindv6only", "1");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let _daemon = field.daemon("socks5: { listen: \"[::]:1080\" }");
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
}

#[test]
fn a_capture_of_a_node_gives_every_packet_of_ours_its_reason() {
    if !can_run("a_capture_of_a_node_gives_every_packet_of_ours_its_reason", &["python3", "tshark"]) {
        return;
    }
    let field = Field::new("capture");
    fs::write(field.path("www/big"), vec![7; 2_000_000]).expect("the folder can be written");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let _daemon = field.daemon(&format!(
        "{SOCKS5}\nrules: [{{ match: {{ port: 1 }} }}, {{ receiver: \"delayed:d=4,hold=50ms\" }}]"
    ));
    let file = field.path("a.pcapng");
    let began = field.ask(&["capture", "start", &file]);
    assert!(began.status.success(), "{}", text(&began.stderr));
    let mut client = field.node.run(|| TcpStream::connect("127.0.0.1:1080")).expect("the proxy listens");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    client.write_all(&[5, 1, 0, 5, 1, 0, 1, 10, 9, 0, 2, 0, 80]).expect("it is open");
    // The file's writer looks up the connection's rule at its first packet, and must do so while the rule is there.
    within_patience(until(|| field.status()["capture"]["packets_written"].as_u64() > Some(0)));
    client.write_all(b"GET /big HTTP/1.0\r\n\r\n").expect("it is open");
    let came = std::io::copy(&mut client, &mut std::io::sink()).expect("it is served");
    assert!(came > 2_000_000, "{came}");
    drop(client);
    let ended = field.ask(&["capture", "stop"]);
    assert!(text(&ended.stdout).contains(" packets, "), "{}", text(&ended.stderr));
    let shown = |filter: &str, fields: &[&str]| {
        let told = field.node.output(&[&["tshark", "-r", &file, "-Y", filter], fields].concat());
        text(&told.stdout)
    };
    assert_eq!(shown("ip.src == 10.7.0.2 && !frame.comment", &[]), "");
    assert_eq!(shown("_ws.malformed || _ws.expert.severity == error", &[]), "");
    let held = shown(
        "frame.comment contains \"ACK withheld by delayed:d=4\"",
        &["-T", "fields", "-e", "frame.number"],
    );
    let frame = held.lines().next().expect("some ACKs were withheld");
    let why = field.node.output(&[HOPWISE, "capture", "why", &file, frame]);
    assert!(
        text(&why.stdout).contains("ACK withheld by delayed:d=4,hold=50ms: count"),
        "{}",
        text(&why.stdout)
    );
    assert!(text(&why.stdout).contains("; agents by rules.1"), "{}", text(&why.stdout));
    assert_eq!(shown("ip.src == 10.7.0.2 && !(frame.comment contains \"agents by rules.1\")", &[]), "");
}

#[test]
fn a_full_disk_under_a_capture_is_survived_and_the_file_can_be_read() {
    if !can_run("a_full_disk_under_a_capture_is_survived", &["curl", "python3", "tshark", "mount"]) {
        return;
    }
    let field = Field::new("full");
    fs::write(field.path("www/big"), vec![7; 3_000_000]).expect("the folder can be written");
    let file = field.small_disk("512k") + "/a.pcapng";
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let _daemon = field.daemon(SOCKS5);
    assert!(field.ask(&["capture", "start", &file]).status.success());
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/big", "-o", "/dev/null"]].concat());
    assert!(page.status.success(), "{}", text(&page.stderr));
    let ended = text(&field.ask(&["capture", "stop"]).stdout);
    assert!(ended.contains("could not be written") && ended.contains("No space left"), "{ended}");
    let read = field.node.output(&["tshark", "-r", &file, "-T", "fields", "-e", "frame.number"]);
    assert!(read.status.success() && read.stdout.len() > 2, "{}", text(&read.stderr));
    let again = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
    assert_eq!(text(&again.stdout), PAGE, "{}", text(&again.stderr));
}

#[test]
fn send_and_recv_measure_between_two_namespaces() {
    if !can_run("send_and_recv_measure_between_two_namespaces", &[]) {
        return;
    }
    let field = Field::new("measure");
    let file = field.path("file");
    fs::write(&file, (0..3_000_000_u32).map(|nth| nth.to_le_bytes()[0] ^ 0x5a).collect::<Vec<_>>())
        .expect("a file");
    let output = field.path("copy");
    let recv = ["recv", "--address", "10.8.0.2/24", "--kernel", "10.8.0.1/24", "--output", &output];
    let said = fs::File::create(field.path("said")).expect("the folder can be written");
    let mut recv = field.web.command(&[&[HOPWISE], &recv[..]].concat());
    let _recv =
        Running(recv.stdin(Stdio::null()).stdout(said).stderr(Stdio::null()).spawn().expect("it runs"));
    let has_said =
        || fs::read_to_string(field.path("said")).is_ok_and(|said| said.contains("waiting at port"));
    within_patience(until(has_said));
    let send_to = |to: &str, words: &[&str]| {
        let place = [HOPWISE, "send", to, "--address", "10.7.0.2/24", "--kernel", "10.7.0.1/24", "--json"];
        let told = field.node.output(&[&place[..], words].concat());
        assert!(told.status.success(), "{words:?}: {}", text(&told.stderr));
        serde_json::from_slice::<serde_json::Value>(&told.stdout).expect("one object")
    };
    let send = |words: &[&str]| send_to("10.8.0.2", words);
    let of_file = send(&["--file", &file, "--sender", "[newreno, limit:20]"]);
    assert_eq!(of_file["sha256"]["matches"], true, "{of_file}");
    assert_eq!(of_file["flows"][0]["sender"], serde_json::json!(["newreno", "limit:20"]));
    assert!(fs::read(&file).expect("it is there") == fs::read(&output).expect("it was kept"));
    let bytes = send(&["--bytes", "1MB", "--reverse", "--parallel", "3", "--receiver", "immediate"]);
    let flows = bytes["flows"].as_array().expect("flows");
    assert_eq!(flows.len(), 3);
    for flow in flows {
        assert_eq!(
            (&flow["bytes_delivered"], &flow["receiver"]),
            (&1_000_000.into(), &"immediate".into()),
            "{flow}"
        );
    }
    let bulk = send(&["--time", "200ms"]);
    assert!(bulk["scenario"] == "bulk" && bulk["flows"][0]["bytes_delivered"].as_u64() > Some(0), "{bulk}");
    let requests = send(&["--requests", "50"]);
    assert_eq!(requests["requests"]["count"], 50, "{requests}");
    // The kernel forgets its earlier peers.
    let _kernels = field.web.start(&[HOPWISE, "recv", "--kernel-tcp"]);
    within_patience(until(|| field.web.run(|| TcpStream::connect(("10.9.0.2", 5201)).is_ok())));
    let flow = &send_to("10.9.0.2", &["--bytes", "1MB", "--reverse"])["flows"][0];
    let to = flow["to"].as_str().expect("a text");
    assert!(flow["from"] == "10.9.0.2:5201" && to.starts_with("10.7.0.2:"), "{flow}");
}
