//! The time-sequence graphs of a report, from the captures beside its records.

use std::fs;
use std::path::{Path, PathBuf};

use hopwise_lab::record::Record;
use hopwise_lab::report::{Bundle, Graph};

use crate::failure;
use crate::inspect::capture::Drawing;

/// More packets would lie over each other, and make a large page.
const MOST_PACKETS: usize = 300;

/// Adds the graph of each arm's first run that has a capture in one of the folders. A file that cannot be read is
/// remarked on, and has no graph.
pub(crate) fn add(bundle: &mut Bundle, folders: &[PathBuf]) {
    let first = |runs: Vec<&Record>| runs.into_iter().find_map(|record| of_run(&record.id, folders));
    bundle.graphs = bundle.runs_of_arms().filter_map(first).collect();
}

fn of_run(id: &str, folders: &[PathBuf]) -> Option<Graph> {
    let below = Path::new("captures").join(id).join("ends");
    let folder = folders.iter().map(|folder| folder.join(&below)).find(|folder| folder.is_dir())?;
    let read = captures(&folder).into_iter().filter_map(|path| Some((read(&path)?, path)));
    // The receiver knows the reasons of ACKs, and of equal files the first counts.
    let (drawing, path) = read.max_by_key(|(drawing, path)| {
        (drawing.reasons(), drawing.packets(), std::cmp::Reverse(path.clone()))
    })?;
    let file = below.join(path.file_name()?).display().to_string();
    let (drawn, left) = (drawing.packets(), drawing.left());
    Some(Graph { run: id.to_owned(), file, svg: drawing.svg(), drawn, left })
}

/// The captures in a folder, in the order of their names.
fn captures(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut captures: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|of| of == "pcapng")).collect();
    captures.sort();
    captures
}

fn read(path: &Path) -> Option<Drawing> {
    let read = Drawing::read(path, MOST_PACKETS);
    read.unwrap_or_else(|problem| {
        failure::remark(&format!("no graph of it: {problem}"));
        None
    })
}
