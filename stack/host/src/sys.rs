//! The few calls into the system that nothing safe wraps.
#![expect(unsafe_code, reason = "ioctls and raw descriptors have no types")]

use std::ffi::CStr;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use hopwise_core::narrow::as_u32;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Takes the descriptor of a type that gives it out raw.
pub(crate) fn owned(fd: impl IntoRawFd) -> OwnedFd {
    let fd = fd.into_raw_fd();
    assert!(fd >= 0, "a descriptor that is open");
    // SAFETY: `into_raw_fd` gives up an open descriptor that nobody else owns.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// The descriptor of a value that hands it out raw and keeps it open as long as it lives.
#[cfg(feature = "pcap")]
pub(crate) fn borrowed<T>(_owner: &T, fd: std::os::fd::RawFd) -> BorrowedFd<'_> {
    assert!(fd >= 0, "a descriptor that is open");
    // SAFETY: the owner is borrowed for as long as its descriptor is.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Turns offload off: the TUN device then gives and takes single segments. The setting belongs to the device and
/// outlives its user.
pub(crate) fn clear_tun_offloads(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its flags by value and touches no memory of ours.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD as libc::Ioctl, 0_usize) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A number of this network namespace that is unique until the machine restarts, unlike the inode of its file. Kernels
/// before 5.14 have none.
pub(crate) fn namespace_cookie() -> Option<u64> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
    let (mut cookie, mut len) = (0_u64, as_u32(size_of::<u64>()));
    // SAFETY: the kernel writes at most `len` bytes, which is what `cookie` has.
    let result = unsafe {
        let cookie = (&raw mut cookie).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, cookie, &raw mut len)
    };
    (result == 0).then_some(cookie)
}

/// The name of the driver of a device, and that of its firmware.
pub fn driver_of(device: &str) -> io::Result<(String, String)> {
    /// A struct ethtool_drvinfo: the command, and behind it the name, the version, and the firmware's version.
    const COMMAND: u32 = 3;
    const NAME: Range<usize> = 4..36;
    const FIRMWARE: Range<usize> = 68..100;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut info = [0_u8; 196];
    info[..NAME.start].copy_from_slice(&COMMAND.to_ne_bytes());
    // SAFETY: zeros are a sound `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let letters = request.ifr_name.iter_mut().zip(device.bytes().take(libc::IFNAMSIZ - 1));
    letters.for_each(|(place, letter)| *place = letter.cast_signed() as libc::c_char);
    request.ifr_ifru.ifru_data = info.as_mut_ptr().cast();
    // SAFETY: the request and the struct that it points to have their kernel's sizes, and outlive the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), 0x8946 as libc::Ioctl, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let text = |of: Range<usize>| String::from_utf8_lossy(&info[of]).trim_end_matches('\0').to_owned();
    Ok((text(NAME), text(FIRMWARE)))
}

/// Lets a socket send and receive on one device alone.
pub(crate) fn bind_to_device(fd: BorrowedFd<'_>, device: &str) -> io::Result<()> {
    // SAFETY: the name is read with its true length, and needs no zero at its end.
    let result = unsafe {
        let (name, len) = (device.as_ptr().cast(), as_u32(device.len()));
        libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_BINDTODEVICE, name, len)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets an option that takes a number, at a level.
pub(crate) fn set_option(
    fd: BorrowedFd<'_>,
    (level, option): (libc::c_int, libc::c_int),
    value: libc::c_int,
) -> io::Result<()> {
    let len = as_u32(size_of_val(&value));
    // SAFETY: the value is read with its true length and outlives the call.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const value).cast(), len) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads an option of a level into `bytes`, and returns its length.
pub(crate) fn option(
    fd: BorrowedFd<'_>,
    (level, option): (libc::c_int, libc::c_int),
    bytes: &mut [u8],
) -> io::Result<usize> {
    let mut len = as_u32(bytes.len());
    // SAFETY: the kernel writes at most `len` bytes, which is what the slice has.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), level, option, bytes.as_mut_ptr().cast(), &raw mut len) };
    let read = usize::try_from(len).unwrap_or(usize::MAX).min(bytes.len());
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(read) }
}

/// Registers a descriptor with tokio's runtime, inside which it must be called. It fails with `Unsupported` if the
/// runtime has no I/O.
pub fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is open as long as its owner lives, which is here what is registered.
    let register = || unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    // A runtime does not reveal whether it has I/O. Without it, the registration panics before it changes anything. A
    // program built with `panic = "abort"` ends here.
    let registered = catch_unwind(AssertUnwindSafe(register)).map_err(|_| io::ErrorKind::Unsupported)?;
    Ok(registered?)
}

