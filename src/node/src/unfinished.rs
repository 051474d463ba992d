//! Streams whose end shows whether all data has come.

use std::time::Duration;

use hopwise_host::TcpStream as MeshStream;
use rustix::net::sockopt;
use tokio::net::TcpStream;

/// A stream that is reset when it is dropped, unless it has ended in order. A plain close would mean that all data has
/// come, and the peer would take half a file for a whole one.
#[derive(Debug)]
pub(crate) struct Unfinished<S: Reset>(Option<S>);

pub(crate) trait Reset {
    /// Resets the connection: the peer learns that something went wrong, instead of an end of the data.
    fn reset(self);
    /// Closes the connection, which has ended in order.
    fn close(self);
}

impl Reset for TcpStream {
    fn reset(self) {
        let _ = sockopt::set_socket_linger(&self, Some(Duration::ZERO));
    }

    fn close(self) {
        let _ = sockopt::set_socket_linger(&self, None);
    }
}

impl Unfinished<TcpStream> {
    /// The same, also if this process is killed: the kernel then closes the socket, and resets the connection.
    pub(crate) fn even_if_killed(stream: TcpStream) -> Unfinished<TcpStream> {
        let _ = sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
        Unfinished::new(stream)
    }
}

impl Reset for MeshStream {
    fn reset(self) {
        self.abort();
    }

    fn close(self) {}
}

impl<S: Reset> Unfinished<S> {
    pub(crate) fn new(stream: S) -> Unfinished<S> {
        Unfinished(Some(stream))
    }

    pub(crate) fn stream(&mut self) -> &mut S {
        self.0.as_mut().expect("it is there until it has ended")
    }

    pub(crate) fn has_ended(mut self) {
        if let Some(stream) = self.0.take() {
            stream.close();
        }
    }
}

impl<S: Reset> Drop for Unfinished<S> {
    fn drop(&mut self) {
        if let Some(stream) = self.0.take() {
            stream.reset();
        }
    }
}
