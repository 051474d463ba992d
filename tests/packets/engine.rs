//! Runs packet scripts: one endpoint in virtual time against a peer that the script plays. The dialect is in
//! `tests/packets/README.md`.

mod build;
mod calls;
mod checks;
mod fields;
mod options;
mod peer;
mod run;
mod script;
mod seen;
mod segment;
mod selftest;
mod settings;
mod text;

use hopwise_core::trace::TraceEvent;
use run::{Manner, Run, trace_tail};
use script::Line;
use settings::Settings;
use text::{Problem, problem};

/// Lines of the trace that a report shows.
const TRACE_LINES: usize = 20;

/// The failure, its place, and the events before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report(pub(crate) String);

/// Runs a script in every manner. `name` is for the report.
pub(crate) fn run_script(name: &str, text: &str) -> Result<(), Report> {
    // A broken invariant of core is a failure of this script, and the other scripts run.
    let run = std::panic::catch_unwind(|| run_all(name, text));
    run.unwrap_or_else(|_| Err(Report(format!("{name}: it panicked, as said above"))))
}

fn run_all(name: &str, text: &str) -> Result<(), Report> {
    let calm = run_once(name, text, Manner::Calm)?;
    let nervous = run_once(name, text, Manner::Nervous)?;
    // Bundles are traced as such; a script about them gives their size.
    if !text.contains(" bundle ") {
        run_once(name, text, Manner::Cutting)?;
    }
    if calm == nervous {
        return Ok(());
    }
    let place = calm.iter().zip(&nervous).position(|(calm, nervous)| calm != nervous).unwrap_or(0);
    Err(Report(format!(
        "{name}: timeouts that come early and twice change what happens:\n  {:?}\n  {:?}",
        calm.get(place),
        nervous.get(place)
    )))
}

fn run_once(name: &str, text: &str, manner: Manner) -> Result<Vec<TraceEvent>, Report> {
    let at_line = |number: usize, problem: &Problem| Report(format!("{name}:{number}: {problem}"));
    let lines = script::read(text).map_err(|(number, problem)| at_line(number, &problem))?;
    let first = lines.first().map_or(1, |line| line.number);
    let mut settings = Settings::new().map_err(|problem| at_line(first, &problem))?;
    let mut body = lines.as_slice();
    while let Some((first, rest)) = body.split_first() {
        match settings.take(&mut first.words.clone()) {
            Ok(true) => body = rest,
            Ok(false) => break,
            Err(problem) => return Err(at_line(first.number, &problem)),
        }
    }
    let mut run = Run::new(settings, manner).map_err(|problem| at_line(first, &problem))?;
    play(&mut run, body).map_err(|(line, problem)| report(name, &run, line.as_ref(), &problem))?;
    Ok(run.trace)
}

fn play(run: &mut Run, lines: &[Line]) -> Result<(), (Option<Line>, Problem)> {
    for line in lines {
        run.line(line).map_err(|problem| (Some(line.clone()), problem))?;
    }
    let last = lines.last().ok_or_else(|| (None, problem!("the script does nothing")))?;
    run.finish().map_err(|problem| (Some(last.clone()), problem))
}

fn report(name: &str, run: &Run, line: Option<&Line>, problem: &Problem) -> Report {
    let (number, text) = line.map_or((1, ""), |line| (line.number, line.text.as_str()));
    let time = text::show_time(run.now());
    let trace = trace_tail(run, TRACE_LINES);
    let trace = trace.replace('\n', "\n    ").replace('\t', "  ");
    let trace = trace.trim_end();
    Report(format!("{name}:{number}: at {time}\n    {text}\n  {problem}\n  the trace ends:\n    {trace}"))
}
