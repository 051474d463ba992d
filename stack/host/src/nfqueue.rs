//! A router's forwarding path as two links. A netfilter queue brings the packets here that the kernel is about to
//! forward. Without a listener, the kernel forwards them as usual.
//!
//! If a packet leaves unchanged before another is read, the kernel itself forwards it. The kernel drops a packet that
//! was kept longer, and the link sends it anew through the interface, by the kernel's routes.

mod acks;
mod anew;
pub(crate) mod rules;
pub(crate) mod socket;

use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::ip::Prefix;
use hopwise_core::wire::IpView;
use hopwise_core::{Instant, LinkEvent, Transmit};
use parking_lot::Mutex;

use crate::counters::{LinkDrop, LinkTally};
use crate::link::{Link, LinkError, LinkProperties, Received, Sent};
use crate::tun::check_ip;

pub use acks::AckQueue;
use anew::Anew;
use anew::Untracked;
use rules::QueueRules;
pub(crate) use rules::left_chains;
pub use rules::{left_queues, remove_left_queues};
use socket::{Judge, NetfilterQueue, QueueVerdict, QueuedPacket};

/// The interfaces and networks of a router between a wire and a radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardConfig {
    /// The interface towards the wire.
    pub wire: String,
    /// The interface towards the mobiles.
    pub radio: String,
    /// The networks whose TCP goes through the queues.
    pub mobiles: Vec<Prefix>,
    /// The first of two netfilter queues that no other program uses.
    pub queue: u16,
}

/// The packets that come in and leave by one interface of a router.
pub struct Forward {
    queue: NetfilterQueue,
    anew: Anew,
    mtu: u16,
    shared: Arc<Mutex<QueueState>>,
    tally: LinkTally,
    /// When the device and the rules are looked for.
    look_at: Instant,
}

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The state of both sides.
struct QueueState {
    /// The packet that was read last, until its verdict.
    at_hand: Option<PacketAtHand>,
    rules: QueueRules,
    _untracked: Option<Untracked>,
}

struct PacketAtHand {
    from: Judge,
    /// The queue it came from.
    queue: u16,
    id: u32,
    packet: Vec<u8>,
}

impl Forward {
    /// Opens the wire's side, then the radio's. The rules that lead packets here go when both are dropped.
    pub fn open(config: &ForwardConfig) -> Result<[Forward; 2], LinkError> {
        let failed = |device: &str, doing| {
            let device = device.to_owned();
            move |error| LinkError::system(doing, &device, error)
        };
        let devices = [&config.wire, &config.radio];
        let mut sides = Vec::new();
        for (device, number) in devices.into_iter().zip(config.queue..) {
            let queue = NetfilterQueue::bind(number).map_err(failed(device, "bind a netfilter queue"))?;
            let anew = Anew::open(device, queue.descriptor());
            let anew = anew.map_err(failed(device, "open a raw socket"))?;
            sides.push((device, queue, anew));
        }
        let rules =
            QueueRules::set(config).map_err(failed(&config.wire, "lead forwarded packets into a queue"))?;
        let untracked = Untracked::set(config);
        let untracked = untracked
            .map_err(failed(&config.wire, "keep connection tracking from packets that were kept"))?;
        for (device, _, anew) in &sides {
            if untracked.as_ref().is_some_and(|untracked| untracked.device == **device) {
                anew.set_mark(anew::MARK).map_err(failed(device, "mark packets"))?;
            }
        }
        let shared = Arc::new(Mutex::new(QueueState { at_hand: None, rules, _untracked: untracked }));
        let side = |(device, queue, anew): (&String, NetfilterQueue, Anew)| {
            // A proxy makes no packet longer.
            let mtu = mtu_of(device).unwrap_or(1500);
            Forward {
                queue,
                anew,
                mtu,
                shared: Arc::clone(&shared),
                tally: LinkTally::new(device),
                look_at: Instant::ZERO,
            }
        };
        let mut sides = sides.into_iter().map(side);
        let (Some(wire), Some(radio)) = (sides.next(), sides.next()) else { unreachable!("one a device") };
        Ok([wire, radio])
    }

    /// Drops the last packet in the kernel if it did not leave.
    fn drop_at_hand(&mut self, shared: &mut QueueState) {
        if let Some(at_hand) = shared.at_hand.take() {
            self.judge(&at_hand, QueueVerdict::Drop);
        }
    }

