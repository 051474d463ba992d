//! A network namespace with a name of its own, removed when it is dropped.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Names begin with this and the process's number; leftovers of a killed run can then be told apart.
const PREFIX: &str = "hoplive";

/// The beginning of a name that no other test has.
pub(crate) fn prefix(test: &str) -> String {
    format!("{PREFIX}-{}-{test}", std::process::id())
}

#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
    is_ours: bool,
}

/// The reason why no namespace can be made here, if there is one.
pub(crate) fn obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root, for network namespaces".to_owned());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun".to_owned());
    }
    missing("ip")
}

/// The path of a program; empty if it is not there.
pub(crate) fn found(program: &str) -> String {
    let output = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let path = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    String::from_utf8_lossy(&path.unwrap_or_default()).trim().to_owned()
}

/// The message that a command is missing, if it is.
pub(crate) fn missing(command: &str) -> Option<String> {
    found(command).is_empty().then(|| format!("the command {command} is not installed"))
}

/// Returns whether a test can run. If not, it prints the reason in the form that scripts/test counts.
pub(crate) fn can_run(test: &str, commands: &[&str]) -> bool {
    let obstacle = obstacle().or_else(|| commands.iter().find_map(|command| missing(command)));
    if let Some(reason) = &obstacle {
        println!("skipped: {test}: {reason}");
    }
    obstacle.is_none()
}

impl Namespace {
    pub(crate) fn new() -> Namespace {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            remove_stale();
        }
        let name = format!("{PREFIX}-{}-{number}", std::process::id());
        ip(&["netns", "add", &name]);
        let namespace = Namespace { name, is_ours: true };
        namespace.ip(&["link", "set", "lo", "up"]);
        namespace
    }

    /// A namespace that another program made and removes.
    pub(crate) fn of_somebody(name: &str) -> Namespace {
        Namespace { name: name.to_owned(), is_ours: false }
    }

    /// Runs `ip` inside.
    pub(crate) fn ip(&self, arguments: &[&str]) {
        ip(&[&["-n", &self.name], arguments].concat());
    }

    /// Makes a wire between two namespaces, with a device of this name at both ends.
    pub(crate) fn join(&self, other: &Namespace, device: &str, address: &str, others: &str) {
        ip(&[
            "link",
            "add",
            device,
            "netns",
            &self.name,
            "type",
            "veth",
            "peer",
            "name",
            device,
            "netns",
            &other.name,
        ]);
        for (namespace, address) in [(self, address), (other, others)] {
            namespace.ip(&["addr", "add", address, "dev", device]);
            namespace.ip(&["link", "set", device, "up"]);
        }
    }

    /// Runs a command inside to its end.
    pub(crate) fn output<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Output {
        self.command(arguments).output().expect("ip netns exec runs")
    }

    /// Starts a command inside; it ends when the guard is dropped.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Running {
        let mut command = self.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().expect("ip netns exec runs"))
    }

    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).args(arguments);
        command
    }

    /// Returns whether a kernel's TCP socket listens at this port. A probing connection would be a client to some
    /// servers, and iperf3 takes one at a time.
    pub(crate) fn has_listener(&self, port: u16) -> bool {
        !self.output(&["ss", "-Hltn", &format!("sport = :{port}")]).stdout.is_empty()
    }

    /// The processes inside.
    pub(crate) fn pids(&self) -> Vec<rustix::process::Pid> {
        let listed =
            Command::new("ip").args(["netns", "pids", &self.name]).output().expect("ip is installed");
        let numbers = String::from_utf8_lossy(&listed.stdout).into_owned();
        numbers
            .split_whitespace()
            .filter_map(|word| rustix::process::Pid::from_raw(word.parse().ok()?))
            .collect()
    }

    /// Sets a key under net/, such as `ipv4/tcp_sack`.
    pub(crate) fn sysctl(&self, key: &str, value: &str) {
        let file = format!("/proc/sys/net/{key}");
        self.run(|| fs::write(&file, value).unwrap_or_else(|error| panic!("{file}: {error}")));
    }

    /// Runs `work` on a thread inside.
    pub(crate) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let inside = || {
            self.enter();
            work()
        };
        thread::scope(|scope| {
            scope.spawn(inside).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Leaves a thread running inside.
    pub(crate) fn spawn<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> thread::JoinHandle<R> {
        let namespace = self.handle();
        thread::spawn(move || {
            enter(&namespace);
            work()
        })
    }

    fn enter(&self) {
        enter(&self.handle());
    }

    fn handle(&self) -> File {
        let path = format!("/run/netns/{}", self.name);
        File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

fn enter(namespace: &File) {
    use std::os::fd::AsFd;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may setns");
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
        }
    }
}

/// A process that does not outlive its guard.
#[derive(Debug)]
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Interrupts the process, and waits until it has ended.
    pub(crate) fn interrupt(&mut self) {
        self.ended_by(rustix::process::Signal::INT);
    }

    /// Its status after this signal.
    pub(crate) fn ended_by(&mut self, signal: rustix::process::Signal) -> Option<i32> {
        let id = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(id, signal);
        self.0.wait().ok()?.code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().expect("ip is installed");
    assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Namespaces of runs that were killed.
fn remove_stale() {
    let Ok(entries) = fs::read_dir("/run/netns") else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').nth(1));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = Command::new("ip").args(["netns", "del", &name]).status();
        }
    }
}