/// The descriptor with that number, which a process has inherited; an error if there is none.
pub(crate) fn inherited(number: std::os::fd::RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers. A process that is told a number by its parent has no other owner for it.
    unsafe {
        if libc::fcntl(number, libc::F_GETFD) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(number))
    }
}

/// Moves this process, which has one thread, into a user, a network, a mount and a UTS namespace of its own.
pub(crate) fn enter_own_namespaces() -> io::Result<()> {
    let own = libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::CLONE_NEWNS | libc::CLONE_NEWUTS;
    // SAFETY: it takes flags alone, and the kernel refuses it to a process with several threads.
    let result = unsafe { libc::unshare(own) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Moves this thread into a network namespace of its own.
pub(crate) fn enter_own_network() -> io::Result<()> {
    // SAFETY: it takes a flag alone, and a thread may have another network than the other threads of its process.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Shows one file in place of another in the mount namespace of this process, which is its own.
pub(crate) fn cover_file(from: &CStr, over: &CStr) -> io::Result<()> {
    let (nothing, no_data) = (std::ptr::null::<libc::c_char>(), std::ptr::null());
    let follows = libc::MS_REC | libc::MS_SLAVE;
    // SAFETY: the strings end with a zero and outlive the calls, and the kernel takes null where it wants no string.
    let result = unsafe {
        match libc::mount(nothing, c"/".as_ptr(), nothing, follows, no_data) {
            0 => libc::mount(from.as_ptr(), over.as_ptr(), nothing, libc::MS_BIND, no_data),
            failed => failed,
        }
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives this thread, and the processes that it starts, an empty folder in memory in place of that one. Others keep
/// theirs, and later mounts of theirs are seen here, too.
pub(crate) fn cover_folder(folder: &CStr) -> io::Result<()> {
    let (nowhere, kind) = (std::ptr::null::<libc::c_char>(), c"tmpfs".as_ptr());
    let follows = libc::MS_REC | libc::MS_SLAVE;
    // SAFETY: the thread shares nothing but mounts with others, and gives these up. The strings end with a zero and
    // outlive the calls, and the kernel takes null where it wants no string.
    let result = unsafe {
        match libc::unshare(libc::CLONE_NEWNS) {
            0 => match libc::mount(nowhere, c"/".as_ptr(), nowhere, follows, std::ptr::null()) {
                0 => libc::mount(kind, folder.as_ptr(), kind, 0, c"mode=0755".as_ptr().cast()),
                failed => failed,
            },
            failed => failed,
        }
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns whether a program synchronises the machine's clock (adjtimex, STA_UNSYNC).
pub fn clock_is_synchronised() -> io::Result<bool> {
    // SAFETY: the structure is sound when it is all zeros, which changes nothing, and the kernel fills it in.
    let (state, status) = unsafe {
        let mut facts: libc::timex = std::mem::zeroed();
        let state = libc::adjtimex(&raw mut facts);
        (state, facts.status)
    };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(state != libc::TIME_ERROR && status & libc::STA_UNSYNC == 0)
}

/// Schedules this thread before all threads without a deadline, but not the threads that it starts.
pub(crate) fn schedule_first() -> io::Result<()> {
    // SAFETY: the structure is sound when it is all zeros, and is read with its true length.
    let result = unsafe {
        let mut how: libc::sched_param = std::mem::zeroed();
        how.sched_priority = 1;
        libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &raw const how)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Bounds each file that this command and all that it starts will write: the signal SIGXFSZ ends a longer one. A bound
/// that is set once the program runs misses the children that it already has.
pub fn bound_files(command: &mut Command, most: u64) {
    let limit = Rlimit { current: Some(most), maximum: Some(most) };
    let set = move || setrlimit(Resource::Fsize, limit).map_err(io::Error::from);
    // SAFETY: the closure makes one system call. It takes no lock and no memory, so that it may run after a fork.
    unsafe { command.pre_exec(set) };
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_child_that_starts_at_once_has_the_bound_of_its_parent() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -f; sh -c 'ulimit -f'"]).stdin(Stdio::null());
        bound_files(&mut shell, 16 << 20);
        let said = shell.output().expect("there is a shell");
        // A shell counts in blocks of 512 bytes.
        assert_eq!(String::from_utf8_lossy(&said.stdout), "32768\n32768\n");
    }
}
