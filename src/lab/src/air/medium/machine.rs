//! A virtual machine whose kernel has the device mac80211-hwsim of virtio (id 29), by the vhost-user protocol.
//!
//! Its first queue brings messages of netlink, and its second queue takes them. Its memory and its messages are not
//! believed: what is not sound ends this machine's connection.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;

use hopwise_host::netlink::hwsim::radio_message;
use hopwise_host::{Interest, Poller};
use rustix::fs::{OFlags, fcntl_setfl};
use virtio_queue::{Queue, QueueOwnedT, QueueT};
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap};

use super::clients::{Ended, MOST_AT_ONCE};
use super::framed::{FramedSocket, Header, MOST_FDS};

/// A request, its flags and its length.
const HEADER: Header = Header { bytes: 12, length_at: 8, most: 1_024 };
/// The flags of a message: the protocol's version, an answer, and a request that wants one.
const VERSION: u32 = 1;
const IS_ANSWER: u32 = 4;
const WANTS_ANSWER: u32 = 8;
/// Features: virtio 1.0, and vhost-user's own, which are more than one queue and answers to all requests.
const VERSION_1: u64 = 1 << 32;
const HAS_PROTOCOL: u64 = 1 << 30;
const PROTOCOL: u64 = 1 | 1 << 3;
/// In place of a descriptor.
const NO_FD: u64 = 1 << 8;

const SENT: usize = 0;
const RECEIVED: usize = 1;
pub(super) const QUEUES: usize = 2;
const LONGEST_QUEUE: u16 = 1_024;
/// The longest buffer. Linux has buffers of a page for its messages.
const LONGEST_BUFFER: usize = 64 << 10;
/// The messages that wait for buffers of the machine.
const MOST_WAITING: usize = 1_024;

/// A region of the machine's memory: where the machine's process has it, where its kernel does, and its bytes.
#[derive(Clone, Copy, Debug)]
struct MemoryRegion {
    process_at: u64,
    guest_at: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Ring {
    queue: Queue,
    /// The table, the used ring and the available ring in the machine's process.
    places: [u64; 3],
    is_enabled: bool,
    kick: Option<OwnedFd>,
    call: Option<OwnedFd>,
}

#[derive(Debug)]
pub(super) struct VirtualMachine {
    pub(super) framed: FramedSocket,
    /// The index of the first queue's descriptor for the poller.
    kicks_at: usize,
    memory: GuestMemoryMmap,
    regions: Vec<MemoryRegion>,
    rings: [Ring; QUEUES],
    waiting: VecDeque<Vec<u8>>,
}

fn unsound(what: &'static str) -> impl Fn(virtio_queue::Error) -> Ended {
    move |error| format!("{what}: {error}")
}

/// The word of 8 bytes at that place.
fn long(bytes: &[u8], at: usize) -> Result<u64, Ended> {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map(|word| u64::from_ne_bytes(*word)).ok_or_else(|| "a request that is too short".to_owned())
}

/// A pair of words of 4 bytes: the number of a queue, and a value.
fn pair(bytes: &[u8]) -> Result<(usize, u32), Ended> {
    let both = long(bytes, 0)?.to_ne_bytes();
    let [a, b, c, d, rest @ ..] = both;
    let queue = u32::from_ne_bytes([a, b, c, d]) as usize;
    (queue < QUEUES).then_some((queue, u32::from_ne_bytes(rest))).ok_or_else(|| no_queue(queue))
}

fn no_queue(queue: usize) -> Ended {
    format!("queue {queue}, expected 0 or 1")
}

impl VirtualMachine {
    pub(super) fn new(socket: UnixStream, kicks_at: usize) -> Result<VirtualMachine, Ended> {
        let ring = || -> Result<Ring, Ended> {
            let queue = Queue::new(LONGEST_QUEUE).map_err(unsound("a queue"))?;
            Ok(Ring { queue, places: [0; 3], is_enabled: false, kick: None, call: None })
        };
        Ok(VirtualMachine {
            framed: FramedSocket::new(socket, HEADER),
            kicks_at,
            memory: GuestMemoryMmap::new(),
            regions: Vec::new(),
            rings: [ring()?, ring()?],
            waiting: VecDeque::new(),
        })
    }

