//! Signals as a descriptor, with their senders: a terminal sends them to all processes in front of it, and a program to
//! one alone.
#![expect(unsafe_code, reason = "signal masks and signalfd have no types")]

use std::io;
use std::marker::PhantomData;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// The size of `struct signalfd_siginfo`, and the places of a signal's number and of its cause.
const INFO: usize = 128;
const NUMBER: usize = 0;
const CAUSE: usize = 8;
/// The cause of a signal that the kernel sends, such as for a key of the terminal.
const BY_KERNEL: i32 = 0x80;

/// Signals that end this process no more by themselves.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// Its number.
    pub number: i32,
    /// The kernel sent it.
    pub by_kernel: bool,
}

impl Signals {
    /// Keeps these signals for [`next`](Signals::next). It must be called before there is a second thread. Programs
    /// that are started later do not get them either.
    pub fn keep(numbers: &[i32]) -> io::Result<Signals> {
        let kept = set_of(numbers);
        // SAFETY: the set is whole, and lives longer than both calls; no old mask is asked for.
        let fd = unsafe {
            if libc::pthread_sigmask(libc::SIG_BLOCK, &raw const kept, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::signalfd(-1, &raw const kept, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was opened a moment ago, and nobody else knows of it.
        Ok(Signals { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Becomes readable with a signal.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The next signal that came, if one has.
    pub fn next(&self) -> Option<Came> {
        let mut info = [0; INFO];
        let read = rustix::io::read(&self.fd, &mut info).ok()?;
        let word = |at: usize| info.get(at..at + 4)?.try_into().ok().map(i32::from_ne_bytes);
        let came = Came { number: word(NUMBER)?, by_kernel: word(CAUSE)? == BY_KERNEL };
        (read == INFO).then_some(came)
    }
}

/// Ends this process as this signal would have ended it, without a core of its own. It returns if the signal does not
/// end processes.
pub fn end_by(number: i32) {
    let alone = set_of(&[number]);
    // SAFETY: the calls take numbers and whole structures that live longer than they do. The default action of a signal
    // runs no code of ours.
    unsafe {
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
        libc::signal(number, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const alone, std::ptr::null_mut());
        libc::raise(number);
    }
}

/// Returns whether this process was started with this signal ignored, as by nohup(1).
pub fn is_ignored(number: i32) -> bool {
    action_of(number).is_some_and(|action| action.sa_sigaction == libc::SIG_IGN)
}

/// The signals of faults, which a thread makes itself.
const FAULTS: [i32; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// Until its drop, this thread runs no handler of a signal, except for faults. A thread that it starts meanwhile never
/// runs one. A handler may fork, and the child would go on with the work of the thread that it is a copy of.
#[derive(Debug)]
pub(crate) struct NoHandlers {
    before: libc::sigset_t,
    /// The mask is a thread's own.
    _stays: PhantomData<*const ()>,
}

impl NoHandlers {
    pub(crate) fn on_this_thread() -> NoHandlers {
        // SAFETY: the sets are made whole before they are used, and the calls write to them alone. They cannot fail
        // with these arguments.
        unsafe {
            let [mut held, mut before]: [libc::sigset_t; 2] = mem::zeroed();
            libc::sigfillset(&raw mut held);
            for number in FAULTS {
                libc::sigdelset(&raw mut held, number);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, &raw mut before);
            NoHandlers { before, _stays: PhantomData }
        }
    }
}

impl Drop for NoHandlers {
    fn drop(&mut self) {
        // SAFETY: the set is the one that this thread had, and no old mask is asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

/// Returns whether all handlers of this process ask that a call which they interrupt goes on (`SA_RESTART`). Handlers
/// of faults do not count: a thread that waits makes none.
pub fn all_restart() -> bool {
    let handlers = (1..=libc::SIGRTMAX()).filter(|number| !FAULTS.contains(number)).filter_map(action_of);
    let mut handlers =
        handlers.filter(|action| ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction));
    handlers.all(|action| action.sa_flags & libc::SA_RESTART != 0)
}

/// The action at a signal; `None` for a number that the C library keeps for itself.
fn action_of(number: i32) -> Option<libc::sigaction> {
    // SAFETY: a whole structure of zeros is a valid action, the call writes to it alone, and no new action is given.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        (libc::sigaction(number, std::ptr::null(), &raw mut action) == 0).then_some(action)
    }
}

fn set_of(numbers: &[i32]) -> libc::sigset_t {
    // SAFETY: the set is made empty before it is used, and the calls write to it alone.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for number in numbers {
            libc::sigaddset(&raw mut set, *number);
        }
        set
    }
}
