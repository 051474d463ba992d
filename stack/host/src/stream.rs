//! tokio's streams over a stack.

mod connecting;
mod in_place;
mod listener;
mod ready;

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::{fmt, io};

use hopwise_core::Endpoint;
use hopwise_core::endpoint::{ConnId, RecvError};
use hopwise_core::tcp::{CloseReason, Info};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop::{RestoreOnPending, poll_proceed};

use crate::stack::{Bytes, Shared, Side, Stack, Waiting, kind_of};

pub use listener::TcpListener;

/// A connection of a [`Stack`], like tokio's `TcpStream`. Its shutdown ends this side alone (half-close). Its drop
/// closes the connection: written data is still delivered, but unread data makes it a reset.
#[derive(Debug)]
pub struct TcpStream {
    held: Arc<Held>,
}

/// A connection that lives as long as a stream or a half holds it.
pub(crate) struct Held {
    stack: Stack,
    id: ConnId,
    // A `SocketAddr` would be larger: it has room for the zone of an address.
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
}

impl TcpStream {
    pub(crate) fn new(stack: Stack, id: ConnId) -> Option<TcpStream> {
        let flow = stack.shared().look(|_, endpoint| endpoint.flow(id))?;
        let [local, remote] = [flow.local, flow.remote].map(|end| (end.ip(), end.port()));
        Some(TcpStream { held: Arc::new(Held { stack, id, local, remote }) })
    }

    /// Address and port of the peer.
    pub fn peer_addr(&self) -> SocketAddr {
        self.held.remote()
    }

    /// Address and port of our end.
    pub fn local_addr(&self) -> SocketAddr {
        self.held.local()
    }

    /// The endpoint's name for the connection.
    pub fn id(&self) -> ConnId {
        self.held.id
    }

    /// The stack that it belongs to.
    pub fn stack(&self) -> &Stack {
        &self.held.stack
    }

    /// The state of the connection and its agents; `None` once the endpoint has forgotten it.
    pub fn info(&self) -> Option<Info> {
        self.held.stack.info(self.held.id)
    }

    /// Ends the connection at once, by a reset.
    pub fn abort(self) {
        // A forgotten connection needs no abort.
        let _ = self.held.stack.with(|now, endpoint| endpoint.abort(now, self.held.id));
    }

    /// Lets the SYN-ACK of a SYN leave that the listener has left to the program
    /// ([`OnDemand`](hopwise_core::endpoint::SynAck)). A drop or an abort refuses it.
    pub fn answer(&self) {
        // A forgotten connection needs no answer.
        let _ = self.held.stack.with(|now, endpoint| endpoint.answer(now, self.held.id));
    }

    /// Tells the peer of an unanswered SYN that its destination cannot be reached, with this code of ICMP or ICMPv6.
    pub fn tell_unreachable(self, code: u8) {
        let _ = self.held.stack.with(|now, endpoint| endpoint.tell_unreachable(now, self.held.id, code));
    }

    /// Two halves for two tasks. The connection closes when both are dropped. A drop of the write half ends this side.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        (OwnedReadHalf { held: Arc::clone(&self.held) }, OwnedWriteHalf { held: self.held })
    }
}

impl Held {
    fn local(&self) -> SocketAddr {
        self.local.into()
    }

    fn remote(&self) -> SocketAddr {
        self.remote.into()
    }

