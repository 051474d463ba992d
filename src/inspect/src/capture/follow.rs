//! `hopwise capture follow`: the way of one segment, hop by hop, through a capture of several radios or nodes.

mod overheard;
mod page;
mod segment;
mod track;

use std::path::{Path, PathBuf};

use clap::Args;
use hopwise_lab::plain;

use hopwise_daemon::failure::{self, Failure, say};

use super::packets::{AirFrame, layers};
use super::radiotap;
use super::source::{CaptureInterface, CapturePacket, each};
use super::why::{joined, said};
use page::Followed;
pub(super) use segment::{Bases, CapturedSegment};
use segment::{FollowedSegment, WantedSegment};
use track::{CapturedPacket, OnAir, SegmentTrack};

/// Show a segment's path hop by hop: waits, tries, airtime, and where it was lost
#[derive(Args, Debug)]
#[command(after_help = "\
In a capture of simulated radios (`hopwise run --capture`) comments name what a frame was lost to. In one of live
nodes the packets themselves show where the segment came, and how long that took.

Examples:
  hopwise capture merge results/c/n*.pcapng results/c/ends/*.pcapng -o all.pcapng
  hopwise capture follow all.pcapng 40
  hopwise capture follow all.pcapng 10.0.0.1:50548-10.0.0.9:5001/1001
  hopwise capture follow all.pcapng 40 --json")]
pub(super) struct Arguments {
    /// Capture to read, such as one that `merge` wrote
    file: PathBuf,
    /// Number of a frame that has the segment, or FROM-TO/SEQ with the number of a byte, counted from 1 as in Wireshark
    segment: WantedSegment,
    /// Print it as one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let found = follow(&arguments.file, &arguments.segment)?;
    if arguments.json {
        return say(&failure::json(&found)?);
    }
    say(found.page().trim_end())
}

fn follow(path: &Path, wanted: &WantedSegment) -> Result<Followed, Failure> {
    let (target, interfaces, begin) = find(path, wanted)?;
    let names = interfaces.iter().zip(0..).map(|(interface, nth)| name(interface, nth));
    let mut track = SegmentTrack::new(target, names.collect());
    each(path, |packet| {
        if let Some(seen) = seen(packet) {
            track.hear(&seen);
        }
        Ok(true)
    })?;
    Ok(Followed::new(&target, begin, track.sendings))
}

fn name(interface: &CaptureInterface, nth: usize) -> String {
    interface.name.as_deref().map_or_else(|| format!("interface {nth}"), plain::line)
}

/// The segment, the interfaces of the file, and its first time.
fn find(
    path: &Path,
    wanted: &WantedSegment,
) -> Result<(FollowedSegment, Vec<CaptureInterface>, i64), Failure> {
    let (mut bases, mut found, mut begin, mut highest) = (Bases::default(), None, None, None);
    let refused = |problem: String| Failure::refused(path.display().to_string(), problem);
    let source = each(path, |packet| {
        begin.get_or_insert(packet.at);
        let segment = layers(packet.link, &packet.block.data).ip.and_then(CapturedSegment::of);
        if let Some(segment) = &segment {
            bases.learn(segment);
        }
        match (wanted, segment) {
            (WantedSegment::Frame(frame), segment) if packet.frame == *frame => {
                let none =
                    || refused(format!("frame {frame} has no TCP segment: expected a frame that has one"));
                found = Some(segment.ok_or_else(none)?);
            }
            (WantedSegment::Byte(flow, byte), Some(segment)) if segment.flow == *flow && segment.len > 0 => {
                let first = bases.relative(*flow, segment.seq);
                let last = first.wrapping_add(segment.len - 1);
                highest = highest.max(Some(last));
                if found.is_none() && (first..=last).contains(byte) {
                    found = Some(segment);
                }
            }
            _ => {}
        }
        Ok(true)
    })?;
    let segment = found.ok_or_else(|| {
        refused(match (wanted, highest) {
            (WantedSegment::Frame(_), _) => {
                format!("it has {0} frames, expected a frame from 1 to {0}", source.frames)
            }
            (WantedSegment::Byte(..), Some(last)) => {
                format!("no segment has this byte, expected one from 1 to {last}")
            }
            (WantedSegment::Byte((from, to), _), None) => {
                format!(
                    "it has no data from {from} to {to}: `hopwise capture why --summary` lists connections"
                )
            }
        })
    })?;
    let target = FollowedSegment { segment, first: bases.relative(segment.flow, segment.seq) };
    Ok((target, source.interfaces, begin.unwrap_or(0)))
}

fn seen(packet: &CapturePacket) -> Option<CapturedPacket<'_>> {
    let bytes = &packet.block.data;
    let found = layers(packet.link, bytes);
    let told = said(&packet.block);
    let (is_inbound, is_directed, of_link) = (told.is_inbound, told.is_directed, told.of_link());
    let is_of_mac = |text: &String| {
        found.air.is_some() && ["for ", "in answer to "].iter().any(|start| text.starts_with(start))
    };
    let (mut mac, mut comments): (Vec<_>, Vec<_>) = told.comments.into_iter().partition(is_of_mac);
    comments.extend(of_link);
    let segment = found.ip.and_then(CapturedSegment::of);
    let air = match found.air {
        Some(frame) => Some(on_air(frame, radiotap::airtime_ns(bytes).unwrap_or(0))?),
        None => None,
    };
    let said = joined(&comments);
    let (at, interface) = (packet.at, packet.interface);
    let is_overheard = air.is_some() && !is_directed;
    Some(CapturedPacket { at, interface, is_inbound, is_overheard, said, mac: mac.pop(), air, segment })
}

fn on_air(frame: AirFrame<'_>, airtime_ns: u64) -> Option<OnAir<'_>> {
    let airtime_ns = i64::try_from(airtime_ns).unwrap_or(i64::MAX);
    Some(OnAir { kind: frame.kind()?, to: frame.to()?, frame, airtime_ns })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::time::Duration;

    use pcap_file::DataLink;
    use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};

    use super::*;

    #[test]
    fn what_is_told_of_the_link_stands_behind_the_reason() {
        let comments = ["link to 02:00:00:00:00:01; signal -61 dBm", "10 bytes, new"];
        let options = comments.map(|text| EnhancedPacketOption::Comment(text.into())).to_vec();
        let (data, timestamp) = (Cow::Borrowed(&b"xx"[..]), Duration::ZERO);
        let block = EnhancedPacketBlock { interface_id: 0, timestamp, original_len: 2, data, options };
        let packet = CapturePacket { frame: 1, at: 0, interface: 0, link: DataLink::RAW, block };
        let said = seen(&packet).and_then(|seen| seen.said);
        assert_eq!(said.as_deref(), Some("10 bytes, new; link to 02:00:00:00:00:01; signal -61 dBm"));
    }
}
