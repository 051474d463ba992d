//! `pcap`: packets of other hosts through libpcap. Live capture with a filter, and replay of captures. Neither sends.

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use hopwise_core::wire::Checksums;
use hopwise_core::{Instant, Transmit};

use crate::counters::{LinkDrop, LinkTally};
use crate::link::{Link, LinkError, LinkProperties, Received, Sent};
use crate::sys;
use crate::tun::check_ip;
use pcap::{Active, Capture, Error, Linktype, Offline, PacketHeader};

/// The packets that pass a device, captured passively.
pub struct LiveCapture {
    capture: Capture<Active>,
    layer: Layer,
    checksums: Checksums,
    tally: LinkTally,
}

/// A file of packets, at their recorded times or as fast as they are taken.
pub struct Replay {
    capture: Capture<Offline>,
    layer: Layer,
    checksums: Checksums,
    pace: Pace,
    /// The next packet, read ahead, and its recorded time.
    next: Option<(Duration, Vec<u8>)>,
    /// The times of the capture's clock and of ours at the first packet.
    began: Option<(Duration, Instant)>,
    tally: LinkTally,
}

/// The times at which a replay gives its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// With the gaps between them that the capture has.
    AsRecorded,
    /// As fast as they are read.
    AtOnce,
}

/// Maps errors of libpcap, which reports missing privileges by its text alone.
fn failed(doing: &'static str, device: &str) -> impl Fn(Error) -> LinkError {
    move |error| {
        let said = in_its_words(error);
        let is_forbidden = said.contains("permission") || said.contains("Operation not permitted");
        let kind = if is_forbidden { ErrorKind::PermissionDenied } else { ErrorKind::Other };
        LinkError::system(doing, device, io::Error::new(kind, said)).taking("CAP_NET_RAW")
    }
}

/// Checks whether libpcap takes a filter for at least one kind of device that is read here, since the kind is not known
/// yet. An error is of the most common kind. A host name that cannot be resolved now is no error.
pub fn check_filter(filter: &str) -> Result<(), String> {
    let compiled = |number: &i32| {
        let capture = Capture::dead(Linktype(*number)).map_err(in_its_words)?;
        capture.compile(filter, true).map(|_| ()).map_err(in_its_words)
    };
    let [most_common, others @ ..] = &Layer::NUMBERS[..] else { return Ok(()) };
    let Err(problem) = compiled(most_common) else { return Ok(()) };
    let is_fine = problem.contains("unknown host") || others.iter().any(|number| compiled(number).is_ok());
    if is_fine { Ok(()) } else { Err(problem) }
}

fn in_its_words(error: Error) -> String {
    match error {
        Error::PcapError(said) => said,
        other => other.to_string(),
    }
}

fn layer_of(number: i32, device: &str) -> Result<Layer, LinkError> {
    let what = "its packets begin with a header that is not known here";
    Layer::from_number(number).ok_or_else(|| LinkError::Setting { device: device.to_owned(), what })
}

impl LiveCapture {
    /// Opens the device, with a `filter` in libpcap's language, such as `tcp port 80`.
    pub fn open(device: &str, filter: Option<&str>) -> Result<LiveCapture, LinkError> {
        let capture = Capture::from_device(device).map_err(failed("find it", device))?;
        let capture = capture.snaplen(1 << 18).immediate_mode(true).promisc(false).open();
        let capture = capture.map_err(failed("capture there", device))?;
        let mut capture = capture.setnonblock().map_err(failed("make it non-blocking", device))?;
        if let Some(filter) = filter {
            capture.filter(filter, true).map_err(failed("take the filter", device))?;
        }
        let layer = layer_of(capture.get_datalink().0, device)?;
        Ok(LiveCapture { capture, layer, checksums: Checksums::Verify, tally: LinkTally::new(device) })
    }

    /// With `Trust`, packets also pass if a device was to compute their checksums after the capture.
    #[must_use]
    pub fn with_checksums(self, checksums: Checksums) -> LiveCapture {
        LiveCapture { checksums, ..self }
    }
}

impl Replay {
    /// Opens a capture of IP packets or Ethernet frames.
    pub fn open(file: &Path, pace: Pace) -> Result<Replay, LinkError> {
        let name = file.display().to_string();
        let unreadable =
            |error| LinkError::system("read the capture", &name, io::Error::other(in_its_words(error)));
        let capture = Capture::from_file(file).map_err(unreadable)?;
        let layer = layer_of(capture.get_datalink().0, &name)?;
        let (next, began, checksums, tally) = (None, None, Checksums::Verify, LinkTally::new(&name));
        let mut replay = Replay { capture, layer, checksums, pace, next, began, tally };
        replay.read_ahead();
        Ok(replay)
    }

