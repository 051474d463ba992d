//! Machines and programs that are made up: sound ones, whose frames go over a scenario's radio, and hostile ones.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use hopwise_host::netlink::hwsim::{KernelRadios, Mac, ReceivedFrame, received};
use hopwise_host::{Clock, wait_to_read};
use hopwise_lab::live::air as live;
use hopwise_lab::scenario::Scenario;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap};

use super::clients::MediumClients;
use crate::air::hwsim::HwsimMedium;
use crate::scenario::first_arm_unless;
use crate::serving::serve_beside;
use hopwise_daemon::control::BoundSocket;
use hopwise_daemon::own_files::OwnFolder;

/// The machine's memory, the place of it in the machine's process, and the length of its queues.
const MEMORY: u64 = 1 << 20;
const PROCESS_AT: u64 = 0x7000_0000_0000;
const LENGTH: u16 = 8;
const BUFFER: u64 = 2_048;
const WITHIN: Duration = Duration::from_secs(60);

const FRAME: u8 = 2;
const STATUS: u8 = 3;
const MACS: [Mac; 3] = [[2, 0, 0, 0, 0, 0], [2, 0, 0, 0, 1, 0], [2, 0, 0, 0, 2, 0]];

/// A message of netlink with these attributes.
fn message(command: u8, parts: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = vec![command, 1, 0, 0];
    for (kind, value) in parts {
        body.extend(u16::try_from(4 + value.len()).expect("short").to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend(*value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    let length = u32::try_from(16 + body.len()).expect("short").to_ne_bytes();
    [&length[..], &30_u16.to_ne_bytes(), &[1, 0], &[0; 8], &body].concat()
}

/// A frame of data that a radio sends, with this cookie.
fn sent(radio: Mac, from: Mac, to: Mac, cookie: u64) -> Vec<u8> {
    let content = [&[0x08, 0, 0, 0][..], &to, &from, &[9; 60]].concat();
    let (flags, mhz) = (1_u32.to_ne_bytes(), 2_412_u32.to_ne_bytes());
    let cookie = cookie.to_ne_bytes();
    message(FRAME, &[(2, &radio), (3, &content), (4, &flags), (8, &cookie), (19, &mhz)])
}

/// The value of an attribute of a message.
fn value(message: &[u8], wanted: u16) -> Option<Vec<u8>> {
    let mut rest = &message[20..];
    while rest.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
        let kind = u16::from_ne_bytes([rest[2], rest[3]]);
        if kind == wanted {
            return Some(rest[4..length].to_vec());
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

/// Sockets of a medium in a folder of their own, and the clients that come.
struct TestSockets {
    folder: OwnFolder,
    clients: Rc<MediumClients>,
}

impl TestSockets {
    fn new(macs: &[Mac]) -> TestSockets {
        let folder = OwnFolder::make("hopwise-medium-").expect("a folder");
        let bind = |name| Some(BoundSocket::bind(&folder.path().join(name)).expect("a socket"));
        let clients = MediumClients::new([bind("machines"), bind("programs")], macs);
        let clients = Rc::new(clients.expect("a poller"));
        TestSockets { folder, clients }
    }

    fn connect(&self, name: &str) -> UnixStream {
        connect(self.folder.path(), name)
    }

    /// Serves what has come, and returns the radios whose frames came.
    fn serve(&self) -> Vec<Mac> {
        let mut radios = Vec::new();
        for _ in 0..8 {
            self.clients.read(&mut |frame| radios.push(frame.radio)).expect("it is served");
        }
        radios
    }
}

fn connect(folder: &Path, name: &str) -> UnixStream {
    let socket = UnixStream::connect(folder.join(name)).expect("it listens");
    socket.set_read_timeout(Some(WITHIN)).expect("a socket");
    socket
}

/// A virtual machine's process and the driver in its kernel.
struct TestMachine {
    socket: UnixStream,
    fd: OwnedFd,
    memory: GuestMemoryMmap,
    kicks: [OwnedFd; 2],
    calls: [OwnedFd; 2],
    next: [u16; 2],
    seen: u16,
}

/// Where a queue has its table, its available ring, its used ring and its buffers.
fn places(queue: usize) -> [u64; 4] {
    let begins = 0x1000 + queue as u64 * 0x10000;
    [begins, begins + 0x1000, begins + 0x2000, begins + 0x4000]
}

impl TestMachine {
    fn new(socket: UnixStream) -> TestMachine {
        let fd = memfd_create("memory", MemfdFlags::CLOEXEC).expect("memory");
        ftruncate(&fd, MEMORY).expect("memory");
        let file = FileOffset::new(fd.try_clone().expect("a descriptor").into(), 0);
        let ranges = [(GuestAddress(0), MEMORY as usize, Some(file))];
        let memory = GuestMemoryMmap::from_ranges_with_files(&ranges).expect("it is mapped");
        let bell = || eventfd(0, EventfdFlags::NONBLOCK).expect("a descriptor");
        let (kicks, calls) = ([bell(), bell()], [bell(), bell()]);
        TestMachine { socket, fd, memory, kicks, calls, next: [0; 2], seen: 0 }
    }

    fn request(&self, request: u32, body: &[u8], fds: &[&OwnedFd]) {
        let length = u32::try_from(body.len()).expect("short");
        let bytes = [[request, 1, length].map(u32::to_ne_bytes).as_flattened(), body].concat();
        let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&fds));
        }
        sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL).expect("room");
    }

    fn request_of(&self, request: u32, words: &[u64], fds: &[&OwnedFd]) {
        self.request(
            request,
            words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>().as_slice(),
            fds,
        );
    }

    fn share_memory(&self, bytes: u64) {
        self.request_of(5, &[1, 0, bytes, PROCESS_AT, 0], &[&self.fd]);
    }

    /// Begins as qemu does, with both queues in their places.
    fn begin(&mut self) {
        self.request(3, &[], &[]);
        self.request_of(2, &[1 << 32 | 1 << 30], &[]);
        self.share_memory(MEMORY);
        for queue in 0..2 {
            self.begin_queue(queue, u64::from(LENGTH), places(queue).map(|place| PROCESS_AT + place));
        }
        for nth in 0..LENGTH {
            let at = places(1)[3] + u64::from(nth) * BUFFER;
            self.offer(1, (at, BUFFER as u32, 2));
        }
    }

    fn begin_queue(&self, queue: usize, length: u64, [table, available, used, _]: [u64; 4]) {
        let word = queue as u64;
        self.request_of(8, &[word | length << 32], &[]);
        self.request_of(10, &[word], &[]);
        self.request_of(9, &[word, table, used, available, 0], &[]);
        self.request_of(12, &[word], &[&self.kicks[queue]]);
        self.request_of(13, &[word], &[&self.calls[queue]]);
        self.request_of(18, &[word | 1 << 32], &[]);
    }

    /// Writes a descriptor of that address, length and flags, and offers it.
    fn offer(&mut self, queue: usize, (at, length, flags): (u64, u32, u16)) {
        let nth = self.next[queue] % LENGTH;
        let [table, available, ..] = places(queue);
        let place = table + u64::from(nth) * 16;
        self.memory.write_obj(at, GuestAddress(place)).expect("inside");
        self.memory.write_obj(length, GuestAddress(place + 8)).expect("inside");
        self.memory.write_obj(flags, GuestAddress(place + 12)).expect("inside");
        self.memory.write_obj(nth, GuestAddress(place + 14)).expect("inside");
        self.memory.write_obj(nth, GuestAddress(available + 4 + u64::from(nth) * 2)).expect("inside");
        self.next[queue] += 1;
        self.memory.write_obj(self.next[queue], GuestAddress(available + 2)).expect("inside");
        rustix::io::write(&self.kicks[queue], &1_u64.to_ne_bytes()).expect("a kick");
    }

    /// Sends a message from a buffer that is longer, as Linux does.
    fn send(&mut self, message: &[u8]) {
        let at = places(0)[3] + u64::from(self.next[0] % LENGTH) * BUFFER;
        self.memory.write_slice(message, GuestAddress(at)).expect("inside");
        self.offer(0, (at, BUFFER as u32, 0));
    }

    /// Waits for a message, and offers its buffer again.
    fn receive(&mut self) -> Vec<u8> {
        loop {
            let used: u16 = self.memory.read_obj(GuestAddress(places(1)[2] + 2)).expect("inside");
            if used != self.seen {
                break;
            }
            wait_to_read(self.calls[1].as_fd(), WITHIN).expect("a call");
            rustix::io::read(&self.calls[1], &mut [0; 8][..]).expect("it rang");
        }
        let element = places(1)[2] + 4 + u64::from(self.seen % LENGTH) * 8;
        let nth: u32 = self.memory.read_obj(GuestAddress(element)).expect("inside");
        let length: u32 = self.memory.read_obj(GuestAddress(element + 4)).expect("inside");
        self.seen += 1;
        let at = places(1)[3] + u64::from(nth) * BUFFER;
        let mut message = vec![0; length as usize];
        self.memory.read_slice(&mut message, GuestAddress(at)).expect("inside");
        self.offer(1, (at, BUFFER as u32, 2));
        message
    }

    /// The medium has closed the socket, perhaps before it read all requests.
    fn is_ended(&mut self) -> bool {
        let end = self.socket.read_to_end(&mut Vec::new());
        end.map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |_| true)
    }
}

