//! Instructions on another processor: the cases in a program that is built for it, and that QEMU runs. They say what
//! the compiler makes of the code there, and nothing of the time it takes. `scripts/bench core --counts-aarch64` prints
//! them.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::counts::{CASES, WORK, number, per, text};
use crate::row::{Better, Row, SMOLTCP};

/// Asks this program for the counts. The words after it are QEMU's, and then the program that it runs.
pub(crate) const OPTION: &str = "--emulated";

pub(crate) fn rows() -> Vec<Row> {
    let words: Vec<String> = env::args().skip_while(|word| word != OPTION).skip(1).collect();
    assert!(words.len() > 1, "{OPTION}: expected the words of QEMU and the program");
    let mut rows = Vec::new();
    for (name, unit, times, _) in CASES {
        let [ours, theirs] = ["ours", SMOLTCP].map(|stack| {
            let counted = |times| instructions(&words, [WORK, name, stack, times]);
            let (once, twice) = (times.to_string(), (2 * times).to_string());
            (counted(&twice) - counted(&once)) / times as f64
        });
        let name = format!("{name}: instructions");
        rows.push(Row::beside(name, per(unit), Better::Less, ours, (SMOLTCP, theirs)));
    }
    rows
}

/// The instructions of a process, from the file into which QEMU writes what its plugin says.
fn instructions(words: &[String], work: [&str; 4]) -> f64 {
    let file = env::temp_dir().join(format!("hopwise-counts-{}", std::process::id()));
    let output = Command::new(&words[0])
        .args(["-d", "plugin", "-D"])
        .arg(&file)
        .args(&words[1..])
        .args(work)
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", words[0]));
    assert!(output.status.success(), "{words:?}: {}: {}", output.status, text(&output.stderr));
    let told = taken(&file);
    let line = told.lines().find_map(|line| line.strip_prefix("instructions "));
    number(line.unwrap_or_else(|| panic!("the plugin printed no count: {told:?}")))
}

fn taken(file: &Path) -> String {
    let told = std::fs::read_to_string(file).unwrap_or_default();
    let _ = std::fs::remove_file(file);
    told
}
