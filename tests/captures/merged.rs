//! `hopwise capture merge`: clocks that agree, comments that name the merged file's frames, and files that are none.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgWriter};

use super::{hopwise, run_with, text};

/// The captures of a run over three hops, and what is made of them.
struct Folder(PathBuf);

impl Folder {
    fn run(name: &str) -> Folder {
        Folder(run_with(name, "delayed", &[], &["--capture"]))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    /// Merges these files into `all.pcapng`.
    fn merge(&self, files: &[&str], options: &[&str]) -> (Option<i32>, String, String) {
        let files: Vec<_> = files.iter().map(|file| self.name(file)).collect();
        let out = self.name("all.pcapng");
        let files: Vec<_> = files.iter().map(String::as_str).collect();
        let done = hopwise(&[&["capture", "merge"], &files[..], &["-o", &out], options].concat());
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    }
}

/// A packet of a capture: time, interface, and the rest.
pub(super) struct Packet {
    pub(super) at: i64,
    pub(super) interface: String,
    pub(super) is_inbound: bool,
    pub(super) data: Vec<u8>,
    pub(super) comments: Vec<String>,
}

pub(super) fn packets(path: &Path) -> Vec<Packet> {
    let mut reader = PcapNgReader::new(File::open(path).expect("it is there")).expect("pcapng");
    let (mut names, mut packets) = (Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        match block.expect("a block") {
            Block::InterfaceDescription(described) => {
                names.push(described.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                }));
            }
            Block::EnhancedPacket(packet) => {
                let interface = names[packet.interface_id as usize].clone().unwrap_or_default();
                let (mut comments, mut is_inbound) = (Vec::new(), false);
                for option in &packet.options {
                    match option {
                        EnhancedPacketOption::Comment(text) => comments.push(text.to_string()),
                        EnhancedPacketOption::Flags(flags) => is_inbound = flags & 3 == 1,
                        _ => {}
                    }
                }
                let at = packet.timestamp.as_nanos() as i64;
                packets.push(Packet { at, interface, is_inbound, data: packet.data.to_vec(), comments });
            }
            _ => {}
        }
    }
    packets
}

/// Copies a capture with its times by another clock.
fn by_another_clock(from: &Path, to: &Path, clock: impl Fn(i64) -> i64) {
    changed(from, to, |packet| {
        packet.timestamp = Duration::from_nanos(clock(packet.timestamp.as_nanos() as i64) as u64);
    });
}

/// Copies the capture of an end as if a node on a TUN had written it, whose packets the kernel forwards to and from the
/// radio.
fn before_the_kernels_hop(from: &Path, to: &Path) {
    const HOP_LIMIT: usize = 8;
    changed(from, to, |packet| {
        let is_inbound = packet.options.contains(&EnhancedPacketOption::Flags(1));
        let data = packet.data.to_mut();
        data[HOP_LIMIT] = if is_inbound { data[HOP_LIMIT] - 1 } else { data[HOP_LIMIT] + 1 };
    });
}