/// A program that speaks wmediumd's control protocol.
struct TestProgram(UnixStream);

impl TestProgram {
    fn tell(&mut self, kind: u32, data: &[u8]) {
        let length = u32::try_from(data.len()).expect("short");
        let header = [kind, length].map(u32::to_ne_bytes);
        self.0.write_all(&[header.as_flattened(), data].concat()).expect("room");
    }

    fn hear(&mut self) -> (u32, Vec<u8>) {
        let mut words = [[0; 4]; 2];
        self.0.read_exact(words.as_flattened_mut()).expect("a header");
        let [kind, length] = words.map(u32::from_ne_bytes);
        let mut data = vec![0; length as usize];
        self.0.read_exact(&mut data).expect("data");
        (kind, data)
    }
}

#[test]
fn frames_of_machines_and_programs_go_over_the_scenarios_radio_and_their_senders_hear_their_fate() {
    let sockets = TestSockets::new(&MACS);
    let chain = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/chain.yaml"));
    let scenario = Scenario::load(chain, &["topology.hops=2".to_owned()]).expect("it is sound");
    let mut prepared = first_arm_unless(&scenario, None, 1).expect("it has arms");
    prepared.plan.macs = MACS.to_vec();
    let mut live = live::world_of_frames(&prepared.plan, 150, false);
    let medium = HwsimMedium::new(&mut live, Rc::<MediumClients>::clone(&sockets.clients), MACS.to_vec());
    let folder = sockets.folder.path().to_owned();
    let work = move || {
        // The radio of the first machine has Linux's bit, and of the program the address alone.
        let mut machine = TestMachine::new(connect(&folder, "machines"));
        machine.begin();
        let mut program = TestProgram(connect(&folder, "programs"));
        program.tell(2, &[]);
        assert_eq!(program.hear(), (1, vec![]));
        let radio = [0x42, 0, 0, 0, 0, 0];
        machine.send(&sent(radio, MACS[0], MACS[1], 5));
        let (kind, frame) = program.hear();
        assert_eq!((kind, value(&frame, 3).expect("a frame").len()), (4, 76));
        // It has not said a word: its radio has Linux's form.
        assert_eq!(value(&frame, 1), Some(vec![0x42, 0, 0, 0, 1, 0]));
        program.tell(1, &[]);
        let status = machine.receive();
        assert_eq!((status[16], value(&status, 2)), (STATUS, Some(radio.to_vec())));
        assert_eq!(value(&status, 8), Some(5_u64.to_ne_bytes().to_vec()));
        assert_eq!(value(&status, 4).map(|flags| flags[0] & 4), Some(4));
        program.tell(4, &sent(MACS[1], MACS[1], MACS[0], 6));
        assert_eq!(program.hear(), (1, vec![]));
        let frame = machine.receive();
        assert_eq!((frame[16], value(&frame, 1)), (FRAME, Some(radio.to_vec())));
        let (kind, status) = program.hear();
        assert_eq!((kind, value(&status, 2)), (4, Some(MACS[1].to_vec())));
        // Nobody is there: seven tries at the first rate, and no acknowledgement.
        machine.send(&sent(radio, MACS[0], [2, 0, 0, 0, 9, 9], 7));
        let status = machine.receive();
        assert_eq!(value(&status, 4).map(|flags| flags[0] & 4), Some(0));
    };
    let (served, ()) =
        serve_beside(work, |done| medium.serve(&mut live, Clock::start(), done)).expect("a thread");
    served.expect("it is served");
    assert_eq!(sockets.clients.refusals().overruns, 0);
}

