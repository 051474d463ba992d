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

use hopwise_core::narrow::as_u32;
use hopwise_host::netlink::hwsim::radio_message;
use hopwise_host::{Interest, Poller};
use rustix::fs::{OFlags, fcntl_setfl};
use virtio_queue::{Error, Queue, QueueOwnedT, QueueT};
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap};

use super::clients::{Ended, MOST_AT_ONCE};
use super::framed::FramedSocket;

/// A request, its flags and its length.
const HEADER: usize = 12;
const LONGEST_REQUEST: usize = 1_024;
/// The flags of the version of the protocol and of an answer, and of a request that wants one.
const ANSWER: u32 = 1 | 4;
const WANTS_ANSWER: u32 = 8;
/// Features: virtio 1.0, and vhost-user's own, which are more than one queue and answers to all requests.
const VERSION_1: u64 = 1 << 32;
const HAS_PROTOCOL: u64 = 1 << 30;
const PROTOCOL: u64 = 1 | 1 << 3;
/// Beside the number of a queue, in place of a descriptor.
const NO_FD: u32 = 1 << 8;

const SENT: usize = 0;
const RECEIVED: usize = 1;
const QUEUES: usize = 2;
const LONGEST_QUEUE: u16 = 1_024;
/// The longest buffer. Linux has buffers of a page for its messages.
const LONGEST_BUFFER: usize = 64 << 10;
/// The messages that wait for buffers of the machine.
const MOST_WAITING: usize = 1_024;

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
    framed: FramedSocket,
    /// The index of the first queue's descriptor for the poller.
    kicks_at: usize,
    memory: GuestMemoryMmap,
    /// The places of its regions in the machine's process, their bytes, and their places for its kernel.
    regions: Vec<[u64; 3]>,
    rings: [Ring; QUEUES],
    waiting: VecDeque<Vec<u8>>,
}

