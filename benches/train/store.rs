//! The results of runs, in a file from which a stopped bench goes on.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use hopwise_lab::VERSION;
use serde::{Deserialize, Serialize};

const FILE: &str = "results/bench-train.runs.jsonl";

/// Goodputs of all flows that are not in the background, in their order.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Answer {
    pub(crate) kbps: Vec<f64>,
    pub(crate) jain: f64,
}

#[derive(Debug, Deserialize, Serialize)]
struct Line {
    version: String,
    run: String,
    #[serde(flatten)]
    answer: Answer,
}

/// A line for each run. Those of other sources stay in the file and are not used.
#[derive(Debug)]
pub(crate) struct Store {
    known: BTreeMap<String, Answer>,
    file: Mutex<File>,
}

impl Store {
    pub(crate) fn open() -> Store {
        fs::create_dir_all(Path::new(FILE).parent().expect("a folder")).expect("the folder can be made");
        let text = fs::read_to_string(FILE).unwrap_or_default();
        // A line that was being written when the bench was stopped is skipped.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let known = lines.filter(|line| line.version == VERSION).map(|line| (line.run, line.answer));
        let known = known.collect();
        let mut file =
            OpenOptions::new().create(true).append(true).open(FILE).expect("the file can be written");
        if !text.is_empty() && !text.ends_with('\n') {
            writeln!(file).expect("the file can be written");
        }
        Store { known, file: Mutex::new(file) }
    }

    pub(crate) fn known(&self, run: &str) -> Option<&Answer> {
        self.known.get(run)
    }

    pub(crate) fn keep(&self, run: String, answer: &Answer) {
        let line = Line { version: VERSION.to_owned(), run, answer: answer.clone() };
        let text = serde_json::to_string(&line).expect("numbers and text");
        writeln!(self.file.lock().expect("no thread panics with it"), "{text}")
            .expect("the file can be written");
    }
}
