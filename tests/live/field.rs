//! A host with a node as a daemon, and programs and kernels around it.

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, kill_process};

use crate::folder::Folder;
use crate::namespace::{Namespace, Running};
use crate::world::{until, within_patience};

pub(crate) const HOPWISE: &str = env!("CARGO_BIN_EXE_hopwise");
pub(crate) const PAGE: &str = "hello from the kernel\n";

/// A host with a node, and another with only the kernel's TCP behind a wire.
pub(crate) struct Field {
    pub(crate) node: Namespace,
    pub(crate) web: Namespace,
    pub(crate) folder: Folder,
    has_refusals: AtomicBool,
}

/// Checks that no system call of a daemon was refused.
pub(crate) fn assert_none_refused(log: &str) {
    if !std::thread::panicking() {
        assert!(!log.contains("refused the system call"), "{log}");
    }
}

/// The user of a daemon that root starts: `hopwise`, or the first number that nobody gets.
pub(crate) fn user_of_daemons() -> u32 {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let number =
        users.lines().find_map(|line| line.strip_prefix("hopwise:")?.split(':').nth(1)?.parse().ok());
    number.unwrap_or(60_706)
}

impl Field {
    pub(crate) fn new(test: &str) -> Field {
        // A daemon's captures and its socket stand here.
        let folder = Folder::of_everybody(test);
        fs::create_dir(folder.join("www")).expect("the folder can be written");
        fs::write(folder.join("www/index.html"), PAGE).expect("the folder can be written");
        let (node, web) = (Namespace::new(), Namespace::new());
        node.join(&web, "wire0", "10.9.0.1/24", "10.9.0.2/24");
        web.ip(&["route", "add", "10.7.0.0/24", "via", "10.9.0.1"]);
        node.ip(&["route", "add", "10.8.0.0/24", "via", "10.9.0.2"]);
        for namespace in [&node, &web] {
            namespace.sysctl("ipv4/ip_forward", "1");
        }
        Field { node, web, folder, has_refusals: AtomicBool::new(false) }
    }

    /// The test causes some refusals.
    pub(crate) fn expect_refusals(&self) {
        self.has_refusals.store(true, Ordering::Relaxed);
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }

    /// Makes a folder that is a disk of its own, of that size.
    pub(crate) fn small_disk(&self, size: &str) -> String {
        let small = self.path("small");
        fs::create_dir(&small).expect("the folder can be written");
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none", &small]).status();
        assert!(mounted.is_ok_and(|status| status.success()));
        small
    }

    /// A web server on the kernel's TCP.
    pub(crate) fn serve(&self, namespace: &Namespace, address: &str, port: &str) -> Running {
        let www = self.path("www");
        let server = namespace.start(&["python3", "-m", "http.server", port, "-b", address, "-d", &www]);
        let ip: std::net::IpAddr = address.parse().expect("an address");
        let port: u16 = port.parse().expect("a port");
        let probe = || namespace.run(|| std::net::TcpStream::connect((ip, port)).is_ok());
        within_patience(until(probe));
        server
    }

    /// The output of a node whose configuration is refused. One that starts all the same is ended, and has another
    /// status.
    pub(crate) fn refused(&self, config: &str) -> Output {
        self.node.output(&["timeout", "60", HOPWISE, "node", config])
    }

    /// A daemon on hw0 with `more` in its configuration, which answers at its control socket.
    pub(crate) fn daemon(&self, more: &str) -> Daemon {
        self.daemon_over("kind: tun", more)
    }

    /// The same daemon over another kind of link.
    pub(crate) fn daemon_over(&self, kind: &str, more: &str) -> Daemon {
        let config = self.config_over(kind, more);
        self.spawn(&config)
    }

    pub(crate) fn spawn(&self, config: &str) -> Daemon {
        self.spawn_as(&[HOPWISE, "node", config])
    }

    /// Starts another command that becomes the daemon.
    pub(crate) fn spawn_as(&self, words: &[&str]) -> Daemon {
        self.spawn_in(&self.node, "log", words)
    }

    /// The same in one of the namespaces, with a log of this name.
    pub(crate) fn spawn_in(&self, namespace: &Namespace, log: &str, words: &[&str]) -> Daemon {
        let into = fs::File::create(self.path(log)).expect("the folder can be written");
        let mut command = namespace.command(words);
        command.env("NOTIFY_SOCKET", self.path("notify"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(into);
        let daemon = Daemon(command.spawn().expect("ip netns exec runs"));
        let log = || fs::read_to_string(self.path(log)).unwrap_or_default();
        within_patience(until(|| log().contains("ready")));
        daemon
    }

    pub(crate) fn config(&self, more: &str) -> String {
        self.config_over("kind: tun", more)
    }

    pub(crate) fn config_over(&self, kind: &str, more: &str) -> String {
        let path = self.path("node.yaml");
        let socket = self.path("control.sock");
        let text = format!(
            "node: {{ name: n2, address: [10.7.0.2/24, \"fd07::2/64\"] }}\n\
             links: [{{ {kind}, name: hw0, kernel: [10.7.0.1/24, \"fd07::1/64\"] }}]\n\
             routes: [{{ to: 0.0.0.0/0, link: hw0 }}]\ncontrol: {socket}\n{more}\n"
        );
        fs::write(&path, text).expect("the folder can be written");
        path
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub(crate) fn ask(&self, words: &[&str]) -> Output {
        let socket = self.path("control.sock");
        self.node.output(&[&[HOPWISE], words, &["--control", &socket]].concat())
    }

    pub(crate) fn status(&self) -> serde_json::Value {
        let told = self.ask(&["status", "--json"]);
        serde_json::from_slice(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:?}"))
    }

    pub(crate) fn curl(&self, words: &[&str]) -> Output {
        self.node.output(&[&["curl", "-sS", "--max-time", "60"], words].concat())
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        if !self.has_refusals.load(Ordering::Relaxed) {
            assert_none_refused(&self.log());
        }
        let _ = Command::new("umount").arg(self.folder.join("small")).stderr(Stdio::null()).status();
    }
}

/// A daemon that gets SIGTERM when its guard is dropped.
pub(crate) struct Daemon(pub(crate) Child);

impl Daemon {
    pub(crate) fn tell(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it is there");
    }

    pub(crate) fn ended(&mut self) -> Option<i32> {
        let mut status = None;
        within_patience(until(|| {
            status = self.0.try_wait().expect("it is our child");
            status.is_some()
        }));
        status.and_then(|status| status.code())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) const SOCKS5: &str = "socks5: { listen: 127.0.0.1:1080 }";
pub(crate) const THROUGH: [&str; 2] = ["--socks5-hostname", "127.0.0.1:1080"];