/// Copies a capture with a change to each packet.
pub(super) fn changed(from: &Path, to: &Path, change: impl Fn(&mut EnhancedPacketBlock<'_>)) {
    let mut reader = PcapNgReader::new(File::open(from).expect("it is there")).expect("pcapng");
    let mut writer = PcapNgWriter::new(File::create(to).expect("a new file")).expect("it can be written");
    while let Some(block) = reader.next_block() {
        match block.expect("a block") {
            Block::EnhancedPacket(mut packet) => {
                change(&mut packet);
                writer.write_pcapng_block(packet).expect("room");
            }
            Block::InterfaceDescription(block) => {
                writer.write_pcapng_block(block).expect("room");
            }
            _ => {}
        }
    }
}

/// Bytes of a frame behind radiotap, if it is a data frame: all that hear it get equal bytes.
fn data_frame(packet: &Packet) -> Option<&[u8]> {
    let radiotap = usize::from(u16::from_le_bytes([packet.data[2], packet.data[3]]));
    packet.data.get(radiotap..).filter(|frame| frame[0] == 0x08)
}

/// The dissector of Wireshark reads comments of a merged file as it reads its parts.
#[test]
fn wiresharks_fields_of_a_merged_file_are_those_of_its_comments() {
    let folder = Folder::run("merge-fields");
    let (code, _, errors) = folder.merge(&["n0.pcapng", "n1.pcapng", "ends/n3.pcapng", "n2.pcapng"], &[]);
    assert_eq!((code, &*errors), (Some(0), ""));
    let script = concat!("lua_script:", env!("CARGO_MANIFEST_DIR"), "/docs/wireshark/hopwise.lua");
    let filter = "hopwise.held_ms > 20 && frame.interface_name == \"n3\"";
    let all = folder.name("all.pcapng");
    let words = ["-X", script, "-r", &all, "-Y", filter, "-T", "fields", "-e", "hopwise.agent"];
    let Ok(shown) = Command::new("tshark").args(words).args(["-e", "hopwise.answers"]).output() else {
        println!("skipped: {}: tshark is not installed", super::name_of_test());
        return;
    };
    let (lines, merged) = (text(&shown.stdout), packets(all.as_ref()));
    assert!(lines.lines().count() > 10, "{lines} {}", text(&shown.stderr));
    for line in lines.lines() {
        let (agent, frame) = line.split_once('\t').expect("two fields");
        let answered: usize = frame.parse().expect("a frame of the merged file");
        let answered = &merged[answered - 1];
        assert!(agent.starts_with("delayed") && answered.is_inbound && answered.data.len() > 1000, "{line}");
    }
}

const HOURS: i64 = 2 * 3_600_000_000_000;

#[test]
fn clocks_hours_apart_that_drift_are_set_by_common_frames_and_no_frame_is_before_its_cause() {
    let folder = Folder::run("merge-clocks");
    let start = |at: i64| at - 1_000_000_000;
    by_another_clock(&folder.path("n1.pcapng"), &folder.path("m1.pcapng"), |at| at + 1_000_000_000);
    by_another_clock(&folder.path("n0.pcapng"), &folder.path("m0.pcapng"), |at| at + 1_000_000_000);
    let drifts = |at: i64| at + HOURS + start(at) / 25_000;
    by_another_clock(&folder.path("n2.pcapng"), &folder.path("m2.pcapng"), drifts);
    by_another_clock(&folder.path("ends/n3.pcapng"), &folder.path("e3.pcapng"), |at| at + 3_000_000_000);
    by_another_clock(&folder.path("n3.pcapng"), &folder.path("m3.pcapng"), |at| at + 2_900_000_000);
    let files = ["m0.pcapng", "m1.pcapng", "m2.pcapng", "m3.pcapng", "e3.pcapng"];
    let (code, said, errors) = folder.merge(&files, &["--json"]);
    assert_eq!((code, &*errors), (Some(0), ""));
    let json: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(
        (&json["too_early"], &json["files"][1]["clock"]["offset_ns"]),
        (&0.into(), &0.into()),
        "{json}"
    );
    let third = &json["files"][2];
    let clock = |field: &str| third["clock"][field].as_f64().expect("a number");
    assert!((clock("drift_ppm") + 40.0).abs() < 1.0, "{third}");
    let error = clock("error_ns");
    assert!(error < 10_000.0 && clock("common_frames") > 100.0, "{third}");
    assert_eq!(third["interfaces"][0], "n2");

    let merged = packets(&folder.path("all.pcapng"));
    let mut sent: BTreeMap<&[u8], i64> = BTreeMap::new();
    let (mut last, mut caused) = (0, 0);
    for packet in &merged {
        assert!(packet.at >= last);
        last = packet.at;
        match Some(packet).filter(|it| it.interface != "e3/n3").and_then(data_frame) {
            Some(frame) if packet.is_inbound => {
                // Before its cause it would not be there yet. It takes 1 µs and the error of the clocks.
                let by = packet.at - sent.get(frame).expect("it left before it came");
                assert!(by < 1_000 + 4 * error as i64, "{by}");
                caused += 1;
            }
            Some(frame) => {
                sent.insert(frame, packet.at);
            }
            None => {}
        }
    }
    assert!(caused > 300, "{caused}");
}

/// A packet has fewer hops left with each router on its way, also with the kernel of its own host.
#[test]
fn captures_with_hops_between_them_are_joined_by_the_packets_that_both_have() {
    let folder = Folder::run("merge-hops");
    by_another_clock(&folder.path("ends/n3.pcapng"), &folder.path("far.pcapng"), |at| at + 3_000_000_000);
    before_the_kernels_hop(&folder.path("ends/n0.pcapng"), &folder.path("tun.pcapng"));
    for (files, offset, within) in [
        (["n0.pcapng", "far.pcapng"], -3_000_000_000_i64, 200_000_000),
        (["n1.pcapng", "far.pcapng"], -3_000_000_000, 200_000_000),
        (["n0.pcapng", "tun.pcapng"], 0, 0),
        (["n2.pcapng", "tun.pcapng"], 0, 0),
    ] {
        let (code, said, errors) = folder.merge(&files, &["--json"]);
        assert_eq!((code, &*errors), (Some(0), ""), "{files:?}");
        let json: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        let clock = &json["files"][1]["clock"];
        let number = |field: &str| clock[field].as_i64().expect("a number");
        assert!(number("common_frames") > 100 && json["too_early"] == 0, "{files:?}: {json}");
        assert!((number("offset_ns") - offset).abs() <= within, "{files:?}: {clock}");
        assert!(number("error_ns") <= 200_000_000, "{files:?}: {clock}");
    }
}

#[test]
fn comments_are_kept_and_name_frames_of_the_merged_file() {
    let folder = Folder::run("merge-comments");
    let files = ["n0.pcapng", "n3.pcapng", "n1.pcapng", "n2.pcapng", "ends/n3.pcapng"];
    let (code, said, errors) = folder.merge(&files, &[]);
    assert_eq!((code, &*errors), (Some(0), ""));
    assert!(said.contains("+0.000000 ms"), "{said}");
    let merged = packets(&folder.path("all.pcapng"));
    let of_files: Vec<_> = files.iter().flat_map(|file| packets(&folder.path(file))).collect();
    let comments = |packets: &[Packet]| packets.iter().map(|packet| packet.comments.len()).sum::<usize>();
    assert_eq!((merged.len(), comments(&merged)), (of_files.len(), comments(&of_files)));
    let mut answers = 0;
    for packet in &merged {
        let parts = packet.comments.iter().flat_map(|comment| comment.split("; "));
        for frame in parts.filter_map(|part| part.strip_prefix("answers frame ")) {
            let number: usize = frame.parse().expect("a number of the merged file");
            let answered = &merged[number - 1];
            assert!(answered.is_inbound && answered.interface == packet.interface, "{frame}");
            let is_data = packet.comments.iter().any(|comment| comment.contains("delayed decided it"));
            assert!(answered.at <= packet.at && (!is_data || answered.data.len() > 1000), "{frame}");
            answers += 1;
        }
    }
    assert!(answers > 50, "{answers}");
    assert!(merged.iter().any(|packet| packet.interface == "ends/n3"));
}

#[test]
fn wireshark_shows_each_interface_with_its_name_and_its_file() {
    let folder = Folder::run("merge-names");
    let (code, _, errors) = folder.merge(&["n2.pcapng", "n3.pcapng", "ends/n3.pcapng"], &[]);
    assert_eq!((code, &*errors), (Some(0), ""));
    let all = folder.name("all.pcapng");
    let words =
        ["-r", &all, "-T", "fields", "-e", "frame.interface_name", "-e", "frame.interface_description"];
    let Ok(shown) = Command::new("tshark").args(words).output() else {
        println!("skipped: {}: tshark is not installed", super::name_of_test());
        return;
    };
    let lines = text(&shown.stdout);
    assert_eq!(lines.lines().count(), packets(all.as_ref()).len());
    for (name, file) in [
        ("n2\tthe radio of n2, 02:00:00:00:00:02", "n2.pcapng"),
        ("ends/n3\tthe endpoint of n3, 10.0.0.4", "ends/n3.pcapng"),
    ] {
        let line = format!("{name}, from {}", folder.name(file));
        assert!(lines.lines().any(|shown| shown == line), "{line}");
    }
}

#[test]
fn files_that_cannot_be_joined_are_refused_with_words() {
    let folder = Folder::run("merge-refusals");
    let read = |name: &str| std::fs::read(folder.path(name)).expect("it is there");
    std::fs::write(folder.path("none"), "no capture at all").expect("room");
    std::fs::write(folder.path("empty"), "").expect("room");
    std::fs::write(folder.path("classic.pcap"), [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]).expect("room");
    std::fs::write(folder.path("copy.pcapng"), read("n1.pcapng")).expect("room");
    std::os::unix::fs::symlink(folder.path("n1.pcapng"), folder.path("link.pcapng")).expect("a new name");
    let other = stranger(&folder);
    let first = "n1.pcapng";
    for (second, problem) in [
        ("none", "it is no capture: expected one in pcapng"),
        ("empty", "it is empty"),
        ("classic.pcap", "`editcap -F pcapng`"),
        ("absent", "No such file"),
        ("copy.pcapng", "it is the same as"),
        ("link.pcapng", "it is the same as"),
        (&other, "fewer than 3 frames in common"),
    ] {
        let (code, said, errors) = folder.merge(&[first, second], &[]);
        assert_eq!((code, &*said), (Some(2), ""), "{second}");
        assert!(errors.contains(problem), "{second}: {errors}");
        assert!(!folder.path("all.pcapng").exists(), "{second}");
    }
    let (code, said, _) = folder.merge(&[first, &other], &["--no-align"]);
    assert_eq!(code, Some(0));
    assert!(said.contains("all.pcapng: "), "{said}");
    let (first, second) = (folder.name(first), folder.name("n2.pcapng"));
    let over = hopwise(&["capture", "merge", &first, &second, "-o", &first]);
    assert!(text(&over.stderr).contains("one of the captures to join"), "{}", text(&over.stderr));
    assert!(!packets(first.as_ref()).is_empty());
}

/// The name of a capture with one packet that no other file has.
fn stranger(folder: &Folder) -> String {
    let file = File::create(folder.path("stranger.pcapng")).expect("a new file");
    let mut writer = PcapNgWriter::new(file).expect("room");
    writer.write_pcapng_block(InterfaceDescriptionBlock::new(DataLink::RAW, 0)).expect("room");
    let data = Cow::Borrowed(&[0x45, 0, 0, 20, 9, 9, 9, 9, 64, 17, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2][..]);
    let timestamp = Duration::from_secs(1);
    let packet = EnhancedPacketBlock { interface_id: 0, timestamp, original_len: 20, data, options: vec![] };
    writer.write_pcapng_block(packet).expect("room");
    "stranger.pcapng".to_owned()
}

#[test]
fn a_file_that_ends_within_a_block_gives_the_frames_before() {
    let folder = Folder::run("merge-cut");
    let whole = std::fs::read(folder.path("n1.pcapng")).expect("it is there");
    std::fs::write(folder.path("cut.pcapng"), &whole[..whole.len() / 2 + 1]).expect("room");
    let (code, _, errors) = folder.merge(&["n0.pcapng", "cut.pcapng"], &[]);
    assert_eq!(code, Some(0));
    assert!(errors.contains("cut.pcapng ends in the middle of a block"), "{errors}");
    let names: Vec<PathBuf> = ["n0.pcapng", "n1.pcapng"].map(|name| folder.path(name)).to_vec();
    let (first, second) = (packets(&names[0]).len(), packets(&names[1]).len());
    let merged = packets(&folder.path("all.pcapng")).len();
    assert!(merged > first + second / 3 && merged < first + second, "{merged}");
}
