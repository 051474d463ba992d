//! `hopwise proxy` on a router between two kernels: a wire, a radio that fades, and the sender's own counters.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::field::{HOPWISE, assert_none_refused};
use crate::namespace::{Namespace, Running, can_run, missing};
use crate::world::{PATIENCE, until, within_patience};

#[path = "proxy/bridge.rs"]
mod bridge;
#[path = "proxy/capture.rs"]
mod capture;
#[path = "proxy/fade.rs"]
mod fade;
#[path = "proxy/firewall.rs"]
mod firewall;
#[path = "proxy/hangs.rs"]
mod hangs;
#[path = "proxy/iptables.rs"]
mod iptables;
#[path = "proxy/mishaps.rs"]
mod mishaps;
#[path = "proxy/router.rs"]
mod router;
#[path = "proxy/table.rs"]
mod table;

const MOBILE: &str = "10.9.0.2";

/// The place of the proxy between the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Tun,
    Nfqueue,
    Bridge,
}

/// The places that are possible here; prints the missing ones with their reasons.
fn ways(test: &str) -> Vec<By> {
    if !can_run(test, &["nft", "ethtool"]) {
        return Vec::new();
    }
    let can_queue =
        Path::new("/proc/net/netfilter/nfnetlink_queue").exists() && missing("iptables").is_none();
    if !can_queue {
        println!("skipped: {test}: over NFQUEUE: no queues in this kernel, or iptables is not installed");
    }
    [By::Tun, By::Nfqueue, By::Bridge].into_iter().filter(|by| can_queue || *by != By::Nfqueue).collect()
}

/// Three kernels: a fixed host, a router or a bridge, a mobile.
pub(crate) struct Network {
    pub(crate) fixed: Namespace,
    pub(crate) router: Namespace,
    pub(crate) mobile: Namespace,
    by: By,
    pub(crate) watchdog: &'static str,
    mobile_address: &'static str,
    folder: PathBuf,
}

impl Network {
    pub(crate) fn new(name: &str) -> Network {
        Network::by(name, By::Tun)
    }

