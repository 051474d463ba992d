//! House rules that a compiler does not check: sizes, names, headers, arrows between crates.

#[path = "tidy/book.rs"]
mod book;
#[path = "tidy/lexer.rs"]
mod lexer;
#[path = "tidy/limits.rs"]
mod limits;
#[path = "tidy/measure.rs"]
mod measure;
#[path = "tidy/places.rs"]
mod places;
#[path = "tidy/tree.rs"]
mod tree;

use std::collections::BTreeSet;

use tree::{File, files};

const WIDEST_LINE: usize = 120;

/// The allowed dependencies of each crate; the root package, the command, may depend on all of them.
const ARROWS: [(&str, &[&str]); 17] = [
    ("stack/core/Cargo.toml", &["arrayvec", "hashbrown", "siphasher", "smoltcp"]),
    (
        "stack/host/Cargo.toml",
        &[
            "futures-util",
            "getrandom",
            "hopwise-core",
            "landlock",
            "libc",
            "netlink-packet-route",
            "nix",
            "parking_lot",
            "pcap",
            "pcap-file",
            "rtnetlink",
            "rustix",
            "seccompiler",
            "thiserror",
            "tokio",
            "tracing",
            "tun-rs",
            "tun-tap",
        ],
    ),
    ("stack/mesh/Cargo.toml", &["hmac", "hopwise-core", "sha2"]),
    ("stack/air/Cargo.toml", &["hopwise-core", "libm", "thiserror"]),
    // proptest is for its feature `testkit` alone.
    ("agents/Cargo.toml", &["hopwise-core", "proptest"]),
    // As a crate outside would be.
    ("examples/own-agent/Cargo.toml", &["hopwise"]),
    // One crate for programs: neither the command nor the laboratory.
    ("stack/sockets/Cargo.toml", &["hopwise-agents", "hopwise-core", "hopwise-host", "libc", "thiserror"]),
    ("c/Cargo.toml", &["hopwise-sockets", "libc"]),
    ("python/sockets/Cargo.toml", &["hopwise-sockets", "pyo3"]),
    ("stack/testing/Cargo.toml", &["hopwise-agents", "hopwise-core"]),
    (
        "lab/Cargo.toml",
        &[
            "hopwise-agents",
            "hopwise-air",
            "hopwise-core",
            "hopwise-mesh",
            "libm",
            "miette",
            "nix",
            "parquet",
            "rustix",
            "saphyr-parser",
            "schemars",
            "serde",
            "serde_json",
            "serde_path_to_error",
            "serde_yaml",
            "sha2",
            "statrs",
            "thiserror",
        ],
    ),
    // Parts of the command: here only arrows between our own crates are held.
    ("src/daemon/Cargo.toml", &["hopwise-core", "hopwise-host", "hopwise-lab"]),
    (
        "src/node/Cargo.toml",
        &["hopwise-agents", "hopwise-core", "hopwise-daemon", "hopwise-host", "hopwise-lab"],
    ),
    (
        "src/mesh/Cargo.toml",
        &[
            "hopwise-agents",
            "hopwise-air",
            "hopwise-core",
            "hopwise-daemon",
            "hopwise-host",
            "hopwise-lab",
            "hopwise-mesh",
            "hopwise-node",
        ],
    ),
    (
        "src/inspect/Cargo.toml",
        &[
            "hopwise-agents",
            "hopwise-air",
            "hopwise-core",
            "hopwise-daemon",
            "hopwise-host",
            "hopwise-lab",
            "hopwise-mesh",
            "hopwise-node",
            "hopwise-router",
        ],
    ),
    (
        "src/part/Cargo.toml",
        &["hopwise-core", "hopwise-daemon", "hopwise-host", "hopwise-inspect", "hopwise-lab", "hopwise-node"],
    ),
    (
        "src/lab/Cargo.toml",
        &[
            "hopwise-agents",
            "hopwise-air",
            "hopwise-core",
            "hopwise-daemon",
            "hopwise-host",
            "hopwise-inspect",
            "hopwise-lab",
            "hopwise-mesh",
            "hopwise-node",
            "hopwise-part",
            "hopwise-router",
        ],
    ),
];

