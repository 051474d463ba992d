use std::fs;
use std::time::Duration;

use hopwise_core::wire::protocol;
use tun_tap::Mode;

use super::*;
use crate::Namespace;
use crate::tun::create;

/// The part of `union bpf_attr` that a test run of a program reads and writes.
#[repr(C)]
#[derive(Debug, Default)]
struct TestRun {
    program: u32,
    returned: u32,
    bytes: u32,
    bytes_out: u32,
    packet: u64,
    packet_out: u64,
    repeat: u32,
    duration: u32,
}

const TEST_RUN: libc::c_long = 10;

/// None where this process may not load programs; prints the reason.
fn loaded(test: &str, most: i32) -> Option<Program> {
    match Program::load(most) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            eprintln!("skipped {test}: it takes the right to load a program of the kernel's packet filter");
            None
        }
        program => Some(program.expect("the kernel takes the program")),
    }
}

impl Program {
    /// The bytes that it keeps of a packet, as the kernel runs it.
    fn keeps(&self, packet: &[u8]) -> usize {
        let frame = [&[0; 14], packet].concat();
        let mut about = TestRun {
            program: self.fd.as_raw_fd().cast_unsigned(),
            bytes: as_u32(frame.len()),
            packet: frame.as_ptr() as u64,
            ..TestRun::default()
        };
        // SAFETY: the kernel reads the frame with its true length, and writes to `about` alone.
        let result = unsafe { libc::syscall(libc::SYS_bpf, TEST_RUN, &raw mut about, size_of::<TestRun>()) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
        about.returned as usize
    }

    /// Sends SYNs from other senders until one is dropped.
    fn flood(&self) {
        let is_dropped = (0..100_000).any(|sender| self.keeps(&v4(0x0a80_0000 + sender, 0, SYN)) == 0);
        assert!(is_dropped, "100,000 in a row are a flood");
    }
}

const SYN: u8 = 0x02;
const SYN_ACK: u8 = 0x12;
const ACK: u8 = 0x10;

fn tcp(flags: u8) -> [u8; 20] {
    let mut header = [0; 20];
    (header[1], header[3], header[12], header[13]) = (7, 80, 0x50, flags);
    header
}

fn v4(sender: u32, options: usize, flags: u8) -> Vec<u8> {
    let mut packet = vec![0; 20 + options];
    (packet[0], packet[9]) = (0x45 + options as u8 / 4, protocol::TCP);
    packet[12..16].copy_from_slice(&sender.to_be_bytes());
    packet.extend(tcp(flags));
    packet
}

fn v6(sender: u8, flags: u8) -> Vec<u8> {
    let mut packet = vec![0; 40];
    (packet[0], packet[6], packet[23]) = (0x60, protocol::TCP, sender);
    packet.extend(tcp(flags));
    packet
}

#[test]
fn a_flood_s_syns_pass_when_they_come_again() {
    let Some(program) = loaded("a_flood_s_syns_pass_when_they_come_again", 10) else { return };
    program.flood();
    let dropped = program.numbers.get(Number::Dropped);
    let syns = [v4(1, 0, SYN), v4(2, 8, SYN), v6(1, SYN), v6(2, SYN)];
    for syn in &syns {
        assert_eq!(program.keeps(syn), 0, "{syn:?}");
        program.flood();
        for _ in 0..2 {
            assert_eq!(program.keeps(syn), syn.len(), "{syn:?}");
            program.flood();
        }
    }
    assert!(program.numbers.get(Number::Dropped) >= dropped + 4, "each is counted");
}

#[test]
fn a_flood_of_syns_takes_nothing_else_with_it() {
    let Some(program) = loaded("a_flood_of_syns_takes_nothing_else_with_it", 10) else { return };
    let mut fragment = v4(1, 0, SYN);
    fragment[7] = 1;
    let mut datagram = v4(1, 0, SYN);
    datagram[9] = protocol::UDP;
    let mut short = v4(1, 8, SYN);
    short.truncate(40);
    for packet in [
        v4(1, 0, ACK),
        v4(1, 0, SYN_ACK),
        v4(1, 4, 0x04),
        v6(1, ACK),
        v6(1, SYN_ACK),
        fragment,
        datagram,
        short,
        vec![0x45; 20],
        vec![0x60; 40],
        vec![0x12; 60],
    ] {
        program.flood();
        assert_eq!(program.keeps(&packet), packet.len(), "{packet:?}");
    }
}

#[test]
fn few_syns_all_pass() {
    let Some(program) = loaded("few_syns_all_pass", 1000) else { return };
    for sender in 0..400 {
        let syn = v4(sender, 0, SYN);
        assert_eq!(program.keeps(&syn), syn.len());
    }
    assert_eq!(program.numbers.get(Number::Dropped), 0);
}

/// The kernel's number for a program.
fn number_of(program: &Program) -> u32 {
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", program.fd.as_raw_fd()));
    let about = about.expect("the descriptor is open");
    let number =
        about.lines().find_map(|line| line.strip_prefix("prog_id:")).expect("a program has a number");
    number.trim().parse().expect("it is a number")
}

const PROGRAM_BY_NUMBER: libc::c_long = 13;

fn is_loaded(number: u32) -> bool {
    // The number, that of the next one, and flags.
    let about = [number, 0, 0];
    // SAFETY: the kernel reads `about` with its true size, and returns a new descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, PROGRAM_BY_NUMBER, about.as_ptr(), size_of_val(&about)) };
    // SAFETY: nobody else knows of a descriptor that was opened a moment ago.
    i32::try_from(fd).is_ok_and(|fd| fd >= 0 && unsafe { libc::close(fd) } == 0)
}

/// The kernel frees a program a moment after its last use.
#[expect(clippy::disallowed_methods, reason = "nothing is driven here")]
fn is_freed(number: u32) -> bool {
    (0..1_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !is_loaded(number)
    })
}

#[test]
fn a_device_that_stays_loses_the_program_with_its_user() {
    let test = "a_device_that_stays_loses_the_program_with_its_user";
    let Some(program) = loaded(test, 10) else { return };
    let name = format!("hopsieve-{}", std::process::id());
    let namespace = match Namespace::create(&name) {
        Ok(namespace) => namespace,
        Err(error) => return eprintln!("skipped {test}: {error}"),
    };
    let device = namespace.run(|| create("hop%d", Mode::Tun)).expect("it can be entered");
    let (device, _) = device.expect("who loads programs may make devices");
    let number = number_of(&program);
    let sieve = program.go_on(device.as_fd()).expect("the kernel takes it");
    assert!(is_loaded(number), "the device holds it");
    drop(sieve);
    assert!(is_freed(number), "{device:?} holds it");
}
