//! SYNs that the kernel holds until the node has decided, and the [`Bypass`] that lets SYNs go on in place of a node
//! that hangs.
//!
//! The bypass shares the socket of the node's queue: the kernel gives packets to that socket alone, and takes verdicts
//! from it alone. A hang therefore takes no setting up, and its end no putting back. The bypass does not see a SYN that
//! the node has read. Its host sends it again.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};

use hopwise_core::wire::{Checksums, IpView, TcpView, protocol};
use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::unix::AsyncFd;

use super::likeness::{Likeness, options, tcp_header};
use super::{CAUGHT, HELD};
use crate::nfqueue::socket::{Judge, NetfilterQueue, QueueVerdict, QueuedPacket};
use crate::sys::readable;

/// The kinds of the options with which a host signs each segment: MD5 (RFC 2385) and TCP-AO (RFC 5925).
const SIGNATURES: [u8; 2] = [19, 29];

/// The contents of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syn {
    /// The number of the interface by which it came.
    pub interface: u32,
    /// The host that opens the connection.
    pub from: SocketAddr,
    /// The destination.
    pub to: SocketAddr,
    /// Its sequence number, which a SYN that is sent again has, too.
    pub seq: u32,
    /// The hops that it may still go (TTL in IPv4).
    pub hop_limit: u8,
    /// The six bits of RFC 2474.
    pub dscp: u8,
    /// True if the host signs its segments, and takes signed answers alone.
    pub is_signed: bool,
    /// What a firewall may decide by.
    pub like: Likeness,
}

/// A SYN that waits. One that is dropped without a decision waits until its queue ends, and is gone then.
#[derive(Clone, Debug)]
pub struct HeldSyn {
    /// Its contents.
    pub syn: Syn,
    id: u32,
    mark: u32,
    judge: Judge,
}

impl HeldSyn {
    /// Returns whether it may be one of a connection that goes straight on, by connection tracking.
    pub fn is_known(&self) -> bool {
        self.mark & CAUGHT != 0
    }

    /// Hands it to the listeners.
    pub fn catch(&self) -> io::Result<()> {
        self.judge.accept_with(self.id, self.mark & !HELD | CAUGHT)
    }

    /// Lets it go on the kernel's path.
    pub fn let_go(&self) -> io::Result<()> {
        self.judge.accept_with(self.id, self.mark & !(HELD | CAUGHT))
    }

    /// Forgets it: another copy waits, or its host sends it again.
    pub fn forget(&self) -> io::Result<()> {
        self.judge.say(self.id, QueueVerdict::Drop)
    }
}

/// The SYNs that come into a queue.
#[derive(Debug)]
pub struct HeldSyns {
    queue: NetfilterQueue,
    ready: AsyncFd<OwnedFd>,
}

impl HeldSyns {
    pub(super) fn new(queue: NetfilterQueue) -> io::Result<HeldSyns> {
        let ready = readable(queue.descriptor().try_clone_to_owned()?)?;
        Ok(HeldSyns { queue, ready })
    }

    /// The next SYN. A packet that is none goes on.
    pub async fn next(&mut self) -> io::Result<HeldSyn> {
        loop {
            let mut guard = self.ready.readable().await?;
            let judge = self.queue.judge();
            let Some(queued) = self.queue.next()? else {
                guard.clear_ready();
                continue;
            };
            match read(&queued) {
                Some(syn) => return Ok(HeldSyn { syn, id: queued.id, mark: queued.mark, judge }),
                None => judge.accept_with(queued.id, queued.mark & !(HELD | CAUGHT))?,
            }
        }
    }
}

/// A SYN that the kernel may drop for its form is not caught: it would never come in, and look like one of a host whose
/// SYNs a firewall drops. The kernel drops some IPv4 options and extension headers behind the queue, and connection
/// tracking finds wrong headers and checksums. The queue has the kernel complete the checksums of its own packets.
fn read(queued: &QueuedPacket<'_>) -> Option<Syn> {
    const PLAIN: [usize; 2] = [20, 40];
    let ip = IpView::parse(queued.packet).ok()?;
    let is_plain = ip.header_len == PLAIN[usize::from(ip.src.is_ipv6())];
    if ip.protocol != protocol::TCP || ip.fragment.is_some() || !is_plain {
        return None;
    }
    let tcp = TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Verify).ok()?;
    Some(Syn {
        interface: queued.interface,
        from: SocketAddr::new(ip.src, tcp.src_port),
        to: SocketAddr::new(ip.dst, tcp.dst_port),
        seq: tcp.seq.0,
        hop_limit: ip.hop_limit,
        dscp: ip.dscp,
        is_signed: is_signed(ip.payload),
        like: Likeness::of_syn(queued, ip.header_len),
    })
}

fn is_signed(segment: &[u8]) -> bool {
    options(tcp_header(segment)).iter().any(|(_, kind)| SIGNATURES.contains(kind))
}

