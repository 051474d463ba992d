//! `tun-fast`: a TUN device that takes and gives bundles of segments. A system call carries up to 64 KiB.
//!
//! A header before each packet (struct virtio_net_hdr) describes how to cut it, and which checksum is to be finished.
//! TCP bundles go to the machine whole. UDP bundles are cut here, because the machine takes single datagrams. Outgoing
//! UDP is one datagram a packet: a socket of the stack takes one at a time.

mod steer;

pub(crate) use steer::mixed;

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use hopwise_core::wire::protocol;
use hopwise_core::{Instant, Transmit};
use tun_rs::{DeviceBuilder, SyncDevice, VIRTIO_NET_HDR_LEN};

use crate::counters::{LinkDrop, LinkTally};
use crate::link::{Gather, Link, LinkError, LinkProperties, Received, Sent};
use crate::netlink::OnLoan;
use crate::own_file::NameLock;
use crate::sys;
use crate::tun::{
    IS_NO_TUN, TunConfig, before, check_ip, configure, not_opened, on_read_error, on_write_error,
};
use crate::vnet::{IncomingBundle, arrive, header_for};

/// One queue of a TUN device with offload.
#[derive(Debug)]
pub struct TunFast {
    /// The first queue has the device's filter, and removes it before another program may open the device.
    // Before the descriptor in order of drop: the last queue clears the device's flags while it is open.
    offloads: Arc<Offloads>,
    fd: OwnedFd,
    mtu: u16,
    tally: LinkTally,
    /// UDP datagrams of one bundle, handed on one by one.
    incoming: IncomingBundle,
}

/// The offload flags, cleared when the last queue closes. On a device that outlives us, the next plain user would read
/// bundles as packets. With several queues, the steering program is removed, too. It would send all but TCP to the
/// first queue.
#[derive(Debug)]
struct Offloads {
    on_loan: Option<OnLoan>,
    fd: OwnedFd,
    queues: Queues,
    _lock: Option<NameLock>,
}

impl Drop for Offloads {
    fn drop(&mut self) {
        if let Err(error) = sys::clear_tun_offloads(self.fd.as_fd()) {
            tracing::debug!(%error, "the offload flags stay set");
        }
        if self.queues != Queues::One
            && let Err(error) = steer::by_kernel(self.fd.as_fd())
        {
            tracing::debug!(%error, "the program that deals packets to queues stays");
        }
    }
}

impl TunFast {
    /// Opens a device with one queue.
    pub fn open(config: &TunConfig) -> Result<TunFast, LinkError> {
        let mut queues = TunFast::open_all(config, Queues::One)?;
        queues
            .pop()
            .ok_or_else(|| LinkError::Setting { device: config.name.clone(), what: "it has no queue" })
    }

    /// Opens a device with several queues, each for a stack of its own. [`shard_of`](crate::shard_of) decides the queue
    /// of a TCP packet, and of an ICMP error that quotes one. All other packets go to the first queue. Fragments of TCP
    /// are dropped and counted. Later fragments have no ports, and the stack of another queue would reset the
    /// connection.
    pub fn open_queues(config: &TunConfig, queues: u16) -> Result<Vec<TunFast>, LinkError> {
        if queues == 0 || queues > 256 {
            let what = "a device has 1 to 256 queues";
            return Err(LinkError::Setting { device: config.name.clone(), what });
        }
        TunFast::open_all(config, Queues::Several(queues))
    }

    fn open_all(config: &TunConfig, queues: Queues) -> Result<Vec<TunFast>, LinkError> {
        let failed = |doing| move |error| LinkError::system(doing, &config.name, error);
        config.check()?;
        // The kernel refuses a second user of a device with one queue. With several queues it would add another queue.
        // A number that the kernel chooses is free.
        let is_shared = queues != Queues::One && !config.name.contains('%');
        let lock = is_shared.then(|| NameLock::of("tun", &config.name)).transpose()?;
        // The crate sets the device up.
        let before = before(&config.name)?;
        let first = open_first(&config.name, queues)?;
        // From here on, an error undoes the changes so far.
        let on_loan = before.map(|before| OnLoan::new(before, config.loan_beside.as_deref()));
        let fd = first.as_fd().try_clone_to_owned().map_err(failed("copy its descriptor"))?;
        let mut offloads = Offloads { on_loan, fd, queues, _lock: lock };
        let name = first.name().map_err(failed("ask for its name"))?;
        let mut devices = vec![first];
        if let Queues::Several(count) = queues {
            for _ in 1..count {
                devices.push(devices[0].try_clone().map_err(failed("open another queue"))?);
            }
            steer::by_ports(devices[0].as_fd())
                .map_err(failed("load the program that deals packets to queues, which takes CAP_BPF"))?;
        }
        for device in &devices {
            device.set_nonblocking(true).map_err(failed("make it non-blocking"))?;
        }
        configure(&name, &config.settings(), offloads.on_loan.as_mut())?;
        let offloads = Arc::new(offloads);
        let queue = |device| TunFast {
            offloads: Arc::clone(&offloads),
            fd: sys::owned(device),
            mtu: config.mtu,
            tally: LinkTally::new(&name),
            incoming: IncomingBundle::default(),
        };
        Ok(devices.into_iter().map(queue).collect())
    }
}

