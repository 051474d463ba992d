//! A simulation as an interface of Wireshark: it runs, and all its radios and ends are one capture.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use super::{ProgramEnd, setting, until_it_ends};
use hopwise_daemon::failure::Failure;
use hopwise_daemon::own_files::OwnFolder;

/// Settings of the interface hopwise-sim.
#[derive(Args, Debug)]
pub(super) struct SimulatedInterface {
    /// Scenario file in YAML; for the interface hopwise-sim
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Name of the arm (default: the only one); for the interface hopwise-sim
    #[arg(long, value_name = "NAME")]
    arm: Option<String>,
    /// Simulated time, such as 10s (default: as in the scenario, with its warm-up); for the interface hopwise-sim
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,
    /// Seed of the run (default: 1); for the interface hopwise-sim
    #[arg(long, value_name = "N")]
    seed: Option<String>,
}

impl SimulatedInterface {
    pub(super) fn settings() -> String {
        setting(0, "--scenario", "Scenario", "Full path of a scenario in YAML", true)
            + &setting(1, "--arm", "Arm", "Needed if the scenario has several", false)
            + &setting(2, "--duration", "Simulated time", "Such as 10s; as in the scenario if empty", false)
            + &setting(3, "--seed", "Seed", "1 if this is empty", false)
    }

    pub(super) fn capture(&self, fifo: &Path) -> Result<(), Failure> {
        let scenario = self.scenario.as_deref().filter(|path| !path.as_os_str().is_empty());
        let expected = || Failure::refused("--scenario", "expected the path of a scenario");
        let scenario = scenario.ok_or_else(expected)?;
        let folder = OwnFolder::make("hopwise-sim-");
        let folder = folder.map_err(|error| Failure::failed("make a folder for the run", error))?;
        let out = folder.path().join("run");
        let mut run = own()?;
        run.arg("run").arg(scenario).arg("--capture").arg("--out").arg(&out);
        for (name, value) in [("--arm", &self.arm), ("--seed", &self.seed)] {
            if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
                run.args([name, value]);
            }
        }
        if let Some(time) = self.duration.as_deref().filter(|value| !value.is_empty()) {
            run.args(["--set", &format!("run.duration={time}"), "--set", "run.warmup=0s"]);
        }
        if until_it_ends(&mut run)? == ProgramEnd::BySignal {
            return Ok(());
        }
        let whole = folder.path().join("all.pcapng");
        let mut merge = own()?;
        merge.args(["capture", "merge", "-o"]).arg(&whole).args(captures(&out));
        if until_it_ends(&mut merge)? == ProgramEnd::BySignal {
            return Ok(());
        }
        let copied = File::open(&whole).and_then(|mut from| {
            let mut into = File::options().write(true).open(fifo)?;
            io::copy(&mut from, &mut into)
        });
        match copied {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed("stream", error)),
            _ => Ok(()),
        }
    }
}

/// This program, with nothing on standard output.
fn own() -> Result<Command, Failure> {
    let path = std::env::current_exe().map_err(|error| Failure::failed("find this program", error))?;
    let mut command = Command::new(path);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    Ok(command)
}

/// The captures of a run: its radios', then its ends'.
fn captures(out: &Path) -> Vec<PathBuf> {
    let of = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut found: Vec<_> = entries.filter(|path| path.extension() == Some("pcapng".as_ref())).collect();
        found.sort();
        found
    };
    [of(out.to_owned()), of(out.join("ends"))].concat()
}
