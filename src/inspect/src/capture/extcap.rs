//! `hopwise capture extcap`: what Wireshark asks a program that brings it captures (wireshark's extcap interface).
//!
//! It lists interfaces, then the settings of one, and runs the program again to capture into a named pipe.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};

use super::live;
use hopwise_daemon::failure::{Failure, say};
use hopwise_daemon::shell::quoted;
use hopwise_daemon::signals;
use hopwise_node::control::client::{Control, sockets};
use hopwise_node::fleet::inventory::{Destination, problem_of_destination};
use hopwise_node::fleet::ssh;

/// The name of the interface that is there on each machine.
const BY_SSH: &str = "hopwise-ssh";
/// Before the name of a node's socket.
const NODE: &str = "hopwise-node-";
/// The link type that Wireshark is told beforehand. The interfaces of the pcapng stream have their own.
const LINK_TYPE: &str = "dlt {number=101}{name=RAW}{display=IP, Ethernet or 802.11, as the capture says}";

/// Serve Wireshark as an extcap source: live nodes, here or by ssh
///
/// Wireshark calls this by the script docs/wireshark/hopwise-extcap.
#[derive(Args, Debug)]
#[command(
    group = clap::ArgGroup::new("asked").required(true),
    after_help = "\
Examples:
  hopwise capture extcap --extcap-interfaces
  hopwise capture extcap --extcap-interface hopwise-ssh --extcap-config
  hopwise capture extcap --extcap-interface hopwise-ssh --capture --fifo pipe --host pi3"
)]
pub(super) struct Arguments {
    /// List the interfaces
    #[arg(long, group = "asked")]
    extcap_interfaces: bool,
    /// List the settings of the interface
    #[arg(long, group = "asked", requires = "extcap_interface")]
    extcap_config: bool,
    /// List the link types of the interface
    #[arg(long, group = "asked", requires = "extcap_interface")]
    extcap_dlts: bool,
    /// Capture from the interface into the pipe
    #[arg(long, group = "asked", requires = "extcap_interface", requires = "fifo")]
    capture: bool,
    /// Version of the program that asks
    #[arg(long, value_name = "VERSION", num_args = 0..=1, require_equals = true)]
    extcap_version: Option<Option<String>>,
    /// Name of an interface, as --extcap-interfaces lists it
    #[arg(long, value_name = "NAME")]
    extcap_interface: Option<String>,
    /// Capture filter; only an empty one is accepted
    #[arg(long, value_name = "FILTER")]
    extcap_capture_filter: Option<String>,
    /// Pipe to write the capture into
    #[arg(long, value_name = "FILE")]
    fifo: Option<PathBuf>,
    /// Host of the node, as ssh takes it, such as pi@10.0.0.7; for the interface hopwise-ssh
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Name of a link to capture (default: all); for a node
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
}

pub(super) fn run(arguments: &Arguments, control: &Control) -> Result<(), Failure> {
    let interface = arguments.extcap_interface.as_deref().unwrap_or_default();
    if arguments.extcap_interfaces {
        return say(&interfaces(&sockets()));
    }
    let known = ExtcapInterface::named(interface, &sockets())?;
    if arguments.extcap_dlts {
        return say(LINK_TYPE);
    }
    if arguments.extcap_config {
        return say(known.settings().trim_end());
    }
    if arguments.extcap_capture_filter.as_deref().is_some_and(|filter| !filter.trim().is_empty()) {
        let problem = "a capture of Hopwise has no capture filter: expected none; use a display filter";
        return Err(Failure::refused("--extcap-capture-filter", problem));
    }
    let Some(fifo) = &arguments.fifo else { return Ok(()) };
    match known {
        ExtcapInterface::Node(socket) => {
            let link = arguments.link.iter().filter(|link| !link.is_empty()).cloned().collect();
            live::run(&live::Arguments { link, output: Some(fifo.clone()) }, &Control::at(socket))
        }
        ExtcapInterface::BySsh => by_ssh(arguments, control, fifo),
    }
}

#[derive(Debug, PartialEq)]
enum ExtcapInterface {
    /// By its control socket.
    Node(PathBuf),
    BySsh,
}

impl ExtcapInterface {
    fn named(name: &str, sockets: &[PathBuf]) -> Result<ExtcapInterface, Failure> {
        let of_node = |stem: &str| sockets.iter().find(|socket| stem_of(socket) == stem).cloned();
        match name {
            BY_SSH => Ok(ExtcapInterface::BySsh),
            name => name.strip_prefix(NODE).and_then(of_node).map(ExtcapInterface::Node).ok_or_else(|| {
                let problem =
                    format_args!("no interface `{name}`: expected one that --extcap-interfaces lists");
                Failure::refused("--extcap-interface", problem)
            }),
        }
    }

