//! Interfaces that a killed `hopwise mesh up` left changed.

use std::collections::BTreeSet;
use std::path::Path;

use hopwise_host::bringup::{Record, left_bringups};
use hopwise_host::routing::forget_gone;

use super::faults;
use super::finding::Finding;

const CHECK: &str = "mesh-up";

/// A finding for each file of old states in these folders. With `is_repair` they are restored.
pub(super) fn examine(folders: [&Path; 2], is_repair: bool) -> Vec<Finding> {
    if is_repair {
        folders.into_iter().for_each(|folder| {
            forget_gone(folder);
        });
    }
    let left: BTreeSet<_> = folders.into_iter().flat_map(left_bringups).collect();
    if left.is_empty() {
        return vec![Finding::ok(CHECK, "no killed `hopwise mesh up` left an interface changed")];
    }
    left.iter().map(|path| if is_repair { repaired(path) } else { found(path) }).collect()
}

fn found(path: &Path) -> Finding {
    let found = format!("{}: a killed `hopwise mesh up` left interfaces changed", path.display());
    faults::MESH_UP_LEFT.found(found)
}

pub(super) fn repaired(path: &Path) -> Finding {
    let undone = Record::open(path).map(|mut record| record.undo());
    let problem = match undone {
        Ok(undone) if undone.problems.is_empty() => {
            return Finding::ok(CHECK, format!("{}: {} changes undone", path.display(), undone.changes));
        }
        Ok(undone) => undone.problems.join("; "),
        Err(error) => error.to_string(),
    };
    faults::MESH_UP_STAYS.found(format!("{}: not all is undone: {problem}", path.display()))
}
