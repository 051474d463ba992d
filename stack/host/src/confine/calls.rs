//! The system calls that a daemon needs after it has opened its files. seccomp refuses every other call.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};

use super::refused;
use lists::{
    DECIDED, EVENTS, FILES, MEMORY, MMAP, NamedCalls, OLDER, OLDEST, REFUSED, SIGNALS, SOCKETS, THREADS,
    TIME, WIDTH,
};

mod lists;

/// The result of a system call that is not in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallRefusal {
    /// It fails with EPERM, and standard error names it, once for each call.
    Fails,
    /// The kernel carries it out, and its log names it.
    IsLogged,
}

/// The calls of one daemon that not every daemon needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// The families of new sockets, such as `AF_INET`.
    pub families: Vec<i32>,
}

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

/// Calls that are always allowed.
const ALWAYS: [&NamedCalls; 10] =
    [FILES, MEMORY, THREADS, TIME, SIGNALS, EVENTS, SOCKETS, WIDTH, OLDER, OLDEST];

/// The name of a refused call, or a placeholder if it is unknown.
pub(super) fn name_of(call: usize) -> &'static str {
    let number = i64::try_from(call).unwrap_or(-1);
    let found = ALWAYS.into_iter().chain([MMAP, DECIDED, REFUSED]).flatten().find(|(_, of)| *of == number);
    found.map_or("of this number", |(name, _)| name.strip_prefix("SYS_").unwrap_or(name))
}

/// Refuses all other calls from here on, for all threads. A thread must not block SIGSYS, or the first refusal ends the
/// program.
pub fn give_up_calls(calls: &Calls, refusal: CallRefusal) -> io::Result<()> {
    if refusal == CallRefusal::Fails {
        refused::handle()?;
    }
    apply(calls, refusal).map_err(io::Error::other)
}

/// Makes a call that has no effect and that no daemon makes. Returns whether it was refused.
pub fn try_a_refused_call() -> bool {
    refused::without_a_word(|| rustix::process::getpgid(None).is_err())
}

fn apply(calls: &Calls, refusal: CallRefusal) -> Result<(), Error> {
    // No filter can read the arguments of `clone3`. If it fails, the C library makes threads by `clone`.
    let without = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    let of_clone3 = BTreeMap::from([(number(libc::SYS_clone3), Vec::new())]);
    let refused = match refusal {
        CallRefusal::Fails => SeccompAction::Trap,
        CallRefusal::IsLogged => SeccompAction::Log,
    };
    for (rules, others, matched) in
        [(of_clone3, SeccompAction::Allow, without), (rules(calls)?, refused, SeccompAction::Allow)]
    {
        apply_filter_all_threads(&program(rules, others, matched)?)?;
    }
    Ok(())
}

/// seccompiler has no 32-bit ARM. The kernel passes the arguments as it does on the 64-bit one (`struct seccomp_data`),
/// so that only the test of the machine differs.
fn program(rules: SeccompRules, others: SeccompAction, matched: SeccompAction) -> Result<BpfProgram, Error> {
    let machine = std::env::consts::ARCH;
    let arch = if machine == "arm" { TargetArch::aarch64 } else { TargetArch::try_from(machine)? };
    let mut program: BpfProgram = SeccompFilter::new(rules, others, matched, arch)?.try_into()?;
    if machine == "arm" {
        for instruction in program.iter_mut().filter(|instruction| instruction.k == AARCH64) {
            instruction.k = ARM;
        }
    }
    Ok(program)
}

/// The machines' names in a filter (`AUDIT_ARCH_AARCH64` and `AUDIT_ARCH_ARM` of linux/audit.h).
const AARCH64: u32 = 0xc000_00b7;
const ARM: u32 = 0x4000_0028;

type SeccompRules = BTreeMap<i64, Vec<SeccompRule>>;

/// A call's number, which has 32 bits in the C library of some machines.
#[allow(clippy::unnecessary_cast, reason = "the type of a call's number differs between machines")]
const fn number(call: libc::c_long) -> i64 {
    call as i64
}

fn rules(calls: &Calls) -> Result<SeccompRules, Error> {
    let mut rules: SeccompRules = ALWAYS.into_iter().flatten().map(|(_, call)| (*call, Vec::new())).collect();
    let families = calls.families.iter().map(|family| u64::from(family.cast_unsigned()));
    rules.insert(number(libc::SYS_socket), any_of(0, families)?);
    rules.insert(number(libc::SYS_ioctl), any_of(1, REQUESTS)?);
    let names = [libc::PR_SET_NAME, libc::PR_GET_NAME, libc::PR_SET_VMA, libc::PR_CAPBSET_READ];
    rules.insert(number(libc::SYS_prctl), any_of(0, names.map(|name| u64::from(name.cast_unsigned())))?);
    rules.insert(number(libc::SYS_clone), vec![masked(0, THREAD, THREAD)?]);
    // Only signals to this process, such as `abort`'s.
    rules.insert(number(libc::SYS_tgkill), any_of(0, [u64::from(std::process::id())])?);
    rules.insert(number(libc::SYS_socketpair), any_of(0, [u64::from(libc::AF_UNIX.cast_unsigned())])?);
    // A limit may be read, but not set.
    rules.insert(number(libc::SYS_prlimit64), vec![SeccompRule::new(vec![is(2, SeccompCmpOp::Eq, 0)?])?]);
    // Writable memory never becomes executable. A module of the C library is mapped from its file.
    for (_, call) in MMAP {
        rules.insert(*call, vec![masked(2, EXEC, 0)?, masked(2, WRITE, 0)?]);
    }
    rules.insert(number(libc::SYS_mprotect), vec![masked(2, EXEC, 0)?]);
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
