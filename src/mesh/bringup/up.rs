//! `hopwise mesh up`.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::Args;
use hopwise_host::bringup::{Config as Kept, Plan, PlanError};
use hopwise_host::clock_is_synchronised;
use hopwise_lab::located::{Document, YamlPath};
use hopwise_lab::units::Time;

use super::config::{self, Clock, Config};
use super::told::{Event, Report};
use super::work::Work;
use super::{State, session};
use crate::failure::{Failure, say};

/// Bring up the interfaces of a file; without a confirmation in time they go back by themselves
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise mesh up configs/mesh.yaml --dry-run      # the steps, none of which is made
  hopwise mesh up configs/mesh.yaml                # over ssh; then: hopwise mesh confirm
  hopwise mesh up configs/mesh.yaml --no-confirm   # at the machine itself, or when it starts

A process of its own makes the steps, and undoes them unless `hopwise mesh confirm` comes in time: also after this
command or its ssh connection has died. Old values are on disk before each step. With a file that is up already it
changes nothing. With another one it undoes the first; without a confirmation it brings the first up again.")]
pub(crate) struct Arguments {
    /// Configuration file in YAML
    config: PathBuf,
    /// Time for the confirmation
    #[arg(long, value_name = "TIME", default_value = "60s")]
    within: Time,
    /// Keep the changes without a confirmation
    #[arg(long, visible_alias = "yes", conflicts_with = "within")]
    no_confirm: bool,
    /// Check the file, and exit
    #[arg(long)]
    check: bool,
    /// Print the steps, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: State,
}

/// The time for the confirmation that people can use.
const WITHIN: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (document, config) = config::load(&arguments.config)?;
    if arguments.check {
        return crate::daemon::accepted(&arguments.config);
    }
    if !WITHIN.contains(&arguments.within.0) {
        return Err(Failure::refused("--within", format_args!("{}: expected 1s to 24h", arguments.within)));
    }
    let plan = Plan::of(&config.wanted).map_err(|error| at_its_place(&document, &config, &error))?;
    let mut report = Report::default();
    for note in [clock_note(&document, &config)?, ssh_note(&config)].into_iter().flatten() {
        report.hear(&Event::Note(note), arguments.json);
    }
    if arguments.dry_run {
        for step in &plan.steps {
            report.hear(&Event::Step(step.to_string()), true);
            if !arguments.json {
                say(&step.to_string())?;
            }
        }
        return if arguments.json { say(&report.json()) } else { Ok(()) };
    }
    let mut failed = None;
    let mut hear = |event: Event| {
        report.hear(&event, arguments.json);
        if let Event::Failed { doing, problem } = event {
            failed = Some(format!("{doing}: {problem}"));
        }
    };
    if arguments.no_confirm {
        let kept = Kept { name: arguments.config.display().to_string(), text: document.text().to_owned() };
        Work::begin(&arguments.state.state, &mut hear)?.run(kept, &config, None)?;
    } else {
        by_keeper(arguments, document.text(), &mut hear)?;
    }
    match failed {
        Some(problem) => Err(Failure::failed("mesh up", problem)),
        None if arguments.json => say(&report.json()),
        None => say(&report.sentence()),
    }
}

/// Starts the process that makes the changes, and listens to it until it waits or has failed.
fn by_keeper(arguments: &Arguments, text: &str, hear: &mut dyn FnMut(Event)) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed("start a process", error);
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["mesh", "keep", "--name"])
        .arg(&arguments.config)
        .arg("--state")
        .arg(&arguments.state.state);
    command.args(["--within", &arguments.within.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    // It outlives this process, and is not waited for.
    let Child { stdin, stdout, .. } = command.spawn().map_err(failed)?;
    if let Some(mut input) = stdin {
        input.write_all(text.as_bytes()).map_err(failed)?;
    }
    let lines = stdout.map(BufReader::new).into_iter().flat_map(BufRead::lines);
    for line in lines.map_while(Result::ok) {
        let Ok(event) = serde_json::from_str::<Event>(&line) else { continue };
        let is_last = event.is_last();
        hear(event);
        if is_last {
            return Ok(());
        }
    }
    let problem = "the process that makes the changes has ended half-way: `hopwise mesh down` undoes them";
    Err(Failure::failed("mesh up", problem))
}

/// Names the place in the file that this machine cannot fulfil.
fn at_its_place(document: &Document, config: &Config, error: &PlanError) -> Failure {
    let (interface, key) = match error {
        PlanError::NoInterface(name) => (name, "name"),
        PlanError::NoRadio(name)
        | PlanError::NoKind { interface: name, .. }
        | PlanError::SwitchedOff(name) => (name, "mode"),
        PlanError::Unread(..) => return Failure::failed("look at the interfaces", error),
    };
    let nth = config.wanted.interfaces.iter().position(|one| one.name == *interface).unwrap_or_default();
    let at = YamlPath::root().key("interfaces").index(nth).key(key);
    let more = if key == "name" { "; name one that `ip link` shows" } else { "" };
    Failure::Unmet { place: document.pointing_at(&at), problem: format!("{error}{more}") }
}

/// A warning of a clock that runs by itself, or the refusal of one.
fn clock_note(document: &Document, config: &Config) -> Result<Option<String>, Failure> {
    if config.clock == Clock::Ignore || clock_is_synchronised().unwrap_or(true) {
        return Ok(None);
    }
    let problem = "the clock of this machine is not synchronised: start a program for NTP, such as systemd-timesyncd \
                   or chrony";
    if config.clock == Clock::Warn {
        return Ok(Some(problem.to_owned()));
    }
    let place = document.pointing_at(&YamlPath::root().key("clock"));
    Err(Failure::Unmet { place, problem: format!("{problem}, or take `clock: warn`") })
}

/// A warning that the ssh session itself may be cut off.
fn ssh_note(config: &Config) -> Option<String> {
    let interface = session::ssh_interface()?;
    let is_touched = config.wanted.interfaces.iter().any(|one| one.name == interface);
    is_touched.then(|| format!("this ssh session comes over {interface}, which is about to change"))
}
