//! Namespaces of a run's own, signals, and pauses.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use hopwise_host::Clock;
use tokio::signal::unix::{SignalKind, signal};

/// Set in the process that runs inside.
const INSIDE: &str = "HOPWISE_CHAOS_INSIDE";

/// The signal that ended the run early.
static TOLD_TO_END: OnceLock<&str> = OnceLock::new();

pub(crate) fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// The reason why a run cannot be made here, if there is one.
pub(crate) fn obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root, for namespaces".to_owned());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun".to_owned());
    }
    let probe = ["--net", "--mount", "--pid", "--fork", "--mount-proc", "true"];
    let made = Command::new("unshare").args(probe).output();
    if !made.is_ok_and(|made| made.status.success()) {
        return Some("unshare (Debian: util-linux) makes no namespaces here".to_owned());
    }
    let missing = ["ip", "nft", "mount", "sysctl"].iter().find(|command| !has(command))?;
    Some(format!("the command {missing} is not installed"))
}

/// Returns whether a command is installed.
pub(crate) fn has(command: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {command}")]).output();
    found.is_ok_and(|found| found.status.success())
}

/// Becomes this command in namespaces of its own. Returns the reason of a failure.
///
/// Processes there end with it, and no process outside can be reached from there by its number.
pub(crate) fn enter() -> std::io::Error {
    let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let own = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
    Command::new("unshare")
        .args(own)
        .arg(program)
        .args(words)
        .env(INSIDE, std::process::id().to_string())
        .exec()
}

/// Mounts a folder of names and sockets for this run alone, and brings its loopback up.
pub(crate) fn furnish() -> Result<(), String> {
    run(&["mount", "-t", "tmpfs", "none", "/run"])?;
    // libfaketime leaves a semaphore there for each number of a killed process. Another user's process cannot open it.
    run(&["mount", "-t", "tmpfs", "-o", "mode=1777", "none", "/dev/shm"])?;
    run(&["ip", "link", "set", "lo", "up"])?;
    std::fs::create_dir("/run/hopwise").map_err(|error| format!("/run/hopwise: {error}"))
}

/// Runs a command to its end. An error holds the command and its output.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output = output.map_err(|error| format!("{}: {error}", words.join(" ")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

/// From now on SIGINT and SIGTERM end the run in order.
pub(crate) fn hear_signals() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async {
            let (Ok(mut int), Ok(mut term)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            let name = tokio::select! { _ = int.recv() => "SIGINT", _ = term.recv() => "SIGTERM" };
            let _ = TOLD_TO_END.set(name);
        });
    })?;
    Ok(())
}

pub(crate) fn is_told_to_end() -> bool {
    told_to_end_by().is_some()
}

pub(crate) fn told_to_end_by() -> Option<&'static str> {
    TOLD_TO_END.get().copied()
}

/// Waits this long, even if something wakes the thread.
pub(crate) fn pause(time: Duration) {
    let clock = Clock::start();
    while elapsed(&clock) < time {
        std::thread::park_timeout(time.saturating_sub(elapsed(&clock)));
    }
}

pub(crate) fn elapsed(clock: &Clock) -> Duration {
    clock.now().since(hopwise_core::Instant::ZERO)
}

/// Checks twenty times a second, and returns whether it came true in time.
pub(crate) fn within(patience: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let clock = Clock::start();
    while !is_true() {
        if elapsed(&clock) > patience {
            return false;
        }
        pause(Duration::from_millis(50));
    }
    true
}
