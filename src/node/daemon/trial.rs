//! The trial that started the node, at the other ends of its pipes.

use std::future::pending;
use std::thread;

use hopwise_host::live_by_the_clock;
use hopwise_lab::live::part::{Carried, Says};
use tokio::sync::oneshot::{Receiver, channel};

use crate::failure::Failure;
use crate::lab::live::talk;

/// All threads begin with this one's priority, as the programs of a trial have it.
pub(super) fn take_priority(has_trial: bool) {
    if has_trial && let Err(error) = live_by_the_clock() {
        tracing::warn!(%error, "no real-time priority: on a busy machine it falls behind");
    }
}

/// Tells the trial that all is open. The end of its pipe ends the node as a signal does.
pub(super) fn begin() -> Result<Receiver<()>, Failure> {
    talk::say(&Says::Ready)?;
    let (ended, ends) = channel();
    let hear = || {
        talk::answer();
        drop(ended);
    };
    let started = thread::Builder::new().name("trial".into()).spawn(hear);
    started.map_err(|error| Failure::failed("start a thread", error))?;
    Ok(ends)
}

/// Ends with the trial; never without one.
pub(super) async fn ended(trial: Option<Receiver<()>>) {
    match trial {
        Some(trial) => drop(trial.await),
        None => pending().await,
    }
}

/// Tells the trial of the connections that were carried.
pub(super) fn tell(has_trial: bool, carried: Carried) -> Result<(), Failure> {
    if has_trial { talk::say(&Says::Carried(carried)) } else { Ok(()) }
}
