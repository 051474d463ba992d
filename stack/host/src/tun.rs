//! `tun`: a TUN device, one packet a system call. The default, and the one that works everywhere.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use hopwise_core::endpoint::Offload;
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::AckMerge;
use hopwise_core::{Instant, Transmit};
use tun_tap::{Iface, Mode};

use crate::counters::{LinkDrop, LinkTally};
use crate::link::{Arrived, Link, LinkError, LinkProperties, Received, Sent};
use crate::netlink::{self, DeviceSettings, EarlierState, OnLoan};
use crate::sys;

/// The length of the kernel's queue for us. The kernel's TCP learns of a full queue only by losses. Its default of 500
/// packets is less than one connection's receive window allows.
const QUEUE_PACKETS: u32 = 8192;

/// The size of bundles that the endpoint decides on at once, though each segment leaves alone. They take a fifth less
/// processor time at 1500 bytes. Larger ones save no more.
const BUNDLE_BYTES: u32 = 20_000;

/// The usual [`crossings`](hopwise_core::endpoint::LinkConfig::crossings) of a TUN: the kernels here and at the peer
/// forward.
pub const TUN_CROSSINGS: u8 = 2;

/// The settings of a TUN device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunConfig {
    /// At most 15 bytes; `hop%d` lets the kernel choose a number.
    pub name: String,
    /// The longest IP packet in bytes.
    pub mtu: u16,
    /// The kernel's own addresses there, not the stack's.
    pub kernel_addresses: Vec<Prefix>,
    /// Subnets that the kernel routes there, without the subnets of its addresses.
    pub routes: Vec<Prefix>,
    /// A file next to this path keeps the old values of a device that existed before, until they are back.
    pub loan_beside: Option<PathBuf>,
}

impl TunConfig {
    /// A device with this name, an MTU of 1,500 bytes, and no addresses or routes.
    pub fn new(name: &str) -> TunConfig {
        TunConfig {
            name: name.to_owned(),
            mtu: 1500,
            kernel_addresses: Vec::new(),
            routes: Vec::new(),
            loan_beside: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), LinkError> {
        let what = if self.name.is_empty() || self.name.len() > 15 || self.name.contains(['/', ' ']) {
            "a device's name has 1 to 15 bytes, without slash and space"
        } else if self.mtu < 68 {
            "an MTU is at least 68 (1280 for IPv6)"
        } else {
            return Ok(());
        };
        Err(LinkError::Setting { device: self.name.clone(), what })
    }

    pub(crate) fn settings(&self) -> DeviceSettings {
        DeviceSettings {
            mtu: Some(self.mtu),
            addresses: self.kernel_addresses.clone(),
            routes: self.routes.clone(),
            ..DeviceSettings::default()
        }
    }
}

/// The link on a TUN device. Dropping it removes a device that it has made.
#[derive(Debug)]
pub struct Tun {
    // Before the descriptor in order of drop: the device is restored before another program can open it.
    on_loan: Option<OnLoan>,
    fd: OwnedFd,
    mtu: u16,
    tally: LinkTally,
}

impl Tun {
    /// Creates and configures the device, or attaches to one of that name that no program has open. When the link is
    /// dropped, the kernel removes a created device with its addresses and routes. A device that existed before is
    /// restored.
    pub fn open(config: &TunConfig) -> Result<Tun, LinkError> {
        config.check()?;
        let before = before(&config.name)?;
        let (fd, name) = create(&config.name, Mode::Tun)?;
        let settings = DeviceSettings { queue_packets: Some(QUEUE_PACKETS), ..config.settings() };
        let beside = config.loan_beside.as_deref();
        let mut on_loan = before.map(|before| OnLoan::new(before, beside));
        configure(&name, &settings, on_loan.as_mut())?;
        Ok(Tun { on_loan, fd, mtu: config.mtu, tally: LinkTally::new(&name) })
    }
}

/// The state of the device before it is opened, if it exists.
pub(crate) fn before(name: &str) -> Result<Option<EarlierState>, LinkError> {
    EarlierState::of(name).map_err(|error| LinkError::Configure { device: name.to_owned(), error })
}

/// A device that existed before is only lent.
pub(crate) fn configure(
    name: &str,
    settings: &DeviceSettings,
    on_loan: Option<&mut OnLoan>,
) -> Result<(), LinkError> {
    let configured = match on_loan {
        Some(on_loan) => on_loan.configure(name, settings),
        None => netlink::configure(name, settings),
    };
    configured.map_err(|error| LinkError::Configure { device: name.to_owned(), error })
}

/// The error for an existing device of another kind, or with several queues.
pub(crate) const IS_NO_TUN: &str = "the device is there, and is no TUN of one queue: \
     expected a name that no device has, or that of a TUN made by `ip tuntap add NAME mode tun`";
const IS_NO_TAP: &str = "the device is there, and is no TAP: expected a name that no device has";

/// The error where the kernel, or the container, has no device that makes TUNs and TAPs.
const NO_CLONE_DEVICE: &str = "there is no /dev/net/tun, which makes such devices: load it with `modprobe tun`; \
     a container gets it by --device=/dev/net/tun";

/// The reason why a device was not opened. For a device of another kind, the kernel only reports an invalid argument.
pub(crate) fn not_opened(
    (doing, is_another): (&'static str, &'static str),
    name: &str,
    error: io::Error,
) -> LinkError {
    let what = match error.raw_os_error() {
        Some(libc::EINVAL) if netlink::index_of(name).is_ok() => is_another,
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => NO_CLONE_DEVICE,
        _ => return LinkError::system(doing, name, error),
    };
    LinkError::Setting { device: name.to_owned(), what }
}

/// Makes a device that adds no headers to packets, or attaches to one that no program has open.
pub(crate) fn create(name: &str, mode: Mode) -> Result<(OwnedFd, String), LinkError> {
    let said = match mode {
        Mode::Tun => ("open a TUN device", IS_NO_TUN),
        Mode::Tap => ("open a TAP device", IS_NO_TAP),
    };
    let iface = Iface::without_packet_info(name, mode).map_err(|error| not_opened(said, name, error))?;
    let name = iface.name().to_owned();
    iface.set_non_blocking().map_err(|error| LinkError::system("make it non-blocking", &name, error))?;
    let fd = sys::owned(iface);
    // A killed user with offload has left its flags to a device that outlives its users.
    sys::clear_tun_offloads(fd.as_fd())
        .map_err(|error| LinkError::system("turn offload off", &name, error))?;
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)
        .map_err(|error| LinkError::system("keep it from child processes", &name, error))?;
    Ok((fd, name))
}

