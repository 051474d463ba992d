//! The command as a daemon, with programs and kernels around it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;

use crate::field::{Field, HOPWISE, PAGE, SOCKS5, THROUGH, text};
use crate::namespace::Namespace;
use crate::world::{until, within_patience};

mod dashboard;
mod ends;
mod figures;

pub(crate) use ends::systemd;

/// The commands stand in the book, and are run as they stand there.
#[test]
fn the_first_node_of_the_book_fetches_a_page_from_a_kernel_in_another_namespace() {
    needs!["curl", "python3"];
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/node.md")).expect("it is there");
    let section = page.split("\n## A first node\n").nth(1).expect("the page shows it");
    let section = section.split("\n## ").next().expect("it ends");
    let blocks = section.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let blocks: Vec<&str> = blocks.collect();
    assert!(blocks[0].lines().count() < 10, "a first node takes under ten lines");
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
        "Frame 8 (10.9.0.2:80 to 10.7.0.2:",
        ":d=3,hold=80ms decided it",
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
    needs!["curl", "python3"];
    let field = Field::new("v6");
    let _daemon = field.daemon(SOCKS5);
    let _server = field.serve(&field.node, "fd07::1", "8006");
    let page = field.curl(&[&THROUGH[..], &["-g", "http://[fd07::1]:8006/"]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
}

#[test]
fn a_second_daemon_on_the_same_device_is_refused() {
    needs![];
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
    needs![];
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
fn a_device_that_vanishes_ends_the_daemon_with_an_error() {
    needs![];
    let field = Field::new("vanish");
    let mut daemon = field.daemon("");
    field.node.ip(&["link", "del", "hw0"]);
    assert_eq!(daemon.ended(), Some(1));
    assert!(field.log().contains("hw0: the device is gone"), "{}", field.log());
}

#[test]
fn a_hangup_reads_the_rules_anew_and_a_wrong_file_changes_nothing() {
    needs!["curl", "python3"];
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
    needs!["curl", "python3"];
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
    needs!["curl", "python3"];
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

/// The wire's device is the kernel's as before, and with its own address a second host as well.
#[test]
fn a_raw_link_without_root_leaves_no_rule_behind() {
    needs!["curl", "python3", "nft"];
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
    needs!(&commands);
    let field = Field::new("programs");
    let key = field.path("key");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &key]).status();
    assert!(made.is_ok_and(|status| status.success()));
    let (authorized, home) = (field.path("authorized"), field.path(""));
    fs::copy(field.path("key.pub"), &authorized).expect("the folder can be written");
    let settings = format!(
        "Port 2222\nListenAddress 10.9.0.2\nHostKey {key}\nAuthorizedKeysFile {authorized}\nPidFile none\nUsePAM no\n\
         PermitRootLogin prohibit-password\nStrictModes no\nSetEnv HOME={home}\n"
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
    needs!["curl", "python3"];
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

/// The file's checks count on it.
#[test]
fn who_listens_at_every_ipv6_address_takes_ipv4_wherever_it_runs() {
    needs!["curl", "python3"];
    let field = Field::new("everywhere");
    field.node.sysctl("ipv6/bindv6only", "1");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let _daemon = field.daemon("socks5: { listen: \"[::]:1080\" }");
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
}
