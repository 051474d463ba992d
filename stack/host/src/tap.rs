//! A TAP device: whole Ethernet frames between the kernel and the simulated medium behind it.
//!
//! It is read only when the medium has room. The kernel's own queue for the device is therefore the interface's queue,
//! and drops the excess.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hopwise_core::ip::Prefix;
use tun_tap::Mode;

use crate::link::LinkError;
use crate::netlink::{self, DeviceSettings};
use crate::tun;

/// The settings of a TAP device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapConfig {
    /// At most 15 bytes.
    pub name: String,
    /// The longest IP packet in bytes.
    pub mtu: u16,
    /// The device's own Ethernet address.
    pub mac: [u8; 6],
    /// The length of the kernel's queue.
    pub queue_packets: u32,
    /// The kernel's own addresses there.
    pub addresses: Vec<Prefix>,
}

/// An open device; the kernel removes it when it is dropped.
#[derive(Debug)]
pub struct TapDevice {
    fd: OwnedFd,
    name: String,
}

impl TapDevice {
    /// Creates the device in the namespace of this thread, and takes it up. The kernel removes it when this is dropped.
    pub fn open(config: &TapConfig) -> Result<TapDevice, LinkError> {
        let (fd, name) = tun::create(&config.name, Mode::Tap)?;
        let settings = DeviceSettings {
            mtu: Some(config.mtu),
            mac: Some(config.mac),
            queue_packets: Some(config.queue_packets),
            addresses: config.addresses.clone(),
            routes: Vec::new(),
        };
        netlink::configure(&name, &settings)
            .map_err(|error| LinkError::Configure { device: name.clone(), error })?;
        Ok(TapDevice { fd, name })
    }

    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next frame that the kernel sends, written to the beginning of `into`. An error means that the device is
    /// gone.
    pub fn read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.fd, into) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Hands the kernel an incoming frame.
    pub fn write(&self, frame: &[u8]) -> io::Result<()> {
        Ok(rustix::io::write(&self.fd, frame).map(|_| ())?)
    }
}

impl AsFd for TapDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
