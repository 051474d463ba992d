//! Chooses the queue of a packet: a small program that the kernel runs for each packet towards us.
//!
//! The kernel's own choice remembers a flow for some seconds only. Then it would take an idle connection to a stack
//! that does not know it. An ICMP error must also find the stack whose segment it quotes.
#![expect(unsafe_code, reason = "giving a program to a device is a system call without types")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::bpf::code::{
    ADD, ADD_IMMEDIATE, AND, EXIT, JUMP, JUMP_ABOVE, JUMP_IF, JUMP_UNLESS, LOAD_BYTE, LOAD_BYTE_AT,
    LOAD_HALF, LOAD_HALF_AT, MOVE, MOVE_IMMEDIATE, MULTIPLY, SHIFT_LEFT, SHIFT_RIGHT, SHIFT_RIGHT_32,
};
use crate::bpf::{self, Code, Instruction};

const TCP: i32 = 6;
const ICMP: i32 = 1;
const ICMP_V6: i32 = 58;
/// Messages that quote a packet: unreachable or too large, time exceeded, wrong header.
const QUOTING: [i32; 3] = [3, 11, 12];
/// In ICMPv6, all of them are below the informational messages.
const LAST_QUOTING_V6: i32 = 127;

/// The places that jumps lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JumpTarget {
    Quoted,
    V6,
    Ports,
    Other,
}

/// The program. It returns the value of [`mixed`] for the ports of a TCP packet, or of one that an ICMP error quotes; 0
/// for other packets. The kernel takes it modulo the number of queues.
fn by_their_ports() -> Vec<Instruction> {
    let mut code = Code::new();
    code.op(MOVE, 6, 1, 0);
    code.op(LOAD_BYTE, 0, 0, 0);
    code.op(MOVE, 7, 0, 0);
    code.op(SHIFT_RIGHT, 0, 0, 4);
    code.jump(JUMP_IF, (0, 0), 6, JumpTarget::V6);
    code.jump(JUMP_UNLESS, (0, 0), 4, JumpTarget::Other);
    ports_of_v4(&mut code);
    code.here(JumpTarget::V6);
    ports_of_v6(&mut code);
    code.here(JumpTarget::Ports);
    code.op(LOAD_HALF_AT, 0, 7, 0);
    code.op(MOVE, 8, 0, 0);
    code.op(LOAD_HALF_AT, 0, 7, 2);
    code.op(ADD, 0, 8, 0);
    code.op(MULTIPLY, 0, 0, MIXER.cast_signed());
    code.op(SHIFT_RIGHT_32, 0, 0, 16);
    code.op(EXIT, 0, 0, 0);
    code.here(JumpTarget::Other);
    code.op(MOVE_IMMEDIATE, 0, 0, 0);
    code.op(EXIT, 0, 0, 0);
    code.finish()
}

/// Register 7 becomes the offset of the ports.
fn ports_of_v4(code: &mut Code<JumpTarget>) {
    code.op(LOAD_HALF, 0, 0, 6);
    code.op(AND, 0, 0, 0x1fff);
    code.jump(JUMP_UNLESS, (0, 0), 0, JumpTarget::Other); // fragments but the first
    code.op(LOAD_BYTE, 0, 0, 9);
    code.op(AND, 7, 0, 0xf);
    code.op(SHIFT_LEFT, 7, 0, 2);
    code.jump(JUMP_IF, (0, 0), TCP, JumpTarget::Ports);
    code.jump(JUMP_UNLESS, (0, 0), ICMP, JumpTarget::Other);
    code.op(LOAD_BYTE_AT, 0, 7, 0);
    let [unreachable, exceeded, wrong_header] = QUOTING;
    code.jump(JUMP_IF, (0, 0), unreachable, JumpTarget::Quoted);
    code.jump(JUMP_IF, (0, 0), exceeded, JumpTarget::Quoted);
    code.jump(JUMP_UNLESS, (0, 0), wrong_header, JumpTarget::Other);
    code.here(JumpTarget::Quoted);
    // The quoted packet begins after 8 bytes of ICMP.
    code.op(LOAD_BYTE_AT, 0, 7, 8);
    code.op(MOVE, 8, 0, 0);
    code.op(SHIFT_RIGHT, 0, 0, 4);
    code.jump(JUMP_UNLESS, (0, 0), 4, JumpTarget::Other);
    code.op(LOAD_BYTE_AT, 0, 7, 8 + 9);
    code.jump(JUMP_UNLESS, (0, 0), TCP, JumpTarget::Other);
    code.op(AND, 8, 0, 0xf);
    code.op(SHIFT_LEFT, 8, 0, 2);
    code.op(ADD, 7, 8, 0);
    code.op(ADD_IMMEDIATE, 7, 0, 8);
    code.jump(JUMP, (0, 0), 0, JumpTarget::Ports);
}

