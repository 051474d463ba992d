//! The lists of system calls by what they are for, with the names and numbers of this machine.
#![allow(clippy::unnecessary_cast, reason = "the type of a call's number differs between machines")]

/// Calls with their names. Numbers have 32 bits in the C library of some machines.
macro_rules! calls {
    ($($name:ident)*) => { &[$((stringify!($name), libc::$name as i64)),*] };
}

/// Calls that have a name and a number.
pub(super) type NamedCalls = [(&'static str, i64)];

pub(super) const FILES: &NamedCalls = calls! {
    SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_preadv SYS_preadv2 SYS_pwritev SYS_close
    SYS_close_range SYS_lseek SYS_fstat SYS_statx SYS_statfs SYS_fstatfs SYS_openat SYS_faccessat SYS_faccessat2
    SYS_readlinkat SYS_getdents64 SYS_fcntl SYS_flock SYS_ftruncate SYS_fallocate SYS_fsync SYS_fdatasync
    SYS_renameat SYS_renameat2 SYS_unlinkat SYS_mkdirat SYS_getcwd SYS_dup SYS_dup3 SYS_pipe2 SYS_sendfile
    SYS_splice SYS_copy_file_range
};
pub(super) const MEMORY: &NamedCalls = calls! { SYS_munmap SYS_mremap SYS_madvise SYS_brk SYS_membarrier };
pub(super) const THREADS: &NamedCalls = calls! {
    SYS_clone3 SYS_futex SYS_set_robust_list SYS_get_robust_list SYS_rseq SYS_set_tid_address SYS_exit SYS_exit_group
    SYS_wait4 SYS_waitid SYS_sched_yield SYS_sched_getaffinity SYS_getpid SYS_gettid SYS_getuid SYS_geteuid SYS_getgid
    SYS_getegid SYS_uname SYS_sysinfo SYS_getrandom SYS_capget SYS_restart_syscall
};
pub(super) const TIME: &NamedCalls = calls! {
    SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_nanosleep SYS_gettimeofday SYS_timerfd_create
    SYS_timerfd_settime SYS_timerfd_gettime
};
pub(super) const SIGNALS: &NamedCalls = calls! {
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_rt_sigtimedwait SYS_sigaltstack SYS_tgkill
};
pub(super) const EVENTS: &NamedCalls = calls! {
    SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_ppoll SYS_pselect6 SYS_eventfd2
};
pub(super) const SOCKETS: &NamedCalls = calls! {
    SYS_socketpair SYS_bind SYS_listen SYS_accept SYS_accept4 SYS_connect SYS_getsockname SYS_getpeername SYS_sendto
    SYS_recvfrom SYS_sendmsg SYS_recvmsg SYS_sendmmsg SYS_recvmmsg SYS_shutdown SYS_setsockopt SYS_getsockopt
};
/// Calls that only machines with 64 bits have, or that have another name elsewhere.
#[cfg(target_pointer_width = "64")]
pub(super) const WIDTH: &NamedCalls = calls! { SYS_newfstatat SYS_fadvise64 SYS_getrlimit };
/// The same of a 32-bit ARM. The C library has no names for the calls with times of 64 bits.
#[cfg(target_arch = "arm")]
pub(super) const WIDTH: &NamedCalls = &[
    ("SYS_fstatat64", libc::SYS_fstatat64 as i64),
    ("SYS_fstat64", libc::SYS_fstat64 as i64),
    ("SYS_stat64", libc::SYS_stat64 as i64),
    ("SYS_lstat64", libc::SYS_lstat64 as i64),
    ("SYS_statfs64", libc::SYS_statfs64 as i64),
    ("SYS_fstatfs64", libc::SYS_fstatfs64 as i64),
    ("SYS_fcntl64", libc::SYS_fcntl64 as i64),
    ("SYS_ftruncate64", libc::SYS_ftruncate64 as i64),
    ("SYS_sendfile64", libc::SYS_sendfile64 as i64),
    ("SYS__llseek", libc::SYS__llseek as i64),
    ("SYS__newselect", libc::SYS__newselect as i64),
    ("SYS_arm_fadvise64_64", libc::SYS_arm_fadvise64_64 as i64),
    ("SYS_ugetrlimit", libc::SYS_ugetrlimit as i64),
    ("SYS_getuid32", libc::SYS_getuid32 as i64),
    ("SYS_geteuid32", libc::SYS_geteuid32 as i64),
    ("SYS_getgid32", libc::SYS_getgid32 as i64),
    ("SYS_getegid32", libc::SYS_getegid32 as i64),
    ("SYS_send", libc::SYS_send as i64),
    ("SYS_recv", libc::SYS_recv as i64),
    ("SYS_sigreturn", libc::SYS_sigreturn as i64),
    ("SYS_clock_gettime64", 403),
    ("SYS_clock_getres_time64", 406),
    ("SYS_clock_nanosleep_time64", 407),
    ("SYS_timerfd_gettime64", 410),
    ("SYS_timerfd_settime64", 411),
    ("SYS_pselect6_time64", 413),
    ("SYS_ppoll_time64", 414),
    ("SYS_recvmmsg_time64", 417),
    ("SYS_rt_sigtimedwait_time64", 421),
    ("SYS_futex_time64", 422),
];
/// Maps memory. A 32-bit ARM counts the offset in pages, and has no other difference.
#[cfg(target_pointer_width = "64")]
pub(super) const MMAP: &NamedCalls = calls! { SYS_mmap };
#[cfg(target_arch = "arm")]
pub(super) const MMAP: &NamedCalls = calls! { SYS_mmap2 };
/// Older forms, which newer machines do not have.
#[cfg(any(target_arch = "x86_64", target_arch = "arm"))]
pub(super) const OLDER: &NamedCalls = calls! {
    SYS_open SYS_stat SYS_lstat SYS_access SYS_readlink SYS_rename SYS_unlink SYS_mkdir SYS_rmdir SYS_poll
    SYS_epoll_wait SYS_dup2 SYS_pipe
};
#[cfg(not(any(target_arch = "x86_64", target_arch = "arm")))]
pub(super) const OLDER: &NamedCalls = &[];
/// Older forms that only this machine has.
#[cfg(target_arch = "x86_64")]
pub(super) const OLDEST: &NamedCalls = calls! { SYS_select SYS_time };
#[cfg(not(target_arch = "x86_64"))]
pub(super) const OLDEST: &NamedCalls = &[];
/// Calls whose arguments decide.
pub(super) const DECIDED: &NamedCalls =
    calls! { SYS_clone SYS_mprotect SYS_socket SYS_ioctl SYS_prctl SYS_prlimit64 };
/// Calls that no daemon makes, listed for their names in the log.
pub(super) const REFUSED: &NamedCalls = calls! {
    SYS_execve SYS_execveat SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_kill SYS_tkill SYS_unshare
    SYS_setns SYS_mount SYS_umount2 SYS_pivot_root SYS_chroot SYS_bpf SYS_perf_event_open SYS_init_module
    SYS_finit_module SYS_keyctl SYS_add_key SYS_io_uring_setup SYS_userfaultfd SYS_setuid SYS_setgid SYS_setresuid
    SYS_setresgid SYS_setgroups SYS_capset SYS_seccomp SYS_personality SYS_sethostname SYS_reboot SYS_swapon SYS_acct
    SYS_memfd_create SYS_mknodat SYS_fchmodat SYS_fchownat SYS_linkat SYS_symlinkat SYS_getppid SYS_getpgid
    SYS_sched_setscheduler SYS_pidfd_open SYS_pidfd_getfd SYS_pidfd_send_signal SYS_umask SYS_chdir
};
