//! Errors as C has them: a number in `errno`, and a text for people.

use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::io;

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
    memory::set_errno(number_of(error));
}

fn number_of(error: &io::Error) -> libc::c_int {
    use io::ErrorKind as Kind;
    if let Some(number) = error.raw_os_error() {
        return number;
    }
    match error.kind() {
        Kind::WouldBlock => libc::EAGAIN,
        Kind::TimedOut => libc::ETIMEDOUT,
        Kind::ConnectionRefused => libc::ECONNREFUSED,
        Kind::ConnectionReset => libc::ECONNRESET,
        Kind::ConnectionAborted => libc::ECONNABORTED,
        Kind::NotConnected => libc::ENOTCONN,
        Kind::HostUnreachable => libc::EHOSTUNREACH,
        Kind::NetworkUnreachable => libc::ENETUNREACH,
        Kind::AddrInUse => libc::EADDRINUSE,
        Kind::AddrNotAvailable => libc::EADDRNOTAVAIL,
        Kind::BrokenPipe => libc::EPIPE,
        Kind::PermissionDenied => libc::EPERM,
        Kind::NotFound => libc::ENOENT,
        Kind::OutOfMemory => libc::ENOMEM,
        Kind::InvalidInput | Kind::InvalidData => libc::EINVAL,
        _ => libc::EIO,
    }
}
