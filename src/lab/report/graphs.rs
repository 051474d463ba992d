//! The time-sequence graphs of a report, from the captures beside its records.

use std::io;
use std::path::{Path, PathBuf};

use hopwise_lab::folder;
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
    let (folder, files) = folders.iter().find_map(|folder| Some((folder, captures(folder, &below)?)))?;
    let read = files.into_iter().filter_map(|file| Some((read(folder, &file)?, file)));
    // The receiver knows the reasons of ACKs, and of equal files the first counts.
    let (drawing, file) = read.max_by_key(|(drawing, file)| {
        (drawing.reasons(), drawing.packets(), std::cmp::Reverse(file.clone()))
    })?;
    let file = file.display().to_string();
    let (drawn, left) = (drawing.packets(), drawing.left());
    Some(Graph { run: id.to_owned(), file, svg: drawing.svg(), drawn, left })
}

/// The captures in a folder below another, in the order of their names; nothing where there is no such folder.
fn captures(folder: &Path, below: &Path) -> Option<Vec<PathBuf>> {
    let names = match folder::names(folder, below) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        names => names,
    };
    let files = names.map(|names| names.iter().map(|name| below.join(name)).collect::<Vec<_>>());
    let mut files = files.unwrap_or_else(|error| {
        without_graph(&format!("{}: {error}", folder.join(below).display()));
        Vec::new()
    });
    files.retain(|file| file.extension().is_some_and(|of| of == "pcapng"));
    Some(files)
}

fn read(folder: &Path, file: &Path) -> Option<Drawing> {
    let read = Drawing::read(folder, file, MOST_PACKETS);
    read.unwrap_or_else(|problem| {
        without_graph(&problem);
        None
    })
}

fn without_graph(problem: &dyn std::fmt::Display) {
    failure::remark(&format!("no graph of it: {problem}"));
}
