//! A packet socket on one device: each system call reads or writes a batch of frames.
#![expect(unsafe_code, reason = "no crate wraps packet sockets with recvmmsg")]

use std::ffi::c_int;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use hopwise_core::Cast;
use hopwise_core::narrow::{as_u16, as_u32};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
use tun_rs::VIRTIO_NET_HDR_LEN;

use super::RIGHTS;
use super::ethernet::{ControlRoom, ETHERNET, Mac, Tag};
use crate::counters::{LinkDrop, LinkTally};
use crate::link::LinkError;
use crate::netlink;

/// The number of frames of one system call.
const BATCH: usize = 16;
const MOST_BYTES: usize = VIRTIO_NET_HDR_LEN + ETHERNET + 65_535;
/// The size of the receive buffer. A burst that comes while the machine is busy has to fit.
const BUFFER_BYTES: c_int = 8 << 20;

/// The flag of calls that do not wait. Each C library has a type of its own for it, and musl's has no sign.
#[cfg(not(target_env = "musl"))]
const DONT_WAIT: c_int = libc::MSG_DONTWAIT;
#[cfg(target_env = "musl")]
const DONT_WAIT: std::ffi::c_uint = libc::MSG_DONTWAIT.cast_unsigned();

#[derive(Debug)]
pub(crate) struct PacketSocket {
    fd: OwnedFd,
    device: String,
    input: Vec<u8>,
    arrived: Vec<ArrivedFrame>,
    next: usize,
    output: Vec<Vec<u8>>,
    /// Frames of `output` that wait to leave.
    waiting: usize,
}

/// The facts about a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) mac: Mac,
    pub(crate) mtu: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    Frame { bytes: usize, cast: Cast, tag: Tag },
    Nothing,
    Down,
    Gone,
}

#[derive(Clone, Copy, Debug)]
struct ArrivedFrame {
    bytes: usize,
    cast: Cast,
    tag: Tag,
}

impl PacketSocket {
    pub(crate) fn open(device: &str) -> Result<(PacketSocket, About), LinkError> {
        let failed = |doing| move |error| LinkError::system(doing, device, error).taking(RIGHTS);
        let index = netlink::index_of(device)
            .map_err(|error| LinkError::Configure { device: device.to_owned(), error })?;
        let fd = packet_socket(SocketType::RAW).map_err(failed("open a packet socket"))?;
        let about = ask_about(&fd, device).map_err(failed("ask for its address and MTU"))?;
        let Some(about) = about else {
            return Err(LinkError::Setting { device: device.to_owned(), what: "it is no Ethernet device" });
        };
        let membership = libc::packet_mreq {
            mr_ifindex: index as c_int,
            mr_type: as_u16(libc::PACKET_MR_ALLMULTI as usize),
            mr_alen: 0,
            mr_address: [0; 8],
        };
        let packet = libc::SOL_PACKET;
        set(&fd, packet, libc::PACKET_VNET_HDR, &1_i32).map_err(failed("ask for bundles"))?;
        set(&fd, packet, libc::PACKET_AUXDATA, &1_i32).map_err(failed("ask for VLAN tags"))?;
        set(&fd, packet, libc::PACKET_IGNORE_OUTGOING, &1_i32).map_err(failed("leave out what leaves"))?;
        set(&fd, packet, libc::PACKET_ADD_MEMBERSHIP, &membership).map_err(failed("join all groups"))?;
        // A smaller buffer works, too.
        let _ = set(&fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &BUFFER_BYTES)
            .or_else(|_| set(&fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &BUFFER_BYTES));
        bind(&fd, index).map_err(failed("bind to it"))?;
        let socket = PacketSocket {
            fd,
            device: device.to_owned(),
            input: vec![0; BATCH * MOST_BYTES],
            arrived: Vec::with_capacity(BATCH),
            next: 0,
            output: vec![Vec::new(); BATCH],
            waiting: 0,
        };
        Ok((socket, about))
    }

