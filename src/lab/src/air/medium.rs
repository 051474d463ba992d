//! `hopwise air medium`: a scenario's radio for virtual machines and programs that have radios of mac80211_hwsim.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use clap::Args;
use hopwise_daemon::control::BoundSocket;
use hopwise_daemon::failure::{Failure, json, say};
use hopwise_daemon::{log, numbers, signals};
use hopwise_lab::live::air as live;
use hopwise_lab::scenario::Prepared;

use super::hwsim::{self, CarriedRadios, HwsimMedium, HwsimReport};

mod clients;
mod control;
mod framed;
mod machine;

use clients::MediumClients;

#[cfg(test)]
mod tests;

/// Be the radio of virtual machines and programs, in place of wmediumd
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise air medium net.cfg --vhost-user /tmp/medium.socket
  hopwise air medium configs/chain.yaml --set topology.hops=2 --control /tmp/control.socket --capture

A machine of qemu 10.2 or newer has its radios on the medium with

  -device vhost-user-test-device-pci,virtio-id=29,num_vqs=2,chardev=medium
  -chardev socket,id=medium,path=/tmp/medium.socket
  -object memory-backend-memfd,id=memory,size=512M,share=on -machine q35,memory-backend=memory

and the module mac80211_hwsim in its kernel. A radio is the station that has its address: as `ids` of a configuration of
wmediumd say, and in a scenario 02:00:00:00:00:00 for the first node, 02:00:00:00:00:01 for the second, …

It runs in real time, ends on SIGTERM, SIGINT, SIGQUIT or SIGHUP, and writes medium.json then.")]
pub(crate) struct Arguments {
    /// Scenario file in YAML, or a configuration of wmediumd (.cfg)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Socket for virtual machines, each with the device mac80211-hwsim of virtio
    #[arg(long, value_name = "SOCKET", required_unless_present = "control")]
    vhost_user: Option<PathBuf>,
    /// Socket for programs that speak wmediumd's control protocol
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Replace one value of the file, such as topology.hops=7; VALUE is YAML; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = numbers::seed)]
    pub seed: u64,
    /// Arm whose settings apply, if arms change settings (default: the first arm)
    #[arg(long, value_name = "A")]
    arm: Option<String>,
    /// Folder for medium.json and captures [default: results/FILE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write what each radio sends and decodes to NODE.pcapng, for Wireshark
    #[arg(long)]
    pub capture: bool,
    /// Also print medium.json on standard output at the end
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let stem = arguments.file.file_stem().unwrap_or_default();
    let out = arguments.out.clone().unwrap_or_else(|| Path::new("results").join(stem));
    let of = (&*arguments.file, &*out, &*arguments.set);
    let prepared = hwsim::load(of, arguments.arm.as_deref(), arguments.seed)?;
    hwsim::check(&prepared, None)?;
    std::fs::create_dir_all(&out).map_err(Failure::during("make the folder for results"))?;
    log::begin();
    log::flow().map_err(Failure::during("start the log"))?;
    let ends = signals::watch().map_err(Failure::during("watch for signals"))?;
    let bind = |path: &Option<PathBuf>| path.as_deref().map(BoundSocket::bind).transpose();
    let sockets = [bind(&arguments.vhost_user)?, bind(&arguments.control)?];
    let carried = carry(&prepared, &sockets, arguments.capture.then_some(&out), &ends)?;
    drop(sockets);
    let report = HwsimReport::of(&prepared, carried);
    report.tell();
    report.write(&out.join("medium.json")).map_err(Failure::during("write medium.json"))?;
    if arguments.json {
        say(&json(&report)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Carries frames between the clients of these sockets, for machines and for programs, until `ends` is readable.
fn carry(
    prepared: &Prepared,
    sockets: &[Option<BoundSocket>; 2],
    capture: Option<&PathBuf>,
    ends: &std::os::fd::OwnedFd,
) -> Result<CarriedRadios, Failure> {
    let macs: Vec<_> = (0..).zip(&prepared.names).map(|(node, _)| prepared.plan.mac(node)).collect();
    let listeners =
        sockets.each_ref().map(|socket| socket.as_ref().map(|socket| socket.listener.try_clone()));
    let [machines, programs] = listeners.map(Option::transpose);
    let clients = machines.and_then(|machines| MediumClients::new([machines, programs?], &macs));
    let clients = Rc::new(clients.map_err(Failure::during("listen for clients"))?);
    let mut live = live::world_of_frames(&prepared.plan, hwsim::MOST_WAITING, false);
    let (clock, watch) = hwsim::begin(prepared, &mut live, capture.map(PathBuf::as_path))?;
    let medium = HwsimMedium::new(&mut live, Rc::<MediumClients>::clone(&clients), macs);
    tracing::info!("ready");
    let served = medium.serve(&mut live, clock, ends);
    watch.end()?;
    let dropped = served.map_err(Failure::during("wait for frames"))?;
    Ok(CarriedRadios { live, dropped, refusals: clients.refusals(), deaf: Vec::new() })
}