/// Fails with all findings together.
fn nothing(findings: impl IntoIterator<Item = String>) {
    let findings: Vec<_> = findings.into_iter().collect();
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

/// Findings in lines of the `wanted` files, with the message of `broken`.
fn lines_where(wanted: impl Fn(&File) -> bool, broken: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files().iter().filter(|file| wanted(file)) {
        for (number, line) in file.lines() {
            findings.extend(broken(line).map(|what| format!("{}:{number}: {what}", file.path)));
        }
    }
    findings
}

#[test]
fn functions_and_files_keep_to_their_limits() {
    nothing(limits::findings(&files()));
}

#[test]
fn guides_and_comments_name_no_place_that_is_not_there() {
    nothing(places::findings(&files()));
}

/// A connection's parts own their fields. Few files may touch several parts.
#[test]
fn at_most_five_files_implement_a_connection() {
    let starts = |line: &str| line.starts_with("impl Connection ");
    let all = files();
    let implements = |file: &&File| file.path.starts_with("stack/core/") && file.text.lines().any(starts);
    let found: Vec<_> = all.iter().filter(implements).map(|file| file.path.as_str()).collect();
    assert!(found.len() <= 5, "give a part the step, or put it into one of these: {found:?}");
}

/// A signal's handler may not use the poller.
const HANDLER: &str = "stack/host/src/confine/refused.rs";

#[test]
fn one_file_waits_for_descriptors() {
    let words = ["poll(&mut [", "rustix::event::poll", "libc::poll(", "epoll::create", "epoll::wait"];
    let waits = |line: &str| words.iter().any(|word| line.contains(word)).then(String::new);
    let is_other = |file: &File| {
        !file.path.ends_with("stack/host/src/poller.rs")
            && !file.path.ends_with(HANDLER)
            && file.path.contains("src/")
    };
    nothing(lines_where(is_other, waits));
}

#[test]
fn lines_are_no_wider_than_120_columns() {
    let wanted = |file: &File| file.is_rust() || file.is_script() || file.path.ends_with(".pkt");
    nothing(lines_where(wanted, |line| {
        let width = line.chars().count();
        (width > WIDEST_LINE).then(|| format!("{width} columns wide, at most {WIDEST_LINE}"))
    }));
}

#[test]
fn landing_files_stand_beside_their_folder() {
    let named_mod = files().into_iter().filter(|file| file.path.ends_with("/mod.rs"));
    nothing(named_mod.map(|file| format!("{}: foo.rs beside foo/, never mod.rs", file.path)));
}

#[test]
fn every_rust_file_begins_by_saying_what_it_is() {
    // The name of a tests.rs is enough.
    let wanted = |file: &File| file.is_rust() && !file.path.ends_with("/tests.rs");
    let silent = files().into_iter().filter(|file| wanted(file) && !file.text.starts_with("//! "));
    nothing(silent.map(|file| format!("{}: begin with a //! line that says what the file is", file.path)));
}

#[test]
fn no_test_is_ignored() {
    let mut findings = Vec::new();
    for file in files().iter().filter(|file| file.is_rust()) {
        for window in lexer::tokens(&file.text).windows(3) {
            if window[0].text == "#" && window[1].text == "[" && window[2].text == "ignore" {
                findings
                    .push(format!("{}:{}: print a skip with its reason instead", file.path, window[0].line));
            }
        }
    }
    nothing(findings);
}

#[test]
fn tests_are_named_after_what_they_claim() {
    let mut findings = Vec::new();
    for file in files().iter().filter(|file| file.is_rust()) {
        let named_test = measure::functions(&file.text).into_iter().filter(|f| f.name.starts_with("test_"));
        findings.extend(named_test.map(|f| format!("{}:{}: {} says no claim", file.path, f.line, f.name)));
    }
    nothing(findings);
}

#[test]
fn nothing_is_left_for_later() {
    // Built from parts: this file then does not find itself.
    let marks = [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["XX", "X"].concat()];
    nothing(lines_where(
        |file| file.path != "LICENSE-APACHE",
        |line| {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.find(|word| marks.iter().any(|mark| mark == word)).map(|word| format!("{word} is left"))
        },
    ));
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    let folders = ["root", "home", "work", "tmp"].map(|name| format!("/{name}/"));
    nothing(lines_where(
        |_| true,
        |line| {
            let absolute = |folder: &&String| {
                line.match_indices(folder.as_str()).any(|(at, _)| begins_a_path(&line[..at]))
            };
            folders.iter().find(absolute).map(|folder| format!("a path of one machine: {folder}"))
        },
    ));
}

/// Returns whether a slash after this text begins an absolute path and does not go on with a path or an address.
fn begins_a_path(before: &str) -> bool {
    let continues = |last: char| last.is_alphanumeric() || "._-~}*/".contains(last);
    !before.ends_with(continues)
}

#[test]
fn a_slash_begins_a_path_only_where_nothing_goes_on() {
    assert!(begins_a_path("") && begins_a_path("\"") && begins_a_path("cd ") && begins_a_path("DIR="));
    assert!(!begins_a_path("$HOME") && !begins_a_path("frame") && !begins_a_path("${ROOT}"));
}

#[test]
fn every_package_comes_from_the_public_index() {
    let public = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
    let locks = |file: &File| file.path.ends_with("Cargo.lock");
    nothing(lines_where(locks, |line| {
        (line.starts_with("source = ") && line != public).then(|| "not from crates.io".to_owned())
    }));
}

#[test]
fn every_crate_inherits_the_lints() {
    // The example is there to be copied to where there is no such workspace.
    let is_example = |file: &File| file.path.starts_with("examples/");
    let own = |file: &File| file.is_manifest() && !file.is_fuzz() && !is_example(file);
    let without =
        files().into_iter().filter(|file| own(file) && !file.text.contains("[lints]\nworkspace = true"));
    nothing(without.map(|file| format!("{}: add [lints] workspace = true", file.path)));
}

/// C's names and C's memory: the calls that it sees, and the one room that reads and writes by its pointers.
const OF_C: [&str; 2] = ["c/src/calls.rs", "c/src/memory.rs"];

#[test]
fn only_the_host_and_the_door_for_c_may_be_unsafe() {
    let mut findings = Vec::new();
    let may = |file: &File| file.path.starts_with("stack/host/") || OF_C.contains(&file.path.as_str());
    for file in files().iter().filter(|file| file.is_rust() && !may(file)) {
        for token in lexer::tokens(&file.text) {
            if token.text == "unsafe" || token.text == "unsafe_code" {
                findings.push(format!("{}:{}: unsafe code belongs into stack/host", file.path, token.line));
            }
        }
    }
    nothing(findings);
}

#[test]
fn arrows_between_crates_point_one_way() {
    let mut findings = Vec::new();
    for file in files().iter().filter(|file| file.is_manifest() && !file.is_fuzz()) {
        if file.path == "Cargo.toml" {
            continue;
        }
        let Some((_, allowed)) = ARROWS.iter().find(|(path, _)| *path == file.path) else {
            findings.push(format!("{}: say in tests/tidy.rs what it may depend on", file.path));
            continue;
        };
        let held = |name: &str| !file.path.starts_with("src/") || name.starts_with("hopwise");
        let extra = dependencies(&file.text)
            .into_iter()
            .filter(|name| held(name) && !allowed.contains(&name.as_str()));
        findings.extend(extra.map(|name| format!("{}: may not depend on {name}", file.path)));
    }
    nothing(findings);
}

/// The names under `[dependencies]`, `[build-dependencies]` and their per-target kin, without dependencies for tests.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section.ends_with("dependencies") && !section.ends_with("dev-dependencies");
            let table = section.split_once("dependencies.").filter(|(before, _)| !before.ends_with("dev-"));
            names.extend(table.map(|(_, name)| name.to_owned()));
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            let name = line.split(|c: char| c == '=' || c == '.' || c.is_whitespace()).next();
            names.extend(name.map(str::to_owned));
        }
    }
    names
}

