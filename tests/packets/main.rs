//! Packet scripts: one endpoint against a scripted peer, line by line. `tests/packets/README.md` has the dialect.

mod engine;

use std::fs;
use std::path::Path;

/// A test for each behaviour that runs all its scripts.
macro_rules! behaviours {
    ($($name:ident),+ $(,)?) => {
        const BEHAVIOURS: &[&str] = &[$(stringify!($name)),+];

        $(#[test]
        fn $name() {
            run_behaviour(stringify!($name));
        })+
    };
}

behaviours! {
    acks,
    addresses,
    agents,
    bundles,
    flow,
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

/// A section of a file of scripts.
struct Script {
    /// The file, from the repository's root.
    file: String,
    /// The file without its ending, and the section's name.
    path: String,
    /// The section, below an empty line for each line above it, so that problems have the file's lines.
    text: String,
}

/// The sections of a file: `--- NAME` begins one.
fn sections(file: &str, text: &str) -> Vec<Script> {
    let mut found: Vec<Script> = Vec::new();
    for (above, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix("--- ") {
            let path = format!("{}/{name}", file.trim_end_matches(".pkt"));
            assert!(found.iter().all(|script| script.path != path), "{file}:{}: a second {name}", above + 1);
            found.push(Script { file: file.to_owned(), path, text: "\n".repeat(above + 1) });
        } else {
            let script = found.last_mut().unwrap_or_else(|| panic!("{file}: expected --- NAME first"));
            script.text.extend([line, "\n"]);
        }
    }
    found
}

/// The scripts of all files below a folder, by path.
fn scripts(folder: &Path) -> Vec<Script> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of scripts can be read") {
        let path = entry.expect("an entry of a folder can be read").path();
        if path.is_dir() {
            found.extend(scripts(&path));
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            let file = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(&path);
            let text = fs::read_to_string(&path).expect("a file of scripts can be read");
            found.extend(sections(&file.to_string_lossy(), &text));
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn every_script() -> Vec<Script> {
    scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packets"))
}

/// `tests/packets/flow/nagle/push` belongs to `flow`, which is a file or a folder.
fn behaviour_of(script: &Script) -> Option<&str> {
    script.path.split('/').nth(2)
}

/// Runs all of them, with every failure in one report. `PKT=part-of-a-path` picks some.
fn run_behaviour(behaviour: &str) {
    let all = every_script();
    let scripts: Vec<_> = all.iter().filter(|script| behaviour_of(script) == Some(behaviour)).collect();
    assert!(!scripts.is_empty(), "{behaviour} has no scripts");
    let picked = std::env::var("PKT").unwrap_or_default();
    let mut failures = Vec::new();
    for Script { file, path, text } in scripts.iter().filter(|script| script.path.contains(&picked)) {
        let failure = engine::run_script(file, text).err();
        failures.extend(failure.map(|report| format!("{}\n  alone: PKT={path}", report.0)));
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
    for script in every_script() {
        let text = script.text.trim_start();
        let is_title = text.starts_with("# ") && !text.starts_with("# shows:");
        assert!(is_title, "{}: begin with a comment that is no mark", script.path);
    }
}

#[test]
fn every_script_is_run_by_the_test_of_its_behaviour() {
    for script in every_script() {
        let is_run = behaviour_of(&script).is_some_and(|name| BEHAVIOURS.contains(&name));
        assert!(is_run, "{}: add its behaviour to `behaviours!`", script.path);
    }
}

#[test]
fn a_section_keeps_its_name_and_the_lines_of_its_file() {
    let scripts = sections("tests/packets/a.pkt", "--- one\n# One.\nconnect\n\n--- two\n# Two.\nx\n");
    let seen: Vec<_> = scripts.iter().map(|script| (script.path.as_str(), script.text.as_str())).collect();
    let one = ("tests/packets/a/one", "\n# One.\nconnect\n\n");
    assert_eq!(seen, [one, ("tests/packets/a/two", "\n\n\n\n\n# Two.\nx\n")]);
    let report = engine::run_script("a.pkt", &scripts[1].text).unwrap_err().0;
    assert!(report.starts_with("a.pkt:7: "), "{report}");
}
