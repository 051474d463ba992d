//! The room of unsafe code: C's strings, C's buffers, and `errno`.
#![expect(unsafe_code, reason = "C's memory has no types")]

use std::ffi::CStr;
use std::io;

use libc::{c_char, c_int, size_t};

/// A string of C's; None for a null pointer.
///
/// # Safety
/// The pointer is null, or leads to bytes with a zero at their end that nobody changes while the string lives.
pub(crate) unsafe fn text<'a>(from: *const c_char) -> io::Result<Option<&'a str>> {
    if from.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller vouches for the bytes and for the zero.
    let text = unsafe { CStr::from_ptr(from) };
    let refused = |_| io::Error::new(io::ErrorKind::InvalidInput, "a string is not UTF-8: expected UTF-8");
    text.to_str().map(Some).map_err(refused)
}

/// Bytes that C wants to send.
///
/// # Safety
/// The pointer leads to `len` bytes that nobody changes while the slice lives, or is null.
pub(crate) unsafe fn bytes<'a>(from: *const u8, len: size_t) -> io::Result<&'a [u8]> {
    check(from.is_null(), len)?;
    // SAFETY: the caller vouches for `len` bytes. An empty slice reads none, and gets no null pointer.
    Ok(if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(from, len) } })
}

/// A buffer that C wants to have filled.
///
/// # Safety
/// The pointer leads to `len` bytes of nobody else's while the slice lives, or is null.
pub(crate) unsafe fn buffer<'a>(into: *mut u8, len: size_t) -> io::Result<&'a mut [u8]> {
    check(into.is_null(), len)?;
    if len == 0 {
        return Ok(&mut []);
    }
    // SAFETY: the caller vouches for `len` bytes. They may hold anything yet, and are made zeros before they are a
    // slice.
    unsafe {
        std::ptr::write_bytes(into, 0, len);
        Ok(std::slice::from_raw_parts_mut(into, len))
    }
}

fn check(is_null: bool, len: size_t) -> io::Result<()> {
    if isize::try_from(len).is_err() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the length is larger than any buffer"));
    }
    if is_null && len > 0 {
        return Err(io::Error::from_raw_os_error(libc::EFAULT));
    }
    Ok(())
}

/// Writes the two handles of a pair.
///
/// # Safety
/// The pointer is null, or leads to two numbers that may be written.
pub(crate) unsafe fn write_two(into: *mut c_int, [first, second]: [c_int; 2]) -> io::Result<()> {
    check(into.is_null(), 1)?;
    // SAFETY: the caller vouches for two numbers.
    unsafe {
        into.write(first);
        into.add(1).write(second);
    }
    Ok(())
}

pub(crate) fn set_errno(number: c_int) {
    // SAFETY: the C library gives each thread a number of its own, which lives as long as the thread.
    unsafe { *libc::__errno_location() = number }
}
