//! The system calls that a daemon needs after it has opened its files. seccomp refuses all others.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};

use super::refused;

/// The result of a system call that is not in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It fails with EPERM, and standard error names it, once for each call.
    Fails,
    /// The kernel carries it out, and its log names it.
    IsLogged,
}

/// The calls of one daemon besides those of every daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// The families of new sockets, such as `AF_INET`.
    pub families: Vec<i32>,
}

/// Calls with their names.
macro_rules! calls {
    ($($name:ident)*) => { &[$((stringify!($name), libc::$name)),*] };
}

type Named = [(&'static str, libc::c_long)];

const FILES: &Named = calls! {
    SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_preadv SYS_pwritev SYS_close SYS_close_range
    SYS_lseek SYS_fstat SYS_newfstatat SYS_statx SYS_statfs SYS_fstatfs SYS_openat SYS_faccessat SYS_faccessat2
    SYS_readlinkat SYS_getdents64 SYS_fcntl SYS_flock SYS_ftruncate SYS_fallocate SYS_fsync SYS_fdatasync
    SYS_renameat SYS_renameat2 SYS_unlinkat SYS_mkdirat SYS_getcwd SYS_dup SYS_dup3 SYS_pipe2 SYS_sendfile SYS_splice
    SYS_copy_file_range SYS_fadvise64
};
const MEMORY: &Named = calls! { SYS_munmap SYS_mremap SYS_madvise SYS_brk SYS_membarrier };
const THREADS: &Named = calls! {
    SYS_clone3 SYS_futex SYS_set_robust_list SYS_get_robust_list SYS_rseq SYS_set_tid_address SYS_exit SYS_exit_group
    SYS_wait4 SYS_waitid SYS_sched_yield SYS_sched_getaffinity SYS_getpid SYS_gettid SYS_getuid SYS_geteuid SYS_getgid
    SYS_getegid SYS_uname SYS_sysinfo SYS_getrlimit SYS_getrandom SYS_capget SYS_restart_syscall
};
const TIME: &Named = calls! {
    SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_nanosleep SYS_gettimeofday SYS_timerfd_create
    SYS_timerfd_settime SYS_timerfd_gettime
};
const SIGNALS: &Named = calls! {
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_rt_sigtimedwait SYS_sigaltstack SYS_tgkill
};
const EVENTS: &Named = calls! {
    SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_ppoll SYS_pselect6 SYS_eventfd2
};
const SOCKETS: &Named = calls! {
    SYS_socketpair SYS_bind SYS_listen SYS_accept SYS_accept4 SYS_connect SYS_getsockname SYS_getpeername SYS_sendto
    SYS_recvfrom SYS_sendmsg SYS_recvmsg SYS_sendmmsg SYS_recvmmsg SYS_shutdown SYS_setsockopt SYS_getsockopt
};
/// Older forms, which newer machines do not have.
#[cfg(target_arch = "x86_64")]
const OLDER: &Named = calls! {
    SYS_open SYS_stat SYS_lstat SYS_access SYS_readlink SYS_rename SYS_unlink SYS_mkdir SYS_rmdir SYS_poll SYS_select
    SYS_epoll_wait SYS_dup2 SYS_pipe SYS_time
};
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &Named = &[];
/// Calls whose arguments decide.
const DECIDED: &Named =
    calls! { SYS_clone SYS_mmap SYS_mprotect SYS_socket SYS_ioctl SYS_prctl SYS_prlimit64 };
/// Calls that no daemon makes, listed for their names in the log.
const REFUSED: &Named = calls! {
    SYS_execve SYS_execveat SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_kill SYS_tkill SYS_unshare
    SYS_setns SYS_mount SYS_umount2 SYS_pivot_root SYS_chroot SYS_bpf SYS_perf_event_open SYS_init_module
    SYS_finit_module SYS_keyctl SYS_add_key SYS_io_uring_setup SYS_userfaultfd SYS_setuid SYS_setgid SYS_setresuid
    SYS_setresgid SYS_setgroups SYS_capset SYS_seccomp SYS_personality SYS_sethostname SYS_reboot SYS_swapon SYS_acct
    SYS_memfd_create SYS_mknodat SYS_fchmodat SYS_fchownat SYS_linkat SYS_symlinkat SYS_getppid SYS_getpgid
    SYS_sched_setscheduler SYS_pidfd_open SYS_pidfd_getfd SYS_pidfd_send_signal SYS_umask SYS_chdir
};

/// The flags of a new thread of this program, in contrast to another program (clone(2)).
const THREAD: u64 = (libc::CLONE_VM | libc::CLONE_THREAD) as u64;
const WRITE: u64 = libc::PROT_WRITE as u64;
const EXEC: u64 = libc::PROT_EXEC as u64;
/// Requests for sizes and flags, and for settings of a TUN device that outlive its user.
#[allow(clippy::unnecessary_cast, reason = "the type of a request differs between C libraries")]
const REQUESTS: [u64; 12] = [
    libc::FIONBIO as u64,
    libc::FIONREAD as u64,
    libc::FIOCLEX as u64,
    libc::TCGETS as u64,
    libc::TIOCOUTQ as u64,
    libc::TIOCGWINSZ as u64,
    libc::SIOCGIFNAME as u64,
    libc::SIOCGIFINDEX as u64,
    libc::SIOCGIFMTU as u64,
    libc::SIOCGIFHWADDR as u64,
    libc::TUNSETOFFLOAD as u64,
    libc::TUNSETSTEERINGEBPF as u64,
];

/// The name of a refused call, or a placeholder if it is unknown.
pub(super) fn name_of(call: usize) -> &'static str {
    let all = [FILES, MEMORY, THREADS, TIME, SIGNALS, EVENTS, SOCKETS, OLDER, DECIDED, REFUSED];
    let number = libc::c_long::try_from(call).unwrap_or(-1);
    let found = all.into_iter().flatten().find(|(_, of)| *of == number);
    found.map_or("of this number", |(name, _)| name.strip_prefix("SYS_").unwrap_or(name))
}

/// Refuses all other calls from here on, for all threads. A thread must not block SIGSYS, or the first refusal ends the
/// program.
pub fn give_up_calls(calls: &Calls, refusal: Refusal) -> io::Result<()> {
    if refusal == Refusal::Fails {
        refused::handle()?;
    }
    apply(calls, refusal).map_err(io::Error::other)
}

/// Makes a call that has no effect and that no daemon makes. Returns whether it was refused.
pub fn try_a_refused_call() -> bool {
    refused::without_a_word(|| rustix::process::getpgid(None).is_err())
}

fn apply(calls: &Calls, refusal: Refusal) -> Result<(), Error> {
    // No filter can read the arguments of `clone3`. If it fails, the C library makes threads by `clone`.
    let without = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    let of_clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let refused = match refusal {
        Refusal::Fails => SeccompAction::Trap,
        Refusal::IsLogged => SeccompAction::Log,
    };
    for (rules, others, matched) in
        [(of_clone3, SeccompAction::Allow, without), (rules(calls)?, refused, SeccompAction::Allow)]
    {
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        let program: BpfProgram = SeccompFilter::new(rules, others, matched, arch)?.try_into()?;
        apply_filter_all_threads(&program)?;
    }
    Ok(())
}

type SeccompRules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

fn rules(calls: &Calls) -> Result<SeccompRules, Error> {
    let always = [FILES, MEMORY, THREADS, TIME, SIGNALS, EVENTS, SOCKETS, OLDER];
    let mut rules: SeccompRules = always.into_iter().flatten().map(|(_, call)| (*call, Vec::new())).collect();
    let families = calls.families.iter().map(|family| u64::from(family.cast_unsigned()));
    rules.insert(libc::SYS_socket, any_of(0, families)?);
    rules.insert(libc::SYS_ioctl, any_of(1, REQUESTS)?);
    let names = [libc::PR_SET_NAME, libc::PR_GET_NAME, libc::PR_SET_VMA, libc::PR_CAPBSET_READ];
    rules.insert(libc::SYS_prctl, any_of(0, names.map(|name| u64::from(name.cast_unsigned())))?);
    rules.insert(libc::SYS_clone, vec![masked(0, THREAD, THREAD)?]);
    // Only signals to this process, such as that of `abort`.
    rules.insert(libc::SYS_tgkill, any_of(0, [u64::from(std::process::id())])?);
    rules.insert(libc::SYS_socketpair, any_of(0, [u64::from(libc::AF_UNIX.cast_unsigned())])?);
    // A limit may be read, but not set.
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![is(2, SeccompCmpOp::Eq, 0)?])?]);
    // Writable memory never becomes executable. A module of the C library is mapped from its file.
    rules.insert(libc::SYS_mmap, vec![masked(2, EXEC, 0)?, masked(2, WRITE, 0)?]);
    rules.insert(libc::SYS_mprotect, vec![masked(2, EXEC, 0)?]);
    Ok(rules)
}

fn is(argument: u8, how: SeccompCmpOp, value: u64) -> Result<SeccompCondition, Error> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Qword, how, value)?)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompRule, Error> {
    Ok(SeccompRule::new(vec![is(argument, SeccompCmpOp::MaskedEq(mask), value)?])?)
}

/// Rules for an argument that is one of these values. They compare its lower half: the kernel reads no more of it.
fn any_of(argument: u8, values: impl IntoIterator<Item = u64>) -> Result<Vec<SeccompRule>, Error> {
    let rule = |value| {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?;
        Ok(SeccompRule::new(vec![condition])?)
    };
    values.into_iter().map(rule).collect()
}