    fn settings(&self) -> String {
        match self {
            ExtcapInterface::Node(_) => {
                setting(0, "--link", "Link", "Name of one link; all if this is empty", false)
            }
            ExtcapInterface::BySsh => {
                setting(
                    0,
                    "--host",
                    "Host",
                    "As ssh takes it, such as pi@10.0.0.7; keys without a password",
                    true,
                ) + &setting(1, "--control", "Control socket", "On that host; the only one if empty", false)
                    + &setting(2, "--link", "Link", "Name of one link; all if this is empty", false)
            }
        }
    }
}

/// A line about a setting, which Wireshark shows as a field of text.
fn setting(nth: u8, call: &str, display: &str, tooltip: &str, is_required: bool) -> String {
    format!(
        "arg {{number={nth}}}{{call={call}}}{{display={display}}}{{tooltip={tooltip}}}{{type=string}}\
         {{required={is_required}}}\n"
    )
}

/// The name of a socket's file, without what the format's braces would break.
fn stem_of(socket: &Path) -> String {
    let stem = socket.file_stem().unwrap_or_default().to_string_lossy();
    stem.chars().filter(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(*letter)).collect()
}

fn interfaces(sockets: &[PathBuf]) -> String {
    let mut lines = vec![format!("extcap {{version={}}}", env!("CARGO_PKG_VERSION"))];
    for stem in sockets.iter().map(|socket| stem_of(socket)) {
        lines.push(format!("interface {{value={NODE}{stem}}}{{display=Hopwise node {stem}}}"));
    }
    lines.push(format!("interface {{value={BY_SSH}}}{{display=Hopwise node by ssh}}"));
    lines.join("\n")
}

/// The same command on the other host writes into the pipe until either side ends.
fn by_ssh(arguments: &Arguments, control: &Control, fifo: &Path) -> Result<(), Failure> {
    let host = arguments.host.as_deref().unwrap_or_default();
    if let Some(problem) = problem_of_destination(host) {
        let problem = format_args!("{problem}: expected a host as ssh takes it, such as pi@10.0.0.7");
        return Err(Failure::refused("--host", problem));
    }
    let mut words = vec!["hopwise capture live".to_owned()];
    let socket = control.named().map(|socket| socket.to_string_lossy());
    let given = [("--control", socket.as_deref()), ("--link", arguments.link.as_deref())];
    for (name, value) in given {
        words
            .extend(value.filter(|value| !value.is_empty()).map(|value| format!("{name} {}", quoted(value))));
    }
    let out = File::options().write(true).open(fifo);
    let out = out.map_err(|error| Failure::refused(fifo.display().to_string(), error))?;
    let mut ssh = ssh::command(&Destination::at(host), &words.join(" "));
    ssh.stdout(out);
    until_it_ends(&mut ssh)
}

/// Runs a command until it ends, or until a signal ends both.
fn until_it_ends(command: &mut Command) -> Result<(), Failure> {
    let (runtime, mut ending) = signals::runtime()?;
    let name = command.get_program().to_string_lossy().into_owned();
    let failed =
        |problem: &dyn std::fmt::Display| Failure::failed("run a program", format_args!("{name}: {problem}"));
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    let id = Pid::from_child(&child);
    let ended = runtime.spawn_blocking(move || child.wait());
    runtime.block_on(async {
        tokio::select! {
            // Its number is its own until the wait above is over.
            () = ending.next() => kill_process(id, Signal::TERM).map_err(|error| failed(&error)),
            ended = ended => match ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic())) {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(failed(&status)),
                Err(error) => Err(failed(&error)),
            },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_by_their_sockets_and_by_ssh_are_interfaces() {
        let sockets = [PathBuf::from("/run/hopwise/n2.sock"), PathBuf::from("/run/hopwise/a}{b.sock")];
        let text = interfaces(&sockets);
        let listed: Vec<_> = text.lines().skip(1).map(|line| line.split(['=', '}']).nth(1)).collect();
        let expected = ["hopwise-node-n2", "hopwise-node-ab", "hopwise-ssh"].map(Some);
        assert_eq!(listed, expected);
        for name in expected.into_iter().flatten() {
            let interface = ExtcapInterface::named(name, &sockets).expect("it is listed");
            assert!(interface.settings().starts_with("arg {number=0}"), "{name}");
        }
        assert_eq!(
            ExtcapInterface::named("hopwise-node-ab", &sockets).ok(),
            Some(ExtcapInterface::Node(sockets[1].clone()))
        );
        assert!(ExtcapInterface::named("hopwise-node-n3", &sockets).is_err());
    }
}
