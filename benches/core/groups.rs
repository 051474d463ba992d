//! The groups of a bench's rows, and their choice on the command line.

/// A group of rows, by the word that selects it.
pub(crate) type Group<Row> = (&'static str, fn() -> Vec<Row>);

/// Words that are no options choose groups, to profile one alone; without any, all run.
pub(crate) fn run<Row>(groups: &[Group<Row>]) -> Vec<Row> {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|word| word == name);
    let mut rows = Vec::new();
    for (name, run) in groups.iter().filter(|(name, _)| is_chosen(name)) {
        eprintln!("{name}:");
        rows.extend(run());
    }
    rows
}
