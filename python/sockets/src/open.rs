//! Values that Python can close at any time, and the errors that it sees.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use hopwise_sockets::blocking::errno;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// A value until it is closed. Calls that run keep it for their time.
#[derive(Debug)]
pub(crate) struct Open<T>(Mutex<Option<Arc<T>>>);

impl<T> Open<T> {
    pub(crate) fn new(value: T) -> Open<T> {
        Open(Mutex::new(Some(Arc::new(value))))
    }

    pub(crate) fn find(&self) -> Option<Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The value, for a call. Python's sockets answer with EBADF, too, once they are closed.
    pub(crate) fn get(&self) -> PyResult<Arc<T>> {
        const EBADF: i32 = 9;
        self.find().ok_or_else(|| PyOSError::new_err((EBADF, "it is closed")))
    }

    pub(crate) fn take(&self) -> Option<Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Python chooses the class of an `OSError` by its number. A setting that cannot work is a `ValueError`.
pub(crate) fn raised(error: &io::Error) -> PyErr {
    match error.kind() {
        io::ErrorKind::InvalidInput if error.raw_os_error().is_none() => refused(error),
        _ => PyOSError::new_err((errno(error), error.to_string())),
    }
}

pub(crate) fn refused(problem: impl fmt::Display) -> PyErr {
    PyValueError::new_err(problem.to_string())
}
