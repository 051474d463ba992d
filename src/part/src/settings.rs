//! The settings of this node that a run changes: each old value is on disk before, by the file and the code of
//! `hopwise mesh up`, and comes back after the run.
//!
//! What a killed process left is undone by the next one here, or by `hopwise doctor --repair`.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use hopwise_host::bringup::{Config, OF_TRIAL, Phase, Record, Setting, StepError, command_step, record_in};
use hopwise_host::routing::forget_gone;
use hopwise_inspect::doctor::STATE;
use hopwise_lab::live::part::{NodePart, PartMessage, SettingRow};
use hopwise_lab::scenario::Prepared;

use crate::host::interfaces_of;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::spawn;
use hopwise_daemon::talk::say;

/// The changes of this process. Whoever takes them undoes them.
static CHANGED: Mutex<Option<Record>> = Mutex::new(None);

/// The settings of this node during a run. However it ends, they are undone.
#[derive(Debug)]
pub(crate) struct Settings(Vec<SettingRow>);

impl Settings {
    /// Makes the changes, and reads them back.
    #[expect(clippy::disallowed_methods, reason = "nothing is driven before the run")]
    pub(crate) fn change(prepared: &Prepared, part: &NodePart) -> Result<Settings, Failure> {
        let mut settings = Settings(Vec::new());
        let (folder, plan) = (Path::new(STATE), &prepared.host);
        let file = record_in(folder, OF_TRIAL).map_err(|error| failed(&error))?;
        if plan.is_empty() && !file.exists() {
            return Ok(settings);
        }
        forget_gone(folder);
        let mut record = match Record::open(&file) {
            // Whoever changes nothing needs no right to a file in which nothing stands.
            Err(_) if plan.is_empty() && file.metadata().is_ok_and(|facts| facts.len() == 0) => {
                return Ok(settings);
            }
            opened => opened.map_err(|error| {
                let expected =
                    "expected one trial at a time on a host, and root, such as by `command: sudo -n hopwise`";
                failed(&format!("{}: {error}: {expected} in the inventory", file.display()))
            })?,
        };
        if record.phase() != Phase::Down {
            // A killed process left them.
            told(record.undo().problems)?;
            record = Record::open(&file).map_err(|error| failed(&error))?;
        }
        if plan.is_empty() {
            record.forget();
            return Ok(settings);
        }
        let config = Config { name: part.scenario.clone(), text: part.arm.clone() };
        record.begin(config, None, None).map_err(|error| failed(&error))?;
        *CHANGED.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
        undo_if_cut_off(plan.settle + Duration::from_secs(part.word_within_s))?;
        for (before, after) in plan.commands(prepared.name_of(part.node)) {
            let step = command_step(before, after);
            with_record(|record| record.make(&step).map_err(|error| failed(&error)))?;
        }
        let interfaces = interfaces_of(part)?;
        for (name, wanted) in &plan.settings {
            for setting in places(name, &interfaces)? {
                settings.0.push(set(&setting, wanted)?);
            }
        }
        thread::sleep(plan.settle);
        settings.read_back()?;
        match settings.0.iter().find(|row| row.after != row.wanted) {
            Some(ignored) => Err(failed(&ignored_by_driver(ignored))),
            None => Ok(settings),
        }
    }

    /// Reads the values at the end of the run, and undoes them.
    pub(crate) fn end(mut self) -> Result<Vec<SettingRow>, Failure> {
        self.read_back()?;
        undo()?;
        Ok(std::mem::take(&mut self.0))
    }

    fn read_back(&mut self) -> Result<(), Failure> {
        for row in &mut self.0 {
            row.after = value(&of(row))?.unwrap_or_default();
        }
        Ok(())
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        undo_or_warn();
    }
}

