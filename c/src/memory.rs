//! The room of unsafe code: C's strings, C's buffers, `errno`, and the value that each process has for itself.
#![expect(unsafe_code, reason = "C's memory has no types")]

use std::cell::RefCell;
use std::ffi::CStr;
use std::io;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{c_char, c_int, size_t};

/// The most that one read fills of a buffer.
const MOST_READ: usize = 1 << 16;

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

/// Fills a buffer of C's by a function that returns how many bytes it has written, and leaves the others as they are.
/// They may hold nothing yet, so that the function gets a buffer of ours, one for each thread.
///
/// # Safety
/// The pointer leads to `len` bytes that nobody else uses meanwhile, or is null.
pub(crate) unsafe fn fill(
    into: *mut u8,
    len: size_t,
    read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    thread_local! {
        static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    check(into.is_null(), len)?;
    // It is away while a read waits, and at the end of a thread: a handler of a signal may read too, and so may the
    // destructors of the thread's own values.
    let mut buffer = BUFFER.try_with(RefCell::take).unwrap_or_default();
    let most = len.min(MOST_READ);
    if buffer.len() < most {
        buffer.resize(most, 0);
    }
    let read = read(&mut buffer[..most]);
    if let Ok(read @ 1..) = read {
        // SAFETY: the caller vouches for `len` bytes, which are no fewer than `most`; our buffer is none of C's.
        unsafe { std::ptr::copy_nonoverlapping(buffer[..most.min(read)].as_ptr(), into, most.min(read)) }
    }
    let _ = BUFFER.try_with(|of_thread| of_thread.replace(buffer));
    read
}

fn check(is_null: bool, len: size_t) -> io::Result<()> {
    if isize::try_from(len).is_err() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the length is larger than any buffer"));
    }
    if is_null && len > 0 { Err(io::Error::from_raw_os_error(libc::EFAULT)) } else { Ok(()) }
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

/// A value that each process has for itself. A forked child begins without one. It leaves its copy of the parent's
/// alone, whose locks may be held by threads that the child does not have. A child that shares the memory of its parent
/// leaves the parent's in place.
pub(crate) struct PerProcess<T: 'static>(AtomicPtr<OfProcess<T>>);

struct OfProcess<T: 'static> {
    process: u64,
    value: T,
    /// The value of a process that made one before: a parent, or a child in the same memory.
    earlier: Option<&'static OfProcess<T>>,
}

impl<T: Default + Sync> PerProcess<T> {
    pub(crate) const fn new() -> PerProcess<T> {
        PerProcess(AtomicPtr::new(std::ptr::null_mut()))
    }

    fn last(&self) -> Option<&'static OfProcess<T>> {
        // SAFETY: it is null, or a box below was leaked there.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// The value of a process, if it has made one.
    pub(crate) fn find(&self, process: u64) -> Option<&'static T> {
        let mut all = std::iter::successors(self.last(), |of| of.earlier);
        all.find(|of| of.process == process).map(|of| &of.value)
    }

    /// The value of a process, which is new unless it has made one.
    pub(crate) fn make(&self, process: u64) -> &'static T {
        loop {
            // What another thread makes after this line changes `earlier`, so that the exchange below fails.
            let earlier = self.last();
            if let Some(value) = self.find(process) {
                return value;
            }
            let new = Box::leak(Box::new(OfProcess { process, value: T::default(), earlier }));
            let found = earlier.map_or(std::ptr::null_mut(), |of| std::ptr::from_ref(of).cast_mut());
            // If another thread is faster, its value counts, and this one, which is small, stays unused.
            let _ = self.0.compare_exchange(found, new, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}
