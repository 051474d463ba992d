//! Drops the SYNs of a flood in the kernel, before a TUN device queues them. Each that is read and answered costs three
//! times as much as a segment of a transfer.
//!
//! While more SYNs come than [`MOST_IN_A_SPAN`], one passes only if the same sender sent it before. A
//! program repeats its SYN after a second (RFC 6298 §2); forged addresses do not repeat theirs. The endpoint does the
//! same with the SYNs that reach it (`cookie_rate.rs`), and bounds how many it answers.
#![expect(unsafe_code, reason = "giving a program to a device and sharing memory with it have no types")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use hopwise_core::narrow::as_u32;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::bpf::code::{
    ADD, ADD_IMMEDIATE, AND, CALL, COUNT_64, EXIT, JUMP, JUMP_ABOVE, JUMP_BELOW, JUMP_IF, JUMP_SAME,
    JUMP_UNLESS, LOAD_BYTE, LOAD_BYTE_AT, LOAD_HALF, LOAD_WORD, LOAD_WORD_AT, MOVE, MOVE_IMMEDIATE,
    MULTIPLY_64, READ_32, READ_64, SHIFT_LEFT, SHIFT_RIGHT, SUBTRACT, WRITE_32, WRITE_64, XOR,
};
use crate::bpf::{self, Code, Instruction};
use crate::counters::{LinkCounters, LinkDrop};
use crate::sys::TUNSETFILTEREBPF;
use crate::tun::TunConfig;

/// SYNs are counted for 2^28 ns, which is 0.27 s.
const SPAN_BITS: i32 = 28;

/// 50,000 a second for each queue, and so for each endpoint: twice the SYNs that it answers with cookies. None here
/// accepts as many connections.
const MOST_IN_A_SPAN: i32 = 13_400;

/// Two names each: 4 MiB. At 100,000 other SYNs a second, nine of ten names are still there after a second.
const ENTRIES: u32 = 1 << 19;

/// The numbers that the program keeps in its first map, each of 64 bits.
#[derive(Clone, Copy, Debug)]
enum Number {
    /// The span that is counted, by the kernel's clock.
    Span,
    /// SYNs in it.
    Now,
    /// SYNs in the span before.
    Before,
    /// All that were dropped.
    Dropped,
}

const NUMBERS: usize = 4;

impl Number {
    fn at(self) -> i16 {
        self as i16 * 8
    }
}

/// The program on a device, which leaves it when this is dropped.
#[derive(Debug)]
pub(crate) struct SynSieve {
    fd: OwnedFd,
    numbers: Numbers,
}

