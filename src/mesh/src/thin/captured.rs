//! The capture of a daemon that thins ACKs: each pure ACK of the flows that it follows, with its fate.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

use hopwise_core::{Instant, LinkId};
use hopwise_host::{Capture, CaptureSettings, CapturedLink, Clock, Direction, Framing, SeenPacket, Tap};
use hopwise_mesh::AckFate;

use hopwise_daemon::failure::Failure;

/// The newest gigabyte stays.
const ROTATE_BYTES: u64 = 100_000_000;
const FILES: NonZeroU32 = NonZeroU32::new(10).unwrap();

/// Dropping it writes what is left.
pub(super) struct AckCapture {
    capture: Capture,
    tap: Tap,
    /// Packets without a verdict, by number: since when, by which interface, and their bytes.
    waiting: BTreeMap<u32, (Instant, u16, Vec<u8>)>,
}

impl AckCapture {
    pub(super) fn start(path: &Path, interfaces: &[String], clock: &Clock) -> Result<AckCapture, Failure> {
        let capture = Capture::default();
        let link = |name: &String| CapturedLink { name: name.clone(), framing: Framing::Ip };
        let started = capture.start(CaptureSettings {
            path: path.to_owned(),
            rotate_bytes: Some(ROTATE_BYTES),
            files: FILES,
            links: interfaces.iter().map(link).collect(),
            wanted: (0..).map(LinkId).take(interfaces.len()).collect(),
            wall_clock_offset: clock.wall_offset(),
            names: vec![Box::new(|_| None)],
        });
        started.map_err(Failure::during("begin the capture"))?;
        let tap = capture.tap(0);
        Ok(AckCapture { capture, tap, waiting: BTreeMap::new() })
    }

    pub(super) fn keep(&mut self, since: Instant, (id, interface): (u32, u16), head: &[u8]) {
        self.waiting.insert(id, (since, interface, head.to_vec()));
    }

    /// Writes an ACK at the time of its verdict. Data lack their ends here and are left out.
    pub(super) fn tell(&mut self, at: Instant, id: u32, fate: AckFate) {
        let Some((since, interface, head)) = self.waiting.remove(&id) else { return };
        if matches!(fate, AckFate::NoAck | AckFate::NotFollowed) {
            return;
        }
        let held = at.since(since).as_secs_f64() * 1e3;
        let comment = format!("{fate}, held for {held:.1} ms");
        let (link, direction) = (LinkId(interface), Direction::Out);
        // Two sides of a driver number their packets; here nothing joins them.
        let seen =
            SeenPacket { at, link, direction, id: 0, segment_bytes: None, ethernet: None, packet: &head };
        self.tap.on_commented(&seen, comment);
    }
}

impl Drop for AckCapture {
    fn drop(&mut self) {
        if let Err(error) = self.capture.stop() {
            tracing::warn!(%error, "the capture");
        }
    }
}
