//! Programs that the kernel runs for each packet: their instructions, and the call that loads one.
#![expect(unsafe_code, reason = "loading a program is a system call without types")]

use hopwise_core::narrow::as_u32;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    pub(crate) code: u8,
    /// Destination in the low half, source in the high one.
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

const fn op(code: u8, dst: u8, src: u8, immediate: i32) -> Instruction {
    Instruction { code, registers: dst | (src << 4), offset: 0, immediate }
}

/// The operations, each with the kind of its operand.
pub(crate) mod code {
    pub(crate) const MOVE: u8 = 0xbf;
    pub(crate) const MOVE_IMMEDIATE: u8 = 0xb7;
    pub(crate) const SHIFT_RIGHT: u8 = 0x77;
    pub(crate) const SHIFT_LEFT: u8 = 0x67;
    pub(crate) const AND: u8 = 0x57;
    pub(crate) const ADD: u8 = 0x0f;
    pub(crate) const ADD_IMMEDIATE: u8 = 0x07;
    /// These two take the low 32 bits.
    pub(crate) const MULTIPLY: u8 = 0x24;
    pub(crate) const SHIFT_RIGHT_32: u8 = 0x74;
    pub(crate) const JUMP_IF: u8 = 0x15;
    pub(crate) const JUMP_UNLESS: u8 = 0x55;
    pub(crate) const JUMP_ABOVE: u8 = 0x25;
    pub(crate) const JUMP: u8 = 0x05;
    pub(crate) const EXIT: u8 = 0x95;
    /// All end the program with 0 if the packet is too short. Those with AT add a register to the offset.
    pub(crate) const LOAD_BYTE: u8 = 0x30;
    pub(crate) const LOAD_HALF: u8 = 0x28;
    pub(crate) const LOAD_BYTE_AT: u8 = 0x50;
    pub(crate) const LOAD_HALF_AT: u8 = 0x48;
}

/// A program in the making, whose jumps lead to places that are named by `P`.
#[derive(Debug)]
pub(crate) struct Code<P> {
    instructions: Vec<Instruction>,
    /// The number of an instruction and the place that it jumps to.
    jumps: Vec<(usize, P)>,
    places: Vec<(P, usize)>,
}

impl<P: Copy + PartialEq> Code<P> {
    pub(crate) fn new() -> Code<P> {
        Code { instructions: Vec::new(), jumps: Vec::new(), places: Vec::new() }
    }

    pub(crate) fn op(&mut self, code: u8, dst: u8, src: u8, immediate: i32) {
        self.instructions.push(op(code, dst, src, immediate));
    }

    /// Goes to a place if the registers, or `dst` and the value, compare as `code` asks.
    pub(crate) fn jump(&mut self, code: u8, (dst, src): (u8, u8), immediate: i32, to: P) {
        self.jumps.push((self.instructions.len(), to));
        self.op(code, dst, src, immediate);
    }

    pub(crate) fn here(&mut self, place: P) {
        self.places.push((place, self.instructions.len()));
    }

    pub(crate) fn finish(mut self) -> Vec<Instruction> {
        for (at, to) in self.jumps {
            let place = self.places.iter().find(|(place, _)| *place == to);
            let to = place.map(|(_, to)| *to).expect("each place is in the program");
            // The kernel counts from the instruction after the jump.
            let distance = to.cast_signed() - at.cast_signed() - 1;
            self.instructions[at].offset = i16::try_from(distance).expect("a program is short");
        }
        self.instructions
    }
}

/// The part of `union bpf_attr` that loading a program reads.
#[repr(C)]
#[derive(Debug, Default)]
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

/// Signals that come again and again end the attempts.
const MOST_CHECKS: u32 = 5;

/// Has the kernel check and keep a program for packets.
pub(crate) fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let about = LoadProgram {
        kind: SOCKET_FILTER,
        instructions: as_u32(program.len()),
        program: program.as_ptr() as u64,
        licence: c"Dual MIT/GPL".as_ptr() as u64,
        ..LoadProgram::default()
    };
    // A check that a signal interrupts ends so, and begins anew.
    for _ in 0..MOST_CHECKS {
        // SAFETY: the kernel reads `about` with its true size; program and licence outlive the call.
        let fd =
            unsafe { libc::syscall(libc::SYS_bpf, PROGRAM_LOAD, &raw const about, size_of::<LoadProgram>()) };
        let fd = i32::try_from(fd).unwrap_or(-1);
        if fd >= 0 {
            // SAFETY: it was opened a moment ago, and nobody else knows of it.
            return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::WouldBlock {
            return Err(error);
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}
