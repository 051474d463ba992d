//! A connection that is being opened.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::net::{ToSocketAddrs, lookup_host};

use hopwise_core::endpoint::ConnectOptions;
use hopwise_core::tcp::CloseReason;

use super::TcpStream;
use crate::stack::{ConnectError, Side, Stack};

/// Its drop gives the attempt up: the stream inside closes.
#[derive(Debug)]
struct Connecting {
    stream: Option<TcpStream>,
}

fn connecting(
    stack: Stack,
    remote: SocketAddr,
    options: &ConnectOptions,
) -> Result<Connecting, ConnectError> {
    let shared = stack.shared();
    let id = shared.act(|now, endpoint, _| {
        // Checked under the lock: a stop that closes all connections must not miss this one.
        if shared.takes_no_more() {
            return Err(ConnectError::Stopped);
        }
        endpoint.connect(now, remote, options).map_err(ConnectError::Refused)
    })?;
    let stream = TcpStream::new(stack, id).ok_or(ConnectError::Failed(CloseReason::Aborted))?;
    Ok(Connecting { stream: Some(stream) })
}

impl Stack {
    /// Opens a connection and waits until it is established. Dropping the future gives it up.
    pub async fn connect(
        &self,
        remote: SocketAddr,
        options: &ConnectOptions,
    ) -> Result<TcpStream, ConnectError> {
        connecting(self.clone(), remote, options)?.await
    }
}

impl TcpStream {
    /// Opens a connection on a stack, to the first of the addresses that answers. Names are looked up by the system.
    pub async fn connect(on: &impl AsRef<Stack>, to: impl ToSocketAddrs) -> io::Result<TcpStream> {
        TcpStream::connect_with(on, to, &ConnectOptions::default()).await
    }

    /// The same, with options such as agents of its own.
    pub async fn connect_with(
        on: &impl AsRef<Stack>,
        to: impl ToSocketAddrs,
        options: &ConnectOptions,
    ) -> io::Result<TcpStream> {
        let stack = on.as_ref().clone();
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in lookup_host(to).await? {
            match stack.connect(address, options).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error.into(),
            }
        }
        Err(last)
    }
}

impl Future for Connecting {
    type Output = Result<TcpStream, ConnectError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(stream) = &self.stream else { return Poll::Pending };
        let (id, shared) = (stream.id(), stream.stack().shared());
        let stands = shared.act(|_, endpoint, waiting| match endpoint.state(id) {
            None => Poll::Ready(Err(ConnectError::Failed(CloseReason::Aborted))),
            Some((_, Some(reason))) => Poll::Ready(Err(ConnectError::Failed(reason))),
            Some((state, None)) if state.is_opening() && shared.is_over() => {
                Poll::Ready(Err(ConnectError::Stopped))
            }
            Some((state, None)) if state.is_opening() => {
                waiting.join(id, Side::Writer, cx);
                Poll::Pending
            }
            Some((_, None)) => Poll::Ready(Ok(())),
        });
        let Poll::Ready(stands) = stands else { return Poll::Pending };
        let stream = self.stream.take();
        Poll::Ready(stands.and(stream.ok_or(ConnectError::Stopped)))
    }
}
