//! Streams and listeners. None of their calls waits.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;

use hopwise_sockets::blocking::{TcpListener, TcpStream, errno};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::open::{Open, raised, refused};

/// An address and a port.
type End = (String, u16);

fn end(address: SocketAddr) -> End {
    (address.ip().to_string(), address.port())
}

/// A connection.
#[pyclass(frozen, module = "hopwise_sockets._native")]
#[derive(Debug)]
pub(crate) struct Stream(Open<TcpStream>);

impl Stream {
    pub(crate) fn of(stream: TcpStream) -> Stream {
        stream.set_nonblocking(true);
        Stream(Open::new(stream))
    }

    /// Runs a call of the stream while other threads of Python run.
    fn call<T: Send>(
        &self,
        python: Python<'_>,
        call: impl FnOnce(&TcpStream) -> io::Result<T> + Send,
    ) -> PyResult<T> {
        let stream: Arc<TcpStream> = self.0.get()?;
        python.detach(|| call(&stream)).map_err(|error| raised(&error))
    }
}

#[pymethods]
impl Stream {
    fn connected(&self, python: Python<'_>) -> PyResult<()> {
        self.call(python, TcpStream::connected)
    }

    /// The number of the error for which the connection failed, told once; 0 if there is none.
    fn take_error(&self, python: Python<'_>) -> PyResult<i32> {
        self.call(python, |stream| match stream.connected() {
            Err(error)
                if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected) =>
            {
                Ok(errno(&error))
            }
            _ => Ok(0),
        })
    }

    fn recv<'py>(&self, python: Python<'py>, most: usize) -> PyResult<Bound<'py, PyBytes>> {
        let came = self.call(python, |stream| {
            let mut buffer = vec![0; most];
            let read = stream.recv(&mut buffer)?;
            buffer.truncate(read);
            Ok(buffer)
        })?;
        Ok(PyBytes::new(python, &came))
    }

    fn send(&self, python: Python<'_>, data: &[u8]) -> PyResult<usize> {
        self.call(python, |stream| stream.send(data))
    }

    /// Ends what one of Python's `SHUT_RD`, `SHUT_WR` and `SHUT_RDWR` names.
    fn shutdown(&self, python: Python<'_>, how: i32) -> PyResult<()> {
        let how = match how {
            0 => Shutdown::Read,
            1 => Shutdown::Write,
            2 => Shutdown::Both,
            _ => return Err(refused(format_args!("{how}: expected SHUT_RD, SHUT_WR or SHUT_RDWR"))),
        };
        self.call(python, |stream| stream.shutdown(how))
    }

    fn nodelay(&self, python: Python<'_>) -> PyResult<bool> {
        self.call(python, TcpStream::nodelay)
    }

    fn set_nodelay(&self, python: Python<'_>, nodelay: bool) -> PyResult<()> {
        self.call(python, |stream| stream.set_nodelay(nodelay))
    }

    fn local(&self, python: Python<'_>) -> PyResult<End> {
        self.call(python, TcpStream::local_addr).map(end)
    }

    fn peer(&self, python: Python<'_>) -> PyResult<End> {
        self.call(python, TcpStream::peer_addr).map(end)
    }

    /// The receiver agent and the list of sender agents; None before it stands, and once it is forgotten.
    fn agents(&self, python: Python<'_>) -> PyResult<Option<(String, String)>> {
        self.call(python, |stream| Ok(stream.info().map(|info| (info.receiver, info.senders))))
    }

    fn fileno(&self) -> RawFd {
        self.0.find().map_or(-1, |stream| stream.as_fd().as_raw_fd())
    }

    fn close(&self, python: Python<'_>) {
        let stream = self.0.take();
        python.detach(|| drop(stream));
    }
}

/// A port that accepts connections.
#[pyclass(frozen, module = "hopwise_sockets._native")]
#[derive(Debug)]
pub(crate) struct Listener(Open<TcpListener>);

impl Listener {
    pub(crate) fn of(listener: TcpListener) -> Listener {
        listener.set_nonblocking(true);
        Listener(Open::new(listener))
    }
}

#[pymethods]
impl Listener {
    fn accept(&self, python: Python<'_>) -> PyResult<Stream> {
        let listener = self.0.get()?;
        python.detach(|| listener.accept()).map(Stream::of).map_err(|error| raised(&error))
    }

    fn port(&self) -> PyResult<u16> {
        Ok(self.0.get()?.local_addr().port())
    }

    fn fileno(&self) -> RawFd {
        self.0.find().map_or(-1, |listener| listener.as_fd().as_raw_fd())
    }

    fn close(&self, python: Python<'_>) {
        let listener = self.0.take();
        python.detach(|| drop(listener));
    }
}