/// The queue of a node that may hang.
#[derive(Debug)]
pub struct Bypass(NetfilterQueue);

impl Bypass {
    /// `socket` belongs to the node's queue with this number.
    pub fn new(socket: OwnedFd, queue: u16) -> Bypass {
        Bypass(NetfilterQueue::bound(socket, queue))
    }

    /// Lets SYNs go until something can be read from `node`, or its other end is closed. Returns their number.
    pub fn let_go_until(&mut self, node: BorrowedFd<'_>) -> io::Result<u64> {
        let mut gone = 0;
        loop {
            let mut fds = [
                PollFd::new(&node, PollFlags::IN),
                PollFd::from_borrowed_fd(self.0.descriptor(), PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                done => done?,
            };
            if !fds[0].revents().is_empty() {
                return Ok(gone);
            }
            let judge = self.0.judge();
            while let Some(syn) = self.0.next()? {
                judge.accept_with(syn.id, syn.mark & !(HELD | CAUGHT))?;
                gone += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(options: &[u8]) -> Vec<u8> {
        let words = 5 + u8::try_from(options.len().div_ceil(4)).expect("few");
        let mut segment = vec![0; 12];
        segment.extend_from_slice(&[words << 4, 2, 0, 0, 0, 0, 0, 0]);
        segment.extend_from_slice(options);
        segment.resize(usize::from(words) * 4, 0);
        segment
    }

    /// A SYN from 10.1.0.2 to 10.2.0.2 with these options of IPv4.
    fn packet(options: &[u8]) -> Vec<u8> {
        let mut segment = with(&[]);
        (segment[1], segment[3], segment[7]) = (80, 81, 9);
        let (src, dst) = ([10, 1, 0, 2], [10, 2, 0, 2]);
        let pseudo = [&src[..], &dst, &[0, 6, 0, 20], &segment].concat();
        segment[16..18].copy_from_slice(&sum(&pseudo));
        let header = 20 + u8::try_from(options.len()).expect("few");
        let mut ip = vec![0x40 | (header / 4), 0, 0, header + 20, 0, 0, 0, 0, 64, 6, 0, 0];
        ip.extend([src, dst].concat());
        ip.extend(options);
        let check = sum(&ip);
        ip[10..12].copy_from_slice(&check);
        [ip, segment].concat()
    }

    /// The Internet checksum (RFC 1071) of an even number of bytes.
    fn sum(bytes: &[u8]) -> [u8; 2] {
        let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let whole: u32 = words.sum();
        (!((whole & 0xffff) + (whole >> 16)) as u16).to_be_bytes()
    }

    #[test]
    fn a_syn_that_a_kernel_or_a_firewall_drops_for_its_form_is_not_caught() {
        let taken = |packet: &[u8]| {
            read(&QueuedPacket {
                id: 1,
                mark: 0,
                interface: 2,
                leaves_by: 0,
                port: 0,
                priority: 0,
                sender: &[],
                packet,
            })
        };
        let syn = taken(&packet(&[])).expect("a plain one");
        assert_eq!((syn.from.to_string(), syn.seq), ("10.1.0.2:80".to_owned(), 9));
        for options in [&[0x83, 7, 8, 1, 2, 3, 4, 0][..], &[7, 3, 0, 0], &[1, 1, 1, 1]] {
            assert_eq!(taken(&packet(options)), None, "{options:?}");
        }
        // The checksum, the data offset, and each byte that is cut off.
        for (at, bits) in [(36, 1), (32, 0x80), (32, 0x60)] {
            let mut broken = packet(&[]);
            broken[at] ^= bits;
            assert_eq!(taken(&broken), None, "byte {at}");
        }
        let whole = packet(&[]);
        assert!((0..whole.len()).all(|len| taken(&whole[..len]).is_none()));
    }

    #[test]
    fn a_signature_is_found_behind_other_options_and_in_options_alone() {
        let mss = [2, 4, 5, 180];
        for signature in [&[19, 18][..], &[29, 16, 1, 1]] {
            let signature = [signature, &[0; 14]].concat();
            assert!(is_signed(&with(&signature)));
            assert!(is_signed(&with(&[&mss[..], &[1, 1], &signature].concat())));
            assert!(!is_signed(&with(&[&mss[..], &[0], &signature].concat())), "behind the end of the list");
            assert!(!is_signed(&[with(&mss), signature].concat()), "in the data");
        }
        // A timestamp with a 19 in it, lengths that make no sense, and cut segments.
        for options in
            [&[8, 10, 19, 18, 29, 16, 19, 18, 0, 0][..], &[5, 0, 19, 18], &[5, 1, 19, 18], &[5], &[5, 40, 19]]
        {
            assert!(!is_signed(&with(options)), "{options:?}");
        }
        let whole = with(&[&[19, 18][..], &[0; 16]].concat());
        assert!((0..whole.len()).all(|len| !is_signed(&whole[..len])));
    }
}
