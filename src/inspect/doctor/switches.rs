//! The kernel's switches that a killed routing daemon left changed.

use std::path::Path;

use hopwise_host::routing::{forget_gone, left_in, repair};

use super::faults;
use super::finding::Finding;
use crate::daemon::privileges::Privileges;

const CHECK: &str = "switches";

/// A finding for each file of old values in this folder. With `is_repair` they are restored.
pub(super) fn examine(folder: &Path, is_repair: bool) -> Vec<Finding> {
    let forgotten = if is_repair { forget_gone(folder) } else { 0 };
    let mut findings = Vec::new();
    if forgotten > 0 {
        let files = if forgotten == 1 { "file" } else { "files" };
        let said = format!("{forgotten} {files} removed: their network namespaces are gone");
        findings.push(Finding::ok(CHECK, said));
    }
    let left = left_in(folder);
    if left.is_empty() {
        findings.push(Finding::ok(CHECK, "no killed daemon left any switch of the kernel changed"));
    }
    findings.extend(left.iter().map(|path| if is_repair { repaired(path) } else { found(path) }));
    findings
}

fn found(path: &Path) -> Finding {
    let found = format!("{}: a killed `hopwise route` left switches of the kernel changed", path.display());
    faults::SWITCHES_LEFT.found(found)
}

pub(super) fn repaired(path: &Path) -> Finding {
    match repair(path, &Privileges::of_daemons()) {
        Ok(count) => Finding::ok(CHECK, format!("{}: {count} switches put back", path.display())),
        Err(error) => faults::SWITCHES_STAY.found(format!("{}: not put back: {error}", path.display())),
    }
}
