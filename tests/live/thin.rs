//! `hopwise thin` between two kernels: on the host that receives, and on the last router before it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::field::{HOPWISE, assert_none_refused};
use crate::namespace::{Namespace, Running};
use crate::proxy::Network;
use crate::world::{until, within_patience};

/// A daemon of a network's host; the wire is the way of the ACKs to the sender.
struct Thinned<'a> {
    network: &'a Network,
    at: &'a Namespace,
    running: Running,
}

impl<'a> Thinned<'a> {
    fn on_mobile(network: &'a Network, receiver: &str, patience: &str) -> Thinned<'a> {
        Thinned::start(network, &network.mobile, &["radio", "--receiver", receiver], patience)
    }

    fn on_router(network: &'a Network, receiver: &str) -> Thinned<'a> {
        Thinned::start(network, &network.router, &["wire", "--receiver", receiver], "60s")
    }

    fn start(network: &'a Network, at: &'a Namespace, words: &[&str], patience: &str) -> Thinned<'a> {
        let log = fs::File::create(network.path("thin.log")).expect("a file");
        let socket = network.path("thin.sock").display().to_string();
        let words = [&[HOPWISE, "thin"], words, &["--control", &socket, "--watchdog", patience]].concat();
        let mut command = at.command(&words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut running = Running(command.spawn().expect("it starts"));
        within_patience(until(|| {
            let log = fs::read_to_string(network.path("thin.log")).unwrap_or_default();
            assert!(running.0.try_wait().expect("a child").is_none(), "it ended: {log}");
            log.contains("ready")
        }));
        Thinned { network, at, running }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.network.path("thin.log")).unwrap_or_default()
    }

    /// A count of the daemon's status.
    fn count(&self, name: &str) -> u64 {
        let socket = self.network.path("thin.sock").display().to_string();
        let said = self.at.output(&[HOPWISE, "status", "--control", &socket, "--json"]);
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let counts: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
        counts[name].as_u64().unwrap_or_else(|| panic!("{name}: {counts}"))
    }

    fn has_no_rule_left(&self) -> bool {
        let rules =
            [&["nft", "list", "ruleset"][..], &["iptables-save"]].map(|words| self.at.output(words).stdout);
        !String::from_utf8_lossy(&rules.concat()).to_lowercase().contains("hopwise")
    }

    fn end(&mut self) {
        self.running.interrupt();
        within_patience(until(|| self.has_no_rule_left()));
        assert_none_refused(&self.log());
    }
}

/// Sends so many bytes from the fixed host to the mobile, half as many back, and compares both.
fn carry_both_ways(network: &Network, bytes: usize) {
    let (fixed, mobile) = network.connection("cubic");
    let data: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    let (there, back) = (data.clone(), data[..bytes / 2].to_vec());
    let send = |mut stream: std::net::TcpStream, data: Vec<u8>| {
        move || {
            stream.write_all(&data).expect("the connection stands");
            stream.shutdown(std::net::Shutdown::Write).expect("it is open");
        }
    };
    let hear = |mut stream: &std::net::TcpStream| {
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).expect("the connection stands");
        heard
    };
    let sending = [
        thread::spawn(send(fixed.try_clone().expect("a handle"), there)),
        thread::spawn(send(mobile.try_clone().expect("a handle"), back)),
    ];
    let answer = thread::scope(|scope| {
        let of_fixed = scope.spawn(|| hear(&fixed));
        assert!(hear(&mobile) == data, "what came differs");
        of_fixed.join().expect("it hears")
    });
    assert!(answer == data[..bytes / 2], "the answer differs");
    sending.into_iter().for_each(|thread| thread.join().expect("it sends"));
}

