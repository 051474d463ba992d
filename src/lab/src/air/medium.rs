//! `hopwise air medium`: a scenario's radio for virtual machines and programs that have radios of mac80211_hwsim.

use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use clap::Args;
use hopwise_daemon::control::BoundSocket;
use hopwise_daemon::failure::{Failure, json, say};
use hopwise_daemon::{log, signals};
use hopwise_lab::live::air as live;

use super::hwsim::{self, CarriedRadios, HwsimMedium, HwsimReport, OfRadios};

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
  hopwise air medium net.cfg --vhost-user medium.socket
  hopwise air medium configs/chain.yaml --set topology.hops=2 --control control.socket --capture

A machine of qemu 10.2 or newer has its radios on the medium by mac80211_hwsim in its kernel, shared memory, and
`-device vhost-user-test-device-pci,virtio-id=29,num_vqs=2,vq_size=1024,chardev=NAME`. A radio is the station that has
the address of its interface: by `ids` in a configuration of wmediumd, and else 02:00:00:00:00:00 for the first node,
…:01 for the second. It runs in real time, ends on SIGTERM, SIGINT, SIGQUIT or SIGHUP, and writes medium.json then.")]
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
    #[command(flatten)]
    of: OfRadios,
    /// Also print medium.json on standard output at the end
    #[arg(long)]
    json: bool,
}

/// Carries frames between the clients of its sockets until a signal comes.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (prepared, out) = arguments.of.prepare(&arguments.file)?;
    hwsim::check(&prepared, None)?;
    std::fs::create_dir_all(&out).map_err(Failure::during("make the folder for results"))?;
    log::begin();
    log::flow().map_err(Failure::during("start the log"))?;
    let ends = signals::watch().map_err(Failure::during("watch for signals"))?;
    let bind = |path: &Option<PathBuf>| path.as_deref().map(BoundSocket::bind).transpose();
    let sockets = [bind(&arguments.vhost_user)?, bind(&arguments.control)?];
    let macs: Vec<_> = (0..).zip(&prepared.names).map(|(node, _)| prepared.plan.mac(node)).collect();
    let clients = MediumClients::new(sockets, &macs).map_err(Failure::during("listen for clients"))?;
    let clients = Rc::new(clients);
    let mut live = live::world_of_frames(&prepared.plan, hwsim::MOST_WAITING, false);
    let capture = arguments.of.capture.then_some(&*out);
    let (clock, watch) = hwsim::begin(&prepared, &mut live, capture)?;
    let medium = HwsimMedium::new(&mut live, Rc::<MediumClients>::clone(&clients), macs);
    tracing::info!("ready");
    let served = medium.serve(&mut live, clock, &ends);
    watch.end()?;
    let dropped = served.map_err(Failure::during("wait for frames"))?;
    let carried = CarriedRadios { live, dropped, refusals: clients.refusals(), deaf: Vec::new() };
    let report = HwsimReport::of(&prepared, carried);
    report.tell();
    report.write(&out.join("medium.json")).map_err(Failure::during("write medium.json"))?;
    if arguments.json {
        say(&json(&report)?)?;
    }
    Ok(ExitCode::SUCCESS)
}