/// Dependencies of the command and of the laboratory that programs with `hopwise-sockets` do not get, by any way.
const NOT_OF_SOCKETS: [&str; 13] = [
    "clap",
    "clap_complete",
    "clap_mangen",
    "hopwise-air",
    "hopwise-lab",
    "hopwise-mesh",
    "indicatif",
    "miette",
    "ratatui",
    "schemars",
    "serde_json",
    "textwrap",
    "tracing-subscriber",
];

#[test]
fn the_sockets_of_programs_bring_nothing_of_the_command() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect("it is there");
    let (lock, commands) = (read("Cargo.lock"), dependencies(&read("Cargo.toml")));
    let (mut reached, mut unread) = (BTreeSet::new(), vec!["hopwise-sockets"]);
    while let Some(name) = unread.pop() {
        if reached.insert(name) {
            unread.extend(next_of(&lock, name));
        }
    }
    assert!(reached.contains("tokio"), "{reached:?}");
    for name in NOT_OF_SOCKETS {
        assert!(commands.iter().any(|other| other == name), "{name} is no longer the command's");
        assert!(!reached.contains(name), "hopwise-sockets reaches {name}");
    }
}

/// The dependencies of a package. The lock file has dependencies of our tests as well, and is not asked about our
/// crates.
fn next_of<'a>(lock: &'a str, name: &str) -> Vec<&'a str> {
    let folder = name.trim_start_matches("hopwise-");
    let ours = [format!("stack/{folder}/Cargo.toml"), format!("{folder}/Cargo.toml")];
    if let Some((_, arrows)) = ARROWS.iter().find(|(manifest, _)| ours.iter().any(|ours| ours == manifest)) {
        return arrows.to_vec();
    }
    let head = format!("name = \"{name}\"\n");
    let packages = lock.split("[[package]]\n").filter(|package| package.starts_with(&head));
    let listed = packages.filter_map(|package| package.split_once("dependencies = [\n")?.1.split_once(']'));
    let names = listed.flat_map(|(names, _)| names.lines());
    names.filter_map(|line| line.trim_matches([' ', '"', ',']).split(' ').next()).collect()
}

#[test]
fn dependencies_are_found_however_they_are_written() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\n# b = 1\nc = \"1\"\n\
                    [dev-dependencies]\nd = \"1\"\n[build-dependencies]\ne = \"1\"\n\
                    [target.'cfg(unix)'.dependencies]\nf = { version = \"1\" }\n[dependencies.g]\nversion = \"1\"\n\
                    [dev-dependencies.h]\n[lints]\nworkspace = true\n";
    assert_eq!(dependencies(manifest), ["a", "c", "e", "f", "g"]);
}
