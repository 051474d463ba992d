//! The process that makes the changes and waits for their confirmation. It reads the file from standard input, and
//! tells its events on standard output.

use std::io::Read;

use clap::Args;
use hopwise_host::bringup::Config as Kept;
use hopwise_lab::located::Document;
use hopwise_lab::units::Time;

use super::told::Event;
use super::work::Work;
use super::{State, config, session};
use crate::failure::Failure;

/// Make the changes of `hopwise mesh up`
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    state: State,
    /// Name of the file on standard input
    #[arg(long)]
    name: String,
    /// Time for the confirmation
    #[arg(long)]
    within: Time,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    session::leave();
    let done = work(arguments);
    if let Err(failure) = &done {
        let (doing, problem) = ("bring the interfaces up".to_owned(), failure.to_string());
        Event::Failed { doing, problem }.pass_on();
    }
    done
}

fn work(arguments: &Arguments) -> Result<(), Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| Failure::failed("read the file", error))?;
    let name = arguments.name.clone();
    let read = Document::parse(&name, &text).and_then(|document| config::read(&document));
    let config = read.map_err(Failure::Located)?;
    let mut tell = |event: Event| event.pass_on();
    let work = Work::begin(&arguments.state.state, &mut tell)?;
    work.run(Kept { name, text }, &config, Some(arguments.within.0))
}
