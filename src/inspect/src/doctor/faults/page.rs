//! The page of all faults, for the book.

use std::fmt::Write;

use super::ALL;
use crate::doctor::finding::{CheckFault, CheckVerdict};

const HEAD: &str = "\
# Faults that doctor finds

This page is what `hopwise doctor --faults` prints; a test keeps it so. `hopwise doctor` examines this machine, and
`hopwise doctor --fleet FILE` all hosts of an inventory. Each finding has the name of its fault and a remedy. A failure
keeps a node or a trial from working; a warning makes it worse, or other than expected. A test injects each fault.

Words in capitals stand for values: `IF` for an interface, `MTU` for bytes. Interfaces of the mesh are those that
`--interface` names. Without it they are the radios that the file of `--config` names, and without both all radios. A
radio that is down is then left out if a second radio is up.
";

pub(in crate::doctor) fn page() -> String {
    let mut text = HEAD.to_owned();
    let mut checks: Vec<&str> = Vec::new();
    for fault in ALL {
        if !checks.contains(&fault.check) {
            checks.push(fault.check);
        }
    }
    for check in checks {
        write!(text, "\n## {check}\n\n| fault | harm | found by | remedy |\n|---|---|---|---|\n")
            .expect("a text grows");
        ALL.iter().filter(|fault| fault.check == check).for_each(|fault| row(fault, &mut text));
    }
    text
}

fn row(fault: &CheckFault, text: &mut String) {
    let CheckFault { name, verdict, spoils, found, remedy, .. } = fault;
    let verdict = if *verdict == CheckVerdict::Failure { "failure" } else { "warning" };
    let cell = |words: &str| words.replace('|', "\\|").replace(['{', '}'], "");
    let (spoils, found, remedy) = (cell(spoils), cell(found), cell(remedy));
    writeln!(text, "| `{name}` ({verdict}) | {spoils} | {found} | {remedy} |").expect("a text grows");
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopwise_testing::book;

    #[test]
    fn the_book_lists_every_fault_that_doctor_finds() {
        book::holds("docs/doctor.md", &page());
    }

    #[test]
    fn faults_have_names_of_their_own() {
        let mut names: Vec<_> = ALL.iter().map(|fault| fault.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
