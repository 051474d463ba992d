//! Errors as C and Python have them: numbers.

use std::io;

/// The number that the kernel would have put into `errno` for this error of a socket.
pub fn errno(error: &io::Error) -> i32 {
    use io::ErrorKind as Kind;
    if let Some(number) = error.raw_os_error() {
        return number;
    }
    match error.kind() {
        Kind::WouldBlock => libc::EAGAIN,
        Kind::TimedOut => libc::ETIMEDOUT,
        Kind::Interrupted => libc::EINTR,
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
