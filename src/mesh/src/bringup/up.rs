//! `hopwise mesh up`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::Args;
use hopwise_host::bringup::{Config as RecordedConfig, Plan, PlanError, interface_with};
use hopwise_host::clock_is_synchronised;
use hopwise_lab::located::{Document, YamlPath};
use hopwise_lab::units::Time;
use rustix::process::getpid;
use serde::Serialize;

use super::StateFolder;
use super::config::{self, BringupConfig, ClockDemand};
use super::keep::BringupEvent;
use super::work::Bringup;
use hopwise_daemon::failure::{Failure, remark, say};

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
    folder: StateFolder,
}

/// The time for the confirmation that people can use.
const WITHIN: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (document, config) = Document::load_with(&arguments.config, config::read)?;
    if arguments.check {
        return hopwise_daemon::accepted(&arguments.config);
    }
    if !WITHIN.contains(&arguments.within.0) {
        return Err(Failure::refused("--within", format_args!("{}: expected 1s to 24h", arguments.within)));
    }
    let plan = Plan::of(&config.wanted).map_err(|error| at_its_place(&document, &config, &error))?;
    let mut report = BringupReport::default();
    for note in [clock_note(&document, &config)?, ssh_note(&config)].into_iter().flatten() {
        report.hear(&BringupEvent::Note(note), arguments.json);
    }
    if arguments.dry_run {
        for step in &plan.steps {
            report.hear(&BringupEvent::Step(step.to_string()), true);
            if !arguments.json {
                say(&step.to_string())?;
            }
        }
        return if arguments.json { say(&report.json()) } else { Ok(()) };
    }
    let mut failed = None;
    let mut hear = |event: BringupEvent| {
        report.hear(&event, arguments.json);
        if let BringupEvent::Failed { doing, problem } = event {
            failed = Some(format!("{doing}: {problem}"));
        }
    };
    if arguments.no_confirm {
        let kept =
            RecordedConfig { name: arguments.config.display().to_string(), text: document.text().to_owned() };
        Bringup::begin(&arguments.folder.state, &mut hear)?.run(kept, &config, None)?;
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
fn by_keeper(arguments: &Arguments, text: &str, hear: &mut dyn FnMut(BringupEvent)) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed("start a process", error);
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["mesh", "keep", "--name"])
        .arg(&arguments.config)
        .arg("--state")
        .arg(&arguments.folder.state);
    command.args(["--within", &arguments.within.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    // It outlives this process, and is not waited for.
    let Child { stdin, stdout, .. } = command.spawn().map_err(failed)?;
    if let Some(mut input) = stdin {
        input.write_all(text.as_bytes()).map_err(failed)?;
    }
    let lines = stdout.map(BufReader::new).into_iter().flat_map(BufRead::lines);
    for line in lines.map_while(Result::ok) {
        let Ok(event) = serde_json::from_str::<BringupEvent>(&line) else { continue };
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
fn at_its_place(document: &Document, config: &BringupConfig, error: &PlanError) -> Failure {
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
fn clock_note(document: &Document, config: &BringupConfig) -> Result<Option<String>, Failure> {
    if config.clock == ClockDemand::Ignore || clock_is_synchronised().unwrap_or(true) {
        return Ok(None);
    }
    let problem = "the clock of this machine is not synchronised: start a program for NTP, such as systemd-timesyncd \
                   or chrony";
    if config.clock == ClockDemand::Warn {
        return Ok(Some(problem.to_owned()));
    }
    let place = document.pointing_at(&YamlPath::root().key("clock"));
    Err(Failure::Unmet { place, problem: format!("{problem}, or take `clock: warn`") })
}

/// A warning that the ssh session itself may be cut off.
fn ssh_note(config: &BringupConfig) -> Option<String> {
    let interface = ssh_interface()?;
    let is_touched = config.wanted.interfaces.iter().any(|one| one.name == interface);
    is_touched.then(|| format!("this ssh session comes over {interface}, which is about to change"))
}

/// The report for a person or a program in the end.
#[derive(Debug, Default, Serialize)]
struct BringupReport {
    /// Something was changed.
    changed: bool,
    steps: Vec<String>,
    notes: Vec<String>,
    /// The time for the confirmation, if one is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirm_within_s: Option<u64>,
}

impl BringupReport {
    /// Takes an event in; people see it at once on standard error.
    fn hear(&mut self, event: &BringupEvent, is_json: bool) {
        let say = |line: &str| {
            if !is_json {
                remark(line);
            }
        };
        match event {
            BringupEvent::Note(note) => {
                say(note);
                self.notes.push(note.clone());
            }
            BringupEvent::Step(step) => {
                say(step);
                self.steps.push(step.clone());
            }
            BringupEvent::Done { changed } => self.changed = *changed,
            BringupEvent::Waits { within_s } => {
                self.changed = true;
                self.confirm_within_s = Some(*within_s);
            }
            BringupEvent::Failed { .. } => {}
        }
    }

    fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The last line for people.
    fn sentence(&self) -> String {
        match self.confirm_within_s {
            Some(seconds) => format!(
                "up; goes back in {seconds} s unless confirmed: `hopwise mesh confirm` over a new connection"
            ),
            None if self.changed => "up; `hopwise mesh down` restores what was".to_owned(),
            None => "up already: nothing was changed".to_owned(),
        }
    }
}

/// The variable with the addresses and ports of an ssh connection.
const SSH: &str = "SSH_CONNECTION";
/// A deeper chain of parents than any.
const MOST_PARENTS: usize = 64;

/// The interface over which this command's ssh session comes.
fn ssh_interface() -> Option<String> {
    let connection = std::env::var(SSH).ok().or_else(of_a_parent)?;
    interface_with(server(&connection)?).ok().flatten()
}

/// `sudo` keeps the variable from its command, but not from its own environment.
fn of_a_parent() -> Option<String> {
    let mut process = getpid().as_raw_nonzero().get();
    for _ in 0..MOST_PARENTS {
        process = parent(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)?;
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        if let Some(connection) = variable(&environment) {
            return Some(connection);
        }
    }
    None
}

/// The parent in a process's `stat`, whose second word may have any letters in brackets.
fn parent(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok().filter(|parent| *parent > 0)
}

fn variable(environment: &[u8]) -> Option<String> {
    let entries = environment.split(|byte| *byte == 0);
    let texts = entries.filter_map(|entry| std::str::from_utf8(entry).ok());
    texts.filter_map(|text| text.strip_prefix(SSH)?.strip_prefix('=')).map(str::to_owned).next()
}

/// The server's address among client, port, server, port.
fn server(connection: &str) -> Option<IpAddr> {
    let address = connection.split(' ').nth(2)?;
    // An address of one link has the link's name behind it.
    address.split('%').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_s_address_stands_third() {
        assert_eq!(server("10.0.0.9 50000 10.0.0.1 22"), "10.0.0.1".parse().ok());
        assert_eq!(server("fe80::9%wlan0 50000 fe80::1%wlan0 22"), "fe80::1".parse().ok());
        assert_eq!(server("10.0.0.9 50000"), None);
    }

    #[test]
    fn a_parent_and_its_environment_are_read_whatever_its_name_is() {
        assert_eq!(parent("12 (a) b) S 7 12 12 0"), Some(7));
        assert_eq!(parent("1 (init) S 0 1 1 0"), None);
        let environment = b"PATH=/bin\0SSH_CONNECTION=1.2.3.4 5 6.7.8.9 22\0X=\xff\0";
        assert_eq!(variable(environment).as_deref(), Some("1.2.3.4 5 6.7.8.9 22"));
        assert_eq!(variable(b"SSH_CONNECTION_X=1\0"), None);
    }
}