/// A device with offload that has no settings yet, in the namespace of this thread. It goes with its last descriptor.
pub(crate) fn with_offload(name: &str) -> Result<OwnedFd, LinkError> {
    open_first(name, Queues::One).map(sys::owned)
}

fn open_first(name: &str, queues: Queues) -> Result<SyncDevice, LinkError> {
    let device = DeviceBuilder::new().name(name).offload(true).with(|builder| {
        builder.packet_information(false).multi_queue(queues != Queues::One);
    });
    let doing = ("open a TUN device with offload", queues.is_another());
    device.build_sync().map_err(|error| not_opened(doing, name, error))
}

/// Returns whether the packet is a fragment of TCP (RFC 791 §3.1, RFC 8200 §4.5). In IPv6, each fragment header before
/// TCP counts, since it hides the ports.
fn is_tcp_fragment(packet: &[u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => {
            packet[9] == protocol::TCP && u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0
        }
        Some(6) => packet.get(6) == Some(&FRAGMENT) && packet.get(40) == Some(&protocol::TCP),
        _ => false,
    }
}

/// The next header of an IPv6 fragment.
const FRAGMENT: u8 = 44;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queues {
    One,
    Several(u16),
}

impl Queues {
    /// The error for an existing device of another kind.
    fn is_another(self) -> &'static str {
        match self {
            Queues::One => IS_NO_TUN,
            Queues::Several(_) => {
                "the device is there, and is no TUN of several queues: expected a name that no device has, \
                 or that of a TUN made by `ip tuntap add NAME mode tun multi_queue`"
            }
        }
    }
}

impl Link for TunFast {
    fn properties(&self) -> LinkProperties {
        LinkProperties { is_routed: true, ..LinkProperties::bundling(self.mtu) }
    }

    fn tally(&self) -> &LinkTally {
        &self.tally
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    fn receive(&mut self, _now: Instant, into: &mut [u8]) -> Received {
        if let Some(bytes) = self.incoming.next(into) {
            return check_ip(&into[..bytes], &mut self.tally);
        }
        let mut header = [0; VIRTIO_NET_HDR_LEN];
        let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(into)];
        let bytes = match rustix::io::readv(&self.fd, &mut parts) {
            Ok(bytes) => bytes.saturating_sub(VIRTIO_NET_HDR_LEN),
            Err(error) => return on_read_error(error.into(), &mut self.tally),
        };
        if self.offloads.queues != Queues::One && is_tcp_fragment(&into[..bytes]) {
            return self.tally.lost(LinkDrop::Fragment);
        }
        arrive(&header, (into, bytes), &mut self.incoming, &mut self.tally)
    }

    fn gathers(&mut self) -> Option<&mut dyn Gather> {
        Some(self)
    }

    fn transmit(&mut self, _now: Instant, transmit: &Transmit, packet: &[u8]) -> Sent {
        self.transmit_pieces(transmit, [packet, &[], &[]])
    }

    fn takes_back(&self) -> bool {
        self.offloads.on_loan.is_some()
    }
}

impl Gather for TunFast {
    fn transmit_pieces(&mut self, transmit: &Transmit, [head, a, b]: [&[u8]; 3]) -> Sent {
        let mut header = [0; VIRTIO_NET_HDR_LEN];
        let Ok(()) = header_for(head, transmit.segment_bytes).encode(&mut header) else {
            return self.tally.refused(LinkDrop::Refused);
        };
        match rustix::io::writev(&self.fd, &[&header[..], head, a, b].map(IoSlice::new)) {
            Ok(_) => self.tally.taken(head.len() + a.len() + b.len()),
            Err(error) => on_write_error(error.into(), &mut self.tally),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_tcp_packet_is_told_from_a_whole_one_and_from_parts_of_others() {
        let v4 = |protocol: u8, parts: u16| {
            let mut packet = [0; 24];
            (packet[0], packet[9]) = (0x45, protocol);
            packet[6..8].copy_from_slice(&parts.to_be_bytes());
            is_tcp_fragment(&packet)
        };
        // The first, a middle and the last fragment.
        assert!(v4(6, 0x2000) && v4(6, 0x2010) && v4(6, 0x0020));
        // A whole packet with the DF flag, and a fragment of UDP.
        assert!(!v4(6, 0) && !v4(6, 0x4000) && !v4(17, 0x2000));
        let v6 = |first: u8, second: u8| {
            let mut packet = [0; 48];
            (packet[0], packet[6], packet[40]) = (0x60, first, second);
            is_tcp_fragment(&packet)
        };
        assert!(v6(44, 6) && !v6(44, 17) && !v6(6, 6));
        assert!(!is_tcp_fragment(&[]) && !is_tcp_fragment(&[0x45; 19]) && !is_tcp_fragment(&[0x60; 40]));
    }
}
