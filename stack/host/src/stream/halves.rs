//! The two halves of a stream.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Held;

/// The half that reads.
#[derive(Debug)]
pub struct OwnedReadHalf {
    pub(super) held: Arc<Held>,
}

/// The half that writes.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    pub(super) held: Arc<Held>,
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

impl AsyncRead for OwnedReadHalf {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.held.poll_read(cx, buf)
    }
}

impl AsyncWrite for OwnedWriteHalf {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.held.poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.held.shared().flush(self.held.id);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.held.shutdown()
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        // The FIN tells the peer that no more data comes. The other half may go on reading.
        let _ = self.held.shutdown();
    }
}