    /// Does what has been requested, and looks at both queues.
    pub(super) fn read(&mut self, poller: &Poller, sink: &mut dyn FnMut(Vec<u8>)) -> Result<(), Ended> {
        for _ in 0..MOST_AT_ONCE {
            let Some((message, fds)) = self.framed.next()? else { break };
            self.do_request(&message, fds, poller)?;
        }
        self.take(sink)?;
        self.give()
    }

    /// The machine has put buffers into a queue.
    pub(super) fn on_kick(&mut self, queue: usize, sink: &mut dyn FnMut(Vec<u8>)) -> Result<(), Ended> {
        if let Some(kick) = &self.rings[queue].kick {
            let _ = rustix::io::read(kick, &mut [0_u8; 8][..]);
        }
        if queue == SENT { self.take(sink) } else { self.give() }
    }

    fn do_request(&mut self, message: &[u8], fds: Vec<OwnedFd>, poller: &Poller) -> Result<(), Ended> {
        let (header, body) = message.split_at(HEADER.bytes);
        let (request, flags) = (long(header, 0)? as u32, (long(header, 0)? >> 32) as u32);
        let mut answer = None;
        match request {
            // GET_FEATURES, GET_PROTOCOL_FEATURES and GET_QUEUE_NUM.
            1 => answer = Some(VERSION_1 | HAS_PROTOCOL),
            15 => answer = Some(PROTOCOL),
            17 => answer = Some(QUEUES as u64),
            // SET_FEATURES, of which all queues wait for SET_VRING_ENABLE if they have vhost-user's own.
            2 => {
                let is_enabled = long(body, 0)? & HAS_PROTOCOL == 0;
                self.rings.iter_mut().for_each(|ring| ring.is_enabled |= is_enabled);
            }
            // SET_OWNER, RESET_OWNER, SET_VRING_ERR and SET_PROTOCOL_FEATURES.
            3 | 4 | 14 | 16 => {}
            // SET_MEM_TABLE
            5 => self.map(body, fds)?,
            // SET_VRING_NUM, SET_VRING_ADDR and SET_VRING_BASE.
            8 => {
                let (queue, size) = pair(body)?;
                let size = u16::try_from(size).unwrap_or(0);
                self.rings[queue].queue.try_set_size(size).map_err(unsound("the size of a queue"))?;
            }
            9 => {
                let (queue, _) = pair(body)?;
                self.rings[queue].places = [long(body, 8)?, long(body, 16)?, long(body, 24)?];
            }
            10 => {
                let (queue, next) = pair(body)?;
                self.rings[queue].queue.set_next_avail(next as u16);
            }
            // GET_VRING_BASE ends a queue.
            11 => {
                let (queue, _) = pair(body)?;
                self.stop(queue, poller);
                answer = Some(queue as u64 | u64::from(self.rings[queue].queue.next_avail()) << 32);
            }
            // SET_VRING_KICK begins a queue. SET_VRING_CALL gives a descriptor too.
            12 | 13 => {
                let (queue, fd) = descriptor(long(body, 0)?, fds)?;
                if request == 12 { self.start(queue, fd, poller)? } else { self.rings[queue].call = fd }
            }
            // SET_VRING_ENABLE
            18 => {
                let (queue, is_enabled) = pair(body)?;
                self.rings[queue].is_enabled = is_enabled != 0;
            }
            _ => return Err(format!("request {request}, which was not offered")),
        }
        match answer {
            Some(answer) => self.answer(request, answer),
            None if flags & WANTS_ANSWER != 0 => self.answer(request, 0),
            None => Ok(()),
        }
    }

