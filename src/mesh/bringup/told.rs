//! The events that the process which brings interfaces up tells the waiting command: a line of JSON for each.

use std::io::Write;

use serde::{Deserialize, Serialize};

use crate::failure::remark;

/// An event, in the order in which they happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    /// A sentence for people.
    Note(String),
    /// A step is about to be made.
    Step(String),
    /// The machine was as wanted, or is so now for good.
    Done {
        /// Something was changed.
        changed: bool,
    },
    /// All steps are made, and go back unless they are confirmed within so many seconds.
    Waits {
        /// The time for the confirmation.
        within_s: u64,
    },
    /// It failed, and what was changed is undone.
    Failed {
        /// The attempt.
        doing: String,
        /// The problem.
        problem: String,
    },
}

impl Event {
    pub(super) fn is_last(&self) -> bool {
        matches!(self, Event::Done { .. } | Event::Waits { .. } | Event::Failed { .. })
    }

    /// Tells it to the other process, which may be gone.
    pub(super) fn pass_on(&self) {
        if let Ok(line) = serde_json::to_string(self) {
            let mut out = std::io::stdout().lock();
            let _ = writeln!(out, "{line}").and_then(|()| out.flush());
        }
    }
}

/// The report for a person or a program in the end.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    /// Something was changed.
    changed: bool,
    steps: Vec<String>,
    notes: Vec<String>,
    /// The time for the confirmation, if one is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirm_within_s: Option<u64>,
}

impl Report {
    /// Takes an event in; people see it at once on standard error.
    pub(super) fn hear(&mut self, event: &Event, is_json: bool) {
        let say = |line: &str| {
            if !is_json {
                remark(line);
            }
        };
        match event {
            Event::Note(note) => {
                say(note);
                self.notes.push(note.clone());
            }
            Event::Step(step) => {
                say(step);
                self.steps.push(step.clone());
            }
            Event::Done { changed } => self.changed = *changed,
            Event::Waits { within_s } => {
                self.changed = true;
                self.confirm_within_s = Some(*within_s);
            }
            Event::Failed { .. } => {}
        }
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The last line for people.
    pub(super) fn sentence(&self) -> String {
        match self.confirm_within_s {
            Some(seconds) => format!(
                "up; goes back in {seconds} s unless confirmed: `hopwise mesh confirm` over a new connection"
            ),
            None if self.changed => "up; `hopwise mesh down` restores what was".to_owned(),
            None => "up already: nothing was changed".to_owned(),
        }
    }
}
