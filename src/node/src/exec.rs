//! `hopwise exec`: a command whose TCP goes out by Hopwise, as it is and without privileges.
//!
//! The command runs in a network namespace of its own (`host/enclosure`), whose default route is a device that this
//! process serves. A stack of ours ends the command's TCP there, at any address and port. It holds each SYN back until
//! the connection outside stands (`outward`), and answers or refuses it as the destination did. A relay of the node's
//! joins the two. Datagrams go out by sockets of the kernel (`datagrams`). The outer side is never a stack of this
//! process: a mesh is reached by the node that owns its address, or by the kernel.

mod arguments;
mod datagrams;
mod outward;
mod own_files;
mod resolver;
mod running;
mod serve;
mod ssh;
pub mod within;

use std::process::ExitCode;

pub use arguments::Arguments;

use hopwise_daemon::failure::Failure;
use resolver::LoopbackEnd;

/// The status if no command was run, as of `env` and `timeout`.
pub const NOT_RUN: u8 = 125;

/// Runs the command, and returns its status.
pub fn run(arguments: &Arguments) -> ExitCode {
    match run_command(arguments) {
        Ok(status) => status,
        Err(failure) => {
            failure.print();
            ExitCode::from(NOT_RUN)
        }
    }
}

fn run_command(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let outward = arguments.outward()?;
    let own = own_files::OwnFiles::of_machine()?;
    let outside = LoopbackEnd::new(own.server);
    let started = running::Started::new(&arguments.command, &own)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::during("start a runtime"))?;
    let ended = runtime.block_on(async {
        outward.check().await?;
        let (given, running) = started.take_device()?;
        let served = serve::ServedCommand::start(given, outward, outside)?;
        let (ended, afterwards) = running.until_its_end().await?;
        let ended = tokio::select! {
            () = served.finish() => Ok(ended),
            told = afterwards.told_to_end() => told,
        };
        served.end();
        ended
    })?;
    drop(runtime);
    drop(own);
    Ok(ended.pass_on())
}
