//! Devices that a killed daemon had on loan, and left changed.

use std::path::Path;

use hopwise_host::netlink::{device_of_loan, loans_left, repair_loan};

use super::Finding;
use crate::daemon::privileges::Privileges;

const CHECK: &str = "lent";

/// A finding for each file of old values in this folder. With `is_repair` they are restored.
pub(super) fn examine(folder: &Path, is_repair: bool) -> Vec<Finding> {
    let left = loans_left(folder);
    if left.is_empty() {
        return vec![Finding::ok(CHECK, "no killed daemon left a device changed that was there before it")];
    }
    left.iter().map(|path| if is_repair { repaired(path) } else { found(path) }).collect()
}

fn found(path: &Path) -> Finding {
    let device = device_of_loan(path).unwrap_or_else(|| "a device that is not here".to_owned());
    let found = format!("{device}: a killed daemon left it changed ({})", path.display());
    Finding::warning(CHECK, found, "hopwise doctor --repair, or start that daemon again, and end it")
}

fn repaired(path: &Path) -> Finding {
    match repair_loan(path, &Privileges::of_daemons()) {
        Ok(Some(device)) => {
            Finding::ok(CHECK, format!("{device}: as it was before a killed daemon changed it"))
        }
        Ok(None) => Finding::ok(CHECK, format!("{}: removed, since its device is gone", path.display())),
        Err(error) => {
            let found = format!("{}: not put back: {error}", path.display());
            Finding::failure(CHECK, found, "run it as root, in the network namespace of that daemon")
        }
    }
}