#[test]
fn fewer_acks_leave_the_receiving_host_or_its_router_and_the_data_is_whole() {
    needs!["nft", "ethtool"];
    // An ACK of a kernel that is slow to read answers 64 segments and counts as so many.
    let agent = "delayed:d=1000";
    for is_on_mobile in [true, false] {
        let network = Network::new("thin-fewer");
        let mut thinned = if is_on_mobile {
            Thinned::on_mobile(&network, agent, "60s")
        } else {
            Thinned::on_router(&network, agent)
        };
        let heard = |network: &Network| -> u64 {
            let count = network.fixed.output(&["cat", "/sys/class/net/wire/statistics/rx_packets"]);
            String::from_utf8_lossy(&count.stdout).trim().parse().expect("a count")
        };
        let before = heard(&network);
        let transfer = network.transfer("cubic");
        transfer.wait_for(10_000_000);
        drop(transfer);
        let (acks, replaced) = (thinned.count("acks"), thinned.count("replaced"));
        let left = heard(&network) - before;
        // The kernel itself acknowledges many segments at once where a wire is this quick.
        assert!(acks > 50 && replaced * 10 > acks * 5, "{replaced} of {acks}");
        assert!(left <= acks - replaced + 100, "{left} left of {acks} without {replaced}");
        carry_both_ways(&network, 1_000_000);
        within_patience(until(|| thinned.count("held") == 0));
        thinned.end();
    }
}

#[test]
fn a_transfer_goes_on_when_the_daemon_is_killed_stopped_or_ended() {
    needs!["nft", "ethtool"];
    let network = Network::new("thin-ends");
    let transfer = network.transfer("cubic");
    for signal in [Signal::KILL, Signal::STOP, Signal::TERM] {
        let mut thinned = Thinned::on_mobile(&network, "delayed:d=8", "5s");
        let before = thinned.count("replaced");
        transfer.wait_for(1_000_000);
        assert!(thinned.count("replaced") > before, "it works");
        kill_process(Pid::from_child(&thinned.running.0), signal).expect("it runs");
        within_patience(until(|| thinned.running.0.try_wait().expect("a child").is_some()));
        transfer.wait_for(1_000_000);
        within_patience(until(|| thinned.has_no_rule_left()));
        assert_eq!(signal == Signal::STOP, thinned.log().contains("the daemon hangs and is killed"));
    }
}

#[test]
fn a_file_gives_agents_to_flows_and_a_capture_has_the_fate_of_each_ack() {
    needs!["nft", "ethtool"];
    let network = Network::new("thin-file");
    let [file, capture] = ["thin.yaml", "acks.pcapng"].map(|name| network.path(name));
    let folder = file.parent().expect("a folder");
    // The daemon is no root when it writes.
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("it is ours");
    let rule = "{ match: { interface: radio }, receiver: \"delayed:d=100\" }";
    fs::write(&file, format!("interfaces: [radio]\nreceiver: immediate\nrules: [{rule}]\n")).expect("a file");
    let [of_file, of_capture] = [&file, &capture].map(|path| path.display().to_string());
    let words = ["--config", &of_file, "--capture", &of_capture];
    let mut thinned = Thinned::start(&network, &network.mobile, &words, "60s");
    network.transfer("cubic").wait_for(5_000_000);
    assert!(thinned.count("replaced") > 0, "the rule knows the interface");
    thinned.end();
    within_patience(until(|| thinned.running.0.try_wait().expect("a child").is_some()));
    let written = String::from_utf8_lossy(&fs::read(&capture).expect("a capture")).into_owned();
    for said in ["passed: one of the first of its flow", "dropped: replaced by the ACK of ", "held for 0."] {
        assert!(written.contains(said), "{said}");
    }
}

