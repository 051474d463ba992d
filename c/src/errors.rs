//! Errors as C has them: a number in `errno`, and a text for people.

use std::cell::Cell;
use std::io;

use hopwise_sockets::blocking::errno;

use crate::memory;

/// The room for a text and the zero at its end. A longer text is cut.
const ROOM: usize = 2048;

thread_local! {
    /// It stays where it is: C may hold its address while a call fails, as in `printf("%d %s", f(), hopwise_error())`.
    static LAST: [Cell<u8>; ROOM] = const { [const { Cell::new(0) }; ROOM] };
}

/// The last error's text in this thread.
pub(crate) fn last() -> *const libc::c_char {
    LAST.with(|room| room.as_ptr().cast())
}

/// Keeps an error for C.
pub(crate) fn keep(error: &io::Error) {
    let text = error.to_string().replace('\0', " ");
    let text = &text[..text.floor_char_boundary(ROOM - 1)];
    LAST.with(|room| {
        for (cell, byte) in room.iter().zip(text.bytes().chain([0])) {
            cell.set(byte);
        }
    });
    memory::set_errno(errno(error));
}