/// As [`ports_of_v4`].
fn ports_of_v6(code: &mut Code<JumpTarget>) {
    code.op(LOAD_BYTE, 0, 0, 6);
    code.op(MOVE_IMMEDIATE, 7, 0, 40);
    code.jump(JUMP_IF, (0, 0), TCP, JumpTarget::Ports);
    code.jump(JUMP_UNLESS, (0, 0), ICMP_V6, JumpTarget::Other);
    code.op(LOAD_BYTE, 0, 0, 40);
    code.jump(JUMP_ABOVE, (0, 0), LAST_QUOTING_V6, JumpTarget::Other);
    code.op(LOAD_BYTE, 0, 0, 48 + 6);
    code.jump(JUMP_UNLESS, (0, 0), TCP, JumpTarget::Other);
    code.op(MOVE_IMMEDIATE, 7, 0, 48 + 40);
}

/// 2^32 divided by the golden ratio.
const MIXER: u32 = 0x9e37_79b1;

/// A hash that both directions of a flow share. Linux' clients take even ports first: the plain sum would use one of
/// two queues alone.
pub(crate) fn mixed(one_port: u16, other_port: u16) -> u16 {
    let sum = u32::from(one_port) + u32::from(other_port);
    (sum.wrapping_mul(MIXER) >> 16) as u16
}

/// Installs the program. The device keeps it until its end, or until [`by_kernel`].
pub(super) fn by_ports(fd: BorrowedFd<'_>) -> io::Result<()> {
    let program = bpf::load(&by_their_ports())?;
    steer(fd, program.as_raw_fd())
}

/// Removes the program: the kernel chooses a queue by itself again.
pub(super) fn by_kernel(fd: BorrowedFd<'_>) -> io::Result<()> {
    steer(fd, -1)
}

