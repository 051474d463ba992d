mod links;
mod rotation;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
use pcap_file::pcapng::{Block, PcapNgReader};

use hopwise_core::agent::{AckRule, By, Why};
use hopwise_core::trace::{DropReason, SentWhat, TraceKind};
use hopwise_core::{Instant, Seq};

use super::*;
use crate::observer::Direction;

/// A folder for one test; its drop removes it.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Two folders of one name are two folders: tests run at once.
    pub(super) fn new(test: &str) -> Folder {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let nth = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("hopwise-{test}-{}-{nth}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const THREE: NonZeroU32 = NonZeroU32::new(3).unwrap();

/// Names for connection 1 alone; its receiver differs between shards.
fn names(receiver: &'static str) -> Names {
    Box::new(move |conn| {
        let (receiver, senders) = (receiver.to_owned(), "[cubic]".into());
        let rule = receiver.starts_with("delayed").then(|| "rules.4".into());
        (conn == 1).then_some(ConnNames { receiver, senders, shadows: "[dca]".into(), rule, hops: Some(2) })
    })
}

/// A capture with the tap of its first shard.
fn new() -> (Capture, Tap) {
    let capture = Capture::default();
    let tap = capture.tap(0);
    (capture, tap)
}

pub(super) fn settings(path: &Path) -> CaptureSettings {
    CaptureSettings {
        path: path.to_owned(),
        rotate_bytes: None,
        files: NonZeroU32::MIN,
        links: ["hw0", "hw1"].map(|name| CapturedLink { name: name.into(), framing: Framing::Ip }).into(),
        wanted: vec![LinkId(0)],
        wall_clock_offset: Duration::from_secs(1_000_000_000),
        names: vec![names("delayed:d=3")],
    }
}

/// The settings of a node with two shards.
fn of_two(path: &Path) -> CaptureSettings {
    CaptureSettings { names: vec![names("delayed:d=3"), names("immediate")], ..settings(path) }
}

fn packet(tap: &mut Tap, direction: Direction, link: u16, id: u64, bytes: &[u8]) {
    let seen = SeenPacket {
        at: Instant(id),
        link: LinkId(link),
        direction,
        id,
        segment_bytes: None,
        ethernet: None,
        packet: bytes,
    };
    tap.on_packet(&seen);
}

fn event(tap: &mut Tap, millis: u64, packet: u64, kind: TraceKind) {
    tap.on_trace(&TraceEvent { now: Instant::from_millis(millis), conn: 1, packet, kind });
}

/// An ACK that left as it was decided.
fn ack_sent(number: u32) -> TraceKind {
    TraceKind::AckSent { number: Seq(number), decided: Seq(number), repeat: false, decision: number as u16 }
}

/// The packets of a file with their comments.
pub(super) fn read(path: &Path) -> Vec<(Vec<u8>, String)> {
    let bytes = fs::read(path).expect("the file is there");
    let mut reader = PcapNgReader::new(&bytes[..]).expect("it begins with a section");
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(EnhancedPacketBlock { data, options, .. }) = block.expect("whole blocks")
        {
            let comment = options.iter().find_map(|option| match option {
                EnhancedPacketOption::Comment(text) => Some(text.to_string()),
                _ => None,
            });
            packets.push((data.to_vec(), comment.unwrap_or_default()));
        }
    }
    packets
}

#[test]
fn packets_say_why_they_left_and_why_they_were_not_acknowledged() {
    let folder = Folder::new("capture-why");
    let (capture, mut tap) = new();
    capture.start(settings(&folder.file("a.pcapng"))).expect("it starts");
    let why = |have| Why::new(AckRule::Count, have, 3);
    packet(&mut tap, Direction::In, 0, 1, b"first");
    event(&mut tap, 10, 1, TraceKind::AckHeld { why: why(1), due_us: 85_000, basis: None });
    event(&mut tap, 10, 1, TraceKind::ShadowAck { shadow: 0, why: Why::new(AckRule::Window, 1, 1) });
    packet(&mut tap, Direction::In, 0, 2, b"second");
    event(&mut tap, 25, 2, TraceKind::AckDecided { number: Seq(9), decision: 9, by: By::Agent, why: why(3) });
    event(&mut tap, 25, 1, ack_sent(9));
    packet(&mut tap, Direction::Out, 0, 1, b"ack");
    let (seq, ack, what, allowed, decision) = (Seq(1), Seq(9), SentWhat::New, 14_600, 0);
    event(
        &mut tap,
        30,
        2,
        TraceKind::Sent {
            seq,
            ack,
            len: 1460,
            segments: 1,
            flags: 16,
            what,
            flight: 1460,
            allowed,
            decision,
        },
    );
    packet(&mut tap, Direction::Out, 0, 2, b"data");
    event(
        &mut tap,
        30,
        3,
        TraceKind::Sent {
            seq,
            ack,
            len: 2920,
            segments: 2,
            flags: 16,
            what,
            flight: 4380,
            allowed,
            decision,
        },
    );
    packet(&mut tap, Direction::Out, 0, 3, b"the first of a bundle");
    packet(&mut tap, Direction::Out, 0, 3, b"and the second, cut by the driver");
    packet(&mut tap, Direction::In, 0, 3, b"bad");
    event(&mut tap, 31, 3, TraceKind::Dropped(DropReason::OutOfWindow));
    let (_, counts) = capture.stop().expect("it runs");
    let comments: Vec<_> = read(&folder.file("a.pcapng")).into_iter().map(|(_, comment)| comment).collect();
    let of_a_bundle = "2920 bytes in 2 segments, new: [cubic] allows 14600 bytes in flight, 4380 were; 2 hops; \
                       agents by rules.4";
    assert_eq!(
        comments,
        [
            "ACK withheld by delayed:d=3: count 1 of 3, for 85.000 ms at most; agents by rules.4; \
             shadow 0 of [dca] would acknowledge: window 1 of 1",
            "ACK 1: delayed:d=3 decided it, count 3 of 3; agents by rules.4",
            "ACK 1: delayed:d=3 decided it, count 3 of 3, 15.000 ms after the first segment it held; 2 hops; \
             agents by rules.4; answers frame 2",
            "1460 bytes, new: [cubic] allows 14600 bytes in flight, 1460 were; 2 hops; agents by rules.4",
            of_a_bundle,
            of_a_bundle,
            "dropped: out-of-window",
        ]
    );
    assert_eq!((counts.packets_written, counts.packets_missed, counts.last_error), (7, 0, None));
}

#[test]
fn an_ack_that_goes_into_a_later_one_is_told_of_at_both() {
    let folder = Folder::new("capture-merged");
    let (capture, mut tap) = new();
    capture.start(settings(&folder.file("a.pcapng"))).expect("it starts");
    let why = Why::new(AckRule::Count, 3, 3);
    for id in 1..=3 {
        packet(&mut tap, Direction::In, 0, id, b"data");
        let number = Seq(id as u32);
        let decision = id as u16;
        event(&mut tap, 10, id, TraceKind::AckDecided { number, decision, by: By::Agent, why });
        if id > 1 {
            let (gone, into) = (decision - 1, decision);
            event(&mut tap, 10, id, TraceKind::AckMerged { number: number - 1, decision: gone, into });
        }
    }
    event(&mut tap, 10, 1, ack_sent(3));
    packet(&mut tap, Direction::Out, 0, 1, b"ack");
    capture.stop().expect("it runs");
    let comments: Vec<_> = read(&folder.file("a.pcapng")).into_iter().map(|(_, comment)| comment).collect();
    let decided = |number| format!("ACK {number}: delayed:d=3 decided it, count 3 of 3; agents by rules.4");
    let left = "ACK 3: delayed:d=3 decided it, count 3 of 3, in place of 2 more that were decided before it could \
                leave; 2 hops; agents by rules.4; answers frame 3";
    assert_eq!(comments, [decided(1), decided(2), decided(3), left.to_owned()]);
}

/// The rest of a bundle that a full link refused leaves after other packets have left by other links.
#[test]
fn what_waits_for_a_full_link_says_why_it_left_all_the_same() {
    for (wanted, meanwhile) in [(vec![LinkId(0), LinkId(1)], 2..100), (vec![LinkId(0)], 2..2)] {
        let folder = Folder::new("capture-full");
        let (capture, mut tap) = new();
        let settings = CaptureSettings { wanted, ..settings(&folder.file("a.pcapng")) };
        capture.start(settings).expect("it starts");
        let (seq, ack, what) = (Seq(1), Seq(9), SentWhat::New);
        let sent = |tap: &mut Tap, id: u64| {
            let len = id as u32;
            event(
                tap,
                30,
                id,
                TraceKind::Sent {
                    seq,
                    ack,
                    len,
                    segments: 1,
                    flags: 16,
                    what,
                    flight: 0,
                    allowed: 9000,
                    decision: 0,
                },
            );
        };
        sent(&mut tap, 1);
        packet(&mut tap, Direction::Out, 0, 1, b"the first piece, and the link is full");
        for id in 2..100 {
            sent(&mut tap, id);
            packet(&mut tap, Direction::Out, 1, id, b"meanwhile");
        }
        packet(&mut tap, Direction::Out, 0, 1, b"the second piece");
        capture.stop().expect("it runs");
        let comments = read(&folder.file("a.pcapng")).into_iter().map(|(_, comment)| comment);
        let lens: Vec<_> = comments.map(|text| text.split(' ').next().map(str::to_owned)).collect();
        let expected: Vec<_> =
            [1].into_iter().chain(meanwhile).chain([1]).map(|len| Some(len.to_string())).collect();
        assert_eq!(lens, expected);
    }
}

/// Both shards number their packets and connections from 1.
#[test]
fn shards_are_told_apart_and_one_that_falls_silent_keeps_nothing_back() {
    let folder = Folder::new("capture-shards");
    let (capture, mut tap) = new();
    let mut second = capture.tap(1);
    capture.start(of_two(&folder.file("a.pcapng"))).expect("it starts");
    let why = Why::new(AckRule::Count, 1, 3);
    packet(&mut tap, Direction::In, 0, 1, b"first's");
    packet(&mut second, Direction::In, 0, 1, b"second's");
    event(&mut tap, 10, 1, TraceKind::AckHeld { why, due_us: u32::MAX, basis: None });
    event(&mut second, 10, 1, TraceKind::AckDecided { number: Seq(9), decision: 9, by: By::Agent, why });
    event(&mut second, 10, 1, ack_sent(9));
    packet(&mut second, Direction::Out, 0, 1, b"ack");
    // The first shard's arrival has waited long enough when the second one reports that it is late. If both are silent,
    // it is written anyway.
    let written = || capture.running().expect("it runs").1.packets_written;
    let is_written = || {
        (0..50).any(|_| {
            thread::park_timeout(Duration::from_millis(1));
            written() >= 3
        })
    };
    let came = (4..10_000).any(|second_of| {
        packet(&mut second, Direction::Out, 0, second_of * 1_000_000_000, b"more");
        is_written()
    });
    assert!(came);
    capture.stop().expect("it runs");
    let mut packets = read(&folder.file("a.pcapng"));
    packets.retain(|(bytes, _)| bytes != b"more");
    packets.sort();
    let expected = [
        ("ack", "ACK 1: immediate decided it, count 1 of 3; 2 hops; answers frame 1"),
        ("first's", "ACK withheld by delayed:d=3: count 1 of 3; agents by rules.4"),
        ("second's", "ACK 1: immediate decided it, count 1 of 3"),
    ];
    assert_eq!(packets, expected.map(|(bytes, comment)| (bytes.as_bytes().to_vec(), comment.to_owned())));
}

/// A shard may lag behind another by a long iteration, and hand over its packets later.
#[test]
fn packets_of_several_shards_stand_in_the_order_of_their_times() {
    let folder = Folder::new("capture-order");
    let (capture, mut tap) = new();
    let mut second = capture.tap(1);
    capture.start(of_two(&folder.file("a.pcapng"))).expect("it starts");
    for at in [1, 4, 9, 12] {
        packet(&mut tap, Direction::Out, 0, at, b"first's");
    }
    for at in [2, 3, 9, 10, 20] {
        packet(&mut second, Direction::Out, 0, at, b"second's");
    }
    capture.stop().expect("it runs");
    let order: Vec<_> = read(&folder.file("a.pcapng")).iter().map(|(bytes, _)| bytes[0]).collect();
    assert_eq!(order, b"fssffssfs", "1 2 3 4 9 9 10 12 20");
}

#[test]
fn each_file_ends_with_what_its_links_have_carried_and_lost() {
    let folder = Folder::new("capture-statistics");
    let (capture, mut tap) = new();
    let rotated =
        CaptureSettings { rotate_bytes: Some(1), files: THREE, ..settings(&folder.file("a.pcapng")) };
    capture.start(rotated).expect("it starts");
    for id in 1..=2 {
        packet(&mut tap, Direction::Out, 0, id, b"x");
    }
    capture.queue.miss(LinkId(0), 7);
    capture.stop().expect("it runs");
    for (name, received, dropped) in [("a.1.pcapng", 1, 0), ("a.pcapng", 9, 7)] {
        let bytes = fs::read(folder.file(name)).expect("the file is there");
        let mut reader = PcapNgReader::new(&bytes[..]).expect("it begins with a section");
        let mut found = Vec::new();
        while let Some(block) = reader.next_block() {
            if let Block::InterfaceStatistics(statistics) = block.expect("whole blocks") {
                found.push(statistics.into_owned());
            }
        }
        let [first, other] = &found[..] else { panic!("one a link: {found:?}") };
        let counts = |received, dropped| {
            vec![
                InterfaceStatisticsOption::IsbIfRecv(received),
                InterfaceStatisticsOption::IsbIfDrop(dropped),
            ]
        };
        assert_eq!((first.interface_id, &first.options), (0, &counts(received, dropped)), "{name}");
        assert_eq!((other.interface_id, &other.options), (1, &counts(0, 0)), "{name}");
        // The timestamp's upper half comes first.
        assert_eq!(first.timestamp.rotate_left(32) / 1_000_000_000, 1_000_000_000, "{name}");
    }
}

#[test]
fn links_that_are_not_wanted_are_left_out() {
    let folder = Folder::new("capture-links");
    let (capture, mut tap) = new();
    packet(&mut tap, Direction::In, 0, 1, b"before");
    capture.start(settings(&folder.file("a.pcapng"))).expect("it starts");
    packet(&mut tap, Direction::In, 1, 2, b"other");
    packet(&mut tap, Direction::In, 0, 3, b"wanted");
    assert!(tap.takes_times(), "a time of each packet's own");
    capture.stop().expect("it runs");
    assert!(!tap.takes_times());
    packet(&mut tap, Direction::In, 0, 4, b"after");
    let packets: Vec<_> = read(&folder.file("a.pcapng")).into_iter().map(|(bytes, _)| bytes).collect();
    assert_eq!(packets, [b"wanted"]);
    assert!(matches!(capture.stop(), Err(CaptureError::NoneRuns)));
}

#[test]
fn each_kind_of_loss_is_told_when_it_begins() {
    let none = CaptureCounts::default();
    let slow = CaptureCounts { packets_missed: 3, events_missed: 1, ..none.clone() };
    let full = CaptureCounts { packets_unwritten: 2, last_error: Some("full".into()), ..slow.clone() };
    let more = CaptureCounts { packets_missed: 9, packets_unwritten: 9, ..full.clone() };
    let begun =
        |before, now| losses_begun(before, now).map(|what| what.split(' ').next()).collect::<Vec<_>>();
    assert_eq!(begun(&none, &slow), [Some("packets"), Some("trace")]);
    assert_eq!(begun(&slow, &full), [Some("the")]);
    assert_eq!(begun(&full, &more), []);
}

/// A scraper takes a count that goes down for a restart.
#[test]
fn totals_do_not_go_down_from_one_capture_to_the_next() {
    let folder = Folder::new("capture-totals");
    let (capture, mut tap) = new();
    for round in 1..=2 {
        capture.start(settings(&folder.file("a.pcapng"))).expect("it starts");
        assert_eq!(capture.totals().files_begun, round);
        packet(&mut tap, Direction::Out, 0, round, b"x");
        let (_, counts) = capture.stop().expect("it runs");
        assert_eq!((counts.packets_written, counts.files_begun), (1, 1));
        assert_eq!((capture.totals().packets_written, capture.totals().files_begun), (round, round));
    }
}

/// The reader of a pipe could hold up the writer, and every thread that waits for the writer.
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let folder = Folder::new("capture-pipe");
    let pipe = folder.file("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("coreutils are installed").success());
    let (capture, _tap) = new();
    let refused = capture.start(settings(&pipe)).expect_err("nobody reads");
    assert!(refused.to_string().contains("it is a pipe or a socket, expected a file"), "{refused}");
    assert!(capture.running().is_none());
}

#[test]
fn a_disk_that_takes_nothing_is_counted_and_survived() {
    let (capture, mut tap) = new();
    // Every write to this device fails as if the disk were full.
    match capture.start(settings(Path::new("/dev/full"))) {
        Err(CaptureError::File { error, .. }) => {
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
        }
        other => panic!("the section's header cannot be written: {other:?}"),
    }
    packet(&mut tap, Direction::Out, 0, 1, b"x");
    assert!(capture.running().is_none());
}

#[test]
fn what_does_not_fit_the_queue_is_counted() {
    let queue = CaptureQueue::new();
    queue.open(&[LinkId(0)]);
    let large = vec![0; 65_000];
    let (at, direction) = (Instant::ZERO, Direction::Out);
    for id in 0..300 {
        let seen = SeenPacket {
            at,
            link: LinkId(0),
            direction,
            id,
            segment_bytes: None,
            ethernet: None,
            packet: &large,
        };
        queue.push_packet(0, &seen, None);
    }
    let kept = 16 * 1024 * 1024 / 65_000;
    assert!(kept < 300);
    assert_eq!(queue.missed(), (300 - kept, 0));
    let mut batch = queue::Batch::default();
    assert!(!queue.take(&mut batch, Duration::ZERO));
    assert_eq!(batch.records().count() as u64, kept);
}

#[test]
fn a_second_capture_is_refused_while_one_runs() {
    let folder = Folder::new("capture-twice");
    let (capture, _tap) = new();
    capture.start(settings(&folder.file("a.pcapng"))).expect("it starts");
    let second = capture.start(settings(&folder.file("b.pcapng")));
    assert!(matches!(second, Err(CaptureError::AlreadyRuns(path)) if path == folder.file("a.pcapng")));
    capture.stop().expect("it runs");
}
