//! `hopwise guest`: the runs of a trial, inside the virtual machine that it has booted.

use std::fs;
use std::io::{self, BufRead};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use clap::Args;
use hopwise_lab::live::guest::{GuestAnswer, GuestOrder, KeptFiles};
use hopwise_lab::result::RunResult;
use hopwise_lab::world::World;
use nix::sys::mman::{MlockAllFlags, mlockall};

use super::play::{Run, play};
use crate::air::hwsim::{HwsimNetwork, RadioSetup};
use crate::air::netns::stations::ServedAddresses;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::signals;
use hopwise_daemon::talk::say;
use hopwise_part::prepare;

/// Make runs with the radios of mac80211_hwsim; a trial starts it in a guest and talks to it in lines of JSON
#[derive(Args, Debug)]
pub struct Arguments {
    /// Folder for results
    #[arg(value_name = "DIR")]
    out: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let ends = signals::watch().map_err(Failure::during("watch for signals"))?;
    // The guest's clock does not wait for the host: a page that had to be read from its folders would come late.
    mlockall(MlockAllFlags::MCL_CURRENT).map_err(Failure::during("keep the program in memory"))?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(Failure::during("hear the trial"))?;
        let order: GuestOrder = serde_json::from_str(&line).map_err(Failure::during("read the order"))?;
        say(&match make(&order, &arguments.out, &ends) {
            Ok(result) => GuestAnswer::Played(Box::new(result)),
            Err(failure) => GuestAnswer::Failed { problem: failure.to_string() },
        })?;
    }
    Ok(())
}

fn make(order: &GuestOrder, out: &Path, ends: &OwnedFd) -> Result<RunResult, Failure> {
    let prepared = prepare(&order.part)?;
    // The host's folders answer by another clock: files come there when the run is over.
    let folder = std::env::temp_dir().join("kept");
    fs::create_dir_all(&folder).map_err(Failure::during("make a folder for files"))?;
    let run = Run {
        part: order.part.clone(),
        world: World::Hwsim,
        prepared: &prepared,
        repeated: 0,
        folder: &folder,
        wanted: order.wanted,
    };
    let setup =
        RadioSetup { serves: ServedAddresses::of(&prepared.plan.arm), has_monitors: false, is_bare: false };
    let mut result = play(&HwsimNetwork::open(&prepared, setup)?, &run, (out, ends))?;
    if let Some(live) = &mut result.live {
        // Other programs of the host do not take time from the guest, which has none of its own.
        live.busy_elsewhere = None;
    }
    if order.wanted != KeptFiles::default() {
        move_all(&folder, &out.join(&order.folder)).map_err(Failure::during("copy files"))?;
    }
    Ok(result)
}

fn move_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            move_all(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    fs::remove_dir_all(from)
}