fn steer(fd: BorrowedFd<'_>, number: i32) -> io::Result<()> {
    #[allow(clippy::cast_lossless, reason = "the type of a request differs between C libraries")]
    // SAFETY: the request reads one int, which `number` is.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETSTEERINGEBPF, &raw const number) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel does, with the instructions that are used here.
    fn run(packet: &[u8]) -> u16 {
        let program = by_their_ports();
        let (mut registers, mut at) = ([0_u64; 9], 0_usize);
        let load = |at: usize, len: usize| {
            packet
                .get(at..at + len)
                .map(|bytes| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
        };
        loop {
            let Instruction { code, registers: names, offset, immediate } = program[at];
            let (dst, src) = (usize::from(names & 0xf), usize::from(names >> 4));
            let value = u64::from(immediate.cast_unsigned());
            at += 1;
            let mut jump = || at = at.checked_add_signed(isize::from(offset)).unwrap();
            match code {
                MOVE => registers[dst] = registers[src],
                MOVE_IMMEDIATE => registers[dst] = value,
                SHIFT_RIGHT => registers[dst] >>= value,
                SHIFT_LEFT => registers[dst] <<= value,
                SHIFT_RIGHT_32 => registers[dst] = (registers[dst] & 0xffff_ffff) >> value,
                MULTIPLY => registers[dst] = registers[dst].wrapping_mul(value) & 0xffff_ffff,
                AND => registers[dst] &= value,
                ADD => registers[dst] += registers[src],
                ADD_IMMEDIATE => registers[dst] += value,
                JUMP_IF if registers[dst] == value => jump(),
                JUMP_UNLESS if registers[dst] != value => jump(),
                JUMP_ABOVE if registers[dst] > value => jump(),
                JUMP => jump(),
                EXIT => return registers[0] as u16,
                LOAD_BYTE | LOAD_HALF | LOAD_BYTE_AT | LOAD_HALF_AT => {
                    let base = if matches!(code, LOAD_BYTE_AT | LOAD_HALF_AT) { registers[src] } else { 0 };
                    let len = if matches!(code, LOAD_BYTE | LOAD_BYTE_AT) { 1 } else { 2 };
                    let Some(loaded) = load((base + value) as usize, len) else { return 0 };
                    registers[0] = loaded;
                }
                _ => {}
            }
        }
    }

    const PORTS: [u8; 4] = [0x30, 0x39, 0, 80];
    const BACK: [u8; 4] = [0, 80, 0x30, 0x39];

    fn v4(protocol: u8, options: usize, fragment: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20 + options];
        (packet[0], packet[9], packet[7]) = (0x45 + options as u8 / 4, protocol, fragment);
        packet.extend(payload);
        packet
    }

    fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[6]) = (0x60, next);
        packet.extend(payload);
        packet
    }

    fn icmp(kind: u8, quoted: &[u8]) -> Vec<u8> {
        [&[kind, 0, 0, 0, 0, 0, 0, 0], quoted].concat()
    }

    #[test]
    fn tcp_goes_by_its_ports_whatever_stands_before_them_and_whichever_way_it_goes() {
        let flow = mixed(12_345, 80);
        assert!(flow != 0);
        for packet in [v4(6, 0, 0, &PORTS), v4(6, 8, 0, &BACK), v6(6, &PORTS), v6(6, &BACK)] {
            assert_eq!(run(&packet), flow, "{packet:?}");
        }
    }

    #[test]
    fn an_icmp_error_goes_where_the_segment_came_from_that_it_quotes() {
        let flow = mixed(12_345, 80);
        for kind in [3, 11, 12] {
            for options in [0, 8] {
                let quoted = v4(6, options, 0, &PORTS);
                assert_eq!(run(&v4(1, 4, 0, &icmp(kind, &quoted))), flow, "{kind} {options}");
            }
        }
        for kind in 1..=4 {
            assert_eq!(run(&v6(58, &icmp(kind, &v6(6, &PORTS)))), flow, "{kind}");
        }
    }

    #[test]
    fn everything_else_goes_to_the_first_queue() {
        let tcp = v4(6, 0, 0, &PORTS);
        for packet in [
            v4(17, 0, 0, &PORTS),
            v4(6, 0, 9, &PORTS),
            v6(17, &PORTS),
            v4(1, 0, 0, &icmp(8, &tcp)),
            v4(1, 0, 0, &icmp(3, &v4(17, 0, 0, &PORTS))),
            v4(1, 0, 0, &icmp(3, &v6(6, &PORTS))),
            v6(58, &icmp(128, &v6(6, &PORTS))),
            v6(58, &icmp(1, &v6(17, &PORTS))),
            vec![0x45],
            vec![],
            vec![0x12; 60],
        ] {
            assert_eq!(run(&packet), 0, "{packet:?}");
        }
        let whole = v4(1, 0, 0, &icmp(3, &tcp));
        for bytes in 0..whole.len() {
            assert_eq!(run(&whole[..bytes]), 0, "{bytes} bytes");
        }
    }
}
