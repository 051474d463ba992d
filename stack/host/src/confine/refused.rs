//! Reports which system call was refused: the handler of SIGSYS, in the thread that made the call.
//!
//! seccomp raises SIGSYS in place of the call. The handler writes one line for each call's number, and lets the call
//! fail with EPERM. It allocates nothing and takes no lock.
#![expect(unsafe_code, reason = "a signal's handler and its arguments have no types")]

use std::io;
use std::mem::zeroed;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The bound of the system calls' numbers; each has a bit.
const MOST: usize = 1024;
static IS_QUIET: AtomicBool = AtomicBool::new(false);
static SAID: [AtomicU64; MOST / 64] = [const { AtomicU64::new(0) }; MOST / 64];

/// The kernel's arguments to a handler of SIGSYS, after the three numbers that every signal has (signal(7)).
#[repr(C)]
struct SigInfo {
    signal: libc::c_int,
    error: libc::c_int,
    code: libc::c_int,
    #[cfg(target_pointer_width = "64")]
    _room: libc::c_int,
    _at: *const libc::c_void,
    call: libc::c_int,
    _arch: libc::c_uint,
}

/// The code of a SIGSYS from seccomp (SYS_SECCOMP). A signal that a program sends has a code of its own.
const FROM_SECCOMP: libc::c_int = 1;

pub(super) fn handle() -> io::Result<()> {
    // SAFETY: the structure is sound when it is all zeros; the handler does only what signal-safety(7) allows.
    let result = unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = refuse as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Runs `work` without a report of refused calls.
pub(super) fn without_a_word<T>(work: impl FnOnce() -> T) -> T {
    IS_QUIET.store(true, Ordering::Relaxed);
    let done = work();
    IS_QUIET.store(false, Ordering::Relaxed);
    done
}

extern "C" fn refuse(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes both, and a SIGSYS has these fields.
    let (code, call) = unsafe {
        let info = info.cast::<SigInfo>();
        ((*info).code, (*info).call)
    };
    if code != FROM_SECCOMP {
        return;
    }
    fail(context);
    if IS_QUIET.load(Ordering::Relaxed) {
        return;
    }
    let nth = usize::try_from(call).unwrap_or(MOST);
    let Some(word) = SAID.get(nth / 64) else { return };
    if word.fetch_or(1 << (nth % 64), Ordering::Relaxed) & (1 << (nth % 64)) == 0 {
        say(nth);
    }
}

/// Makes the call return EPERM.
fn fail(context: *mut libc::c_void) {
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the kernel passes the registers with which the thread goes on.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        {
            (*context).uc_mcontext.gregs[libc::REG_RAX as usize] = -i64::from(libc::EPERM);
        }
        #[cfg(target_arch = "aarch64")]
        {
            (*context).uc_mcontext.regs[0] = i64::from(-libc::EPERM).cast_unsigned();
        }
        #[cfg(target_arch = "arm")]
        {
            (*context).uc_mcontext.arm_r0 = (-libc::EPERM).cast_unsigned();
        }
    }
}

fn say(call: usize) {
    let mut line = RefusedLine { bytes: [0; 160], len: 0 };
    line.push(b" WARN confine: refused the system call ");
    line.push(super::calls::name_of(call).as_bytes());
    line.push(b" (");
    line.push_number(call);
    line.push(b"); `confine: log` would allow it\n");
    write_if_it_takes_it(libc::STDERR_FILENO, &line.bytes[..line.len]);
}

/// Writes only if there is room: a reader that has stopped must not stop the thread, too. A signal's handler may call
/// little, so this one does not wait as all else does (`poller.rs`).
fn write_if_it_takes_it(fd: libc::c_int, text: &[u8]) {
    let mut watched = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one descriptor is watched, and nobody else has the bytes.
    unsafe {
        if libc::poll(&raw mut watched, 1, 0) == 1 {
            libc::write(fd, text.as_ptr().cast(), text.len());
        }
    }
}

struct RefusedLine {
    bytes: [u8; 160],
    len: usize,
}

impl RefusedLine {
    fn push(&mut self, text: &[u8]) {
        for byte in text {
            if let Some(at) = self.bytes.get_mut(self.len) {
                *at = *byte;
                self.len += 1;
            }
        }
    }

    fn push_number(&mut self, number: usize) {
        let mut divisor = 1000;
        while divisor > number && divisor > 1 {
            divisor /= 10;
        }
        while divisor > 0 {
            let digit = u8::try_from(number / divisor % 10).unwrap_or(0);
            self.push(&[b'0' + digit]);
            divisor /= 10;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write, pipe};
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_line_waits_for_no_reader() {
        let (mut reader, mut writer) = pipe().expect("a pipe");
        write_if_it_takes_it(writer.as_raw_fd(), b"read");
        let mut read = [0; 4];
        reader.read_exact(&mut read).expect("it was written");
        assert_eq!(&read, b"read");
        rustix::io::ioctl_fionbio(&writer, true).expect("it is ours");
        while writer.write(&[b'.'; 4096]).is_ok() {}
        rustix::io::ioctl_fionbio(&writer, false).expect("it is ours");
        write_if_it_takes_it(writer.as_raw_fd(), b"unread");
    }

    #[test]
    fn numbers_are_written_without_zeros_before_them() {
        for (number, text) in [(0, "0"), (7, "7"), (59, "59"), (435, "435"), (1023, "1023")] {
            let mut line = RefusedLine { bytes: [0; 160], len: 0 };
            line.push_number(number);
            assert_eq!(&line.bytes[..line.len], text.as_bytes());
        }
    }
}
