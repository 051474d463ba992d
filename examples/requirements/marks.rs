//! Marks in tests: the clauses that each test claims to show.

use std::fs;
use std::io;
use std::path::Path;

/// The claim of a test to show one clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) clause: String,
    /// The path from the repository's root.
    pub(crate) path: String,
    /// The line of the mark, counted from 1.
    pub(crate) line: usize,
    /// The function, or the section of a file of packet scripts; `None` where nothing below is a test.
    pub(crate) test: Option<String>,
}

/// The marks of all Rust files and packet scripts in these folders, in the order of their paths.
pub(crate) fn collect(root: &Path, folders: &[&str]) -> io::Result<Vec<Mark>> {
    let mut marks = Vec::new();
    let mut waiting: Vec<String> = folders.iter().map(|folder| (*folder).to_owned()).collect();
    while let Some(folder) = waiting.pop() {
        if !root.join(&folder).is_dir() {
            continue;
        }
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{folder}/{name}");
            if entry.file_type()?.is_dir() {
                waiting.extend((name != "target").then_some(path));
            } else if name.ends_with(".rs") {
                marks.extend(of_rust(&path, &fs::read_to_string(entry.path())?));
            } else if name.ends_with(".pkt") {
                marks.extend(of_scripts(&path, &fs::read_to_string(entry.path())?));
            }
        }
    }
    marks.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    Ok(marks)
}

/// A section of a file of packet scripts is one test: a mark may stand anywhere in it.
fn of_scripts(path: &str, text: &str) -> Vec<Mark> {
    let (mut marks, mut name) = (Vec::new(), None);
    for (before, line) in text.lines().enumerate() {
        name = line.strip_prefix("--- ").map(str::to_owned).or(name);
        for clause in clauses_in(line, "#") {
            marks.push(Mark { clause, path: path.to_owned(), line: before + 1, test: name.clone() });
        }
    }
    marks
}

/// Marks belong to the next function, when only comments and attributes stand between and `#[test]` is among them.
fn of_rust(path: &str, text: &str) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    let mut above = Above::default();
    for (before, line) in text.lines().enumerate() {
        let line = line.trim();
        for clause in clauses_in(line, "//") {
            above.marks.push(marks.len());
            marks.push(Mark { clause, path: path.to_owned(), line: before + 1, test: None });
        }
        if line.starts_with("//") || above.take_attribute(line) {
            continue;
        }
        let test = function_name(line).filter(|_| above.is_test);
        for place in std::mem::take(&mut above).marks {
            marks[place].test = test.map(str::to_owned);
        }
    }
    marks
}

/// The marks in the comments and attributes since the last line of code.
#[derive(Default)]
struct Above {
    /// Places in the list of marks.
    marks: Vec<usize>,
    is_test: bool,
    /// Brackets that an attribute of several lines has open.
    open: usize,
}

impl Above {
    /// Returns whether the line belongs to an attribute.
    fn take_attribute(&mut self, line: &str) -> bool {
        if self.open == 0 && !line.starts_with("#[") {
            return false;
        }
        self.is_test |= line.starts_with("#[test]");
        let closed = line.matches(']').count();
        self.open = (self.open + line.matches('[').count()).saturating_sub(closed);
        true
    }
}

fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let qualified = before.split_whitespace().all(|word| matches!(word, "pub" | "async" | "const"));
    let name = after.split(|next: char| !next.is_alphanumeric() && next != '_').next()?;
    (qualified && !name.is_empty()).then_some(name)
}

/// `shows: MUST-7, SHLD-3` behind the comment's sign, and nothing else before it.
fn clauses_in(line: &str, sign: &str) -> Vec<String> {
    let comment = line.trim().strip_prefix(sign).map(|rest| rest.trim_start_matches(['/', '!']).trim());
    let Some(list) = comment.and_then(|comment| comment.strip_prefix("shows:")) else {
        return Vec::new();
    };
    let words = list.split([',', ' ']).map(|word| word.trim_end_matches('.'));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Vec<(String, Option<String>)> {
        of_rust("a.rs", text).into_iter().map(|mark| (mark.clause, mark.test)).collect()
    }

    fn pair(clause: &str, test: Option<&str>) -> (String, Option<String>) {
        (clause.to_owned(), test.map(str::to_owned))
    }

    #[test]
    fn a_mark_belongs_to_the_test_below_it() {
        let text = "// shows: MUST-7, SHLD-3\n#[test]\nfn a() {}\n#[test]\n/// Why.\n/// shows: MUST-8\n\
                    #[should_panic(\n    expected = \"x\"\n)]\nfn b() {\n}\n";
        let wanted = [pair("MUST-7", Some("a")), pair("SHLD-3", Some("a")), pair("MUST-8", Some("b"))];
        assert_eq!(seen(text), wanted);
    }

    #[test]
    fn several_lines_of_marks_add_up_also_in_proptest() {
        let text =
            "proptest! {\n    // shows: MUST-1\n    // shows: MUST-2.\n    #[test]\n    fn c(x: u8) {\n";
        assert_eq!(seen(text), [pair("MUST-1", Some("c")), pair("MUST-2", Some("c"))]);
    }

    #[test]
    fn a_mark_above_anything_else_belongs_to_no_test() {
        assert_eq!(seen("// shows: MUST-1\nfn helper() {}\n"), [pair("MUST-1", None)]);
        assert_eq!(seen("// shows: MUST-1\n\n#[test]\nfn a() {}\n"), [pair("MUST-1", None)]);
        assert_eq!(seen("// shows: MUST-1\nlet x = 1;\n#[test]\nfn a() {}\n"), [pair("MUST-1", None)]);
        assert_eq!(seen("// shows: MUST-1\n"), [pair("MUST-1", None)]);
    }

    #[test]
    fn a_mark_is_a_comment_of_its_own() {
        assert_eq!(seen("// the table shows: MUST-1\n#[test]\nfn a() {}\n"), []);
        assert_eq!(seen("let x = \"// shows: MUST-1\";\n"), []);
    }

    #[test]
    fn a_section_of_packet_scripts_is_one_test() {
        let text = "--- a\n# Title\n# shows: MUST-10\n0.0 > S\n# shows: MUST-11\n\n--- b\n# shows: MUST-12\n";
        let marks = of_scripts("tests/packets/open.pkt", text);
        let wanted = |clause: &str, line, test: &str| Mark {
            clause: clause.to_owned(),
            path: "tests/packets/open.pkt".to_owned(),
            line,
            test: Some(test.to_owned()),
        };
        assert_eq!(marks, [wanted("MUST-10", 3, "a"), wanted("MUST-11", 5, "a"), wanted("MUST-12", 8, "b")]);
    }
}
