//! `tun-fast`: a TUN device that takes and gives bundles of segments, so that a system call carries up to 64 KiB.
//!
//! Before each packet goes a header (struct virtio_net_hdr) that says how it is to be cut and which checksum is still
//! to be finished. TCP bundles go to the machine whole; UDP bundles are cut here, because nobody above knows them.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use hopwise_core::endpoint::{Neighbours, Offload};
use hopwise_core::wire::Checksums;
use hopwise_core::{Instant, LinkEvent, Transmit};
use tun_rs::{DeviceBuilder, VIRTIO_NET_HDR_LEN};

use crate::counters::{LinkCounters, LinkDrop, Tally};
use crate::link::{Link, LinkError, Received, Sent};
use crate::netlink;
use crate::sys;
use crate::tun::{TunConfig, check_ip, on_read_error, on_write_error};
use crate::vnet::{Incoming, finish, header_for, read_header};

/// One queue of a TUN device with offload.
#[derive(Debug)]
pub struct TunFast {
    // Before the descriptor, so that the last queue clears the device's flags while it is open.
    _offloads: Arc<Offloads>,
    fd: OwnedFd,
    name: String,
    mtu: u16,
    tally: Tally,
    /// UDP datagrams that came as one bundle and are handed on one by one.
    incoming: Incoming,
    is_gone: bool,
}

/// The offload flags, cleared when the last queue closes: on a device that outlives us they would make the next
/// plain user read bundles for packets.
#[derive(Debug)]
struct Offloads(OwnedFd);

impl Drop for Offloads {
    fn drop(&mut self) {
        if let Err(error) = sys::clear_tun_offloads(self.0.as_fd()) {
            tracing::debug!(%error, "the offload flags stay set");
        }
    }
}

impl TunFast {
    /// A device with one queue.
    pub fn open(config: &TunConfig) -> Result<TunFast, LinkError> {
        let failed = |doing, error| LinkError::system(doing, &config.name, error);
        config.check()?;
        let device = DeviceBuilder::new()
            .name(&config.name)
            .offload(true)
            .with(|builder| {
                builder.packet_information(false);
            })
            .build_sync()
            .map_err(|error| failed("open a TUN device with offload", error))?;
        let name = device.name().map_err(|error| failed("ask for its name", error))?;
        device.set_nonblocking(true).map_err(|error| failed("make it non-blocking", error))?;
        let fd = sys::owned(device);
        netlink::configure(&name, &config.settings())
            .map_err(|error| LinkError::Configure { device: name.clone(), error })?;
        let own = fd.try_clone().map_err(|error| failed("copy its descriptor", error))?;
        Ok(TunFast {
            _offloads: Arc::new(Offloads(own)),
            fd,
            name,
            mtu: config.mtu,
            tally: Tally::new(),
            incoming: Incoming::default(),
            is_gone: false,
        })
    }
}

impl Link for TunFast {
    fn name(&self) -> &str {
        &self.name
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn neighbours(&self) -> Neighbours {
        Neighbours::Implied
    }

    fn offload(&self) -> Offload {
        Offload::Cut { most_bytes: 65_535 }
    }

    fn checksums(&self) -> Checksums {
        Checksums::Trust
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
            Err(error) => return on_read_error(error.into(), &mut self.is_gone),
        };
        let Received::Packet(arrived) = check_ip(&into[..bytes], &mut self.tally) else {
            return Received::Dropped;
        };
        let Some(header) = read_header(&header) else { return Received::Dropped };
        match finish(&header, &mut into[..bytes], &mut self.incoming) {
            Ok(Some(segment_bytes)) => {
                Received::Packet(crate::link::Arrived { segment_bytes: segment_bytes.get(), ..arrived })
            }
            // It was cut up; the pieces come one by one.
            Ok(None) => self.receive(_now, into),
            Err(reason) => {
                self.tally.dropped(reason);
                Received::Dropped
            }
        }
    }

    fn transmit(&mut self, _now: Instant, transmit: &Transmit, packet: &[u8]) -> Sent {
        let mut header = [0; VIRTIO_NET_HDR_LEN];
        let Ok(()) = header_for(packet, transmit.segment_bytes).encode(&mut header) else {
            self.tally.dropped(LinkDrop::Refused);
            return Sent::Refused(LinkDrop::Refused);
        };
        match rustix::io::writev(&self.fd, &[IoSlice::new(&header), IoSlice::new(packet)]) {
            Ok(_) => {
                self.tally.sent.count(packet.len());
                Sent::Taken
            }
            Err(error) => on_write_error(error.into(), &mut self.is_gone, &mut self.tally),
        }
    }

    fn flush(&mut self, _now: Instant) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn drain_events(&mut self, _sink: &mut dyn FnMut(&LinkEvent<'_>)) {}

    fn counters(&self) -> LinkCounters {
        LinkCounters { is_gone: self.is_gone, ..self.tally.show(&self.name) }
    }
}
