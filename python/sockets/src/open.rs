//! Values that Python can close at any time, and the errors that it sees.

use std::fmt;
use std::io;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use hopwise_sockets::blocking::errno;
use hopwise_sockets::fork;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// A value until it is closed. Calls that run keep it for their time. In a forked child its copy is as one that is
/// closed, and is not dropped: a drop would end connections of the parent.
#[derive(Debug)]
pub(crate) struct Open<T> {
    value: Mutex<Option<Arc<T>>>,
    /// The process that has opened it.
    process: u64,
}

impl<T> Open<T> {
    pub(crate) fn new(value: T) -> Open<T> {
        Open { value: Mutex::new(Some(Arc::new(value))), process: fork::process() }
    }

    fn is_of_parent(&self) -> bool {
        self.process != fork::process()
    }

    pub(crate) fn find(&self) -> Option<Arc<T>> {
        if self.is_of_parent() {
            return None;
        }
        self.value.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The value, for a call. Python's sockets answer with EBADF, too, once they are closed.
    pub(crate) fn get(&self) -> PyResult<Arc<T>> {
        const EBADF: i32 = 9;
        let problem = match self.is_of_parent() {
            true => {
                "it belongs to the parent of this process: expected a network that was opened after the fork"
            }
            false => "it is closed",
        };
        self.find().ok_or_else(|| PyOSError::new_err((EBADF, problem)))
    }

    pub(crate) fn take(&self) -> Option<Arc<T>> {
        if self.is_of_parent() {
            return None;
        }
        self.value.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Drop for Open<T> {
    fn drop(&mut self) {
        if self.is_of_parent() {
            mem::forget(mem::take(self.value.get_mut().unwrap_or_else(PoisonError::into_inner)));
        }
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
