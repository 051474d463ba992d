//! Sizes against their limits.

use super::measure::{functions, lines_without_tests};
use super::tree::File;

const LONGEST_FUNCTION: usize = 70;
const LONGEST_FILE: usize = 500;
/// A file that holds nothing but tests.
const LONGEST_TEST_FILE: usize = 700;

pub(crate) fn findings(files: &[File]) -> Vec<String> {
    files.iter().filter(|file| file.is_rust()).flat_map(too_long).collect()
}

fn too_long(file: &File) -> Vec<String> {
    let (lines, limit) = if file.is_test() {
        (file.text.lines().count(), LONGEST_TEST_FILE)
    } else {
        (lines_without_tests(&file.text), LONGEST_FILE)
    };
    let mut findings = Vec::new();
    if lines > limit {
        findings.push(format!("{}: {lines} lines, at most {limit}", file.path));
    }
    for function in functions(&file.text).iter().filter(|function| function.lines > LONGEST_FUNCTION) {
        let (path, at, name, lines) = (&file.path, function.line, &function.name, function.lines);
        findings.push(format!("{path}:{at}: {name} has {lines} lines, at most {LONGEST_FUNCTION}"));
    }
    findings
}

#[test]
fn tests_have_a_longer_limit_and_inline_tests_none() {
    let found = |path: &str, text: String| too_long(&File { path: path.to_owned(), text });
    let code = |lines: usize| "//\n".repeat(lines);
    assert_eq!(found("src/a.rs", code(500)), [""; 0]);
    assert_eq!(found("src/b.rs", code(501)), ["src/b.rs: 501 lines, at most 500"]);
    let inline = code(500) + "#[cfg(test)]\nmod tests {\n" + &code(900) + "}\n";
    assert_eq!(found("src/c.rs", inline), [""; 0]);
    assert_eq!(found("tests/d.rs", code(700)), [""; 0]);
    assert_eq!(found("src/e/tests.rs", code(701)), ["src/e/tests.rs: 701 lines, at most 700"]);
    let functions = format!("fn f() {{\n{}}}\nfn g() {{\n{}}}\n", code(68), code(69));
    assert_eq!(found("src/f.rs", functions), ["src/f.rs:71: g has 71 lines, at most 70"]);
}
