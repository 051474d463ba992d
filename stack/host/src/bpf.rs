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
    /// Calls the kernel's function of this number.
    pub(crate) const CALL: u8 = 0x85;
    /// A value of 64 bits, the higher half in the next instruction; with source 1, a map by its descriptor.
    pub(crate) const WIDE: u8 = 0x18;
    pub(crate) const MULTIPLY_64: u8 = 0x2f;
    pub(crate) const XOR: u8 = 0xaf;
    pub(crate) const SUBTRACT: u8 = 0x1f;
    pub(crate) const JUMP_SAME: u8 = 0x1d;
    /// Below, as signed numbers.
    pub(crate) const JUMP_BELOW: u8 = 0xc5;
    /// These take memory at a register and an offset, of 32 or of 64 bits.
    pub(crate) const READ_32: u8 = 0x61;
    pub(crate) const READ_64: u8 = 0x79;
    pub(crate) const WRITE_32: u8 = 0x63;
    pub(crate) const WRITE_64: u8 = 0x7b;
    /// Adds a register there, in one piece for all processors.
    pub(crate) const COUNT_64: u8 = 0xdb;
    /// All end the program with 0 if the packet is too short. Those with AT add a register to the offset.
    pub(crate) const LOAD_BYTE: u8 = 0x30;
    pub(crate) const LOAD_HALF: u8 = 0x28;
    pub(crate) const LOAD_BYTE_AT: u8 = 0x50;
    pub(crate) const LOAD_HALF_AT: u8 = 0x48;
    pub(crate) const LOAD_WORD: u8 = 0x20;
    pub(crate) const LOAD_WORD_AT: u8 = 0x40;
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

    /// An access to memory at an offset from a register.
    pub(crate) fn memory(&mut self, code: u8, dst: u8, src: u8, offset: i16) {
        self.instructions.push(Instruction { offset, ..op(code, dst, src, 0) });
    }

    pub(crate) fn wide(&mut self, dst: u8, src: u8, value: u64) {
        let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
        self.op(code::WIDE, dst, src, i32::from_le_bytes([a, b, c, d]));
        self.op(0, 0, 0, i32::from_le_bytes([e, f, g, h]));
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

/// The part of `union bpf_attr` that making a map reads.
#[repr(C)]
#[derive(Debug)]
struct MakeMap {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

const MAP_CREATE: libc::c_long = 0;
const PROGRAM_LOAD: libc::c_long = 5;
const ARRAY: u32 = 2;
const SOCKET_FILTER: u32 = 1;

/// Signals that come again and again end the attempts.
const MOST_CHECKS: u32 = 5;

/// A map whose memory this process may share.
pub(crate) const SHARED: u32 = 1 << 10;

/// Has the kernel check and keep a program for packets.
pub(crate) fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let about = LoadProgram {
        kind: SOCKET_FILTER,
        instructions: as_u32(program.len()),
        program: program.as_ptr() as u64,
        licence: c"Dual MIT/GPL".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    // A check that a signal interrupts ends so, and begins anew.
    for _ in 0..MOST_CHECKS {
        // SAFETY: the program and the licence that `about` points to outlive the call.
        match unsafe { descriptor(PROGRAM_LOAD, &about) } {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            loaded => return loaded,
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// Memory for programs: numbered entries that begin as zeros.
pub(crate) fn array(value_bytes: u32, entries: u32, flags: u32) -> io::Result<OwnedFd> {
    let about = MakeMap { kind: ARRAY, key_bytes: 4, value_bytes, entries, flags };
    // SAFETY: `about` points to nothing.
    unsafe { descriptor(MAP_CREATE, &about) }
}

/// Makes a call that returns a new descriptor.
///
/// # Safety
///
/// `T` must be the part of `union bpf_attr` that this call reads. All that `about` points to must outlive the call.
unsafe fn descriptor<T>(call: libc::c_long, about: &T) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads `about` with its true size; the caller vouches for what it points to.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, call, &raw const *about, size_of::<T>()) };
    let fd = i32::try_from(fd).unwrap_or(-1);
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened a moment ago, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
