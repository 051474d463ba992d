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

use crate::namespace::{Namespace, Running, can_run};
use crate::world::{until, within_patience};

#[path = "proxy/capture.rs"]
mod capture;
#[path = "proxy/fade.rs"]
mod fade;

const MOBILE: &str = "10.9.0.2";

/// Three kernels: a fixed host, a router, a mobile.
pub(crate) struct Network {
    pub(crate) fixed: Namespace,
    pub(crate) router: Namespace,
    pub(crate) mobile: Namespace,
    folder: PathBuf,
}

impl Network {
    pub(crate) fn new(name: &str) -> Network {
        let (fixed, router, mobile) = (Namespace::new(), Namespace::new(), Namespace::new());
        fixed.join(&router, "wire", "10.8.0.1/24", "10.8.0.2/24");
        router.join(&mobile, "radio", "10.9.0.1/24", "10.9.0.2/24");
        fixed.ip(&["route", "add", "default", "via", "10.8.0.2"]);
        mobile.ip(&["route", "add", "default", "via", "10.9.0.1"]);
        router.sysctl("ipv4/ip_forward", "1");
        // A window of some hundred segments, so that nothing is lost for lack of room anywhere.
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
        Network { fixed, router, mobile, folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn socket(&self) -> PathBuf {
        self.path("proxy.sock")
    }

    /// Starts the proxy with that agent, the wire's side late by `delay`, and waits until it answers.
    pub(crate) fn proxy(&self, agent: &str, delay: &str) -> Running {
        let config = self.path("proxy.yaml");
        let text = format!(
            "fixed: {{ name: hopf, fault: {{ delay: {delay} }} }}\nmobile: {{ name: hopm }}\n\
             steer: {{ wire: wire, radio: radio, mobiles: [10.9.0.0/24] }}\nagent: \"{agent}\"\n\
             control: {}\ncarriers: [{{ interface: radio, mobiles: [{MOBILE}] }}]\n\
             forecast: {{ threshold_dbm: -80 }}\n",
            self.socket().display()
        );
        let trace = std::env::var("HOPWISE_PROXY_TRACE").map(|path| format!("trace: {path}\n"));
        let text = text + &trace.unwrap_or_default();
        fs::write(&config, text).expect("a file");
        let log = fs::File::create(self.path("proxy.log")).expect("a file");
        let mut command = self.router.command(&[env!("CARGO_BIN_EXE_hopwise"), "proxy"]);
        command.arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut running = Running(command.spawn().expect("it starts"));
        within_patience(until(|| {
            assert!(running.0.try_wait().expect("a child").is_none(), "it ended: {}", self.log());
            self.log().contains("ready")
        }));
        running
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("proxy.log")).unwrap_or_default()
    }

    pub(crate) fn tell(&self, line: &str) -> String {
        let mut client = UnixStream::connect(self.socket()).expect("the proxy answers");
        writeln!(client, "{line}").expect("it reads");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it answers");
        answer
    }

    /// The mobile's link lets nothing through, either way, or everything again.
    pub(crate) fn set_fade(&self, is_faded: bool) {
        let script = if is_faded {
            "add table inet fade; add chain inet fade out { type filter hook postrouting priority 0; }; \
             add chain inet fade in { type filter hook prerouting priority 0; }; \
             add rule inet fade out oifname \"radio\" ip protocol tcp drop; \
             add rule inet fade in iifname \"radio\" ip protocol tcp drop"
        } else {
            "delete table inet fade"
        };
        let done = self.router.output(&["nft", script]);
        assert!(done.status.success(), "nft: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// One of the fixed host's counters of TCP.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let text = self.fixed.run(|| fs::read_to_string("/proc/thread-self/net/netstat").expect("counters"));
        let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
        let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let place = names.split(' ').position(|known| known == name);
        let value = place.and_then(|place| values.split(' ').nth(place)?.parse().ok());
        value.unwrap_or_else(|| panic!("no counter is called {name}"))
    }

    /// A transfer from the fixed host to the mobile, that goes on until it is dropped.
    pub(crate) fn transfer(&self, control: &str) -> Transfer {
        let listener = self.mobile.run(|| TcpListener::bind((MOBILE, 0))).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let received = Arc::new(AtomicU64::new(0));
        let ends = Arc::new(AtomicBool::new(false));
        let stream = self.fixed.run(|| TcpStream::connect((MOBILE, port))).expect("it connects");
        rustix::net::sockopt::set_tcp_congestion(&stream, control).expect("the kernel has it");
        let (mut reader, _) = listener.accept().expect("it is accepted");
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
}

impl Drop for Network {
    fn drop(&mut self) {
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

    /// Waits until so much more has come.
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

fn down(outage_ms: u64) -> String {
    let outage_us = outage_ms * 1_000;
    format!("{{\"tell\":\"going-down\",\"peer\":\"{MOBILE}\",\"rtt_us\":1000,\"outage_us\":{outage_us}}}")
}

fn news(what: &str) -> String {
    format!("{{\"tell\":\"{what}\",\"peer\":\"{MOBILE}\"}}")
}

#[test]
fn a_router_forwards_through_the_proxy_and_as_before_when_it_ends_or_is_killed() {
    const NAME: &str = "a_router_forwards_through_the_proxy_and_as_before_when_it_ends_or_is_killed";
    if !can_run(NAME, &["nft", "ethtool"]) {
        return;
    }
    let network = Network::new("proxy-ends");
    let mut running = network.proxy("ack-hold:mode=kick", "1ms");
    let transfer = network.transfer("cubic");
    transfer.wait_for(1_000_000);
    let status = network.tell("{\"tell\":\"status\"}");
    assert!(status.contains("\"flows\":1"), "{status}");
    running.0.kill().expect("it is killed");
    running.0.wait().expect("it has ended");
    transfer.wait_for(1_000_000);
    // What a killed proxy left behind is in no other's way.
    let mut second = network.proxy("none", "1ms");
    transfer.wait_for(1_000_000);
    second.interrupt();
    transfer.wait_for(1_000_000);
    let rules = network.router.output(&["ip", "rule"]);
    let rules = String::from_utf8_lossy(&rules.stdout).into_owned();
    assert_eq!(rules.matches("iif ").count(), 0, "also the killed proxy's: {rules}");
}

#[test]
fn a_proxy_that_is_killed_in_the_middle_of_a_hold_ends_no_connection() {
    const NAME: &str = "a_proxy_that_is_killed_in_the_middle_of_a_hold_ends_no_connection";
    if !can_run(NAME, &["nft", "ethtool"]) {
        return;
    }
    let network = Network::new("proxy-killed");
    let mut running = network.proxy("ack-hold:mode=cumulative", "5ms");
    let transfer = network.transfer("cubic");
    transfer.wait_for(1_000_000);
    network.tell(&down(10_000));
    network.tell(&news("gone"));
    running.0.kill().expect("it is killed");
    running.0.wait().expect("it has ended");
    transfer.wait_for(1_000_000);
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
    let stranger = "{\"tell\":\"gone\",\"peer\":\"10.9.0.77\"}".to_owned();
    for line in [stranger, news("up"), news("up"), down(0), down(u64::MAX / 1_000), news("up")] {
        assert_eq!(network.tell(&line), "\"done\"\n", "{line}");
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
