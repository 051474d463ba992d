//! The streams of a program that a trial has started: lines of JSON out, and the word to begin in.

use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use hopwise_host::Clock;
use hopwise_lab::live::part::{BEGIN, CLOCK, PartMessage};
use serde::Serialize;

use crate::failure::{Failure, json};

/// Tells the trial.
pub fn say(what: &impl Serialize) -> Result<(), Failure> {
    let line = json(what)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Failure::during("tell the trial"))
}

/// The trial's next line.
pub fn line() -> Result<String, Failure> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) => Err(Failure::failed("hear the trial", "it has ended")),
        Ok(_) => Ok(line),
        Err(error) => Err(Failure::failed("hear the trial", error)),
    }
}

/// Says that all is open, and waits for the beginning. The trial's pipe ends with the trial.
pub fn wait_for_beginning() -> Result<(), Failure> {
    say(&PartMessage::Ready)?;
    loop {
        match line()?.trim() {
            BEGIN => return Ok(()),
            CLOCK => tell_time()?,
            other => {
                let problem = format!("`{other}`, expected `{BEGIN}` or `{CLOCK}`");
                return Err(Failure::failed("hear the trial", problem));
            }
        }
    }
}

/// Answers the trial while it lives.
pub fn answer() {
    while let Ok(line) = line() {
        if line.trim() == CLOCK && tell_time().is_err() {
            return;
        }
    }
}

fn tell_time() -> Result<(), Failure> {
    say(&PartMessage::Clock { at_s: Clock::wall().as_secs_f64() })
}

/// Hands a file over: a line with its length, and its bytes.
pub fn hand_over(path: &Path) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::failed("hand a file over", format_args!("{}: {error}", path.display()))
    };
    let file = File::open(path).map_err(|error| failed(&error))?;
    let bytes = file.metadata().map_err(|error| failed(&error))?.len();
    let line = serde_json::to_string(&PartMessage::File { bytes }).map_err(|error| failed(&error))?;
    let mut out = io::stdout().lock();
    let handed = writeln!(out, "{line}").and_then(|()| io::copy(&mut file.take(bytes), &mut out));
    match handed.and_then(|copied| out.flush().map(|()| copied)) {
        Ok(copied) if copied == bytes => Ok(()),
        Ok(_) => Err(failed(&"it became shorter")),
        Err(error) => Err(failed(&error)),
    }
}
