//! Waits for connections.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::task::{Context, Poll};

use hopwise_core::endpoint::{ListenError, ListenOptions, ListenerId};

use super::{TcpStream, stopped};
use crate::stack::Stack;

/// A port that accepts connections. Its drop stops that, and resets connections that were not accepted.
#[derive(Debug)]
pub struct TcpListener {
    stack: Stack,
    id: ListenerId,
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
        Ok(TcpListener::new(self.clone(), id, port))
    }

    /// Waits for connections to all ports that have no listener of their own, at all addresses that the links answer
    /// for.
    pub fn listen_everywhere(&self, options: ListenOptions) -> Result<TcpListener, ListenError> {
        let id = self.with(|_, endpoint| endpoint.listen_everywhere(options))?;
        Ok(TcpListener::new(self.clone(), id, 0))
    }
}

impl TcpListener {
    fn new(stack: Stack, id: ListenerId, port: u16) -> TcpListener {
        TcpListener { stack, id, port }
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
        self.stack.shared().act(|now, endpoint, waiting| {
            waiting.leave_listener(self.id);
            endpoint.stop_listening(now, self.id);
        });
    }
}