    pub(crate) fn into_descriptor(self) -> OwnedFd {
        self.fd
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The next frame, with its header, at the beginning of `into`.
    pub(crate) fn next(&mut self, into: &mut [u8]) -> Got {
        if self.next == self.arrived.len() {
            match self.read() {
                Ok(()) if self.arrived.is_empty() => return Got::Nothing,
                Ok(()) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                    return if self.has_device() { Got::Down } else { Got::Gone };
                }
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV)) => {
                    return Got::Gone;
                }
                Err(_) => return Got::Nothing,
            }
        }
        let ArrivedFrame { bytes, cast, tag } = self.arrived[self.next];
        let bytes = bytes.min(into.len());
        let at = self.next * MOST_BYTES;
        into[..bytes].copy_from_slice(&self.input[at..at + bytes]);
        self.next += 1;
        Got::Frame { bytes, cast, tag }
    }

    /// Returns whether the device exists. The socket stays in its namespace wherever its thread has gone.
    pub(crate) fn has_device(&self) -> bool {
        netdevice::name_to_index(self.fd.as_fd(), &self.device).is_ok()
    }

    /// The device's current address; `None` if it cannot be read.
    pub(crate) fn mac(&self) -> Option<Mac> {
        ask_about(&self.fd, &self.device).ok()?.map(|about| about.mac)
    }

    fn read(&mut self) -> io::Result<()> {
        self.arrived.clear();
        self.next = 0;
        // SAFETY: all three are plain data for which zeros are a value.
        let (mut slices, mut names, mut headers): (
            [libc::iovec; BATCH],
            [libc::sockaddr_ll; BATCH],
            [libc::mmsghdr; BATCH],
        ) = unsafe { (mem::zeroed(), mem::zeroed(), mem::zeroed()) };
        let mut controls = [ControlRoom::default(); BATCH];
        for (nth, buffer) in self.input.chunks_exact_mut(MOST_BYTES).enumerate() {
            slices[nth] = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            let header = &mut headers[nth].msg_hdr;
            header.msg_iov = &raw mut slices[nth];
            header.msg_iovlen = 1;
            header.msg_name = (&raw mut names[nth]).cast();
            header.msg_namelen = as_u32(size_of::<libc::sockaddr_ll>());
            header.msg_control = controls[nth].0.as_mut_ptr().cast();
            header.msg_controllen = size_of::<ControlRoom>() as _;
        }
        // SAFETY: each header names one buffer of `input`, one of `names` and one of `controls`, all with their true
        // lengths, and all outlive the call.
        let count = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                headers.as_mut_ptr(),
                as_u32(BATCH),
                DONT_WAIT,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(()) } else { Err(error) };
        }
        let arrived = headers[..count as usize].iter().zip(&names).zip(&controls);
        self.arrived.extend(arrived.map(|((header, name), control)| ArrivedFrame {
            bytes: header.msg_len as usize,
            cast: cast(name.sll_pkttype),
            tag: control.tag(),
        }));
        Ok(())
    }

    /// Takes a frame, with its header, into the batch that leaves with the next flush. Returns whether it had room.
    pub(crate) fn put(&mut self, frame: &[u8], tally: &mut LinkTally) -> bool {
        if self.waiting == BATCH {
            self.flush(tally);
        }
        let Some(slot) = self.output.get_mut(self.waiting) else { return false };
        slot.clear();
        slot.extend_from_slice(frame);
        self.waiting += 1;
        true
    }

    pub(crate) fn is_flushed(&self) -> bool {
        self.waiting == 0
    }

    /// Sends the frames of the batch for which there is room.
    pub(crate) fn flush(&mut self, tally: &mut LinkTally) {
        let mut sent = 0;
        while sent < self.waiting {
            match self.write(sent) {
                Ok(count) => sent += count,
                Err(error) => match reason(&error) {
                    None => break,
                    Some(reason) => {
                        tally.dropped(reason);
                        sent += 1;
                    }
                },
            }
        }
        self.output[..self.waiting].rotate_left(sent);
        self.waiting -= sent;
    }

    fn write(&mut self, from: usize) -> io::Result<usize> {
        // SAFETY: both are plain data for which zeros are a value.
        let (mut slices, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        let frames = &mut self.output[from..self.waiting];
        for (nth, frame) in frames.iter_mut().enumerate() {
            slices[nth] = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() };
            headers[nth].msg_hdr.msg_iov = &raw mut slices[nth];
            headers[nth].msg_hdr.msg_iovlen = 1;
        }
        let (fd, count) = (self.fd.as_raw_fd(), as_u32(frames.len()));
        // SAFETY: the first `count` headers name one frame each with its true length, and all outlive the call.
        let sent = unsafe { libc::sendmmsg(fd, headers.as_mut_ptr(), count, DONT_WAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }

    /// The number of frames that the kernel had no room for since the last call.
    pub(crate) fn take_overruns(&self) -> u64 {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut len = as_u32(size_of_val(&stats));
        let fd = self.fd.as_raw_fd();
        // SAFETY: the kernel writes at most `len` bytes, which is what `stats` has.
        let result = unsafe {
            let stats = (&raw mut stats).cast();
            libc::getsockopt(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, stats, &raw mut len)
        };
        if result == 0 { u64::from(stats.tp_drops) } else { 0 }
    }
}

/// The reason to drop a frame; `None` if the socket only lacks room.
fn reason(error: &io::Error) -> Option<LinkDrop> {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => None,
        Some(libc::ENOBUFS | libc::ENOMEM) => Some(LinkDrop::QueueFull),
        Some(libc::ENETDOWN) => Some(LinkDrop::Down),
        Some(libc::ENXIO | libc::ENODEV) => Some(LinkDrop::Gone),
        Some(libc::EMSGSIZE) => Some(LinkDrop::TooBig),
        _ => Some(LinkDrop::Refused),
    }
}