    fn answer(&self, request: u32, value: u64) -> Result<(), Ended> {
        let words = [request, VERSION | IS_ANSWER, 8].map(u32::to_ne_bytes);
        let answer = [words.as_flattened(), &value.to_ne_bytes()].concat();
        (&self.framed.socket).write_all(&answer).map_err(|error| format!("answer it: {error}"))
    }

    /// Maps the machine's memory anew. A queue that runs stays where it is.
    fn map(&mut self, body: &[u8], fds: Vec<OwnedFd>) -> Result<(), Ended> {
        let count = long(body, 0)? as u32 as usize;
        if count > MOST_FDS || count != fds.len() || count == 0 {
            return Err(format!("{count} regions of memory with {} descriptors", fds.len()));
        }
        let mut regions = Vec::new();
        for (nth, fd) in fds.into_iter().enumerate() {
            let word = |word: usize| long(body, 8 + nth * 32 + word * 8);
            let region = MemoryRegion { guest_at: word(0)?, bytes: word(1)?, process_at: word(2)? };
            let bytes = region.guest_at.checked_add(region.bytes).and(usize::try_from(region.bytes).ok());
            let bytes = bytes.ok_or("a region of memory beyond all addresses")?;
            let file = FileOffset::new(File::from(fd), word(3)?);
            regions.push((region, (GuestAddress(region.guest_at), bytes, Some(file))));
        }
        regions.sort_by_key(|(region, _)| region.guest_at);
        let (regions, ranges): (Vec<_>, Vec<_>) = regions.into_iter().unzip();
        let memory = GuestMemoryMmap::from_ranges_with_files(ranges);
        self.memory = memory.map_err(|error| format!("its memory: {error}"))?;
        self.regions = regions;
        let runs = |queue: &usize| self.rings[*queue].queue.ready();
        (0..QUEUES).filter(runs).collect::<Vec<_>>().into_iter().try_for_each(|queue| self.place(queue))
    }

    /// Finds a queue in the machine's memory.
    fn place(&mut self, queue: usize) -> Result<(), Ended> {
        let ring = &mut self.rings[queue];
        let place = |at: u64| {
            let inside = |region: &MemoryRegion| {
                let offset = at.checked_sub(region.process_at).filter(|offset| *offset < region.bytes)?;
                Some(GuestAddress(region.guest_at + offset))
            };
            self.regions.iter().find_map(inside).ok_or_else(|| format!("a queue at {at:#x}, outside its memory"))
        };
        let wrong = unsound("the place of a queue");
        let [table, used, available] = ring.places;
        ring.queue.try_set_desc_table_address(place(table)?).map_err(&wrong)?;
        ring.queue.try_set_used_ring_address(place(used)?).map_err(&wrong)?;
        ring.queue.try_set_avail_ring_address(place(available)?).map_err(&wrong)?;
        ring.queue.set_ready(true);
        if !ring.queue.is_valid(&self.memory) {
            return Err("a queue that ends outside its memory".to_owned());
        }
        let next = ring.queue.used_idx(&self.memory, Ordering::Acquire).map_err(wrong)?;
        ring.queue.set_next_used(next.0);
        Ok(())
    }

    fn start(&mut self, queue: usize, kick: Option<OwnedFd>, poller: &Poller) -> Result<(), Ended> {
        self.stop(queue, poller);
        let kick = kick.ok_or("a queue without a descriptor for its kicks")?;
        let added = poller.add(kick.as_fd(), self.kicks_at + queue, Interest::Read);
        added.map_err(|error| format!("watch for kicks: {error}"))?;
        self.rings[queue].kick = Some(kick);
        self.place(queue)
    }

    fn stop(&mut self, queue: usize, poller: &Poller) {
        let ring = &mut self.rings[queue];
        ring.queue.set_ready(false);
        if let Some(kick) = ring.kick.take() {
            // The machine has the descriptor too: closing it would not take it from the poller.
            let _ = poller.remove(kick.as_fd());
        }
    }

