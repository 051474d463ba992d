//! Files and folders that guides and comments name in backticks: a name of nothing sends a reader astray.

use std::collections::BTreeSet;

use super::tree::File;

const MAP: &str = "stack/ARCHITECTURE.md";
/// A path of the map that begins with one of these is written from the root.
const OF_ROOT: [&str; 8] =
    ["stack/", "agents/", "lab/", "src/", "tests/", "scripts/", "configs/", "examples/"];

pub(crate) fn findings(files: &[File]) -> Vec<String> {
    let places = Places::of(files);
    let mut findings = Vec::new();
    for file in files {
        let named: BTreeSet<_> = named(file).into_iter().collect();
        let is_there = |word: &String| {
            let from_root = file.path == MAP && OF_ROOT.iter().any(|folder| word.starts_with(folder));
            if from_root { places.at_root(word) } else { places.anywhere(word) }
        };
        let missing = named.into_iter().filter(|word| !is_there(word));
        findings.extend(missing.map(|word| format!("{}: there is no `{word}`", file.path)));
    }
    findings
}

/// The paths in a file's text: in guides of rooms all of them, in comments only Rust files.
fn named(file: &File) -> Vec<String> {
    let is_guide = file.path == MAP || file.path.ends_with("/README.md") && is_of_a_room(&file.path);
    let words: Vec<&str> = if is_guide {
        file.text.split('`').skip(1).step_by(2).collect()
    } else if file.is_rust() {
        let comments = file.text.lines().filter_map(|line| line.trim().strip_prefix("//"));
        comments.flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
    } else {
        Vec::new()
    };
    let is_path = |word: &String| word.ends_with(".rs") || is_guide && word.contains('/');
    words.into_iter().flat_map(spelled_out).filter(|word| is_name(word) && is_path(word)).collect()
}

fn is_of_a_room(path: &str) -> bool {
    ["stack/", "lab/", "src/"].iter().any(|folder| path.starts_with(folder))
}

/// One word with names in braces stands for several paths.
fn spelled_out(word: &str) -> Vec<String> {
    let Some((before, rest)) = word.split_once('{') else { return vec![word.to_owned()] };
    let Some((names, after)) = rest.split_once('}') else { return vec![word.to_owned()] };
    names.split(',').map(|name| format!("{before}{name}{after}")).collect()
}

/// Placeholders such as `receiver/NAME.rs`, endings, addresses and absolute paths name no place of the repository.
fn is_name(word: &str) -> bool {
    let holds_its_place = |part: &str| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase());
    word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && !word.split(['/', '.']).any(holds_its_place)
}

struct Places {
    from_root: BTreeSet<String>,
    /// The ends of all paths, also without `src` (`host/driver` for `stack/host/src/driver.rs`).
    ends: BTreeSet<String>,
}

impl Places {
    fn of(files: &[File]) -> Places {
        let mut from_root = BTreeSet::new();
        for file in files {
            from_root.insert(file.path.clone());
            from_root.extend(file.path.strip_suffix(".rs").map(str::to_owned));
            from_root.extend(file.path.match_indices('/').map(|(at, _)| file.path[..at].to_owned()));
        }
        let ends_of = |path: &String| {
            let ends: Vec<_> = path.match_indices('/').map(|(at, _)| path[at + 1..].to_owned()).collect();
            ends.into_iter().chain([path.clone()])
        };
        let ends = from_root.iter().flat_map(|path| [path.clone(), path.replace("/src/", "/")]);
        let ends = ends.collect::<Vec<_>>().iter().flat_map(ends_of).collect();
        Places { from_root, ends }
    }

    fn at_root(&self, word: &str) -> bool {
        self.from_root.contains(word.trim_end_matches('/'))
    }

    fn anywhere(&self, word: &str) -> bool {
        self.ends.contains(word.trim_end_matches('/'))
    }
}

#[test]
fn a_path_is_found_by_its_end_and_in_the_map_from_the_root() {
    let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
    let room =
        "`host/driver`, `driver/{turns,gone}.rs`, `a b/c`, `TARGET.rs`, `10.0.0.0/8`, `/run/x`, `sim/gone`";
    let found = findings(&[
        file(MAP, "`stack/host/src/driver.rs`, `src/driver.rs`, `driver.rs`"),
        file("stack/host/README.md", room),
        file(
            "stack/host/src/driver.rs",
            "//! As in `driver/turns.rs` and `late.rs`, but `x/y`.\nlet a = \"`b.rs`\";",
        ),
        file("stack/host/src/driver/turns.rs", ""),
    ]);
    let expected = [
        "stack/ARCHITECTURE.md: there is no `src/driver.rs`",
        "stack/host/README.md: there is no `driver/gone.rs`",
        "stack/host/README.md: there is no `sim/gone`",
        "stack/host/src/driver.rs: there is no `late.rs`",
    ];
    assert_eq!(found, expected);
}
