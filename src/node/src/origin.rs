//! The origin of a client: services share their seats and lookups out by it.

use std::net::{IpAddr, SocketAddr};

use hopwise_core::ip::Source;
use hopwise_host::netlink::{is_own_address, user_of};
use tokio::net::TcpStream;

use super::users::Users;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Host(IpAddr),
    /// A program of this machine, by its user: each user has all addresses of the loopback, and may have many ids.
    User(u32),
    /// A program of this machine whose user the kernel does not give, as after it has closed.
    Unknown,
    /// A program of this machine whose kernel gives no user at all: it has no sock_diag, or refuses it.
    Local,
}

/// The holder of one share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sharer {
    Source(Source),
    User(u32),
    /// A user has many addresses here: all unknown clients have one share.
    Unknown,
    Local,
}

impl Origin {
    /// The origin of a client of the kernel's TCP.
    pub(super) fn of(users: &Users, client: &TcpStream, from: IpAddr) -> Origin {
        let ends = client.peer_addr().and_then(|theirs| Ok((theirs, client.local_addr()?)));
        Origin::told_by(user_of, users, ends.ok(), from)
    }

    /// The same by what the kernel tells of the socket with these ends, its own first.
    fn told_by(
        kernel: impl Fn(SocketAddr, SocketAddr) -> Option<u32>,
        users: &Users,
        ends: Option<(SocketAddr, SocketAddr)>,
        from: IpAddr,
    ) -> Origin {
        if let Some(id) = ends.and_then(|(theirs, ours)| kernel(theirs, ours)) {
            users.are_told();
            return Origin::User(users.owner_of(id));
        }
        if !is_own_address(from) {
            return Origin::Host(from);
        }
        // A kernel that gives users knows at least the user of our end.
        let gives_users = || ends.is_some_and(|(theirs, ours)| kernel(ours, theirs).is_some());
        if users.have_been_told() || gives_users() { Origin::Unknown } else { Origin::Local }
    }

    pub(super) fn sharer(self) -> Sharer {
        match self {
            Origin::Host(address) => Sharer::Source(Source::of(address)),
            Origin::User(user) => Sharer::User(user),
            Origin::Unknown => Sharer::Unknown,
            Origin::Local => Sharer::Local,
        }
    }
}

impl<A: Into<IpAddr>> From<A> for Origin {
    fn from(address: A) -> Origin {
        Origin::Host(address.into())
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn programs_of_a_machine_whose_kernel_gives_no_user_are_one_source() {
        let users = Users::in_folder(std::path::Path::new("/nosuch"));
        let (theirs, ours) =
            ("127.0.0.1:5000".parse().expect("a socket"), "127.0.0.1:1080".parse().expect("too"));
        let silent = |_, _| None;
        let origin = |kernel: &dyn Fn(SocketAddr, SocketAddr) -> Option<u32>, from: [u8; 4]| {
            Origin::told_by(kernel, &users, Some((theirs, ours)), from.into())
        };
        assert_eq!(origin(&silent, [127, 0, 0, 1]), Origin::Local);
        assert_eq!(origin(&silent, [192, 0, 2, 1]), Origin::from([192, 0, 2, 1]));
        // The client has closed, and our end is still there.
        let gives_ours = |local, _| (local == ours).then_some(0);
        assert_eq!(origin(&gives_ours, [127, 0, 0, 1]), Origin::Unknown);
        assert_eq!(origin(&|_, _| Some(1000), [127, 0, 0, 1]), Origin::User(1000));
        // Our end has been reset as well. The kernel has given a user before.
        assert_eq!(origin(&silent, [127, 0, 0, 1]), Origin::Unknown);
    }

    #[tokio::test]
    async fn a_program_of_this_machine_is_its_users_whatever_its_address() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("bound");
        let mut clients = Vec::new();
        let own = nix::unistd::geteuid().as_raw();
        let folder = std::env::temp_dir().join(format!("hopwise-origin-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let users = Users::in_folder(&folder);
        for from in ["127.0.0.1:0", "127.1.2.3:0"] {
            let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
            socket.bind(from.parse().expect("an address")).expect("all of the loopback is ours");
            clients.push(socket.connect(at).await.expect("it listens"));
            let (served, from) = listener.accept().await.expect("it has come");
            std::fs::write(folder.join("subuid"), "").expect("a file");
            assert_eq!(Origin::of(&users, &served, from.ip()), Origin::User(own));
            std::fs::write(folder.join("subuid"), format!("4711:{own}:1\n")).expect("a file");
            assert_eq!(
                Origin::of(&users, &served, from.ip()),
                Origin::User(4711),
                "its id is one of another's"
            );
            // It has closed and belongs to no program any more; only the kernel still has it.
            drop(clients.pop());
            assert_eq!(Origin::of(&users, &served, from.ip()), Origin::Unknown);
        }
        std::fs::remove_dir_all(folder).expect("it is there");
    }
}
