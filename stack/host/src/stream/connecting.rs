//! A connection that is being opened.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

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