    /// Ends its queues.
    pub(super) fn end(&mut self, poller: &Poller) {
        (0..QUEUES).for_each(|queue| self.stop(queue, poller));
    }

    /// Takes the messages that the machine sends.
    fn take(&mut self, sink: &mut dyn FnMut(Vec<u8>)) -> Result<(), Ended> {
        let (memory, ring) = (&self.memory, &mut self.rings[SENT]);
        if !ring.runs() {
            return Ok(());
        }
        let chains: Vec<_> = ring.queue.iter(memory).map_err(unsound("the queue of what it sends"))?.collect();
        for chain in &chains {
            let mut reader = chain.clone().reader(memory).map_err(unsound("a buffer"))?;
            let bytes = reader.available_bytes();
            if bytes > LONGEST_BUFFER {
                return Err(format!("a buffer of {bytes} bytes, expected at most {LONGEST_BUFFER}"));
            }
            let mut message = vec![0; bytes];
            reader.read_exact(&mut message).map_err(|error| format!("a buffer: {error}"))?;
            if radio_message(&message).is_none() {
                return Err(format!("a buffer of {bytes} bytes without a whole message of MAC80211_HWSIM"));
            }
            sink(message);
            ring.queue.add_used(memory, chain.head_index(), 0).map_err(unsound("a used buffer"))?;
        }
        ring.call(!chains.is_empty());
        Ok(())
    }

    /// Hands over a message, or keeps it until the machine has a buffer for it. False if there is no room.
    pub(super) fn hand(&mut self, message: Vec<u8>) -> Result<bool, Ended> {
        if self.waiting.len() >= MOST_WAITING || !self.rings[RECEIVED].runs() {
            return Ok(false);
        }
        self.waiting.push_back(message);
        self.give().map(|()| true)
    }

    /// Puts messages into the machine's buffers.
    fn give(&mut self) -> Result<(), Ended> {
        let (memory, ring) = (&self.memory, &mut self.rings[RECEIVED]);
        let mut has_given = false;
        while let Some(message) = self.waiting.front().filter(|_| ring.runs()) {
            let next = ring.queue.iter(memory).map_err(unsound("the queue of what it receives"))?.next();
            let Some(chain) = next else { break };
            let head = chain.head_index();
            let mut writer = chain.writer(memory).map_err(unsound("a buffer"))?;
            let (room, bytes) = (writer.available_bytes(), message.len());
            if room < bytes {
                return Err(format!("a buffer of {room} bytes for a message of {bytes}"));
            }
            writer.write_all(message).map_err(|error| format!("a buffer: {error}"))?;
            ring.queue.add_used(memory, head, bytes as u32).map_err(unsound("a used buffer"))?;
            self.waiting.pop_front();
            has_given = true;
        }
        ring.call(has_given);
        Ok(())
    }
}

/// The queue of a request, and the descriptor that came with it, which nobody waits for any more.
fn descriptor(word: u64, fds: Vec<OwnedFd>) -> Result<(usize, Option<OwnedFd>), Ended> {
    let queue = (word & (NO_FD - 1)) as usize;
    if queue >= QUEUES {
        return Err(no_queue(queue));
    }
    let fd = fds.into_iter().next().filter(|_| word & NO_FD == 0);
    if let Some(fd) = &fd {
        fcntl_setfl(fd, OFlags::NONBLOCK).map_err(|error| format!("a descriptor: {error}"))?;
    }
    Ok((queue, fd))
}

impl Ring {
    fn runs(&self) -> bool {
        self.is_enabled && self.queue.ready()
    }

    /// Tells the machine that buffers were used.
    fn call(&self, is_news: bool) {
        if let Some(call) = self.call.as_ref().filter(|_| is_news) {
            let _ = rustix::io::write(call, &1_u64.to_ne_bytes());
        }
    }
}