/// A hostile machine that has begun, and a sound one beside it.
fn ends(attack: impl FnOnce(&mut TestMachine)) {
    let sockets = TestSockets::new(&MACS);
    let mut sound = TestMachine::new(sockets.connect("machines"));
    sound.begin();
    let mut hostile = TestMachine::new(sockets.connect("machines"));
    hostile.begin();
    assert_eq!(sockets.serve(), [[0; 6]; 0]);
    attack(&mut hostile);
    sockets.serve();
    assert!(hostile.is_ended());
    sound.send(&sent(MACS[2], MACS[2], MACS[1], 1));
    assert_eq!(sockets.serve(), [MACS[2]]);
}

#[test]
fn buffers_that_are_not_sound_end_their_machine_alone() {
    let whole = sent(MACS[0], MACS[0], MACS[1], 1);
    // Outside the memory, across its end, at the end of all addresses, and too long.
    for (at, length) in
        [(MEMORY + 1, 100), (MEMORY - 50, 100), (u64::MAX - 4, 100), (0, u32::MAX), (0, 70_000), (0, 0)]
    {
        ends(|machine| machine.offer(0, (at, length, 0)));
    }
    for length in [0, 3, 16, 19, whole.len() - 1] {
        ends(|machine| {
            let at = places(0)[3];
            machine.memory.write_slice(&whole, GuestAddress(at)).expect("inside");
            machine.offer(0, (at, u32::try_from(length).expect("short"), 0));
        });
    }
    // A chain that leads back to its beginning, and one whose next descriptor is none.
    for next in [0, LENGTH + 3] {
        ends(|machine| {
            let [table, ..] = places(0);
            machine.offer(0, (places(0)[3], 70_000, 1));
            machine.memory.write_obj(next, GuestAddress(table + 14)).expect("inside");
        });
    }
    // A buffer to write into where there should be a message, and an index far ahead of the queue.
    ends(|machine| machine.offer(0, (places(0)[3], 100, 2)));
    ends(|machine| {
        machine.next[0] = 1_000;
        machine.send(&whole);
    });
    // A head that the queue does not have.
    ends(|machine| {
        machine.memory.write_obj(LENGTH + 9, GuestAddress(places(0)[1] + 4)).expect("inside");
        machine.memory.write_obj(1_u16, GuestAddress(places(0)[1] + 2)).expect("inside");
        rustix::io::write(&machine.kicks[0], &1_u64.to_ne_bytes()).expect("a kick");
    });
}

