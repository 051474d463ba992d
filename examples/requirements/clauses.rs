//! The clauses, as `tests/requirements/clauses.tsv` has them.

use std::fmt;
use std::fs;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clause {
    /// `MUST-7`, `SHLD-3`.
    pub(crate) id: String,
    /// MUST, MUST NOT, SHOULD, SHOULD NOT.
    pub(crate) strength: String,
    /// The section of RFC 9293.
    pub(crate) section: String,
    pub(crate) title: String,
    /// The reason why no test shows it; empty where a test has to.
    pub(crate) reason: String,
}

impl Clause {
    pub(crate) fn is_must(&self) -> bool {
        self.strength.starts_with("MUST")
    }
}

/// Faults of the list of clauses.
#[derive(Debug)]
pub(crate) enum ClausesError {
    Unreadable(std::io::Error),
    /// The line, counted from 1, and the form that it should have.
    Line(usize, &'static str),
    /// The list has a hole, or an order of its own.
    Missing(String),
}

impl fmt::Display for ClausesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tests/requirements/clauses.tsv: ")?;
        match self {
            ClausesError::Unreadable(error) => write!(f, "{error}"),
            ClausesError::Line(line, expected) => write!(f, "line {line}: expected {expected}"),
            ClausesError::Missing(id) => write!(f, "expected {id} in its place"),
        }
    }
}

impl std::error::Error for ClausesError {}

/// All clauses in the order MUST-1 to MUST-69, SHLD-1 to SHLD-31.
pub(crate) fn read(path: &Path) -> Result<Vec<Clause>, ClausesError> {
    let text = fs::read_to_string(path).map_err(ClausesError::Unreadable)?;
    let clauses = parse(&text)?;
    let musts = (1..=69).map(|number| format!("MUST-{number}"));
    let shoulds = (1..=31).map(|number| format!("SHLD-{number}"));
    let mut found = clauses.iter();
    for id in musts.chain(shoulds) {
        if found.next().is_none_or(|clause| clause.id != id) {
            return Err(ClausesError::Missing(id));
        }
    }
    Ok(clauses)
}

fn parse(text: &str) -> Result<Vec<Clause>, ClausesError> {
    let lines = text.lines().enumerate().map(|(before, line)| (before + 1, line));
    let mut rows = lines.filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty());
    match rows.next() {
        Some((_, "id\tstrength\tsection\ttitle\treason")) => {}
        Some((line, _)) => return Err(ClausesError::Line(line, "the column names")),
        None => return Err(ClausesError::Line(1, "the column names")),
    }
    rows.map(|(line, row)| clause(row).map_err(|expected| ClausesError::Line(line, expected))).collect()
}

fn clause(row: &str) -> Result<Clause, &'static str> {
    let columns: Vec<_> = row.split('\t').collect();
    let (id, strength, section, title, reason) = match *columns.as_slice() {
        [id, strength, section, title] => (id, strength, section, title, ""),
        [id, strength, section, title, reason] => (id, strength, section, title, reason),
        _ => return Err("four columns or, with a reason, five, separated by tabs"),
    };
    let kind = id.split_once('-').map(|(kind, _)| kind);
    match (kind, strength) {
        (Some("MUST"), "MUST" | "MUST NOT") if reason.is_empty() => {}
        (Some("MUST"), "MUST" | "MUST NOT") => return Err("no reason: a MUST cannot be left out"),
        (Some("SHLD"), "SHOULD" | "SHOULD NOT") => {}
        _ => return Err("MUST-n with MUST or MUST NOT, or SHLD-n with SHOULD or SHOULD NOT"),
    }
    if section.is_empty() || title.is_empty() {
        return Err("a section and a title");
    }
    let [id, strength, section, title, reason] = [id, strength, section, title, reason].map(str::to_owned);
    Ok(Clause { id, strength, section, title, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# why\nid\tstrength\tsection\ttitle\treason\n";

    #[test]
    fn the_list_in_the_repository_is_complete() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/requirements/clauses.tsv");
        assert_eq!(read(&path).unwrap().len(), 100);
    }

    #[test]
    fn a_reason_is_read_and_may_be_left_out() {
        let text = format!("{HEAD}MUST-1\tMUST\t3.1\tX\nSHLD-2\tSHOULD NOT\t3.2\tY\tapplications decide\n");
        let clauses = parse(&text).unwrap();
        assert_eq!((clauses[0].reason.as_str(), clauses[1].reason.as_str()), ("", "applications decide"));
        assert!(clauses[0].is_must() && !clauses[1].is_must());
    }

    #[test]
    fn a_broken_row_is_refused_with_its_line() {
        for row in [
            "MUST-1\tMUST\t3.1",
            "MUST-1\tSHOULD\t3.1\tX",
            "SHLD-1\tMUST\t3.1\tX",
            "MUST-1\tMUST\t\tX",
            "MUST-1\tMUST\t3.1\tX\ttoo hard",
            "REC-1\tSHOULD\t3.1\tX",
        ] {
            let refused = parse(&format!("{HEAD}{row}\n")).unwrap_err();
            assert!(matches!(refused, ClausesError::Line(3, _)), "{row}: {refused}");
        }
        assert!(matches!(parse("id\n"), Err(ClausesError::Line(1, _))));
    }
}