    /// The same as for a live capture.
    #[must_use]
    pub fn with_checksums(self, checksums: Checksums) -> Replay {
        Replay { checksums, ..self }
    }

    fn read_ahead(&mut self) {
        // A truncated file ends there.
        self.next = self.capture.next_packet().ok().map(|packet| (time(packet.header), packet.data.to_vec()));
    }

    fn due(&self) -> Option<Instant> {
        let (at, _) = self.next.as_ref()?;
        match (self.pace, self.began) {
            (Pace::AsRecorded, Some((first, began))) => Some(began + at.saturating_sub(first)),
            _ => Some(Instant::ZERO),
        }
    }
}

fn time(header: &PacketHeader) -> Duration {
    let seconds = u64::try_from(header.ts.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(header.ts.tv_usec).unwrap_or(0))
}

/// Writes the packet without its link layer's header to the beginning of `into`.
fn take(layer: Layer, frame: &[u8], captured: usize, into: &mut [u8], tally: &mut LinkTally) -> Received {
    let Some(packet) = layer.packet(frame) else { return tally.lost(LinkDrop::NotIp) };
    if captured > frame.len() || packet.len() > into.len() {
        return tally.lost(LinkDrop::Oversized);
    }
    into[..packet.len()].copy_from_slice(packet);
    check_ip(&into[..packet.len()], tally)
}

impl Link for LiveCapture {
    fn properties(&self) -> LinkProperties {
        LinkProperties { checksums: self.checksums, ..LinkProperties::plain(u16::MAX) }
    }

    fn tally(&self) -> &LinkTally {
        &self.tally
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(sys::borrowed(self, self.capture.as_raw_fd()))
    }

    fn receive(&mut self, _now: Instant, into: &mut [u8]) -> Received {
        let LiveCapture { capture, layer, tally, .. } = self;
        match capture.next_packet() {
            Ok(packet) => take(*layer, packet.data, packet.header.len as usize, into, tally),
            Err(Error::TimeoutExpired | Error::NoMorePackets) => Received::Nothing,
            Err(_) => self.tally.gone(),
        }
    }

    fn transmit(&mut self, _now: Instant, _transmit: &Transmit, _packet: &[u8]) -> Sent {
        self.tally.refused(LinkDrop::ReceiveOnly)
    }
}

impl Link for Replay {
    fn properties(&self) -> LinkProperties {
        LinkProperties { checksums: self.checksums, ..LinkProperties::plain(u16::MAX) }
    }

    fn tally(&self) -> &LinkTally {
        &self.tally
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn receive(&mut self, now: Instant, into: &mut [u8]) -> Received {
        if self.due().is_none_or(|due| due > now) {
            return Received::Nothing;
        }
        let Some((at, frame)) = self.next.take() else { return Received::Nothing };
        self.began.get_or_insert((at, now));
        self.read_ahead();
        take(self.layer, &frame, frame.len(), into, &mut self.tally)
    }

    fn transmit(&mut self, _now: Instant, _transmit: &Transmit, _packet: &[u8]) -> Sent {
        self.tally.refused(LinkDrop::ReceiveOnly)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due()
    }
}

hopwise_core::shown!(LiveCapture: tally);

hopwise_core::shown!(Replay: tally);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    /// No header (TUN).
    Raw,
    Ethernet,
    /// The header of BSD's loopback device: four bytes.
    Null,
    /// The header of Linux' "any" device, in its two versions.
    Cooked,
    Cooked2,
}

impl Layer {
    /// One number of each, the most common first.
    const NUMBERS: [i32; 5] = [1, 12, 113, 276, 0];

    fn from_number(number: i32) -> Option<Layer> {
        match number {
            12 | 14 | 101 | 228 | 229 => Some(Layer::Raw),
            1 => Some(Layer::Ethernet),
            0 | 108 => Some(Layer::Null),
            113 => Some(Layer::Cooked),
            276 => Some(Layer::Cooked2),
            _ => None,
        }
    }

    /// The IP packet in a frame, if it is one.
    fn packet(self, frame: &[u8]) -> Option<&[u8]> {
        let (kind_at, mut begins) = match self {
            Layer::Raw => return Some(frame),
            Layer::Null => return frame.get(4..),
            Layer::Ethernet => (12, 14),
            Layer::Cooked => (14, 16),
            Layer::Cooked2 => (0, 20),
        };
        let mut kind = frame.get(kind_at..kind_at + 2)?;
        // VLAN tags.
        while matches!(kind, [0x81, 0x00] | [0x88, 0xa8]) && self == Layer::Ethernet {
            kind = frame.get(begins + 2..begins + 4)?;
            begins += 4;
        }
        matches!(kind, [0x08, 0x00] | [0x86, 0xdd]).then(|| frame.get(begins..)).flatten()
    }
}

#[cfg(test)]
mod tests;
