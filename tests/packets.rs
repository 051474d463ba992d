//! Packet scripts: one endpoint against a scripted peer, line by line. `tests/packets/README.md` has the dialect.

#[path = "packets/engine.rs"]
mod engine;

use std::fs;
use std::path::{Path, PathBuf};

/// A test for each folder of `tests/packets` that runs all its scripts.
macro_rules! behaviours {
    ($($folder:ident),+ $(,)?) => {
        const FOLDERS: &[&str] = &[$(stringify!($folder)),+];

        $(#[test]
        fn $folder() {
            run_folder(stringify!($folder));
        })+
    };
}

behaviours! {
    acks,
    addresses,
    agents,
    bundles,
    flow,
    cookies,
    ecn,
    handshake,
    keepalive,
    loss,
    options,
    pmtu,
    security,
    teardown,
    urgent,
    wrap,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packets")
}

/// All scripts below a folder, by path.
fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of scripts can be read") {
        let path = entry.expect("an entry of a folder can be read").path();
        if path.is_dir() {
            found.extend(scripts(&path));
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Runs all of them, with every failure in one report. `PKT=part-of-a-path` picks some.
fn run_folder(folder: &str) {
    let scripts = scripts(&root().join(folder));
    assert!(!scripts.is_empty(), "{folder} has no scripts");
    let picked = std::env::var("PKT").unwrap_or_default();
    let mut failures = Vec::new();
    for path in scripts.iter().filter(|path| path.to_string_lossy().contains(&picked)) {
        let text = fs::read_to_string(path).expect("a script can be read");
        let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(path);
        failures.extend(engine::run_script(&name.to_string_lossy(), &text).err().map(|report| report.0));
    }
    assert!(
        failures.is_empty(),
        "{} of {} failed\n\n{}\n",
        failures.len(),
        scripts.len(),
        failures.join("\n\n")
    );
}

#[test]
fn every_script_begins_by_saying_what_it_is_about() {
    for script in scripts(&root()) {
        let text = fs::read_to_string(&script).expect("a script can be read");
        let is_title = text.starts_with("# ") && !text.starts_with("# shows:");
        assert!(is_title, "{}: begin with a comment that is no mark", script.display());
    }
}

#[test]
fn every_script_is_run_by_the_test_of_its_folder() {
    for script in scripts(&root()) {
        let below = script.strip_prefix(root()).expect("scripts stand below their root").to_owned();
        let folder = below.components().next().map(|first| first.as_os_str().to_string_lossy().into_owned());
        let is_run = folder.is_some_and(|folder| FOLDERS.contains(&folder.as_str()));
        assert!(is_run, "{}: add its folder to `behaviours!`", below.display());
    }
}
