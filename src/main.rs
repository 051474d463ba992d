//! The `hopwise` command: one file a subcommand.
//!
//! Exit status: 0 done, 1 the work failed, 2 the input was refused (with the place and what would be accepted).

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod agents;
mod air;
mod capture;
mod certify;
mod claims;
mod daemon;
mod doctor;
mod explain;
mod failure;
mod measure;
mod node;
mod proxy;
mod recv;
mod report;
mod route;
mod run;
mod schema;
mod send;
mod signals;
mod status;
mod table;
mod top;
mod trace;
mod trial;

/// A user-level TCP for multi-hop 802.11, with the ACK decision and the sending decision chosen per connection.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Command {
    #[command(subcommand)]
    subcommand: Sub,
}

#[derive(Debug, Subcommand)]
enum Sub {
    Run(run::Arguments),
    Trial(trial::Arguments),
    Route(route::Arguments),
    Air(air::Arguments),
    Certify(certify::Arguments),
    Claims(claims::Arguments),
    Node(node::Arguments),
    Status(status::Arguments),
    Top(top::Arguments),
    Capture(capture::Arguments),
    Send(send::Arguments),
    Recv(recv::Arguments),
    Proxy(proxy::Arguments),
    Report(report::Arguments),
    Explain(explain::Arguments),
    Agents(agents::Arguments),
    Schema(schema::Arguments),
    Doctor(doctor::Arguments),
    Trace(trace::Arguments),
    #[command(hide = true)]
    Reread(daemon::reader::Arguments),
}

fn main() -> ExitCode {
    let Command { subcommand } = Command::parse();
    let done = match subcommand {
        Sub::Run(arguments) => run::run(&arguments),
        Sub::Trial(arguments) => trial::run(&arguments),
        Sub::Route(arguments) => route::run(&arguments),
        Sub::Air(arguments) => air::run(&arguments),
        Sub::Certify(arguments) => certify::run(&arguments),
        Sub::Claims(arguments) => claims::run(&arguments),
        Sub::Node(arguments) => node::run(&arguments),
        Sub::Status(arguments) => status::run(&arguments),
        Sub::Top(arguments) => top::run(&arguments),
        Sub::Capture(arguments) => capture::run(&arguments),
        Sub::Send(arguments) => send::run(&arguments),
        Sub::Recv(arguments) => recv::run(&arguments),
        Sub::Proxy(arguments) => proxy::run(&arguments),
        Sub::Report(arguments) => report::run(&arguments),
        Sub::Explain(arguments) => explain::run(&arguments),
        Sub::Agents(arguments) => agents::run(&arguments),
        Sub::Schema(arguments) => schema::run(&arguments),
        Sub::Doctor(arguments) => doctor::run(&arguments),
        Sub::Trace(arguments) => trace::run(&arguments),
        Sub::Reread(arguments) => daemon::reader::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let exit_code = failure.exit_code();
            failure.print();
            exit_code
        }
    }
}