    fn judge(&mut self, at_hand: &PacketAtHand, verdict: QueueVerdict) {
        // On an error, the packet stays until the end of its queue.
        if at_hand.from.say(at_hand.id, verdict).is_err() {
            self.tally.dropped(LinkDrop::Refused);
        }
    }

    fn send(&mut self, packet: &[u8]) -> Sent {
        let Ok(view) = IpView::parse(packet) else { return self.tally.refused(LinkDrop::NotIp) };
        match self.anew.send(&view, packet) {
            Ok(false) => Sent::Full,
            Ok(true) => self.tally.taken(packet.len()),
            Err(error) => {
                let reason = match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => LinkDrop::QueueFull,
                    Some(libc::EMSGSIZE) => LinkDrop::TooBig,
                    Some(libc::ENETDOWN) => LinkDrop::Down,
                    Some(libc::ENODEV | libc::ENXIO) => {
                        self.tally.is_gone = true;
                        LinkDrop::Gone
                    }
                    _ => LinkDrop::Refused,
                };
                self.tally.refused(reason)
            }
        }
    }
}

/// The MTU of a device, if it is known.
pub fn mtu_of(device: &str) -> Option<u16> {
    std::fs::read_to_string(format!("/sys/class/net/{device}/mtu")).ok()?.trim().parse().ok()
}

impl Link for Forward {
    fn properties(&self) -> LinkProperties {
        LinkProperties::plain(self.mtu)
    }

    fn tally(&self) -> &LinkTally {
        &self.tally
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.anew.descriptor())
    }

    fn receive(&mut self, _now: Instant, into: &mut [u8]) -> Received {
        if self.tally.is_gone {
            return Received::Gone;
        }
        let shared = Arc::clone(&self.shared);
        let mut shared = shared.lock();
        self.drop_at_hand(&mut shared);
        let (judge, queue) = (self.queue.judge(), self.queue.number());
        match self.queue.next() {
            Ok(Some(QueuedPacket { id, packet, .. })) => {
                let Some(to) = into.get_mut(..packet.len()) else {
                    return self.tally.lost(LinkDrop::Oversized);
                };
                to.copy_from_slice(packet);
                let packet = packet.to_vec();
                let received = check_ip(&packet, &mut self.tally);
                shared.at_hand = Some(PacketAtHand { from: judge, queue, id, packet });
                received
            }
            Ok(None) => Received::Nothing,
            Err(error) => {
                tracing::warn!(%error, device = self.tally.name, "the queue");
                self.tally.dropped(LinkDrop::Overrun);
                Received::Nothing
            }
        }
    }

    fn transmit(&mut self, _now: Instant, _transmit: &Transmit, packet: &[u8]) -> Sent {
        let shared = Arc::clone(&self.shared);
        let mut shared = shared.lock();
        // The packet from the other side leaves unchanged and before any other of that side: the kernel still has it.
        let own = self.queue.number();
        let is_at_hand = |at_hand: &mut PacketAtHand| at_hand.queue != own && at_hand.packet == packet;
        if let Some(at_hand) = shared.at_hand.take_if(is_at_hand) {
            self.judge(&at_hand, QueueVerdict::Accept);
            return self.tally.taken(packet.len());
        }
        self.send(packet)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (!self.tally.is_gone).then_some(self.look_at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.tally.is_gone || now < self.look_at {
            return;
        }
        self.look_at = now + LOOK_EVERY;
        if !self.anew.has_device() {
            tracing::error!(device = self.tally.name, "the device was removed, or made anew");
            self.tally.is_gone = true;
        } else if !self.shared.lock().rules.stand() {
            tracing::error!(device = self.tally.name, "rules were removed that lead packets into its queue");
            self.tally.is_gone = true;
        }
    }

    fn drain_events(&mut self, _sink: &mut dyn FnMut(&LinkEvent<'_>)) {
        // The machine has handled all packets that were read.
        let shared = Arc::clone(&self.shared);
        self.drop_at_hand(&mut shared.lock());
    }
}

hopwise_core::shown!(Forward: tally);

/// The word of nft for the version of IP.
pub(crate) fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "ip" } else { "ip6" }
}
