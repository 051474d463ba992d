//! Calls on a stream that never wait, and waits for the moment when they serve.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use tokio::io::{Interest, Ready};

use hopwise_core::tcp::Options;

use super::{Held, TcpStream};
use crate::stack::{Bytes, Side};

impl TcpStream {
    /// Reads what has come, without a wait. It fails with [`WouldBlock`](io::ErrorKind::WouldBlock) where nothing has.
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() { Ok(0) } else { at_once(self.held.recv_or(into, |_| {})) }
    }

    /// Writes the bytes for which there is room, without a wait. It fails with
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) where there is none.
    pub fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        if data.is_empty() { Ok(0) } else { at_once(self.held.write_or(Bytes::There(data), |_| {})) }
    }

    /// Waits until a read would return data, the end or an error. The last of several tasks that wait to read
    /// is woken.
    pub async fn readable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_read_ready(cx)).await
    }

    /// Waits until a write would take data or fail. The last of several tasks that wait to write is
    /// woken.
    pub async fn writable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_write_ready(cx)).await
    }

    /// Waits for one of both, and returns which of them hold. Priority and errors have no readiness of their own here:
    /// an error makes a stream readable and writable.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        poll_fn(|cx| {
            let mut ready = Ready::EMPTY;
            if interest.is_readable() && self.poll_read_ready(cx)?.is_ready() {
                ready |= Ready::READABLE;
            }
            if interest.is_writable() && self.poll_write_ready(cx)?.is_ready() {
                ready |= Ready::WRITABLE;
            }
            if ready.is_empty() { Poll::Pending } else { Poll::Ready(Ok(ready)) }
        })
        .await
    }

    /// [`readable`](TcpStream::readable) for hand-written futures.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Held { id, stack, .. } = &*self.held;
        stack.shared().act(|now, endpoint, waiting| {
            // A read of nothing fails at the end of the data, which is no wait.
            let is_ready = endpoint.recv(now, *id, &mut []).is_err() || endpoint.readable(*id) > 0;
            if is_ready || stack.shared().is_over() {
                return Poll::Ready(Ok(()));
            }
            waiting.join(*id, Side::Reader, cx);
            Poll::Pending
        })
    }

    /// [`writable`](TcpStream::writable) for hand-written futures.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Held { id, stack, .. } = &*self.held;
        stack.shared().act(|now, endpoint, waiting| {
            // A write to a connection that is over fails, which is no wait.
            let is_ready = endpoint.ask_for_room(now, *id).unwrap_or(true);
            if is_ready || stack.shared().is_over() {
                return Poll::Ready(Ok(()));
            }
            waiting.join(*id, Side::Writer, cx);
            Poll::Pending
        })
    }

    /// Ends this side, as the shutdown of tokio's trait does: the peer reads the end after the last byte.
    pub fn shutdown_write(&self) {
        // It is over at once: nothing is left to wait for.
        let _ = self.held.shutdown();
    }

    /// Returns whether short segments leave at once. The default is Nagle's algorithm: they wait while data is
    /// unacknowledged.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.options().map(|options| !options.nagle)
    }

    /// Sets whether short segments leave at once.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        let options = Options { nagle: !nodelay, ..self.options()? };
        let set = self.held.stack.with(|now, endpoint| endpoint.set_options(now, self.held.id, options));
        set.map_err(gone)
    }

    fn options(&self) -> io::Result<Options> {
        self.held.shared().look(|_, endpoint| endpoint.options(self.held.id)).map_err(gone)
    }
}

pub(super) fn at_once(done: Poll<io::Result<usize>>) -> io::Result<usize> {
    match done {
        Poll::Ready(done) => done,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

fn gone(error: hopwise_core::endpoint::AbortError) -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, error)
}