#[test]
fn requests_that_are_not_sound_end_their_machine_alone() {
    ends(|machine| machine.request_of(99, &[], &[]));
    ends(|machine| machine.request_of(2, &[], &[]));
    ends(|machine| machine.request(8, &[0; 3], &[]));
    ends(|machine| machine.request_of(8, &[2 | 8 << 32], &[]));
    // No size, no power of two, and beyond the longest queue.
    for size in [0, 3, 2_048, u64::from(u32::MAX)] {
        ends(|machine| machine.request_of(8, &[size << 32], &[]));
    }
    for queue in [5, 255, 256] {
        ends(|machine| machine.request_of(12, &[queue], &[]));
    }
    // More memory than its file has, none, beyond all addresses, no descriptor, and too many.
    ends(|machine| machine.share_memory(MEMORY * 2));
    ends(|machine| machine.share_memory(0));
    ends(|machine| machine.request_of(5, &[1, u64::MAX, 4_096, 0, 0], &[&machine.fd]));
    ends(|machine| machine.request_of(5, &[1, 0, MEMORY, 0, 0], &[]));
    ends(|machine| machine.request_of(5, &[9, 0, MEMORY, 0, 0], &[&machine.fd; 8]));
    // Queues outside the memory, across its end, and at no even place.
    for places in [[1; 4], [PROCESS_AT + MEMORY - 16; 4], [PROCESS_AT + 1; 4], [u64::MAX; 4]] {
        ends(|machine| machine.begin_queue(0, u64::from(LENGTH), places));
    }
    // A kick that nobody can wait for, and a message without an end.
    let file: OwnedFd = std::fs::File::open(env!("CARGO_MANIFEST_DIR")).expect("a folder").into();
    ends(|machine| machine.request_of(12, &[0], &[&file]));
    let (kick, _) = std::io::pipe().expect("a descriptor is left");
    let kick: OwnedFd = kick.into();
    ends(|machine| machine.request_of(12, &[1], &[&kick]));
    ends(|machine| {
        machine
            .socket
            .write_all(&[[1, 1, 1 << 30].map(u32::to_ne_bytes).as_flattened()].concat())
            .expect("room");
    });
}