    pub(crate) fn by(name: &str, by: By) -> Network {
        let (fixed, router, mobile) = (Namespace::new(), Namespace::new(), Namespace::new());
        if by == By::Bridge {
            fixed.join(&router, "wire", "10.9.0.1/24", "10.7.0.1/24");
            router.join(&mobile, "radio", "10.7.1.1/24", "10.9.0.2/24");
            router.ip(&["link", "add", "bridge", "type", "bridge"]);
            for port in ["wire", "radio"] {
                router.ip(&["link", "set", port, "master", "bridge"]);
            }
            router.ip(&["link", "set", "bridge", "up"]);
        } else {
            fixed.join(&router, "wire", "10.8.0.1/24", "10.8.0.2/24");
            router.join(&mobile, "radio", "10.9.0.1/24", "10.9.0.2/24");
            fixed.ip(&["route", "add", "default", "via", "10.8.0.2"]);
            mobile.ip(&["route", "add", "default", "via", "10.9.0.1"]);
            router.sysctl("ipv4/ip_forward", "1");
        }
        // A window of some hundred segments: no queue then overflows.
        mobile.sysctl("ipv4/tcp_rmem", "4096 131072 262144");
        for namespace in [&fixed, &router, &mobile] {
            // Whole packets, as a radio has them.
            for device in ["wire", "radio"] {
                let off = ["ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off", "tx", "off"];
                drop(namespace.output(&off));
            }
        }
        let folder = std::env::temp_dir().join(format!("hopwise-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        Network { fixed, router, mobile, by, watchdog: "60s", mobile_address: MOBILE, folder }
    }

    /// The same network over IPv6 alone; connections go to the mobile's address of that family.
    pub(crate) fn v6(name: &str) -> Network {
        let mut network = Network::new(name);
        let Network { fixed, router, mobile, .. } = &network;
        for (namespace, address, device) in [
            (fixed, "fd08::1/64", "wire"),
            (router, "fd08::2/64", "wire"),
            (router, "fd09::1/64", "radio"),
            (mobile, "fd09::2/64", "radio"),
        ] {
            namespace.ip(&["addr", "add", address, "dev", device, "nodad"]);
        }
        router.sysctl("ipv6/conf/all/forwarding", "1");
        fixed.ip(&["route", "add", "fd09::/64", "via", "fd08::2"]);
        mobile.ip(&["route", "add", "fd08::/64", "via", "fd09::1"]);
        network.mobile_address = "fd09::2";
        network
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn socket(&self) -> PathBuf {
        self.path("proxy.sock")
    }

    /// Starts the proxy with that agent, the wire's side late by `delay`, and waits until it answers.
    pub(crate) fn proxy(&self, agent: &str, delay: &str) -> Running {
        self.proxy_with(agent, delay, "")
    }

    /// The same proxy with rules that lead through another table.
    fn proxy_in_table(&self, table: u32) -> Running {
        self.proxy_with("none", "none", &format!(", table: {table}"))
    }

    fn proxy_with(&self, agent: &str, delay: &str, table: &str) -> Running {
        self.spawn(&self.path("proxy.yaml"), &self.text(agent, delay, table))
    }

    fn text(&self, agent: &str, delay: &str, table: &str) -> String {
        let by = format!("{:?}", self.by).to_lowercase();
        // A machine that is merely busy must not look like a proxy that hangs.
        let watchdog = self.watchdog;
        let mobile = self.mobile_address;
        let text = format!(
            "fixed: {{ name: hopf, fault: {{ delay: {delay} }} }}\nmobile: {{ name: hopm }}\n\
             steer: {{ wire: wire, radio: radio, mobiles: [10.9.0.0/24, \"fd09::/64\"], by: {by}{table} }}\n\
             agent: \"{agent}\"\ncontrol: {}\ncarriers: [{{ interface: radio, mobiles: [\"{mobile}\"] }}]\n\
             forecast: {{ threshold_dbm: -80 }}\nwatchdog: {watchdog}\n",
            self.socket().display()
        );
        // A delay of zero means no delay: packets then pass without a copy.
        let text = if delay == "none" { text.replace(", fault: { delay: none }", "") } else { text };
        let trace = std::env::var("HOPWISE_PROXY_TRACE").map(|path| format!("trace: {path}\n"));
        text + &trace.unwrap_or_default()
    }

    /// Starts another proxy on the same router, for other mobiles.
    fn proxy_beside(&self) -> Running {
        let mut text = fs::read_to_string(self.path("proxy.yaml")).expect("the first one's");
        for (first, second) in [
            ("hopf", "hopf2"),
            ("hopm", "hopm2"),
            ("proxy.sock", "beside.sock"),
            ("10.9.0.", "10.66.0."),
            ("fd09:", "fd66:"),
            ("by: tun", "by: tun, table: 8200"),
        ] {
            text = text.replace(first, second);
        }
        self.spawn(&self.path("beside.yaml"), &text)
    }

    /// The error of a proxy that does not start with that agent.
    fn refused(&self, agent: &str) -> String {
        let text = self.text(agent, "none", "");
        fs::write(self.path("proxy.yaml"), text).expect("a file");
        let mut command = self.router.command(&["timeout", "300", env!("CARGO_BIN_EXE_hopwise"), "proxy"]);
        let done = command.arg(self.path("proxy.yaml")).stdin(Stdio::null()).output().expect("it runs");
        assert!(!done.status.success(), "it started, and ended");
        String::from_utf8_lossy(&done.stderr).into_owned()
    }

    fn spawn(&self, config: &Path, text: &str) -> Running {
        fs::write(config, text).expect("a file");
        self.begin(&[HOPWISE, "proxy", &config.to_string_lossy()])
    }

    /// Starts another command that becomes the proxy of `proxy.yaml`.
    pub(crate) fn proxy_as(&self, agent: &str, words: &[&str]) -> Running {
        fs::write(self.path("proxy.yaml"), self.text(agent, "none", "")).expect("a file");
        self.begin(words)
    }

    fn begin(&self, words: &[&str]) -> Running {
        let log = fs::File::create(self.path("proxy.log")).expect("a file");
        let mut command = self.router.command(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        if self.path("bin").exists() {
            let others = std::env::var("PATH").unwrap_or_default();
            command.env("PATH", format!("{}:{others}", self.path("bin").display()));
        }
        if self.path("notify").exists() {
            command.env("NOTIFY_SOCKET", self.path("notify"));
        }
        let mut running = Running(command.spawn().expect("it starts"));
        within_patience(until(|| {
            assert!(running.0.try_wait().expect("a child").is_none(), "it ended: {}", self.log());
            self.log().contains("ready")
        }));
        running
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("proxy.log")).unwrap_or_default()
    }

    pub(crate) fn tell(&self, line: &str) -> String {
        let mut client = UnixStream::connect(self.socket()).expect("the proxy answers");
        client.set_read_timeout(Some(PATIENCE)).expect("it can be set");
        writeln!(client, "{line}").expect("it reads");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it answers");
        answer
    }

    pub(crate) fn tell_down(&self, outage_ms: u64) -> String {
        let (peer, outage_us) = (self.mobile_address, outage_ms * 1_000);
        let text = format!("\"peer\":\"{peer}\",\"rtt_us\":1000,\"outage_us\":{outage_us}");
        self.tell(&format!("{{\"tell\":\"going-down\",{text}}}"))
    }

    pub(crate) fn tell_of(&self, news: &str) -> String {
        self.tell(&format!("{{\"tell\":\"{news}\",\"peer\":\"{}\"}}", self.mobile_address))
    }

    /// Makes the mobile's link drop all packets in both directions, or none.
    pub(crate) fn set_fade(&self, is_faded: bool) {
        let (place, script) = match (self.by, is_faded) {
            (_, false) => (self.fading(), "delete table inet fade"),
            (By::Tun | By::Nfqueue, true) => (
                self.fading(),
                "add table inet fade; add chain inet fade out { type filter hook postrouting priority 0; }; \
                 add chain inet fade in { type filter hook prerouting priority 0; }; \
                 add rule inet fade out oifname \"radio\" meta l4proto tcp drop; \
                 add rule inet fade in iifname \"radio\" meta l4proto tcp drop",
            ),
            // Packet sockets see incoming packets before any rule does.
            (By::Bridge, true) => (
                self.fading(),
                "add table inet fade; add chain inet fade in { type filter hook prerouting priority 0; }; \
                 add chain inet fade out { type filter hook output priority 0; }; \
                 add rule inet fade out meta l4proto tcp drop; add rule inet fade in meta l4proto tcp drop",
            ),
        };
        let done = place.output(&["nft", script]);
        assert!(done.status.success(), "nft: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn fading(&self) -> &Namespace {
        if self.by == By::Bridge { &self.mobile } else { &self.router }
    }

    /// Our rules and tables in the router.
    fn left_behind(&self) -> String {
        let said = |words: &[&str]| {
            let said = self.router.output(words);
            String::from_utf8_lossy(&said.stdout).into_owned()
        };
        let rules = said(&["ip", "rule"]);
        let rules = rules.lines().filter(|line| line.contains("iif "));
        let tables = said(&["nft", "list", "tables"]);
        let chains = ["security", "mangle"].map(|table| said(&["iptables", "-t", table, "-S"])).concat();
        let others =
            tables.lines().chain(chains.lines()).filter(|line| line.to_lowercase().contains("hopwise"));
        rules.chain(others).collect::<Vec<_>>().join("\n")
    }

    /// A TCP counter of the fixed host.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let text = self.fixed.run(|| fs::read_to_string("/proc/thread-self/net/netstat").expect("counters"));
        let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
        let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let place = names.split(' ').position(|known| known == name);
        let value = place.and_then(|place| values.split(' ').nth(place)?.parse().ok());
        value.unwrap_or_else(|| panic!("no counter is called {name}"))
    }

    /// A connection from the fixed host to the mobile: its ends there and at the mobile.
    fn connection(&self, control: &str) -> (TcpStream, TcpStream) {
        let listener = self.mobile.run(|| TcpListener::bind((self.mobile_address, 0))).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let stream = self.fixed.run(|| TcpStream::connect((self.mobile_address, port))).expect("it connects");
        rustix::net::sockopt::set_tcp_congestion(&stream, control).expect("the kernel has it");
        (stream, listener.accept().expect("it is accepted").0)
    }

    /// Sends as much as possible from the fixed host to the mobile, until it is dropped.
    pub(crate) fn transfer(&self, control: &str) -> Transfer {
        let (stream, mut reader) = self.connection(control);
        let received = Arc::new(AtomicU64::new(0));
        let ends = Arc::new(AtomicBool::new(false));
        let count = Arc::clone(&received);
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(bytes @ 1..) = reader.read(&mut buffer) {
                count.fetch_add(bytes as u64, Ordering::Relaxed);
            }
        });
        let is_over = Arc::clone(&ends);
        let mut writer = stream.try_clone().expect("a handle");
        thread::spawn(move || {
            let chunk = vec![7; 1 << 16];
            while !is_over.load(Ordering::Relaxed) && writer.write_all(&chunk).is_ok() {}
        });
        Transfer { stream, received, ends }
    }

    /// Sends requests of 100 bytes from the mobile and responses of 1000 to it, with a pause after each.
    pub(crate) fn conversation(&self, control: &str) -> Transfer {
        let (stream, mut mobile) = self.connection(control);
        for end in [&stream, &mobile] {
            end.set_nodelay(true).expect("the kernel has it");
        }
        let received = Arc::new(AtomicU64::new(0));
        let ends = Arc::new(AtomicBool::new(false));
        let mut fixed = stream.try_clone().expect("a handle");
        thread::spawn(move || {
            let mut question = [0; 100];
            while fixed.read_exact(&mut question).is_ok() && fixed.write_all(&[7; 1_000]).is_ok() {}
        });
        let (count, is_over) = (Arc::clone(&received), Arc::clone(&ends));
        thread::spawn(move || {
            let mut answer = [0; 1_000];
            while !is_over.load(Ordering::Relaxed) && mobile.write_all(&[3; 100]).is_ok() {
                if mobile.read_exact(&mut answer).is_err() {
                    return;
                }
                count.fetch_add(answer.len() as u64, Ordering::Relaxed);
                thread::park_timeout(Duration::from_millis(50));
            }
        });
        Transfer { stream, received, ends }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        assert_none_refused(&self.log());
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(crate) struct Transfer {
    stream: TcpStream,
    received: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
}

impl Transfer {
    pub(crate) fn bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Waits until this many more bytes have come.
    pub(crate) fn wait_for(&self, more: u64) {
        let from = self.bytes();
        within_patience(until(|| self.bytes() >= from + more));
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

#[test]
fn a_router_forwards_through_the_proxy_and_as_before_when_it_ends_or_is_killed() {
    const NAME: &str = "a_router_forwards_through_the_proxy_and_as_before_when_it_ends_or_is_killed";
    for by in ways(NAME) {
        let network = Network::by("proxy-ends", by);
        let mut running = network.proxy("ack-hold:mode=kick", "none");
        let transfer = network.transfer("cubic");
        transfer.wait_for(1_000_000);
        let status = network.tell("{\"tell\":\"status\"}");
        assert!(status.contains("\"flows\":1") && !status.contains("\"packets\":0"), "{by:?}: {status}");
        running.0.kill().expect("it is killed");
        running.0.wait().expect("it has ended");
        transfer.wait_for(1_000_000);
        // The leftovers of a killed proxy are in no other's way.
        let mut second = network.proxy("none", "1ms");
        transfer.wait_for(1_000_000);
        second.interrupt();
        transfer.wait_for(1_000_000);
        let left = network.left_behind();
        assert!(left.is_empty(), "also the killed proxy's: {left}");
    }
}

#[test]
fn rules_of_a_killed_proxy_are_found_and_removed_by_doctor_and_by_the_next_start() {
    const NAME: &str = "rules_of_a_killed_proxy_are_found_and_removed_by_doctor_and_by_the_next_start";
    for by in ways(NAME).into_iter().filter(|by| *by == By::Tun) {
        let network = Network::by("proxy-rules", by);
        let doctor = |more: &[&str]| {
            let words = [env!("CARGO_BIN_EXE_hopwise"), "doctor"].into_iter().chain(more.iter().copied());
            let said = network.router.output(&words.collect::<Vec<_>>());
            String::from_utf8_lossy(&said.stdout).into_owned()
        };
        let kill = || {
            let mut running = network.proxy("none", "none");
            assert!(doctor(&[]).contains("no killed proxy left"), "those of one that runs are none");
            running.0.kill().expect("it is killed");
            running.0.wait().expect("it has ended");
            assert!(!network.left_behind().is_empty());
        };
        kill();
        let found = doctor(&[]);
        assert!(found.contains("a killed `hopwise proxy` left 4 rules"), "{found}");
        let repaired = doctor(&["--repair"]);
        assert!(repaired.contains("4 rules of routing removed"), "{repaired}");
        assert_eq!(network.left_behind(), "");
        kill();
        let found = doctor(&["--repair"]);
        assert!(found.contains("4 rules of routing removed"), "{found}");
        // A running proxy is not taken for a killed one, also before it has noticed that its device has no routes.
        let mut running = network.proxy("none", "none");
        let rules = network.left_behind();
        let process = rustix::process::Pid::from_child(&running.0);
        rustix::process::kill_process(process, rustix::process::Signal::STOP).expect("it is stopped");
        network.router.ip(&["link", "set", "hopf", "down"]);
        network.proxy_beside().interrupt();
        for found in [doctor(&[]), doctor(&["--repair"])] {
            assert!(found.contains("runs, but its device hopf is down"), "{found}");
        }
        assert_eq!(network.left_behind(), rules, "its rules stay");
        rustix::process::kill_process(process, rustix::process::Signal::CONT).expect("it goes on");
        assert!(!running.0.wait().expect("a child").success(), "{}", network.log());
        assert_eq!(network.left_behind(), "", "it has noticed, and ended in order");
        kill();
        let found = doctor(&[]);
        assert!(found.contains("a killed `hopwise proxy` left 4 rules"), "{found}");
        // Another configuration has rules of its own.
        let others = ["ip", "rule", "add", "iif", "radio", "lookup", "9000", "priority", "9000"];
        assert!(network.router.output(&others).status.success());
        let mut next = network.proxy_in_table(8_000);
        assert!(!network.left_behind().contains("lookup 710"), "{}", network.left_behind());
        next.interrupt();
        within_patience(until(|| network.left_behind().lines().count() == 1));
        assert!(network.left_behind().contains("lookup 9000"), "another's stays");
    }
}

#[test]
fn a_proxy_that_is_killed_in_the_middle_of_a_hold_ends_no_connection() {
    const NAME: &str = "a_proxy_that_is_killed_in_the_middle_of_a_hold_ends_no_connection";
    for by in ways(NAME) {
        let network = Network::by("proxy-killed", by);
        let mut running = network.proxy("ack-hold:mode=cumulative", "5ms");
        let transfer = network.transfer("cubic");
        transfer.wait_for(1_000_000);
        network.tell_down(10_000);
        network.tell_of("gone");
        within_patience(until(|| !network.tell("{\"tell\":\"status\"}").contains("\"kept_packets\":0")));
        running.0.kill().expect("it is killed");
        running.0.wait().expect("it has ended");
        transfer.wait_for(1_000_000);
        // The next proxy takes the same connection up where it is.
        let _second = network.proxy("ack-hold", "none");
        transfer.wait_for(1_000_000);
        assert!(network.tell("{\"tell\":\"status\"}").contains("\"flows\":1"), "{by:?}");
    }
}

#[test]
fn a_carrier_that_goes_is_a_fade_that_nobody_has_foretold() {
    const NAME: &str = "a_carrier_that_goes_is_a_fade_that_nobody_has_foretold";
    if !can_run(NAME, &["nft", "ethtool"]) {
        return;
    }
    let network = Network::new("proxy-carrier");
    let _running = network.proxy("ack-hold", "5ms");
    let transfer = network.transfer("cubic");
    transfer.wait_for(1_000_000);
    network.mobile.ip(&["link", "set", "radio", "down"]);
    within_patience(until(|| !network.tell("{\"tell\":\"status\"}").contains("\"kept_packets\":0")));
    network.mobile.ip(&["link", "set", "radio", "up"]);
    network.mobile.ip(&["route", "add", "default", "via", "10.9.0.1"]);
    transfer.wait_for(1_000_000);
}

#[test]
fn what_is_told_of_nobody_twice_or_in_nonsense_stops_nothing() {
    const NAME: &str = "what_is_told_of_nobody_twice_or_in_nonsense_stops_nothing";
    if !can_run(NAME, &["nft", "ethtool"]) {
        return;
    }
    let network = Network::new("proxy-nonsense");
    let _running = network.proxy("ack-hold:mode=cumulative", "1ms");
    let transfer = network.transfer("reno");
    let stranger = network.tell("{\"tell\":\"gone\",\"peer\":\"10.9.0.77\"}");
    let forecasts = [0, u64::MAX / 1_000].map(|ms| network.tell_down(ms));
    let others = ["up", "up", "gone", "gone", "up"].map(|news| network.tell_of(news));
    for answer in [stranger].into_iter().chain(forecasts).chain(others) {
        assert_eq!(answer, "\"done\"\n");
    }
    for line in
        ["", "{}", "{\"tell\":\"gone\"}", "{\"tell\":\"going-down\",\"peer\":\"10.9.0.2\",\"rtt_us\":-1}"]
    {
        assert!(network.tell(line).contains("refused"), "{line}");
    }
    transfer.wait_for(1_000_000);
}

#[test]
fn a_signal_that_falls_is_a_fade_that_the_proxy_foretells_itself() {
    const NAME: &str = "a_signal_that_falls_is_a_fade_that_the_proxy_foretells_itself";
    if !can_run(NAME, &["nft", "ethtool"]) {
        return;
    }
    let network = Network::new("proxy-signal");
    let _running = network.proxy("ack-hold:mode=kick", "5ms");
    let transfer = network.transfer("cubic");
    transfer.wait_for(1_000_000);
    for dbm in [-60, -70, -90, -95, -99, -99] {
        network.tell(&format!("{{\"tell\":\"signal\",\"peer\":\"{MOBILE}\",\"dbm\":{dbm}}}"));
    }
    within_patience(until(|| !network.tell("{\"tell\":\"status\"}").contains("\"kept_packets\":0")));
    for _ in 0..3 {
        network.tell(&format!("{{\"tell\":\"signal\",\"peer\":\"{MOBILE}\",\"dbm\":-50}}"));
    }
    transfer.wait_for(1_000_000);
}

/// Runs the command's own client inside the router.
fn client(network: &Network, words: &[&str]) -> std::process::Output {
    let mut command: Command = network.router.command(&[env!("CARGO_BIN_EXE_hopwise"), "proxy"]);
    let socket: &Path = &network.socket();
    command.args(words).arg("--control").arg(socket).output().expect("it runs")
}

#[test]
fn the_command_s_own_client_tells_and_asks() {
    const NAME: &str = "the_command_s_own_client_tells_and_asks";
    if !can_run(NAME, &["nft", "ethtool"]) {
        return;
    }
    let network = Network::new("proxy-client");
    let _running = network.proxy("ack-hold", "1ms");
    for words in [
        &["event", "going-down", MOBILE, "--outage", "10s"][..],
        &["event", "gone", MOBILE],
        &["event", "up", MOBILE],
        &["event", "signal", MOBILE, "--dbm", "-61"],
        &["status"],
    ] {
        let done = client(&network, words);
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    for outage in ["-1s", "10", "inf", "nans"] {
        let done = client(&network, &["event", "going-down", MOBILE, &format!("--outage={outage}")]);
        assert_eq!(done.status.code(), Some(2), "{outage}");
    }
}
