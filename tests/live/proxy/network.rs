//! A proxy on a router or a bridge between two kernels, and transfers through it.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::field::{HOPWISE, assert_none_refused};
use crate::folder::Folder;
use crate::namespace::{Namespace, Running, can_run, missing};
use crate::world::{PATIENCE, until, within_patience};

pub(super) const MOBILE: &str = "10.9.0.2";

/// The place of the proxy between the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Tun,
    Nfqueue,
    Bridge,
}

/// The places that are possible here; prints the missing ones with their reasons.
pub(super) fn ways(test: &str) -> Vec<By> {
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
    pub(super) by: By,
    pub(crate) watchdog: &'static str,
    pub(super) mobile_address: &'static str,
    pub(super) folder: Folder,
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
        let folder = Folder::new(name);
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

    pub(super) fn socket(&self) -> PathBuf {
        self.path("proxy.sock")
    }

    /// Starts the proxy with that agent, the wire's side late by `delay`, and waits until it answers.
    pub(crate) fn proxy(&self, agent: &str, delay: &str) -> Running {
        self.proxy_with(agent, delay, "")
    }

    /// The same proxy with rules that lead through another table.
    pub(super) fn proxy_in_table(&self, table: u32) -> Running {
        self.proxy_with("none", "none", &format!(", table: {table}"))
    }

    pub(super) fn proxy_with(&self, agent: &str, delay: &str, table: &str) -> Running {
        self.spawn(&self.path("proxy.yaml"), &self.text(agent, delay, table))
    }

    pub(super) fn text(&self, agent: &str, delay: &str, table: &str) -> String {
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

    /// Starts another proxy on this router, for other mobiles.
    pub(super) fn proxy_beside(&self) -> Running {
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
    pub(super) fn refused(&self, agent: &str) -> String {
        let text = self.text(agent, "none", "");
        fs::write(self.path("proxy.yaml"), text).expect("a file");
        let mut command = self.router.command(&["timeout", "300", env!("CARGO_BIN_EXE_hopwise"), "proxy"]);
        let done = command.arg(self.path("proxy.yaml")).stdin(Stdio::null()).output().expect("it runs");
        assert!(!done.status.success(), "it started, and ended");
        String::from_utf8_lossy(&done.stderr).into_owned()
    }

    pub(super) fn spawn(&self, config: &Path, text: &str) -> Running {
        fs::write(config, text).expect("a file");
        self.begin(&[HOPWISE, "proxy", &config.to_string_lossy()])
    }

    /// Starts another command that becomes the proxy of `proxy.yaml`.
    pub(crate) fn proxy_as(&self, agent: &str, words: &[&str]) -> Running {
        fs::write(self.path("proxy.yaml"), self.text(agent, "none", "")).expect("a file");
        self.begin(words)
    }

    pub(super) fn begin(&self, words: &[&str]) -> Running {
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

    pub(super) fn fading(&self) -> &Namespace {
        if self.by == By::Bridge { &self.mobile } else { &self.router }
    }

    /// Our rules and tables in the router.
    pub(super) fn left_behind(&self) -> String {
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
    pub(crate) fn connection(&self, control: &str) -> (TcpStream, TcpStream) {
        let listener = self.mobile.run(|| TcpListener::bind((self.mobile_address, 0))).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let stream = self.fixed.run(|| TcpStream::connect((self.mobile_address, port))).expect("it connects");
        rustix::net::sockopt::set_tcp_congestion(&stream, control).expect("the kernel has it");
        (stream, listener.accept().expect("it is accepted").0)
    }

    /// Sends without a pause from the fixed host to the mobile, until it is dropped.
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