/// The places that have a setting of this name here: the host, or interfaces.
fn places(name: &str, interfaces: &[String]) -> Result<Vec<Setting>, Failure> {
    if Setting::is_of_host(name) {
        return Ok(vec![Setting { interface: None, name: name.to_owned() }]);
    }
    if interfaces.is_empty() {
        return Err(failed(&format!("no interface here has an address, expected one with {name}")));
    }
    let of_one = |interface: &String| {
        let found = Setting::on(interface, name);
        let found = found.map_err(|error| failed(&format!("{interface}: {name}: {error}")))?;
        let has = || Setting::names_on(interface).join(", ");
        let lacks = || failed(&format!("{interface} has no {name}, expected one of its settings: {}", has()));
        if found.is_empty() { Err(lacks()) } else { Ok(found) }
    };
    Ok(interfaces.iter().map(of_one).collect::<Result<Vec<_>, _>>()?.concat())
}

/// Undoes all changes of this process, once.
pub(crate) fn undo() -> Result<(), Failure> {
    // Who ends the process waits here until they are undone.
    let mut changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
    told(changed.take().map(|mut record| record.undo().problems).unwrap_or_default())
}

fn told(problems: Vec<String>) -> Result<(), Failure> {
    let left = "; `hopwise doctor --repair` tries it again";
    if problems.is_empty() { Ok(()) } else { Err(failed(&(problems.join("; ") + left))) }
}

/// The same at an end that has nobody else to tell.
pub(crate) fn undo_or_warn() {
    if let Err(failure) = undo() {
        tracing::warn!("{failure}");
    }
}

/// Undoes the changes if the trial's word to begin does not come in time: they may have cut this host off.
#[expect(clippy::disallowed_methods, reason = "a host that is cut off hears nothing else")]
fn undo_if_cut_off(within: Duration) -> Result<(), Failure> {
    let watch = move || {
        thread::sleep(within);
        if !crate::has_begun() {
            undo_or_warn();
            let problem = format!("no word to begin came within {within:?}: the old settings are back");
            let _ = say(&PartMessage::Refused { problem });
            std::process::exit(1);
        }
    };
    spawn("settings", watch)
}

fn with_record<T>(work: impl FnOnce(&mut Record) -> Result<T, Failure>) -> Result<T, Failure> {
    let mut changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
    changed.as_mut().map_or_else(|| Err(failed(&"it is over")), work)
}

/// Gives one setting its value.
fn set(setting: &Setting, given: &str) -> Result<SettingRow, Failure> {
    let (interface, name) = (setting.interface.clone(), setting.name.clone());
    let before = value(setting)?.ok_or_else(|| {
        failed(&format!(
            "there is no {name} here, expected a switch that `sysctl -a` shows in this namespace"
        ))
    })?;
    let wanted = setting.in_words(given).ok_or_else(|| failed(&format!("{given} is no {name}")))?;
    if before != wanted {
        let step = setting.step(given).map_err(|error| failed(&error))?;
        let refused = |error: StepError| failed(&format!("{error}{}", driver_of(setting)));
        with_record(|record| record.make(&step).map_err(refused))?;
    }
    Ok(SettingRow { interface, name, before, wanted, after: String::new() })
}

fn value(setting: &Setting) -> Result<Option<String>, Failure> {
    setting.value().map_err(|error| failed(&format!("{}: {}: {error}", place(setting), setting.name)))
}

fn of(row: &SettingRow) -> Setting {
    Setting { interface: row.interface.clone(), name: row.name.clone() }
}

fn place(setting: &Setting) -> &str {
    setting.interface.as_deref().unwrap_or("this kernel")
}

/// The driver in words, for an error.
fn driver_of(setting: &Setting) -> String {
    setting.driver().map_or_else(String::new, |driver| format!(" (driver {driver})"))
}

fn ignored_by_driver(row: &SettingRow) -> String {
    let SettingRow { name, wanted, after, .. } = row;
    let setting = of(row);
    let (place, driver) = (place(&setting), driver_of(&setting));
    format!(
        "{place}{driver} takes {name} {wanted}, and stays at {after}: expected a value that it keeps, or no {name}"
    )
}

fn failed(problem: &dyn std::fmt::Display) -> Failure {
    Failure::failed("change the settings of a host", problem)
}
