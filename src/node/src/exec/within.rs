//! The inner process: it makes the command's network, and becomes the command.

use std::ffi::OsString;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;
use hopwise_host::enclosure;
use rustix::process::{Signal, set_parent_process_death_signal};

use super::NOT_RUN;
use hopwise_daemon::failure::{self, Failure};
use hopwise_daemon::numbers;

/// The statuses that a shell gives for a command that it cannot run.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Make a network for a command, and become it
#[derive(Args, Debug)]
#[command(hide = true)]
pub struct Arguments {
    /// Descriptor of the socket to the outer process
    #[arg(long, value_parser = numbers::whole(0..=RawFd::MAX))]
    socket: RawFd,
    /// File to show as /etc/resolv.conf
    #[arg(long)]
    resolver: Option<PathBuf>,
    /// File to show in place of another, if the kernel lets it
    #[arg(long, num_args = 2, value_names = ["COPY", "FILE"])]
    copy: Vec<PathBuf>,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

/// Returns only if there is no command to become.
pub fn run(arguments: &Arguments) -> ExitCode {
    let Ok(inner) = enclosure::inner(arguments.socket) else {
        Failure::refused("--socket", "expected a descriptor of `hopwise exec`, which starts this").print();
        return ExitCode::from(NOT_RUN);
    };
    let copies = arguments.copy.as_chunks().0;
    let made = enclosure::enter(arguments.resolver.as_deref(), copies).and_then(|()| inner.make_and_give());
    if let Err(error) = made {
        inner.refuse(&error);
        return ExitCode::from(NOT_RUN);
    }
    // The command's network ends with the outer process.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    if inner.wait().is_err() {
        return ExitCode::from(NOT_RUN);
    }
    let Some((program, rest)) = arguments.command.split_first() else { return ExitCode::from(NOT_RUN) };
    let error = Command::new(program).args(rest).exec();
    failure::remark(&format!("{}: {error}", program.to_string_lossy()));
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE })
}
