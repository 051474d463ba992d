//! The list of faults against the tests: each fault is injected somewhere, and looked for by its name.

use std::fs;
use std::path::{Path, PathBuf};

use super::faults::ALL;

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of tests").flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn each_fault_is_expected_by_its_name_in_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("src/inspect/src/doctor/tests.rs")];
    for folder in ["src/inspect/src/doctor/tests", "tests/live"] {
        rust_files(&root.join(folder), &mut files);
    }
    let texts: Vec<_> = files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
    let is_expected = |name: &str| {
        let (quoted, bracketed) = (format!("\"{name}\""), format!("[{name}]"));
        texts.iter().any(|text| text.contains(&quoted) || text.contains(&bracketed))
    };
    let missing: Vec<_> = ALL.iter().map(|fault| fault.name).filter(|name| !is_expected(name)).collect();
    assert!(missing.is_empty(), "no test expects {missing:?}");
}
