//! Devices that a killed daemon had on loan, and left changed.

use std::path::Path;

use hopwise_host::netlink::{Repaired, device_of_loan, loans_left, repair_loan};

use super::faults;
use super::finding::Finding;
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
    faults::LENT_LEFT.found(format!("{device}: a killed daemon left it changed ({})", path.display()))
}

pub(super) fn repaired(path: &Path) -> Finding {
    match repair_loan(path, &Privileges::of_daemons()) {
        Ok(Repaired::Device(device)) => {
            Finding::ok(CHECK, format!("{device}: as it was before a killed daemon changed it"))
        }
        Ok(Repaired::NoDevice) => {
            Finding::ok(CHECK, format!("{}: removed, since its device is gone", path.display()))
        }
        Ok(Repaired::Junk) => {
            Finding::ok(CHECK, format!("{}: removed, since it names no device", path.display()))
        }
        Err(error) => faults::LENT_STAYS.found(format!("{}: not put back: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_names_no_device_is_said_to_do_so() {
        let folder = std::env::temp_dir().join(format!("hopwise-lent-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("x.lent"), "no device\n").expect("it can be written");
        let said: Vec<_> = examine(&folder, true).iter().map(|finding| format!("{finding:?}")).collect();
        std::fs::remove_dir_all(&folder).expect("it is there");
        assert!(matches!(&said[..], [one] if one.contains("removed, since it names no device")), "{said:?}");
    }
}