fn cast(kind: u8) -> Cast {
    match kind {
        libc::PACKET_HOST => Cast::ToUs,
        libc::PACKET_BROADCAST | libc::PACKET_MULTICAST => Cast::ToAll,
        _ => Cast::Overheard,
    }
}

/// A packet socket, which receives nothing until it is bound.
pub(crate) fn packet_socket(kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::PACKET, kind, flags, None)?)
}

fn set<T>(fd: &OwnedFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let len = as_u32(size_of::<T>());
    let value: *const T = value;
    // SAFETY: the kernel reads `len` bytes from a value of that size.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.cast(), len) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Binds a packet socket to an interface, for packets of every protocol.
pub(crate) fn bind(fd: &OwnedFd, index: u32) -> io::Result<()> {
    // SAFETY: it is plain data for which zeros are a value.
    let mut name: libc::sockaddr_ll = unsafe { mem::zeroed() };
    name.sll_family = as_u16(libc::AF_PACKET as usize);
    name.sll_protocol = as_u16(libc::ETH_P_ALL as usize).to_be();
    name.sll_ifindex = index as c_int;
    let len = as_u32(size_of_val(&name));
    // SAFETY: the kernel reads `len` bytes from a value of that size.
    let result = unsafe { libc::bind(fd.as_raw_fd(), (&raw const name).cast(), len) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The Ethernet address and MTU of a device; `None` for a device of another kind.
fn ask_about(fd: &OwnedFd, device: &str) -> io::Result<Option<About>> {
    let ask = |what: libc::Ioctl| {
        // SAFETY: it is plain data for which zeros are a value.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(device.bytes().take(libc::IFNAMSIZ - 1)) {
            *to = from as libc::c_char;
        }
        // SAFETY: both requests read and write a `struct ifreq`, which this is.
        let result = unsafe { libc::ioctl(fd.as_raw_fd(), what, &raw mut request) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(request) }
    };
    let hardware = ask(libc::SIOCGIFHWADDR as libc::Ioctl)?;
    // SAFETY: the kernel has written this member of the union for that request.
    let hardware = unsafe { hardware.ifr_ifru.ifru_hwaddr };
    if hardware.sa_family != libc::ARPHRD_ETHER {
        return Ok(None);
    }
    let mtu = ask(libc::SIOCGIFMTU as libc::Ioctl)?;
    // SAFETY: the kernel has written this member of the union for that request.
    let mtu = unsafe { mtu.ifr_ifru.ifru_mtu };
    let mut mac = Mac::default();
    for (to, from) in mac.iter_mut().zip(hardware.sa_data) {
        *to = from.to_ne_bytes()[0];
    }
    Ok(Some(About { mac, mtu: u16::try_from(mtu).unwrap_or(u16::MAX) }))
}
