//! Clients who hang up: while what they asked for is being connected, or after they have closed for writing.

use std::time::Duration;

use hopwise_host::TcpStream as MeshStream;
use hopwise_host::netlink::is_abandoned;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
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
    let is_open = || {
        let state = client.stack().with(|_, endpoint| endpoint.state(client.id()));
        state.is_some_and(|(_, closed)| closed.is_none())
    };
    while is_open() {
        sleep(look_every).await;
    }
}

fn has_hung_up(client: &TcpStream) -> bool {
    let mut watched = [PollFd::new(client, PollFlags::RDHUP)];
    if poll(&mut watched, Some(&Timespec::default())).is_err() {
        return false;
    }
    let seen = watched[0].revents();
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
