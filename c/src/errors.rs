//! Errors as C has them: a number in `errno`, and a text for people.

use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::io;

use hopwise_sockets::blocking::errno;

use crate::memory;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The last error's text in this thread. It stays where it is until the next error.
pub(crate) fn last() -> *const libc::c_char {
    LAST.with_borrow(|text| CStr::as_ptr(text))
}

/// Keeps an error for C.
pub(crate) fn keep(error: &io::Error) {
    let text = error.to_string().replace('\0', " ");
    LAST.set(CString::new(text).unwrap_or_default());
    memory::set_errno(errno(error));
}