impl Link for Tun {
    fn properties(&self) -> LinkProperties {
        let (offload, ack_merge) = (Offload::Cut { most_bytes: BUNDLE_BYTES }, AckMerge::Read);
        LinkProperties { offload, ack_merge, cuts: false, is_routed: true, ..LinkProperties::plain(self.mtu) }
    }

    fn tally(&self) -> &LinkTally {
        &self.tally
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    fn receive(&mut self, _now: Instant, into: &mut [u8]) -> Received {
        match rustix::io::read(&self.fd, &mut *into) {
            Ok(bytes) => check_ip(&into[..bytes], &mut self.tally),
            Err(error) => on_read_error(error.into(), &mut self.tally),
        }
    }

    fn transmit(&mut self, _now: Instant, _transmit: &Transmit, packet: &[u8]) -> Sent {
        match rustix::io::write(&self.fd, packet) {
            Ok(_) => self.tally.taken(packet.len()),
            Err(error) => on_write_error(error.into(), &mut self.tally),
        }
    }

    fn takes_back(&self) -> bool {
        self.on_loan.is_some()
    }
}

/// Drops packets other than IP at the link.
pub(crate) fn check_ip(packet: &[u8], tally: &mut LinkTally) -> Received {
    let reason = match packet.first().map(|first| first >> 4) {
        None => LinkDrop::Truncated,
        Some(4) if packet.len() < 20 => LinkDrop::Truncated,
        Some(6) if packet.len() < 40 => LinkDrop::Truncated,
        Some(4 | 6) => {
            tally.received.count(packet.len());
            return Received::Packet(Arrived::new(packet.len()));
        }
        Some(_) => LinkDrop::NotIp,
    };
    tally.lost(reason)
}

pub(crate) fn on_read_error(error: io::Error, tally: &mut LinkTally) -> Received {
    match error.raw_os_error() {
        // The device was deleted while it was open.
        Some(libc::EBADFD | libc::ENODEV | libc::ENXIO) => tally.gone(),
        _ => Received::Nothing,
    }
}

pub(crate) fn on_write_error(error: io::Error, tally: &mut LinkTally) -> Sent {
    let reason = match error.raw_os_error() {
        Some(libc::EAGAIN) => return Sent::Full,
        Some(libc::ENOBUFS | libc::ENOMEM) => LinkDrop::QueueFull,
        Some(libc::EBADFD | libc::ENODEV | libc::ENXIO) => {
            tally.is_gone = true;
            LinkDrop::Gone
        }
        Some(libc::EIO | libc::ENETDOWN) => LinkDrop::Down,
        Some(libc::EMSGSIZE) => LinkDrop::TooBig,
        _ => LinkDrop::Refused,
    };
    tally.refused(reason)
}
