//! Which queue a packet goes to: a small program that the kernel runs for each packet towards us.
//!
//! The kernel's own choice remembers a flow for some seconds and guesses then, which would take an idle connection to a
//! stack that knows nothing of it.
#![expect(unsafe_code, reason = "loading a program and giving it to a device are system calls without types")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Instruction {
    code: u8,
    /// Destination in the low half, source in the high one.
    registers: u8,
    offset: i16,
    immediate: i32,
}

const fn op(code: u8, dst: u8, src: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, registers: dst | (src << 4), offset, immediate }
}

const MOVE: u8 = 0xbf;
const MOVE_IMMEDIATE: u8 = 0xb7;
const SHIFT_RIGHT: u8 = 0x77;
const SHIFT_LEFT: u8 = 0x67;
const AND: u8 = 0x57;
const ADD: u8 = 0x0f;
const JUMP_IF: u8 = 0x15;
const JUMP_UNLESS: u8 = 0x55;
const JUMP: u8 = 0x05;
const EXIT: u8 = 0x95;
/// Both end the program with 0 where the packet is too short.
const LOAD_BYTE: u8 = 0x30;
const LOAD_HALF: u8 = 0x28;
const LOAD_HALF_AT: u8 = 0x48;

const TCP: i32 = 6;

/// The sum of both ports of a TCP packet; 0 for all else. The kernel takes its last 16 bits and divides them by the
/// number of queues. Jumps count from the instruction after them.
const BY_PORTS: [Instruction; 24] = [
    op(MOVE, 6, 1, 0, 0),
    op(LOAD_BYTE, 0, 0, 0, 0),
    op(MOVE, 7, 0, 0, 0),
    op(SHIFT_RIGHT, 0, 0, 0, 4),
    op(JUMP_IF, 0, 0, 13, 6), // to IPv6
    op(JUMP_UNLESS, 0, 0, 16, 4),
    op(LOAD_BYTE, 0, 0, 0, 9),
    op(JUMP_UNLESS, 0, 0, 14, TCP),
    op(LOAD_HALF, 0, 0, 0, 6),
    op(AND, 0, 0, 0, 0x1fff),
    op(JUMP_UNLESS, 0, 0, 11, 0), // fragments but the first
    op(AND, 7, 0, 0, 0xf),
    op(SHIFT_LEFT, 7, 0, 0, 2),
    // The ports, at the place that register 7 says.
    op(LOAD_HALF_AT, 0, 7, 0, 0),
    op(MOVE, 8, 0, 0, 0),
    op(LOAD_HALF_AT, 0, 7, 0, 2),
    op(ADD, 0, 8, 0, 0),
    op(EXIT, 0, 0, 0, 0),
    // IPv6.
    op(LOAD_BYTE, 0, 0, 0, 6),
    op(JUMP_UNLESS, 0, 0, 2, TCP),
    op(MOVE_IMMEDIATE, 7, 0, 0, 40),
    op(JUMP, 0, 0, -9, 0), // to the ports
    op(MOVE_IMMEDIATE, 0, 0, 0, 0),
    op(EXIT, 0, 0, 0, 0),
];

/// The part of `union bpf_attr` that loading a program reads.
#[repr(C)]
#[derive(Debug)]
struct LoadProgram {
    kind: u32,
    instructions: u32,
    program: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

const PROGRAM_LOAD: libc::c_long = 5;
const SOCKET_FILTER: u32 = 1;
/// `_IOR('T', 224, int)`.
const SET_STEERING: libc::Ioctl = 0x8004_54e0;

/// The device keeps the program; it ends with the device.
pub(super) fn by_ports(fd: BorrowedFd<'_>) -> io::Result<()> {
    let program = load()?;
    let number = program.as_raw_fd();
    #[allow(clippy::cast_lossless, reason = "the type of a request differs between C libraries")]
    // SAFETY: the request reads one int, which `number` is.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), SET_STEERING, &raw const number) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn load() -> io::Result<OwnedFd> {
    let about = LoadProgram {
        kind: SOCKET_FILTER,
        instructions: BY_PORTS.len() as u32,
        program: BY_PORTS.as_ptr() as u64,
        licence: c"Dual MIT/GPL".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    // SAFETY: the kernel reads `about`, with its true size, and the program and licence that it points to, which are
    // constants.
    let fd =
        unsafe { libc::syscall(libc::SYS_bpf, PROGRAM_LOAD, &raw const about, size_of::<LoadProgram>()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened a moment ago, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel does, as far as it is used here.
    fn run(packet: &[u8]) -> u64 {
        let (mut registers, mut at) = ([0_u64; 9], 0_usize);
        let load = |at: usize, len: usize| {
            packet
                .get(at..at + len)
                .map(|bytes| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
        };
        loop {
            let Instruction { code, registers: names, offset, immediate } = BY_PORTS[at];
            let (dst, src, value) =
                (usize::from(names & 0xf), usize::from(names >> 4), u64::from(immediate.unsigned_abs()));
            at += 1;
            let mut jump = || at = at.checked_add_signed(isize::from(offset)).unwrap();
            match code {
                MOVE => registers[dst] = registers[src],
                MOVE_IMMEDIATE => registers[dst] = value,
                SHIFT_RIGHT => registers[dst] >>= value,
                SHIFT_LEFT => registers[dst] <<= value,
                AND => registers[dst] &= value,
                ADD => registers[dst] += registers[src],
                JUMP_IF if registers[dst] == value => jump(),
                JUMP_UNLESS if registers[dst] != value => jump(),
                JUMP => jump(),
                EXIT => return registers[0],
                LOAD_BYTE | LOAD_HALF | LOAD_HALF_AT => {
                    let base = if code == LOAD_HALF_AT { registers[src] } else { 0 };
                    let len = if code == LOAD_BYTE { 1 } else { 2 };
                    let Some(loaded) = load((base + value) as usize, len) else { return 0 };
                    registers[0] = loaded;
                }
                _ => {}
            }
        }
    }

    fn v4(protocol: u8, options: usize, fragment: u8) -> Vec<u8> {
        let mut packet = vec![0; 20 + options + 20];
        (packet[0], packet[9], packet[7]) = (0x45 + options as u8 / 4, protocol, fragment);
        packet[20 + options..24 + options].copy_from_slice(&[0x30, 0x39, 0, 80]);
        packet
    }

    #[test]
    fn tcp_goes_by_the_sum_of_its_ports_whatever_stands_before_it() {
        assert_eq!(run(&v4(6, 0, 0)), 12_345 + 80);
        assert_eq!(run(&v4(6, 8, 0)), 12_345 + 80);
        let mut v6 = vec![0; 60];
        (v6[0], v6[6]) = (0x60, 6);
        v6[40..44].copy_from_slice(&[0, 80, 0x30, 0x39]);
        assert_eq!(run(&v6), 12_345 + 80);
    }

    #[test]
    fn everything_else_goes_to_the_first_queue() {
        let mut v6_udp = vec![0; 60];
        (v6_udp[0], v6_udp[6], v6_udp[41]) = (0x60, 17, 9);
        for packet in [&v4(17, 0, 0)[..], &v4(1, 0, 0), &v4(6, 0, 9), &v6_udp, &[0x45], &[], &[0x12; 60]] {
            assert_eq!(run(packet), 0, "{packet:?}");
        }
    }
}
