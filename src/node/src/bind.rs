//! Sockets of the kernel's TCP that programs on this machine connect to.

use std::io;
use std::net::{SocketAddr, TcpListener};

use rustix::net;

use hopwise_daemon::failure::Failure;

/// The largest number of clients not yet accepted, at each listener. Linux takes net.core.somaxconn if that is less.
const MOST_WAITING: i32 = 4096;

pub(super) fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    listen(address).map_err(|error| Failure::Unbound { address, error })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let domain = if address.is_ipv6() { net::AddressFamily::INET6 } else { net::AddressFamily::INET };
    let flags = net::SocketFlags::CLOEXEC | net::SocketFlags::NONBLOCK;
    let socket = net::socket_with(domain, net::SocketType::STREAM, flags, None)?;
    net::sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        // `[::]` takes IPv4 as well, whatever net.ipv6.bindv6only is on this machine.
        net::sockopt::set_ipv6_v6only(&socket, false)?;
    }
    net::bind(&socket, &address)?;
    net::listen(&socket, MOST_WAITING)?;
    Ok(socket.into())
}