    fn shared(&self) -> &Shared {
        self.stack.shared()
    }

    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let read = ready!(self.poll_recv(cx, buffer.initialize_unfilled()))?;
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }

    fn poll_recv(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let budget = ready!(poll_proceed(cx));
        taken(self.recv_or(into, |waiting| waiting.join(self.id, Side::Reader, cx)), &budget)
    }

    /// Reads, or calls `wait` where nothing has come.
    fn recv_or(&self, into: &mut [u8], wait: impl FnOnce(&mut Waiting)) -> Poll<io::Result<usize>> {
        let shared = self.shared();
        let recv = |now, endpoint: &mut Endpoint, waiting: &mut Waiting| match endpoint
            .recv(now, self.id, into)
        {
            Ok(0) if shared.is_over() => Poll::Ready(Err(stopped())),
            Ok(0) => {
                wait(waiting);
                Poll::Pending
            }
            Ok(read) => Poll::Ready(Ok(read)),
            Err(RecvError::Finished) => Poll::Ready(Ok(0)),
            Err(RecvError::Over | RecvError::NoConnection) => Poll::Ready(end_of(closed(endpoint, self.id))),
        };
        shared.read(recv, |read| matches!(read, Poll::Ready(Ok(1..))))
    }

    fn poll_write(&self, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let budget = ready!(poll_proceed(cx));
        let data = Bytes::There(data);
        taken(self.write_or(data, |waiting| waiting.join(self.id, Side::Writer, cx)), &budget)
    }

    /// Writes, or calls `wait` where there is no room.
    fn write_or(&self, bytes: Bytes<'_>, wait: impl FnOnce(&mut Waiting)) -> Poll<io::Result<usize>> {
        let shared = self.shared();
        shared.write(self.id, bytes, |taken, endpoint, waiting| match taken {
            Ok(0) if shared.is_over() => Poll::Ready(Err(stopped())),
            Ok(0) => {
                wait(waiting);
                Poll::Pending
            }
            Ok(written) => Poll::Ready(Ok(written)),
            Err(_) => {
                let reason = closed(endpoint, self.id).unwrap_or(CloseReason::Finished);
                Poll::Ready(Err(kind_of(reason).into()))
            }
        })
    }

    fn shutdown(&self) -> Poll<io::Result<()>> {
        // A forgotten connection has been shut down, too.
        let _ = self.shared().act(|now, endpoint, _| endpoint.shutdown(now, self.id));
        Poll::Ready(Ok(()))
    }
}

/// Uses up some of the task's budget: a stream that is always ready must not starve the rest of its task.
fn taken<T>(outcome: Poll<T>, budget: &RestoreOnPending) -> Poll<T> {
    if outcome.is_ready() {
        budget.made_progress();
    }
    outcome
}

/// Why a connection is over; `None` if it is open or forgotten.
fn closed(endpoint: &Endpoint, id: ConnId) -> Option<CloseReason> {
    endpoint.state(id).and_then(|(_, closed)| closed)
}

/// The result of a read after the last byte.
fn end_of(reason: Option<CloseReason>) -> io::Result<usize> {
    match reason {
        None | Some(CloseReason::Finished) => Ok(0),
        Some(reason) => Err(kind_of(reason).into()),
    }
}

fn stopped() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the stack has been stopped")
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.stack.shared().is_of_parent() {
            return;
        }
        self.shared().act(|now, endpoint, waiting| {
            waiting.leave(self.id);
            // A forgotten connection needs no close.
            let _ = endpoint.close(now, self.id);
        });
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.local(), self.remote())
    }
}

/// Reads and writes of a whole stream, of a shared stream and of the halves. A shared stream is enough, as in the
/// standard library: one task may read while another writes.
macro_rules! polled {
    (reads $($stream:ty),+; writes $($sink:ty),+) => {
        $(impl AsyncRead for $stream {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.held.poll_read(cx, buf)
            }
        })+
        $(impl AsyncWrite for $sink {
            fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                self.held.poll_write(cx, buf)
            }

            /// The stack already has the data; a flush sends it without waiting for more, as windows allow.
            fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.held.shared().flush(self.held.id);
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.held.shutdown()
            }
        })+
    };
}

polled!(reads TcpStream, &TcpStream, OwnedReadHalf; writes TcpStream, &TcpStream, OwnedWriteHalf);

/// The half that reads.
#[derive(Debug)]
pub struct OwnedReadHalf {
    held: Arc<Held>,
}

/// The half that writes.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    held: Arc<Held>,
}

impl OwnedReadHalf {
    /// Address and port of the peer.
    pub fn peer_addr(&self) -> SocketAddr {
        self.held.remote()
    }
}

impl OwnedWriteHalf {
    /// Address and port of the peer.
    pub fn peer_addr(&self) -> SocketAddr {
        self.held.remote()
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        // The FIN tells the peer that no more data comes. The other half may go on reading.
        if !self.held.shared().is_of_parent() {
            let _ = self.held.shutdown();
        }
    }
}
