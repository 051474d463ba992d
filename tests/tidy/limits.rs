//! Sizes against their limits, with a list of exceptions that may only shrink.

use std::collections::BTreeMap;

use super::measure::{functions, lines_without_tests};
use super::tree::File;

const LONGEST_FUNCTION: usize = 70;
const LONGEST_FILE: usize = 500;
/// A file that holds nothing but tests.
const LONGEST_TEST_FILE: usize = 700;

/// The most entries of the list: lower it with every entry that goes.
const MOST_EXCEPTIONS: usize = 36;
const EXCEPTIONS: &str = include_str!("exceptions.txt");

/// The items that are too long, by their names in the list of exceptions.
type Sizes = BTreeMap<String, usize>;

pub(crate) fn findings(files: &[File]) -> Vec<String> {
    let (listed, mut findings) = listed(EXCEPTIONS);
    findings.extend(compare(&too_long(files), &listed));
    if listed.len() > MOST_EXCEPTIONS {
        findings.push(format!("{} exceptions, at most {MOST_EXCEPTIONS}", listed.len()));
    }
    findings
}

fn too_long(files: &[File]) -> Sizes {
    let mut sizes = Sizes::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let (lines, limit) = if file.is_test() {
            (file.text.lines().count(), LONGEST_TEST_FILE)
        } else {
            (lines_without_tests(&file.text), LONGEST_FILE)
        };
        if lines > limit {
            sizes.insert(format!("file {}", file.path), lines);
        }
        for function in functions(&file.text).iter().filter(|function| function.lines > LONGEST_FUNCTION) {
            let longest = sizes.entry(format!("function {} {}", file.path, function.name)).or_default();
            *longest = function.lines.max(*longest);
        }
    }
    sizes
}

fn listed(list: &str) -> (Sizes, Vec<String>) {
    let (mut sizes, mut findings) = (Sizes::new(), Vec::new());
    for line in list.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        match line.rsplit_once(' ').map(|(name, lines)| (name, lines.parse())) {
            Some((name, Ok(lines))) => {
                sizes.insert(name.to_owned(), lines);
            }
            _ => findings.push(format!("exceptions.txt: `{line}` does not end with a number of lines")),
        }
    }
    (sizes, findings)
}

/// Every difference is a finding. Growth and new entries must not come in, and smaller values must be lowered in the
/// list.
fn compare(found: &Sizes, listed: &Sizes) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, lines) in found {
        match listed.get(name) {
            None => findings.push(format!("{name}: {lines} lines are too long")),
            Some(most) if lines > most => findings.push(format!("{name}: grew from {most} to {lines} lines")),
            Some(most) if lines < most => {
                findings.push(format!("{name}: shrank to {lines} lines, lower the exception"));
            }
            Some(_) => {}
        }
    }
    let needless = listed.keys().filter(|name| !found.contains_key(*name));
    findings.extend(needless.map(|name| format!("{name}: needs no exception any more, delete it")));
    findings
}

#[test]
fn exceptions_hold_exactly_and_may_only_shrink() {
    let (list, broken) = listed("# x\n\nfile a.rs 600\nfunction b.rs long 80\nfile c.rs\n");
    assert_eq!(broken.len(), 1);
    let with =
        |a: usize, b: usize| Sizes::from([("file a.rs".to_owned(), a), ("function b.rs long".to_owned(), b)]);
    assert_eq!(compare(&with(600, 80), &list), Vec::<String>::new());
    for (found, words) in [(with(601, 80), "grew"), (with(600, 79), "lower")] {
        let findings = compare(&found, &list);
        assert!(findings.len() == 1 && findings[0].contains(words), "{findings:?}");
    }
    assert!(compare(&Sizes::new(), &list).iter().all(|finding| finding.contains("delete")));
    assert!(compare(&with(600, 80), &Sizes::new()).iter().all(|finding| finding.contains("too long")));
}

#[test]
fn tests_have_a_longer_limit_and_inline_tests_none() {
    let file = |path: &str, text: String| File { path: path.to_owned(), text };
    let code = |lines: usize| "//\n".repeat(lines);
    let sizes = too_long(&[
        file("src/a.rs", code(500)),
        file("src/b.rs", code(501)),
        file("src/c.rs", code(500) + "#[cfg(test)]\nmod tests {\n" + &code(900) + "}\n"),
        file("tests/d.rs", code(700)),
        file("src/e/tests.rs", code(701)),
        file("src/f.rs", format!("fn f() {{\n{}}}\nfn g() {{\n{}}}\n", code(68), code(69))),
    ]);
    let expected = [("file src/b.rs", 501), ("file src/e/tests.rs", 701), ("function src/f.rs g", 71)];
    assert_eq!(sizes, expected.map(|(name, lines)| (name.to_owned(), lines)).into());
}
