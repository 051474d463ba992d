//! Debian's ns-2 with one flow over a chain (`scripts/ns2/chain.tcl`), in a process of its own.

use std::process::{Command, Stdio};

pub(crate) const NAME: &str = "ns-2 2.35";

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/ns2/chain.tcl");

pub(crate) fn is_installed() -> bool {
    Command::new("ns").arg("/dev/null").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// User time of a run, with the start of the program, which is less than a twentieth of it.
pub(crate) fn cpu_seconds(hops: u32, mbps: u32, seconds: u64, seed: u64) -> f64 {
    let before = children_s();
    let words = [hops.to_string(), mbps.to_string(), seconds.to_string(), seed.to_string()];
    let done = Command::new("ns").arg(SCRIPT).args(words).stderr(Stdio::null()).output().expect("ns starts");
    let printed = String::from_utf8_lossy(&done.stdout);
    let carried = printed.lines().rev().find_map(|line| line.parse::<i64>().ok());
    assert!(done.status.success() && carried > Some(0), "ns {SCRIPT}: expected segments, not: {printed}");
    children_s() - before
}

/// User time of the programs that have ended.
fn children_s() -> f64 {
    let used =
        nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN).expect("the usage");
    used.user_time().tv_sec() as f64 + used.user_time().tv_usec() as f64 / 1e6
}
