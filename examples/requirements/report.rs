//! Clauses and marks brought together: a table, a list of problems, an object for programs.

use std::io::{self, Write};

use serde_json::json;

use super::clauses::Clause;
use super::marks::Mark;

pub(crate) struct Report {
    /// The clauses, each with the marks that name it and belong to a test.
    rows: Vec<(Clause, Vec<Mark>)>,
    problems: Vec<String>,
}

impl Report {
    pub(crate) fn new(clauses: Vec<Clause>, marks: Vec<Mark>) -> Report {
        let mut problems = Vec::new();
        for Mark { clause, path, line, test } in &marks {
            if !clauses.iter().any(|known| known.id == *clause) {
                problems
                    .push(format!("{path}:{line}: {clause} is no clause, expected MUST-1..69 or SHLD-1..31"));
            } else if test.is_none() {
                problems.push(format!("{path}:{line}: {clause} is marked, but no #[test] is directly below"));
            }
        }
        let rows: Vec<_> = clauses.into_iter().map(|clause| row(clause, &marks)).collect();
        for (Clause { id, strength, section, title, reason }, tests) in &rows {
            if tests.is_empty() && strength.starts_with("MUST") {
                problems.push(format!("{id} (§{section}): no test shows it: {title}"));
            } else if tests.is_empty() && reason.is_empty() {
                problems.push(format!("{id} (§{section}): neither a test nor a reason: {title}"));
            } else if !tests.is_empty() && !reason.is_empty() {
                problems.push(format!(
                    "{id} (§{section}): shown by a test, so delete the reason for leaving it out"
                ));
            }
        }
        Report { rows, problems }
    }

    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// A row a clause, and below it its tests.
    pub(crate) fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        for (clause, tests) in &self.rows {
            let Clause { id, strength, section, title, reason } = clause;
            writeln!(out, "{id:<8} {strength:<11} {:<11} {title}", format!("§{section}"))?;
            for Mark { path, test, .. } in tests {
                writeln!(out, "{:33}{path} {}", "", test.as_deref().unwrap_or_default())?;
            }
            if tests.is_empty() {
                let why = if reason.is_empty() { "NO TEST" } else { reason };
                let left_out = if reason.is_empty() { "" } else { "left out: " };
                writeln!(out, "{:33}{left_out}{why}", "")?;
            }
        }
        writeln!(out, "\n{}", self.summary())
    }

    pub(crate) fn check(&self, out: &mut dyn Write) -> io::Result<()> {
        for problem in &self.problems {
            writeln!(out, "{problem}")?;
        }
        writeln!(out, "{}", self.summary())
    }

    pub(crate) fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let clauses: Vec<_> = self
            .rows
            .iter()
            .map(|(clause, tests)| {
                let tests: Vec<_> =
                    tests.iter().map(|mark| json!({ "path": mark.path, "name": mark.test })).collect();
                json!({
                    "id": clause.id,
                    "strength": clause.strength,
                    "section": clause.section,
                    "title": clause.title,
                    "tests": tests,
                    "reason": if clause.reason.is_empty() { None } else { Some(&clause.reason) },
                })
            })
            .collect();
        writeln!(out, "{}", json!({ "clauses": clauses, "problems": self.problems }))
    }

    fn summary(&self) -> String {
        let count = |wanted: &dyn Fn(&Clause, &[Mark]) -> bool| {
            self.rows.iter().filter(|(clause, tests)| wanted(clause, tests)).count()
        };
        let shown = count(&|clause, tests| clause.is_must() && !tests.is_empty());
        let open = count(&|clause, tests| clause.is_must() && tests.is_empty());
        let shown_should = count(&|clause, tests| !clause.is_must() && !tests.is_empty());
        let left_out =
            count(&|clause, tests| !clause.is_must() && tests.is_empty() && !clause.reason.is_empty());
        let open_should =
            count(&|clause, tests| !clause.is_must() && tests.is_empty() && clause.reason.is_empty());
        format!(
            "MUST: {shown} shown, {open} without a test. SHOULD: {shown_should} shown, {left_out} left out with a \
             reason, {open_should} open."
        )
    }
}

fn row(clause: Clause, marks: &[Mark]) -> (Clause, Vec<Mark>) {
    let shows = |mark: &&Mark| mark.clause == clause.id && mark.test.is_some();
    let tests = marks.iter().filter(shows).cloned().collect();
    (clause, tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clause(id: &str, strength: &str, reason: &str) -> Clause {
        let [id, strength, section, title, reason] =
            [id, strength, "3.1", "Title", reason].map(str::to_owned);
        Clause { id, strength, section, title, reason }
    }

    fn mark(clause: &str, test: Option<&str>) -> Mark {
        Mark {
            clause: clause.to_owned(),
            path: "tests/a.rs".to_owned(),
            line: 4,
            test: test.map(str::to_owned),
        }
    }

    fn report(marks: Vec<Mark>) -> Report {
        let clauses = vec![
            clause("MUST-1", "MUST", ""),
            clause("SHLD-1", "SHOULD", ""),
            clause("SHLD-2", "SHOULD NOT", "for applications"),
        ];
        Report::new(clauses, marks)
    }

    #[test]
    fn all_shown_or_left_out_with_a_reason_is_no_problem() {
        let report = report(vec![mark("MUST-1", Some("a")), mark("SHLD-1", Some("b"))]);
        assert_eq!(report.problems(), Vec::<String>::new());
        assert_eq!(
            report.summary(),
            "MUST: 1 shown, 0 without a test. SHOULD: 1 shown, 1 left out with a reason, 0 open."
        );
    }

    #[test]
    fn what_nothing_shows_is_a_problem_each() {
        let report =
            report(vec![mark("MUST-1", None), mark("MUST-70", Some("a")), mark("SHLD-2", Some("b"))]);
        let words = ["no #[test]", "no clause", "no test shows", "neither", "delete the reason"];
        assert_eq!(report.problems().len(), words.len(), "{:?}", report.problems());
        for (problem, words) in report.problems().iter().zip(words) {
            assert!(problem.contains(words), "{problem}");
        }
    }

    #[test]
    fn the_table_names_tests_reasons_and_what_is_open() {
        let mut out = Vec::new();
        report(vec![mark("MUST-1", Some("a"))]).table(&mut out).unwrap();
        let table = String::from_utf8(out).unwrap();
        for words in ["tests/a.rs a\n", "NO TEST", "left out: for applications"] {
            assert!(table.contains(words), "{table}");
        }
    }

    #[test]
    fn the_object_names_clauses_and_their_tests() {
        let mut out = Vec::new();
        report(vec![mark("MUST-1", Some("a"))]).json(&mut out).unwrap();
        let object: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(object["clauses"][0]["tests"][0]["name"], "a");
        assert_eq!(object["clauses"][2]["reason"], "for applications");
        assert_eq!(object["problems"].as_array().unwrap().len(), 1);
    }
}
