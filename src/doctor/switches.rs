//! The kernel's switches that a killed routing daemon left changed.

use std::path::Path;

use hopwise_host::routing::{left_in, repair};

use super::Finding;
use crate::daemon::privileges::Privileges;

const CHECK: &str = "switches";

/// A finding for each file of old values in this folder. With `is_repair` they are put back.
pub(super) fn examine(folder: &Path, is_repair: bool) -> Vec<Finding> {
    let left = left_in(folder);
    if left.is_empty() {
        return vec![Finding::ok(CHECK, "no killed daemon left any switch of the kernel changed")];
    }
    left.iter().map(|path| if is_repair { repaired(path) } else { found(path) }).collect()
}

fn found(path: &Path) -> Finding {
    let found = format!("{}: a killed `hopwise route` left switches of the kernel changed", path.display());
    Finding::warning(CHECK, found, "hopwise doctor --repair, or start that daemon again")
}

fn repaired(path: &Path) -> Finding {
    match repair(path, &Privileges::of_daemons()) {
        Ok(count) => Finding::ok(CHECK, format!("{}: {count} switches put back", path.display())),
        Err(error) => {
            let found = format!("{}: not put back: {error}", path.display());
            Finding::failure(CHECK, found, "run it as root, in the network namespace of that daemon")
        }
    }
}