impl SynSieve {
    /// None if it is not wanted, or if the kernel refuses: the endpoint alone then withstands floods, which costs more.
    pub(crate) fn on(
        config: &TunConfig,
        device: &str,
        (fd, queues): (BorrowedFd<'_>, u16),
    ) -> Option<SynSieve> {
        // A killed user has left its program to a device that outlives its users.
        clear(fd);
        if !config.drops_flood {
            return None;
        }
        let made = Program::load(MOST_IN_A_SPAN * i32::from(queues)).and_then(|program| program.go_on(fd));
        made.inspect_err(|error| {
            let said = "SYNs of a flood are not dropped in the kernel";
            // A user without the right to it can hardly change that.
            match error.kind() {
                io::ErrorKind::PermissionDenied => tracing::debug!(device, %error, "{said}"),
                _ => tracing::info!(device, %error, "{said}"),
            }
        })
        .ok()
    }

    /// Adds the SYNs that were dropped.
    pub(crate) fn count(sieve: Option<&SynSieve>, counters: &mut LinkCounters) {
        let dropped = sieve.map_or(0, |sieve| sieve.numbers.get(Number::Dropped));
        if dropped > 0 {
            counters.drops.insert(LinkDrop::SynFlood, dropped);
        }
    }
}

impl Drop for SynSieve {
    fn drop(&mut self) {
        clear(self.fd.as_fd());
    }
}

/// Removes the program of a device, if it has one.
fn clear(fd: BorrowedFd<'_>) {
    if let Err(error) = give(fd, -1) {
        tracing::debug!(%error, "the device knows no program that drops SYNs");
    }
}

/// Gives the device a program by its descriptor; takes it away by -1.
fn give(fd: BorrowedFd<'_>, program: i32) -> io::Result<()> {
    // SAFETY: the request reads one int, which `program` is.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETFILTEREBPF, &raw const program) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A program that the kernel has accepted.
#[derive(Debug)]
struct Program {
    fd: OwnedFd,
    numbers: Numbers,
}

impl Program {
    fn load(most: i32) -> io::Result<Program> {
        let numbers = bpf::array(as_u32(NUMBERS * 8), 1, bpf::SHARED)?;
        let names = bpf::array(8, ENTRIES, 0)?;
        let secrets = [getrandom::u64()?, getrandom::u64()?];
        let code = instructions(&numbers, &names, most, secrets);
        Ok(Program { fd: bpf::load(&code)?, numbers: Numbers::of(&numbers)? })
    }

    fn go_on(self, device: BorrowedFd<'_>) -> io::Result<SynSieve> {
        let fd = device.try_clone_to_owned()?;
        give(fd.as_fd(), self.fd.as_raw_fd())?;
        Ok(SynSieve { fd, numbers: self.numbers })
    }
}

/// The program's numbers, in memory that the kernel shares.
#[derive(Debug)]
struct Numbers(*const [AtomicU64; NUMBERS]);

// SAFETY: the memory is mapped for as long as this is there, and is read by atomic loads alone.
unsafe impl Send for Numbers {}
// SAFETY: as above.
unsafe impl Sync for Numbers {}

impl Numbers {
    fn of(map: &OwnedFd) -> io::Result<Numbers> {
        // SAFETY: a new mapping at a place that the kernel chooses.
        let at = unsafe {
            mmap(ptr::null_mut(), NUMBERS * 8, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, map, 0)
        }?;
        Ok(Numbers(at.cast()))
    }

    fn get(&self, number: Number) -> u64 {
        // SAFETY: mapped by `of` with this size, at the beginning of a page, until the drop.
        let numbers = unsafe { &*self.0 };
        numbers[number as usize].load(Ordering::Relaxed)
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        // SAFETY: mapped by `of` with this size; no reference to it outlives `get`.
        let _ = unsafe { munmap(self.0.cast_mut().cast(), NUMBERS * 8) };
    }
}

/// The places that jumps lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    NotPlain,
    V6,
    Syn,
    Same,
    Next,
    Flood,
    Pass,
}

/// The program. It returns the bytes to keep of a packet: all or none.
fn instructions(numbers: &OwnedFd, names: &OwnedFd, most: i32, secrets: [u64; 2]) -> Vec<Instruction> {
    let mut code = Code::new();
    name_of_a_syn(&mut code, secrets);
    code.here(Place::Syn);
    count(&mut code, numbers, most);
    code.here(Place::Flood);
    // The entry by 19 bits of the name, one of its halves by another one.
    code.op(MOVE, 1, 8, 0);
    code.op(AND, 1, 0, ENTRIES.cast_signed() - 1);
    code.memory(WRITE_32, 10, 1, -4);
    look_up(&mut code, names);
    code.op(MOVE, 1, 8, 0);
    code.op(SHIFT_RIGHT, 1, 0, 17);
    code.op(AND, 1, 0, 4);
    code.op(ADD, 0, 1, 0);
    code.op(SHIFT_RIGHT, 8, 0, 32);
    code.memory(READ_32, 1, 0, 0);
    code.jump(JUMP_SAME, (1, 8), 0, Place::Pass);
    code.memory(WRITE_32, 0, 8, 0);
    code.op(MOVE_IMMEDIATE, 1, 0, 1);
    code.memory(COUNT_64, 7, 1, Number::Dropped.at());
    code.op(MOVE_IMMEDIATE, 0, 0, 0);
    code.op(EXIT, 0, 0, 0);
    code.here(Place::Pass);
    code.memory(READ_32, 0, 6, PACKET_BYTES);
    code.op(EXIT, 0, 0, 0);
    code.finish()
}

/// `len` in `struct __sk_buff`.
const PACKET_BYTES: i16 = 0;

const TCP: i32 = 6;
const SYN: i32 = 0x02;
const FIN_SYN_RST_ACK: i32 = 0x17;

/// Lets everything but a SYN pass. Register 8 becomes the keyed hash of its source address and its ports.
fn name_of_a_syn(code: &mut Code<Place>, secrets: [u64; 2]) {
    code.op(MOVE, 6, 1, 0);
    code.wide(8, 0, secrets[0]);
    // Only odd factors keep all bits.
    code.wide(9, 0, secrets[1] | 1);
    code.memory(READ_32, 0, 6, PACKET_BYTES);
    code.jump(JUMP_BELOW, (0, 0), 40, Place::Pass);
    code.op(LOAD_BYTE, 0, 0, 0);
    code.jump(JUMP_UNLESS, (0, 0), 0x45, Place::NotPlain);
    v4_before_tcp(code);
    tcp(code, Header::At(20), &[12]);
    code.here(Place::NotPlain);
    code.op(MOVE, 7, 0, 0);
    code.op(SHIFT_RIGHT, 0, 0, 4);
    code.jump(JUMP_IF, (0, 0), 6, Place::V6);
    code.jump(JUMP_UNLESS, (0, 0), 4, Place::Pass);
    v4_before_tcp(code);
    code.op(AND, 7, 0, 0xf);
    code.op(SHIFT_LEFT, 7, 0, 2);
    tcp(code, Header::AtRegister7, &[12]);
    code.here(Place::V6);
    code.op(LOAD_BYTE, 0, 0, 6);
    code.jump(JUMP_UNLESS, (0, 0), TCP, Place::Pass);
    tcp(code, Header::At(40), &[8, 12, 16, 20]);
}

/// Lets other protocols pass, and fragments but the first.
fn v4_before_tcp(code: &mut Code<Place>) {
    code.op(LOAD_BYTE, 0, 0, 9);
    code.jump(JUMP_UNLESS, (0, 0), TCP, Place::Pass);
    code.op(LOAD_HALF, 0, 0, 6);
    code.op(AND, 0, 0, 0x1fff);
    code.jump(JUMP_UNLESS, (0, 0), 0, Place::Pass);
}

/// The place of a TCP header. A load at a known place costs a tenth of one at a register.
#[derive(Clone, Copy, Debug)]
enum Header {
    At(i32),
    AtRegister7,
}

fn tcp(code: &mut Code<Place>, header: Header, source: &[i32]) {
    let load = |code: &mut Code<Place>, by_place: u8, by_register: u8, offset: i32| match header {
        Header::At(place) => code.op(by_place, 0, 0, place + offset),
        Header::AtRegister7 => code.op(by_register, 0, 7, offset),
    };
    code.memory(READ_32, 0, 6, PACKET_BYTES);
    match header {
        Header::At(place) => code.op(ADD_IMMEDIATE, 0, 0, -place),
        Header::AtRegister7 => code.op(SUBTRACT, 0, 7, 0),
    }
    code.jump(JUMP_BELOW, (0, 0), 20, Place::Pass);
    load(code, LOAD_BYTE, LOAD_BYTE_AT, 13);
    code.op(AND, 0, 0, FIN_SYN_RST_ACK);
    code.jump(JUMP_UNLESS, (0, 0), SYN, Place::Pass);
    load(code, LOAD_WORD, LOAD_WORD_AT, 0);
    mix(code);
    for at in source {
        code.op(LOAD_WORD, 0, 0, *at);
        mix(code);
    }
    code.jump(JUMP, (0, 0), 0, Place::Syn);
}

/// Mixes register 0 into the name in register 8.
fn mix(code: &mut Code<Place>) {
    code.op(ADD, 8, 0, 0);
    code.op(MULTIPLY_64, 8, 9, 0);
    code.op(MOVE, 0, 8, 0);
    code.op(SHIFT_RIGHT, 0, 0, 32);
    code.op(XOR, 8, 0, 0);
}

/// Register 0 becomes the address of an entry, whose number is at the top of the stack.
fn look_up(code: &mut Code<Place>, map: &OwnedFd) {
    const LOOK_UP: i32 = 1;
    const BY_DESCRIPTOR: u8 = 1;
    code.wide(1, BY_DESCRIPTOR, u64::from(map.as_raw_fd().cast_unsigned()));
    code.op(MOVE, 2, 10, 0);
    code.op(ADD_IMMEDIATE, 2, 0, -4);
    code.op(CALL, 0, 0, LOOK_UP);
    code.jump(JUMP_IF, (0, 0), 0, Place::Pass);
}

/// Counts the SYN, and lets it pass unless this span or the one before had too many. Register 7 becomes the address of
/// the [`Number`]s. Two processors may count at once and lose one: it is a rate, and no account.
fn count(code: &mut Code<Place>, numbers: &OwnedFd, most: i32) {
    const NANOSECONDS: i32 = 5;
    code.op(MOVE_IMMEDIATE, 1, 0, 0);
    code.memory(WRITE_32, 10, 1, -4);
    look_up(code, numbers);
    code.op(MOVE, 7, 0, 0);
    code.op(CALL, 0, 0, NANOSECONDS);
    code.op(SHIFT_RIGHT, 0, 0, SPAN_BITS);
    code.memory(READ_64, 1, 7, Number::Span.at());
    code.jump(JUMP_SAME, (0, 1), 0, Place::Same);
    code.memory(READ_64, 2, 7, Number::Now.at());
    code.op(ADD_IMMEDIATE, 1, 0, 1);
    code.jump(JUMP_SAME, (0, 1), 0, Place::Next);
    code.op(MOVE_IMMEDIATE, 2, 0, 0);
    code.here(Place::Next);
    // First of all, so that other processors do not begin the span once more.
    code.memory(WRITE_64, 7, 0, Number::Span.at());
    code.memory(WRITE_64, 7, 2, Number::Before.at());
    code.op(MOVE_IMMEDIATE, 1, 0, 0);
    code.memory(WRITE_64, 7, 1, Number::Now.at());
    code.here(Place::Same);
    code.memory(READ_64, 1, 7, Number::Now.at());
    code.op(ADD_IMMEDIATE, 1, 0, 1);
    code.memory(WRITE_64, 7, 1, Number::Now.at());
    code.jump(JUMP_ABOVE, (1, 0), most, Place::Flood);
    code.memory(READ_64, 2, 7, Number::Before.at());
    code.jump(JUMP_ABOVE, (2, 0), most, Place::Flood);
    code.jump(JUMP, (0, 0), 0, Place::Pass);
}

#[cfg(test)]
mod tests;