#[test]
fn programs_hear_that_their_messages_are_not_sound() {
    let sockets = TestSockets::new(&MACS);
    let mut program = TestProgram(sockets.connect("programs"));
    let whole = sent(MACS[0], MACS[0], MACS[1], 1);
    for (kind, data, answer) in [
        (3, vec![], 0),
        (2, vec![], 1),
        (2, vec![], 0),
        (3, vec![], 1),
        (4, whole.clone(), 1),
        (4, whole[..40].to_vec(), 0),
        (4, vec![], 0),
        (5, 2_u32.to_ne_bytes().to_vec(), 1),
        (5, vec![2, 0], 1),
        (5, [2_u32.to_ne_bytes(), [9; 4]].concat(), 1),
        (5, 1_u32.to_ne_bytes().to_vec(), 0),
        (77, vec![1; 9], 0),
    ] {
        program.tell(kind, &data);
        sockets.serve();
        assert_eq!(program.hear(), (answer, vec![]), "{kind} {data:?}");
    }
    program.tell(4, &vec![0; 70_000][..10]);
    sockets.serve();
    assert_eq!(program.hear(), (0, vec![]));
    program.0.write_all([4, 70_000].map(u32::to_ne_bytes).as_flattened()).expect("room");
    sockets.serve();
    assert_eq!(program.0.read(&mut [0; 8]).expect("an end"), 0);
}

#[test]
fn a_machine_that_takes_no_messages_and_a_program_that_does_not_read_hold_up_nobody() {
    let sockets = TestSockets::new(&MACS);
    let mut machine = TestMachine::new(sockets.connect("machines"));
    machine.begin();
    let mut program = TestProgram(sockets.connect("programs"));
    program.tell(2, &[]);
    machine.send(&sent(MACS[0], MACS[0], MACS[1], 1));
    program.tell(4, &sent(MACS[1], MACS[1], MACS[0], 1));
    assert_eq!(sockets.serve().len(), 2);
    let frame = |radio| ReceivedFrame { radio, content: &[1; 1_500], signal_dbm: -50, rate: 1, mhz: 2_412 };
    for _ in 0..2_000 {
        sockets.clients.receive(&frame(MACS[0])).expect("it is counted");
        sockets.clients.receive(&frame(MACS[1])).expect("it is counted");
    }
    // The buffers of the machine, and what waits for buffers.
    assert_eq!(sockets.clients.refusals().overruns, 2_000 - 1_024 - u64::from(LENGTH));
    assert_eq!(machine.receive(), received(0, &frame(MACS[0])));
    let mut rest = Vec::new();
    assert!(program.0.read_to_end(&mut rest).is_ok(), "it has been ended");
}

#[test]
fn radios_that_no_station_has_are_counted_and_a_station_goes_to_the_next_client_after_the_last() {
    let sockets = TestSockets::new(&MACS);
    let mut first = TestMachine::new(sockets.connect("machines"));
    first.begin();
    first.send(&sent([6; 6], [6; 6], MACS[1], 1));
    first.send(&message(7, &[(2, &[0x42, 0, 0, 0, 7, 0]), (1, &MACS[2])]));
    first.send(&sent([0x42, 0, 0, 0, 7, 0], MACS[2], MACS[1], 1));
    assert_eq!(sockets.serve(), [MACS[2]]);
    assert_eq!(sockets.clients.refusals().refused, 1);
    let mut second = TestMachine::new(sockets.connect("machines"));
    second.begin();
    second.send(&sent(MACS[2], MACS[2], MACS[1], 1));
    assert_eq!(sockets.serve(), [[0; 6]; 0]);
    drop(first);
    sockets.serve();
    second.send(&sent(MACS[2], MACS[2], MACS[1], 2));
    assert_eq!(sockets.serve(), [MACS[2]]);
}
