//! Waits for connections.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::task::{Context, Poll};

use tokio::net::{ToSocketAddrs, lookup_host};

use hopwise_core::endpoint::{ListenError, ListenOptions, ListenerId};

use super::{TcpStream, stopped};
use crate::stack::{Stack, kind_of_no_listener};

/// The ports that a listener on port 0 gets one of (RFC 6335 §6).
const DYNAMIC: std::ops::RangeInclusive<u16> = 49_152..=u16::MAX;

/// A port that accepts connections. Its drop stops that, and resets connections that were not accepted.
#[derive(Debug)]
pub struct TcpListener {
    stack: Stack,
    id: ListenerId,
    address: Option<IpAddr>,
    port: u16,
}

impl Stack {
    /// Waits for connections to `port`, at one address or at all.
    pub fn listen(
        &self,
        address: Option<IpAddr>,
        port: u16,
        options: ListenOptions,
    ) -> Result<TcpListener, ListenError> {
        let id = self.with(|_, endpoint| endpoint.listen(address, port, options))?;
        Ok(TcpListener { stack: self.clone(), id, address, port })
    }

    /// The same for the address of a socket: an unspecified one is all of ours, and port 0 is any that is free.
    pub fn listen_at(&self, at: SocketAddr, options: &ListenOptions) -> io::Result<TcpListener> {
        let address = Some(at.ip()).filter(|address| !address.is_unspecified());
        let refused = |error| io::Error::new(kind_of_no_listener(&error), error);
        if at.port() != 0 {
            return self.listen(address, at.port(), options.clone()).map_err(refused);
        }
        let [first, second, ..] = crate::random_key()?;
        let begin = u16::from_be_bytes([first, second]) | DYNAMIC.start();
        for port in (begin..=*DYNAMIC.end()).chain(*DYNAMIC.start()..begin) {
            match self.listen(address, port, options.clone()) {
                Err(ListenError::PortInUse(_)) => {}
                done => return done.map_err(refused),
            }
        }
        Err(refused(ListenError::PortInUse(0)))
    }

    /// The same at the first of these addresses that can be had.
    pub fn listen_at_one(
        &self,
        all: impl IntoIterator<Item = SocketAddr>,
        options: &ListenOptions,
    ) -> io::Result<TcpListener> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for at in all {
            match self.listen_at(at, options) {
                Ok(listener) => return Ok(listener),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Waits for connections to all ports that have no listener of their own, at all addresses that the links answer
    /// for.
    pub fn listen_everywhere(&self, options: ListenOptions) -> Result<TcpListener, ListenError> {
        let id = self.with(|_, endpoint| endpoint.listen_everywhere(options))?;
        Ok(TcpListener { stack: self.clone(), id, address: None, port: 0 })
    }
}

impl TcpListener {
    /// Waits for connections to an address of a stack; to all of its addresses with `0.0.0.0` or `[::]`. Port 0 takes
    /// any port that is free.
    pub async fn bind(on: &impl AsRef<Stack>, at: impl ToSocketAddrs) -> io::Result<TcpListener> {
        TcpListener::bind_with(on, at, ListenOptions::default()).await
    }

    /// The same, with options such as agents for its connections.
    pub async fn bind_with(
        on: &impl AsRef<Stack>,
        at: impl ToSocketAddrs,
        options: ListenOptions,
    ) -> io::Result<TcpListener> {
        let stack = on.as_ref().clone();
        stack.listen_at_one(lookup_host(at).await?, &options)
    }

    /// Address and port on which it listens; the address is unspecified if it listens on all.
    pub fn local_addr(&self) -> SocketAddr {
        (self.address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), self.port).into()
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The stack that it belongs to.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// The next incoming connection. Several tasks may wait, and a wait may be dropped.
    pub async fn accept(&self) -> io::Result<TcpStream> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// The same as [`accept`](TcpListener::accept), for hand-written futures.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        loop {
            let shared = self.stack.shared();
            let accepted = shared.act(|now, endpoint, waiting| match endpoint.accept(now, self.id) {
                Some(id) => {
                    waiting.call_listener(self.id);
                    Poll::Ready(Ok(id))
                }
                None if shared.is_over() => Poll::Ready(Err(stopped())),
                None => {
                    waiting.join_listener(self.id, cx);
                    Poll::Pending
                }
            });
            let id = match accepted {
                Poll::Ready(Ok(id)) => id,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            };
            // One that was forgotten between the two calls is skipped.
            if let Some(stream) = TcpStream::new(self.stack.clone(), id) {
                return Poll::Ready(Ok(stream));
            }
        }
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        if self.stack.shared().is_of_parent() {
            return;
        }
        self.stack.shared().act(|now, endpoint, waiting| {
            waiting.leave_listener(self.id);
            endpoint.stop_listening(now, self.id);
        });
    }
}