/// The number in two words, of which the first is the lower one.
fn long([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

impl VirtualMachine {
    pub(super) fn new(socket: UnixStream, kicks_at: usize) -> Result<VirtualMachine, Ended> {
        let ring = || -> Result<Ring, Error> {
            let queue = Queue::new(LONGEST_QUEUE)?;
            Ok(Ring { queue, places: [0; 3], is_enabled: false, kick: None, call: None })
        };
        let rings = [ring()?, ring()?];
        let framed = FramedSocket::new(socket, HEADER, LONGEST_REQUEST);
        let (memory, regions, waiting) = (GuestMemoryMmap::new(), Vec::new(), VecDeque::new());
        Ok(VirtualMachine { framed, kicks_at, memory, regions, rings, waiting })
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
        let kick = self.rings[queue].kick.as_ref().map(|kick| rustix::io::read(kick, &mut [0_u8; 8][..]));
        match kick {
            // It would come again and again.
            Some(Ok(0)) => Err("its kicks have an end".into()),
            _ if queue == SENT => self.take(sink),
            _ => self.give(),
        }
    }

    fn do_request(&mut self, message: &[u8], fds: Vec<OwnedFd>, poller: &Poller) -> Result<(), Ended> {
        let words: Vec<_> = message.as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word)).collect();
        let (request, flags, body) = (words[0], words[1], &words[HEADER / 4..]);
        let word = |nth: usize| body.get(nth).copied().ok_or("a request that is too short");
        let long = |nth: usize| -> Result<u64, Ended> { Ok(long([word(nth)?, word(nth + 1)?])) };
        // A request about a queue begins with its number.
        let is_of_queue = matches!(request, 8..=13 | 18);
        let (first, value) = if is_of_queue { (word(0)?, word(1)?) } else { (0, 0) };
        let queue = (first & !NO_FD) as usize;
        let ring = self.rings.get_mut(queue).ok_or_else(|| format!("queue {queue}, expected 0 or 1"))?;
        let mut answer = (flags & WANTS_ANSWER != 0).then_some(0);
        match request {
            // GET_FEATURES, GET_PROTOCOL_FEATURES and GET_QUEUE_NUM
            1 => answer = Some(VERSION_1 | HAS_PROTOCOL),
            15 => answer = Some(PROTOCOL),
            17 => answer = Some(QUEUES as u64),
            // SET_FEATURES: with vhost-user's own, queues wait for SET_VRING_ENABLE.
            2 if long(0)? & HAS_PROTOCOL == 0 => {
                self.rings.iter_mut().for_each(|ring| ring.is_enabled = true);
            }
            // SET_FEATURES, SET_OWNER, RESET_OWNER, SET_VRING_ERR and SET_PROTOCOL_FEATURES
            2 | 3 | 4 | 14 | 16 => {}
            // SET_MEM_TABLE
            5 => self.map(body, fds)?,
            // SET_VRING_NUM, SET_VRING_ADDR and SET_VRING_BASE
            8 => ring.queue.try_set_size(u16::try_from(value)?)?,
            9 => ring.places = [long(2)?, long(4)?, long(6)?],
            10 => ring.queue.set_next_avail(u16::try_from(value)?),
            // GET_VRING_BASE, which ends the queue
            11 => {
                answer = Some(queue as u64 | u64::from(ring.queue.next_avail()) << 32);
                ring.stop(poller);
                self.waiting.clear();
            }
            // SET_VRING_KICK, which begins the queue, and SET_VRING_CALL
            12 | 13 => {
                let fd = fds.into_iter().next().filter(|_| first & NO_FD == 0);
                fd.as_ref().map_or(Ok(()), |fd| fcntl_setfl(fd, OFlags::NONBLOCK))?;
                if request == 12 { self.start(queue, fd, poller)? } else { ring.call = fd }
            }
            // SET_VRING_ENABLE
            18 => ring.is_enabled = value != 0,
            _ => return Err(format!("request {request}, which was not offered").into()),
        }
        let Some(answer) = answer else { return Ok(()) };
        let answer =
            [[request, ANSWER, 8].map(u32::to_ne_bytes).as_flattened(), &answer.to_ne_bytes()].concat();
        Ok((&self.framed.socket).write_all(&answer)?)
    }

    /// Maps the machine's memory anew. A queue that runs stays where it is.
    fn map(&mut self, words: &[u32], fds: Vec<OwnedFd>) -> Result<(), Ended> {
        if fds.is_empty() || words.len() != 2 + 8 * fds.len() || words[0] as usize != fds.len() {
            return Err("a table of memory without a descriptor for each region".into());
        }
        let region = |words: &[u32; 8]| [0, 2, 4, 6].map(|at| long([words[at], words[at + 1]]));
        let regions = words[2..].as_chunks().0.iter().map(region);
        let mut regions: Vec<_> = regions.zip(fds.into_iter().map(File::from)).collect();
        regions.sort_by_key(|(region, _)| region[0]);
        // Nobody else looks, and a page behind the end would end us.
        let fits = |([_, bytes, _, offset], file): &([u64; 4], File)| {
            let length = file.metadata().map_or(0, |facts| facts.len());
            offset.checked_add(*bytes).is_some_and(|end| end <= length)
        };
        if !regions.iter().all(fits) {
            return Err("a region of memory beyond the end of its file".into());
        }
        self.regions =
            regions.iter().map(|([guest, bytes, process, _], _)| [*process, *bytes, *guest]).collect();
        let ranges = regions.into_iter().map(|([guest, bytes, _, offset], file)| {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            (GuestAddress(guest), bytes, Some(FileOffset::new(file, offset)))
        });
        self.memory = GuestMemoryMmap::from_ranges_with_files(ranges)?;
        (0..QUEUES)
            .try_for_each(|queue| if self.rings[queue].queue.ready() { self.place(queue) } else { Ok(()) })
    }

    fn start(&mut self, queue: usize, kick: Option<OwnedFd>, poller: &Poller) -> Result<(), Ended> {
        let ring = &mut self.rings[queue];
        ring.stop(poller);
        let kick = kick.ok_or("a queue without a descriptor for its kicks")?;
        poller.add(kick.as_fd(), self.kicks_at + queue, Interest::Read)?;
        ring.kick = Some(kick);
        self.place(queue)
    }

    /// Finds a queue in the machine's memory.
    fn place(&mut self, queue: usize) -> Result<(), Ended> {
        let ring = &mut self.rings[queue];
        let inside = |at: u64| {
            let place = self.regions.iter().find_map(|[process, bytes, guest]| {
                at.checked_sub(*process)
                    .filter(|offset| offset < bytes)
                    .map(|offset| GuestAddress(guest + offset))
            });
            place.ok_or(Error::FindMemoryRegion)
        };
        let [table, used, available] = ring.places;
        ring.queue.try_set_desc_table_address(inside(table)?)?;
        ring.queue.try_set_used_ring_address(inside(used)?)?;
        ring.queue.try_set_avail_ring_address(inside(available)?)?;
        ring.queue.set_ready(true);
        if !ring.queue.is_valid(&self.memory) {
            return Err("a queue that ends outside its memory".into());
        }
        let next = ring.queue.used_idx(&self.memory, Ordering::Acquire)?;
        ring.queue.set_next_used(next.0);
        Ok(())
    }

    /// Ends its queues.
    pub(super) fn end(&mut self, poller: &Poller) {
        self.rings.iter_mut().for_each(|ring| ring.stop(poller));
    }

    /// Takes the messages that the machine sends.
    fn take(&mut self, sink: &mut dyn FnMut(Vec<u8>)) -> Result<(), Ended> {
        let (memory, ring) = (&self.memory, &mut self.rings[SENT]);
        if !ring.runs() {
            return Ok(());
        }
        let chains: Vec<_> = ring.queue.iter(memory)?.collect();
        for chain in &chains {
            let mut reader = chain.clone().reader(memory)?;
            let mut message = vec![0; reader.available_bytes().min(LONGEST_BUFFER)];
            reader.read_exact(&mut message)?;
            if radio_message(&message).is_none() || reader.available_bytes() > 0 {
                let bytes = message.len() + reader.available_bytes();
                return Err(format!("a buffer of {bytes} bytes without a whole message of its radio").into());
            }
            sink(message);
            ring.queue.add_used(memory, chain.head_index(), 0)?;
        }
        ring.call(!chains.is_empty());
        Ok(())
    }

    /// Hands over a message, or keeps it until the machine has a buffer for it. False if there is no room.
    pub(super) fn hand(&mut self, message: Vec<u8>) -> Result<bool, Ended> {
        let has_room = self.waiting.len() < MOST_WAITING && self.rings[RECEIVED].runs();
        self.waiting.extend(has_room.then_some(message));
        self.give().map(|()| has_room)
    }

    /// Puts messages into the machine's buffers.
    fn give(&mut self) -> Result<(), Ended> {
        let (memory, ring) = (&self.memory, &mut self.rings[RECEIVED]);
        let before = self.waiting.len();
        while let Some(message) = self.waiting.front().filter(|_| ring.runs()) {
            let next = ring.queue.iter(memory)?.next();
            let Some(chain) = next else { break };
            let head = chain.head_index();
            let mut writer = chain.writer(memory)?;
            writer.write_all(message)?;
            ring.queue.add_used(memory, head, as_u32(message.len()))?;
            self.waiting.pop_front();
        }
        ring.call(self.waiting.len() < before);
        Ok(())
    }
}

impl Ring {
    fn runs(&self) -> bool {
        self.is_enabled && self.queue.ready()
    }

    fn stop(&mut self, poller: &Poller) {
        self.queue.set_ready(false);
        if let Some(kick) = self.kick.take() {
            // The machine has the descriptor too: closing it would not take it from the poller.
            let _ = poller.remove(kick.as_fd());
        }
    }

    /// Tells the machine that buffers were used.
    fn call(&self, is_news: bool) {
        if let Some(call) = self.call.as_ref().filter(|_| is_news) {
            let _ = rustix::io::write(call, &1_u64.to_ne_bytes());
        }
    }
}
