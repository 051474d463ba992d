//! Signals that end a daemon, as something that can be waited for beside its devices.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, eventfd};
use tokio::signal::unix::{SignalKind, signal};

/// Becomes readable on SIGTERM and on SIGINT.
pub(crate) fn watch() -> io::Result<OwnedFd> {
    let ends = eventfd(0, EventfdFlags::CLOEXEC)?;
    let teller = ends.try_clone()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut term, mut int) = {
        let _inside = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
        });
        // It fails only when it is full of what nobody has read.
        let _ = rustix::io::write(&teller, &1_u64.to_ne_bytes());
    })?;
    Ok(ends)
}
