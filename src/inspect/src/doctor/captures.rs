//! The disk of captures: it must take them as fast as links carry packets, and have room for them.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use hopwise_host::Clock;

use super::faults;
use super::finding::Finding;
use hopwise_node::measure::{kbps, rate, to_f64};

/// The bytes that are written, and the time after which fewer are enough.
const BYTES: usize = 16 << 20;
const LONGEST: Duration = Duration::from_secs(5);
const BLOCK: usize = 256 << 10;
/// A trial is longer than this.
const ROOM_FOR: Duration = Duration::from_secs(600);

/// The measure of a folder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disk {
    pub(super) written: u64,
    pub(super) within: Duration,
    pub(super) free: u64,
}

pub(super) fn examine(folder: &Path, wanted_bps: u64) -> Vec<Finding> {
    match measure(folder) {
        Ok(disk) => of(folder, disk, wanted_bps),
        Err(error) => vec![faults::CAPTURES_REFUSED.found(format!("{}: {error}", folder.display()))],
    }
}

pub(super) fn of(folder: &Path, disk: Disk, wanted_bps: u64) -> Vec<Finding> {
    let (shown, wanted) = (folder.display(), to_f64(wanted_bps) / 1e3);
    let takes = kbps(disk.written, disk.within);
    let minutes = to_f64(disk.free) * 8.0 / (wanted * 1e3) / 60.0;
    let mut findings = Vec::new();
    if takes < wanted {
        let said = format!("{shown}: it takes {}, and captures bring {}", rate(takes), rate(wanted));
        findings.push(faults::CAPTURES_SLOW.found(said));
    }
    if minutes < ROOM_FOR.as_secs_f64() / 60.0 {
        let said = format!("{shown}: it has room for {minutes:.1} min of captures at {}", rate(wanted));
        findings.push(faults::CAPTURES_FULL.found(said).with("FOLDER", &shown.to_string()));
    }
    if findings.is_empty() {
        let said = format!("{shown}: it takes {}, and has room for {minutes:.0} min", rate(takes));
        findings.push(faults::CAPTURES_SLOW.ok(said));
    }
    findings
}

/// Writes a file without a name, which the kernel removes however this process ends.
fn measure(folder: &Path) -> io::Result<Disk> {
    let path = folder.join(format!(".hopwise-doctor-{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    // Some disks compress, and zeros would be nothing to write.
    let block: Vec<u8> = (0..BLOCK).map(|at| (at * 197 % 251).to_le_bytes()[0]).collect();
    let (clock, mut written) = (Clock::start(), 0);
    let spent = || clock.now().since(hopwise_core::Instant::ZERO);
    while written < BYTES && spent() < LONGEST {
        file.write_all(&block)?;
        file.sync_data()?;
        written += block.len();
    }
    let within = spent();
    let about = rustix::fs::statvfs(folder)?;
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    Ok(Disk { written: u64::try_from(written).unwrap_or(u64::MAX), within, free })
}
