//! Prints the clauses of RFC 9293 Appendix B with the tests that show each: `scripts/requirements` runs this.
//!
//! A test names its clauses in a comment directly above it, `// shows: MUST-7, SHLD-3`. A packet script does so in a
//! line `# shows: …`. The clauses stand in `tests/requirements/clauses.tsv`, with the reason of every SHOULD that is
//! left out.

use std::path::Path;
use std::process::ExitCode;

mod clauses;
mod marks;
mod report;

use report::Report;

const HELP: &str = "\
RFC 9293 Appendix B, clause by clause, with the tests that show each one.

Usage: scripts/requirements [--check | --json]

  --check   only what is wrong: a MUST without a test, a SHOULD with neither test nor reason,
            a mark that names no clause or belongs to no test; exit status 1 if there is any
  --json    one object with all clauses, for programs
  --help    this

Examples:
  scripts/requirements | less
  scripts/requirements --json | jq '.clauses[] | select(.tests == [])'
";

enum Wanted {
    Table,
    Check,
    Json,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => Wanted::Table,
        ["--check"] => Wanted::Check,
        ["--json"] => Wanted::Json,
        ["--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("scripts/requirements: `{}`: expected --check, --json or --help", arguments.join(" "));
            return ExitCode::from(2);
        }
    };
    let report = match gather(Path::new(env!("CARGO_MANIFEST_DIR"))) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("scripts/requirements: {error}");
            return ExitCode::from(2);
        }
    };
    answer(&wanted, &report)
}

fn gather(root: &Path) -> Result<Report, Box<dyn std::error::Error>> {
    let clauses = clauses::read(&root.join("tests/requirements/clauses.tsv"))?;
    let marks = marks::collect(root, &["stack", "agents", "tests", "src"])?;
    Ok(Report::new(clauses, marks))
}

fn answer(wanted: &Wanted, report: &Report) -> ExitCode {
    // A reader that has seen enough, such as `head`, closes the pipe; that is no error.
    let _ = match wanted {
        Wanted::Table => report.table(&mut std::io::stdout().lock()),
        Wanted::Json => report.json(&mut std::io::stdout().lock()),
        Wanted::Check => report.check(&mut std::io::stdout().lock()),
    };
    let failed = matches!(wanted, Wanted::Check) && !report.problems().is_empty();
    ExitCode::from(u8::from(failed))
}
