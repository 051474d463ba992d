//! A descriptor that shows a socket's readiness to `poll`, `select` and event loops.
//!
//! It is one end of a pair of Unix sockets. A byte in it is readiness to read; room in it is readiness to write. A full
//! pair is one that is not writable. The other end puts the byte in, and makes the room. No data of the connection
//! passes here.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The readiness that the descriptor shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shown {
    readable: bool,
    writable: bool,
}

/// The descriptor of a socket, and one waker for each side and for both. A stack that is asked twice knows it again.
#[derive(Debug)]
pub(crate) struct Bell {
    face: Arc<Face>,
    ropes: [Waker; 3],
}

#[derive(Debug)]
struct Face {
    /// The end that programs poll.
    outer: UnixStream,
    inner: UnixStream,
    shown: Mutex<Shown>,
}

/// One side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Read,
    Write,
    /// A connection that opens is ready for neither, and then for both.
    Both,
}

impl Bell {
    /// It shows no readiness to read, and readiness to write.
    pub(crate) fn new() -> io::Result<Bell> {
        let (outer, inner) = UnixStream::pair()?;
        outer.set_nonblocking(true)?;
        inner.set_nonblocking(true)?;
        let shown = Mutex::new(Shown { readable: false, writable: true });
        let face = Arc::new(Face { outer, inner, shown });
        let rope = |side| Waker::from(Arc::new(Rope { face: Arc::clone(&face), side }));
        let ropes = [Side::Read, Side::Write, Side::Both].map(rope);
        Ok(Bell { face, ropes })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.face.outer.as_fd()
    }

    /// Asks for the readiness of a side, and shows it. While it is not ready, it asks to be woken, and shows it then.
    pub(crate) fn ask(&self, side: Side, poll: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<()>>) {
        // First: a waker that is called in between must have the last word.
        self.show(side, false);
        // A connection that fails is ready: the next call says why.
        if poll(&mut Context::from_waker(&self.ropes[side as usize])).is_ready() {
            self.show(side, true);
        }
    }

    pub(crate) fn show(&self, side: Side, is_ready: bool) {
        self.face.show(side, is_ready);
    }
}

impl Face {
    fn show(&self, side: Side, is_ready: bool) {
        if side == Side::Both {
            self.show(Side::Read, is_ready);
            return self.show(Side::Write, is_ready);
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        match side {
            Side::Read if shown.readable != is_ready => shown.readable = is_ready,
            Side::Write if shown.writable != is_ready => shown.writable = is_ready,
            _ => return,
        }
        match (side, is_ready) {
            (Side::Read, true) => one_byte_into(&self.inner),
            (Side::Read, false) => empty(&self.outer),
            (_, true) => empty(&self.inner),
            (_, false) => fill(&self.outer),
        }
    }
}

/// The waker of one side.
struct Rope {
    face: Arc<Face>,
    side: Side,
}

impl Wake for Rope {
    fn wake(self: Arc<Self>) {
        self.face.show(self.side, true);
    }
}

fn one_byte_into(mut socket: &UnixStream) {
    // There is room: the socket holds one byte at most.
    let _ = socket.write(&[1]);
}

fn empty(mut socket: &UnixStream) {
    let mut buffer = [0; 4096];
    while socket.read(&mut buffer).is_ok_and(|read| read > 0) {}
}

fn fill(mut socket: &UnixStream) {
    let chunk = [0; 1 << 16];
    while socket.write(&chunk).is_ok_and(|written| written > 0) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use hopwise_host::{Interest, wait_until};

    /// Asks `poll` for the descriptor's two states.
    fn polled(bell: &Bell) -> (bool, bool) {
        let is = |interest| wait_until(bell.descriptor(), interest, Some(Duration::ZERO)).is_ok();
        (is(Interest::Read), is(Interest::Room))
    }

    #[test]
    fn a_descriptor_shows_each_of_the_four_states_and_both_sides_apart() {
        let bell = Bell::new().expect("a pair of sockets");
        assert_eq!(polled(&bell), (false, true));
        for (readable, writable) in
            [(true, true), (true, false), (false, false), (false, true), (true, false)]
        {
            bell.show(Side::Read, readable);
            bell.show(Side::Write, writable);
            bell.show(Side::Write, writable);
            assert_eq!(polled(&bell), (readable, writable));
        }
    }

    #[test]
    fn a_side_that_is_asked_shows_what_it_is_told_now_or_later() {
        let bell = Bell::new().expect("a pair of sockets");
        let mut waker = None;
        bell.ask(Side::Write, |cx| {
            waker = Some(cx.waker().clone());
            Poll::Pending
        });
        assert_eq!(polled(&bell), (false, false));
        waker.expect("it was asked").wake();
        assert_eq!(polled(&bell), (false, true));
        bell.ask(Side::Read, |_| Poll::Ready(Ok(())));
        assert_eq!(polled(&bell), (true, true));
        // The waker is called before the answer is out.
        bell.ask(Side::Read, |cx| {
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        assert_eq!(polled(&bell), (true, true));
    }
}
