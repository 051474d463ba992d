//! Clients who hang up: while what they asked for is being connected, or after they have closed for writing.

use std::time::Duration;

use hopwise_core::tcp::CloseReason;
use hopwise_host::netlink::is_abandoned;
use hopwise_host::{TcpStream as MeshStream, wait_for};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::net::TcpStream;
use tokio::time::sleep;

/// While something is being connected: most is before anybody looks.
pub(super) const WHILE_CONNECTING: Duration = Duration::from_millis(250);

/// Ends when a client of the kernel's TCP has broken off or closed. One that writes no more may still read: where the
/// kernel cannot tell the two apart, since the client is another machine's, it is there.
pub(super) async fn by_local(client: &TcpStream, look_every: Duration) {
    while !has_hung_up(client) {
        sleep(look_every).await;
    }
}

/// The same for a client over Hopwise, of whom only a reset tells that it reads no more.
pub(super) async fn by_mesh(client: &MeshStream, look_every: Duration) {
    while closed(client) == Some(None) {
        sleep(look_every).await;
    }
}

/// Ends when a peer of the kernel's TCP has broken off. For where nobody reads from it, and so hears of that.
pub(super) async fn by_breaking_local(peer: &TcpStream, look_every: Duration) {
    // To take the error would leave an end for whoever reads next.
    until(|| seen_of(peer).is_some_and(|seen| seen.contains(PollFlags::ERR)), look_every).await;
}

/// The same for a peer over Hopwise.
pub(super) async fn by_breaking_mesh(peer: &MeshStream, look_every: Duration) {
    let is_broken = || !matches!(closed(peer), Some(None | Some(CloseReason::Finished)));
    until(is_broken, look_every).await;
}

/// Not at once: most is over before anybody would have looked.
async fn until(is_so: impl Fn() -> bool, look_every: Duration) {
    loop {
        sleep(look_every).await;
        if is_so() {
            return;
        }
    }
}

/// Why a connection is over, or that it is not; nothing of one that is forgotten.
fn closed(stream: &MeshStream) -> Option<Option<CloseReason>> {
    let state = stream.stack().with(|_, endpoint| endpoint.state(stream.id()));
    state.map(|(_, closed)| closed)
}

/// What the kernel tells of a peer that breaks off or closes, and takes nothing.
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
        // What it has written and nobody has read yet is to be carried, though it be gone.
        Ok((1.., _)) => return false,
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
        // That it has broken off since: the kernel says so once.
        Err(_) => return true,
    }
    let ends = client.peer_addr().and_then(|theirs| Ok((theirs, client.local_addr()?)));
    seen.contains(PollFlags::RDHUP) && ends.is_ok_and(|(theirs, ours)| is_abandoned(theirs, ours))
}