/// Rules by interface ask the kernel for the interface's name, which takes a descriptor.
#[test]
fn a_daemon_out_of_descriptors_lets_acks_pass_and_knows_its_interfaces_once_it_has_some() {
    needs!["nft", "ethtool", "prlimit"];
    let network = Network::new("thin-few");
    let file = network.path("thin.yaml");
    let rule = "{ match: { interface: radio }, receiver: \"delayed:d=100\" }";
    fs::write(&file, format!("interfaces: [radio]\nreceiver: immediate\nrules: [{rule}]\n")).expect("a file");
    let config = file.display().to_string();
    let mut thinned = Thinned::start(&network, &network.mobile, &["--config", &config], "60s");
    let process = thinned.running.0.id();
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next());
    let user: u32 = user.and_then(|user| user.parse().ok()).expect("a user");
    let set = |most: u32| {
        let mut prlimit = Command::new("prlimit");
        prlimit.args([format!("--pid={process}"), format!("--nofile={most}:")]);
        // The user of a process may limit it, and root may not everywhere.
        let done = prlimit.uid(user).gid(user).output().expect("prlimit starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    // poll(2) wants room for its two.
    set(3);
    network.transfer("cubic").wait_for(1_000_000);
    set(1_000);
    assert_eq!(thinned.count("replaced"), 0, "without a name no rule is its interface's");
    network.transfer("cubic").wait_for(1_000_000);
    assert!(thinned.count("replaced") > 0, "the rule knows the interface");
    thinned.end();
}

/// The fixed host is five links away by its hop limit. Without hops this agent lets two segments share an ACK, and from
/// four hops on all that come within its hold.
#[test]
fn an_agent_learns_the_hops_from_the_syn_that_arrives() {
    needs!["nft", "ethtool"];
    let network = Network::new("thin-hops");
    network.fixed.sysctl("ipv4/ip_default_ttl", "61");
    let mut thinned = Thinned::on_mobile(&network, "dca:far=4,far-limit=60000", "60s");
    network.transfer("cubic").wait_for(20_000_000);
    // ACKs of slow start pass before the agent decides. Of further ACKs it replaces about eight in ten, if it knows the
    // hops, and otherwise half at most.
    let [acks, news, replaced] = ["acks", "news", "replaced"].map(|name| thinned.count(name));
    assert!(replaced * 3 > (acks - news) * 2, "{replaced} of {acks}, {news} at once");
    thinned.end();
}

/// The host's own rules come before ours: what they drop never reaches the daemon, and what they accept does.
#[test]
fn rules_of_the_hosts_firewall_come_first_and_lead_no_ack_past_the_daemon() {
    needs!["nft", "ethtool"];
    let network = Network::new("thin-wall");
    let mobile = &network.mobile;
    let nft = |rule: &str| {
        let done = mobile.output(&["nft", rule]);
        assert!(done.status.success(), "{rule}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let hook = "type filter hook output priority filter; policy accept;";
    nft(&format!("table inet wall {{ chain out {{ {hook} tcp flags != 0 accept; }}; }}"));
    let mut thinned = Thinned::on_mobile(&network, "delayed:d=8", "60s");
    let transfer = network.transfer("cubic");
    transfer.wait_for(1_000_000);
    assert!(thinned.count("replaced") > 0, "its ACKs were accepted before");
    nft("insert rule inet wall out meta l4proto tcp counter drop");
    let dropped = || {
        let listed =
            String::from_utf8_lossy(&mobile.output(&["nft", "list", "table", "inet", "wall"]).stdout)
                .into_owned();
        let count =
            listed.split("packets ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        count.unwrap_or_else(|| panic!("{listed}"))
    };
    // What came before the rule may be in the queue still.
    let mut still = (u64::MAX, 0);
    within_patience(until(|| {
        let acks = thinned.count("acks");
        if acks != still.0 {
            still = (acks, dropped());
        }
        dropped() > still.1 + 2
    }));
    nft("flush chain inet wall out");
    transfer.wait_for(1_000_000);
    nft("delete table inet wall");
    thinned.end();
}

/// The error of a daemon that does not start.
fn refused(at: &Namespace, words: &[&str]) -> String {
    let socket: PathBuf = std::env::temp_dir().join("hoplive-thin-refused.sock");
    let socket = socket.display().to_string();
    let words = [&["timeout", "60", HOPWISE, "thin", "--control", &socket], words].concat();
    let done = at.output(&words);
    assert!(!done.status.success(), "it started, and ended");
    String::from_utf8_lossy(&done.stderr).into_owned()
}

#[test]
fn what_cannot_be_served_is_refused_with_the_reason() {
    needs!["nft", "ethtool"];
    let network = Network::new("thin-refused");
    let mut thinned = Thinned::on_mobile(&network, "aad", "60s");
    let process = within_thin(&thinned);
    for (words, said) in [
        (&["radio", "--queue", "7301"][..], &*format!("radio: the process {process} has its ACKs already")),
        (&["lo"], "another program has the netfilter queue 7300; name a free one with --queue"),
        (&["wlan7"], "no interface is called `wlan7` here"),
        (&["lo", "--receiver", "delyed"], "did you mean `delayed`?"),
        (&["lo", "--queue", "70000"], "expected a whole number from 0 to 65535"),
        (&["lo", "--watchdog", "1ms"], "expected 600ms or more"),
        (&[], "<INTERFACE>"),
    ] {
        let error = refused(&network.mobile, words);
        assert!(error.contains(said), "{words:?}: {error}");
    }
    let socket = network.path("thin.sock").display().to_string();
    let again = [HOPWISE, "thin", "lo", "--queue", "7301", "--control", &socket];
    let error = network.mobile.output(&again).stderr;
    assert!(String::from_utf8_lossy(&error).contains("another daemon answers there"), "{error:?}");
    assert!(!thinned.has_no_rule_left(), "the first daemon's rules stand");
    thinned.end();
}

/// Neither a host without programs for rules starts a daemon, nor a host whose nft the kernel refuses.
#[test]
fn a_host_that_leads_no_packets_into_queues_hears_what_it_needs() {
    needs!["nft"];
    let network = Network::new("thin-without");
    let refusing = network.path("nft");
    fs::write(&refusing, "#!/bin/sh\necho 'Error: Could not process rule' >&2; exit 1\n").expect("a file");
    fs::set_permissions(&refusing, fs::Permissions::from_mode(0o755)).expect("a mode");
    let socket = network.path("without.sock").display().to_string();
    let folder = network.path("").display().to_string();
    for (path, said) in
        [("/nonexistent", "nft: No such file"), (&*folder, "nft: Error: Could not process rule")]
    {
        let words =
            ["timeout", "60", "env", &format!("PATH={path}"), HOPWISE, "thin", "lo", "--control", &socket];
        let done = network.mobile.output(&words);
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && error.contains(said), "{error}");
        assert!(error.contains("nft with CONFIG_NFT_QUEUE in the kernel, or iptables"), "{error}");
    }
}

/// `--watch` draws the page anew, and reads the counts again each time; `--once` prints it.
#[test]
fn a_user_watches_the_counts() {
    needs!["nft", "ethtool", "script"];
    let network = Network::new("thin-watched");
    let mut thinned = Thinned::on_mobile(&network, "delayed:d=8", "60s");
    let socket = network.path("thin.sock").display().to_string();
    let watch = [HOPWISE, "status", "--watch", "--control", &socket, "--every", "100ms"];
    let once = network.mobile.output(&[&watch[..], &["--once"]].concat());
    let page = String::from_utf8_lossy(&once.stdout);
    assert!(page.contains("flows 0, ACKs that wait 0\nACKs 0, left 0"), "{page}{once:?}");
    let on_terminal = format!("stty rows 24 columns 150; exec {}", watch.join(" "));
    let mut terminal = network.mobile.command(&["script", "-qfec", &on_terminal, "/dev/null"]);
    let file = network.path("watched");
    let into = fs::File::create(&file).expect("a file");
    let mut drawing = terminal.stdin(Stdio::piped()).stdout(into).spawn().map(Running).expect("it starts");
    let drawn = || letters(&String::from_utf8_lossy(&fs::read(&file).unwrap_or_default()));
    within_patience(until(|| drawn().ends_with("room0")));
    let transfer = network.transfer("cubic");
    transfer.wait_for(1_000_000);
    // Of a later frame the terminal gets what changed: digits of the counts.
    within_patience(until(|| !drawn().ends_with("room0")));
    drop(transfer);
    drawing.0.stdin.take().expect("a pipe").write_all(b"q").expect("it reads");
    within_patience(until(|| drawing.0.try_wait().expect("a child").is_some_and(|ended| ended.success())));
    thinned.end();
}

/// What a program writes on a terminal, without what steers it. Blanks of a frame are not written.
fn letters(written: &str) -> String {
    let text =
        |part: &str| part.split_once(|end: char| end.is_ascii_alphabetic()).map(|(_, text)| text.to_owned());
    written.split('\x1b').filter_map(text).collect()
}

/// The number of the daemon's process: `ip netns exec` becomes it.
fn within_thin(thinned: &Thinned<'_>) -> u32 {
    thinned.running.0.id()
}
