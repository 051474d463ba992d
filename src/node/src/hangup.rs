//! Clients that hang up: during the connection to their target, or after they have closed for writing.

use std::time::Duration;

use hopwise_core::tcp::CloseReason;
use hopwise_host::netlink::is_abandoned;
use hopwise_host::{TcpStream as MeshStream, wait_for};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::net::TcpStream;
use tokio::time::sleep;

/// The interval during a connection attempt: most attempts are over before.
pub(super) const WHILE_CONNECTING: Duration = Duration::from_millis(250);

/// Ends when a client of the kernel's TCP has broken off or closed. A client that closed for writing may still read.
/// The kernel cannot distinguish both for a client on another machine, which then counts as present.
pub(super) async fn by_local(client: &TcpStream, look_every: Duration) {
    while !has_hung_up(client) {
        sleep(look_every).await;
    }
}

/// The same for a client over Hopwise: only a reset shows that it reads no more.
pub(super) async fn by_mesh(client: &MeshStream, look_every: Duration) {
    while closed(client) == Some(None) {
        sleep(look_every).await;
    }
}

/// Ends when a peer of the kernel's TCP has broken off, while it is not being read.
pub(super) async fn by_breaking_local(peer: &TcpStream, look_every: Duration) {
    // Taking the error would leave a plain end for the next reader.
    until(|| seen_of(peer).is_some_and(|seen| seen.contains(PollFlags::ERR)), look_every).await;
}

/// The same for a peer over Hopwise.
pub(super) async fn by_breaking_mesh(peer: &MeshStream, look_every: Duration) {
    let is_broken = || !matches!(closed(peer), Some(None | Some(CloseReason::Finished)));
    until(is_broken, look_every).await;
}

/// Waits before the first check: most cases are over by then.
async fn until(is_so: impl Fn() -> bool, look_every: Duration) {
    loop {
        sleep(look_every).await;
        if is_so() {
            return;
        }
    }
}

/// Why a connection is over, or `None` inside while it is not; `None` for a forgotten one.
fn closed(stream: &MeshStream) -> Option<Option<CloseReason>> {
    let state = stream.stack().with(|_, endpoint| endpoint.state(stream.id()));
    state.map(|(_, closed)| closed)
}

/// The kernel's state of a peer that may have broken off or closed; takes no data.
fn seen_of(peer: &TcpStream) -> Option<PollFlags> {
    let mut watched = [PollFd::new(peer, PollFlags::RDHUP)];
    wait_for(&mut watched, Duration::ZERO).ok()?;
    Some(watched[0].revents())
}

fn has_hung_up(client: &TcpStream) -> bool {
    let Some(seen) = seen_of(client) else { return false };
    if seen.intersects(PollFlags::HUP | PollFlags::ERR) {
        return true;
    }
    match recv(client, &mut [0; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        // Its unread data is still to be carried, even if it is gone.
        Ok((1.., _)) => return false,
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
        // It has broken off since: the kernel reports that once.
        Err(_) => return true,
    }
    let ends = client.peer_addr().and_then(|theirs| Ok((theirs, client.local_addr()?)));
    seen.contains(PollFlags::RDHUP) && ends.is_ok_and(|(theirs, ours)| is_abandoned(theirs, ours))
}
