//! The streams of a program that a trial has started: lines of JSON out, and the word to begin in.

use std::io::{self, BufRead, Write};

use hopwise_lab::live::part::{BEGIN, Says};
use serde::Serialize;

use crate::failure::Failure;

/// Tells the trial.
pub(crate) fn say(what: &impl Serialize) -> Result<(), Failure> {
    let line = serde_json::to_string(what).map_err(|error| Failure::failed("write JSON", error))?;
    let mut out = io::stdout().lock();
    let said = writeln!(out, "{line}").and_then(|()| out.flush());
    said.map_err(|error| Failure::failed("tell the trial", error))
}

/// The trial's next line.
pub(crate) fn line() -> Result<String, Failure> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) => Err(Failure::failed("hear the trial", "it has ended")),
        Ok(_) => Ok(line),
        Err(error) => Err(Failure::failed("hear the trial", error)),
    }
}

/// Says that all is open, and waits for the beginning. The trial's pipe ends with the trial.
pub(crate) fn wait_for_beginning() -> Result<(), Failure> {
    say(&Says::Ready)?;
    let line = line()?;
    match line.trim() {
        BEGIN => Ok(()),
        other => Err(Failure::failed("hear the trial", format!("`{other}`, expected `{BEGIN}`"))),
    }
}
