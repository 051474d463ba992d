//! Captures of the radio world as Wireshark reads them: retries, gaps, checksums, names, comments.

mod followed;
mod merged;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

const CHAIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/configs/chain.yaml");
const NODES: [&str; 4] = ["n0", "n1", "n2", "n3"];
const RTS: &str = "27";
const CTS: &str = "28";
const ACK: &str = "29";
const DATA: &str = "32";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn hopwise(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hopwise")).args(words).output().expect("it was built with the tests")
}

/// The folder of a run of three hops, with its captures.
fn run(name: &str, arm: &str, sets: &[&str]) -> PathBuf {
    run_with(name, arm, sets, &["--capture", "--frames"])
}

fn run_with(name: &str, arm: &str, sets: &[&str], options: &[&str]) -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captures").join(name);
    // The run before would be kept.
    let _ = std::fs::remove_dir_all(&out);
    let path = out.to_string_lossy();
    let mut words = vec!["run", CHAIN, "--arm", arm, "--out", &path];
    words.extend(options);
    for set in ["topology.hops=3", "run={ duration: 4s, warmup: 0s }"].iter().chain(sets) {
        words.extend(["--set", set]);
    }
    let done = hopwise(&words);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    out
}

/// The test that runs: a thread has its test's name.
fn name_of_test() -> String {
    thread::current().name().unwrap_or("captures").to_owned()
}

/// tshark's values of each frame, a map by field; `None` where it is not installed.
fn tshark(file: &Path, fields: &[&'static str]) -> Option<Vec<BTreeMap<&'static str, String>>> {
    let mut command = Command::new("tshark");
    command.args(["-r", &file.to_string_lossy(), "-T", "fields", "-E", "separator=/t", "-E", "aggregator=|"]);
    for preference in [
        "wlan_radio.tsf_at_end:FALSE",
        "wlan.check_checksum:TRUE",
        "tcp.check_checksum:TRUE",
        "ip.check_checksum:TRUE",
        "udp.check_checksum:TRUE",
    ] {
        command.args(["-o", preference]);
    }
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let Ok(done) = command.output() else {
        println!("skipped: {}: tshark is not installed", name_of_test());
        return None;
    };
    assert!(done.status.success(), "{}", text(&done.stderr));
    let row = |line: &str| fields.iter().copied().zip(line.split('\t').map(str::to_owned)).collect();
    Some(text(&done.stdout).lines().map(row).collect())
}

/// Types of frames are decimal or hexadecimal, by the version of tshark.
fn kind(row: &BTreeMap<&str, String>) -> String {
    let code = &row["wlan.fc.type_subtype"];
    match code.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).expect("a number").to_string(),
        None => code.clone(),
    }
}

fn is_set(flag: &str) -> bool {
    matches!(flag, "1" | "True")
}

const EVERY_FIELD: [&str; 18] = [
    "frame.number",
    "tcp.seq",
    "tcp.ack",
    "frame.time_epoch",
    "frame.interface_name",
    "frame.comment",
    "wlan.fc.type_subtype",
    "wlan.fc.retry",
    "wlan.fcs.status",
    "wlan.seq",
    "wlan.ta",
    "tcp.checksum.status",
    "_ws.expert.message",
    "wlan_radio.phy",
    "wlan_radio.data_rate",
    "wlan_radio.duration",
    "wlan_radio.ifs",
    "tcp.len",
];

#[test]
fn every_frame_is_whole_named_explained_and_in_order_and_retries_are_repeats() {
    let out = run("whole", "every", &[]);
    let (mut repeats, mut tries_again) = (0, 0);
    for (number, node) in (0..).zip(NODES) {
        let Some(rows) = tshark(&out.join(format!("{node}.pcapng")), &EVERY_FIELD) else { return };
        assert!(rows.len() > 500, "{node}: {}", rows.len());
        let (mut last, mut has_left) = (0.0, BTreeSet::new());
        let own = format!("02:00:00:00:00:{number:02x}");
        for row in &rows {
            let at: f64 = row["frame.time_epoch"].parse().expect("seconds");
            assert!(at >= last, "{node}: {row:?} after {last}");
            last = at;
            assert_eq!(
                (&row["frame.interface_name"][..], &row["wlan.fcs.status"][..]),
                (node, "1"),
                "{row:?}"
            );
            assert!(matches!(&row["tcp.checksum.status"][..], "" | "1"), "{node}: {row:?}");
            assert!(!row["frame.comment"].is_empty(), "{node}: {row:?}");
            assert!(!row["_ws.expert.message"].contains("preamble"), "{node}: {row:?}");
            if is_set(&row["wlan.fc.retry"]) {
                assert_eq!(kind(row), DATA, "{node}: {row:?}");
            }
            tries_again += u32::from(kind(row) == RTS && row["frame.comment"].contains("try 2 of at most 7"));
            if kind(row) == DATA && row["wlan.ta"] == own {
                let is_again = !has_left.insert(row["wlan.seq"].clone());
                assert_eq!(is_set(&row["wlan.fc.retry"]), is_again, "{node}: {row:?}");
                repeats += u32::from(is_again);
            }
        }
        assert!(rows.iter().filter(|row| row["tcp.checksum.status"] == "1").count() > 50, "{node}");
    }
    println!("{repeats} data frames went again, {tries_again} RTS");
    assert!(tries_again > 5);
}

/// The bytes of a data frame's header that its airtime may leave out.
const LEFT_OUT_BYTES: f64 = 2.0;

/// A frame as Wireshark shows it, and as in the frame log, which is exact; in microseconds.
struct Timed {
    kind: String,
    row: BTreeMap<&'static str, String>,
    from: f64,
    until: f64,
}

impl Timed {
    fn number(&self, field: &str) -> f64 {
        self.row[field].split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
    }

    /// The excess of Wireshark's duration over the true one.
    fn surplus(&self) -> f64 {
        self.number("wlan_radio.duration") - (self.until - self.from)
    }

    /// The excess that is expected; with OFDM's symbols it is 0, or 4 µs.
    fn expected_surplus(&self, is_ofdm: bool) -> f64 {
        match (&self.kind[..], is_ofdm) {
            (DATA, false) => {
                let most = LEFT_OUT_BYTES * 8.0 / self.number("wlan_radio.data_rate");
                if self.surplus() > most / 2.0 { most } else { 0.0 }
            }
            (DATA, true) if self.surplus() > -4.0 => 4.0 - EXTENSION_US,
            // Wireshark leaves OFDM's signal extension, which is silent, to the gap.
            (_, true) => -EXTENSION_US,
            (_, false) => 0.0,
        }
    }
}

const EXTENSION_US: f64 = 6.0;

fn timed(out: &Path, number: usize) -> Option<Vec<Timed>> {
    let rows = tshark(&out.join(format!("{}.pcapng", NODES[number])), &EVERY_FIELD)?;
    let log = std::fs::read_to_string(out.join("frames.csv")).expect("a frame log");
    let lines = log.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let is_seen = |line: &Vec<&str>| line[2] == number.to_string() && matches!(line[3], "sends" | "decodes");
    let lines: Vec<_> = lines.filter(is_seen).collect();
    assert_eq!(rows.len(), lines.len(), "{}", NODES[number]);
    let us = |seconds: &str| seconds.parse::<f64>().expect("seconds") * 1e6;
    let both = rows.into_iter().zip(lines);
    Some(
        both.map(|(row, line)| Timed { kind: kind(&row), row, from: us(line[0]), until: us(line[1]) })
            .collect(),
    )
}

#[test]
fn wireshark_finds_the_durations_and_gaps_that_there_were() {
    for (profile, phy) in
        [("dsss-2mbps", "4"), ("dsss-11mbps", "4"), ("dsss-5.5mbps-short", "4"), ("ofdm-24mbps", "6")]
    {
        let (out, is_ofdm) = (run(profile, "delayed", &[&format!("radio.profile={profile}")]), phy == "6");
        for number in [0, 2] {
            let Some(frames) = timed(&out, number) else { return };
            let mut answers = 0;
            for (nth, frame) in frames.iter().enumerate() {
                let what = || format!("{profile} {}: {:?}", NODES[number], frame.row);
                assert_eq!(frame.row["wlan_radio.phy"], phy, "{}", what());
                let is_right = (frame.surplus() - frame.expected_surplus(is_ofdm)).abs() <= 1.0;
                assert!(is_right, "{}, {} long", what(), frame.until - frame.from);
                if nth == 0 || !(frame.kind == CTS || frame.kind == ACK) {
                    continue;
                }
                let before = &frames[nth - 1];
                let gap = frame.from - before.until;
                let ifs = frame.number("wlan_radio.ifs") + before.expected_surplus(is_ofdm);
                // Both times are cut to whole microseconds, and the duration is rounded up. A station's own answer
                // begins whole microseconds after the frame.
                let is_own = gap < 10.001;
                let within =
                    if is_own && before.expected_surplus(is_ofdm).fract() == 0.0 { 1.01 } else { 2.01 };
                assert!((ifs - gap).abs() <= within, "{}, {gap} after the frame before", what());
                // There and back 200 m take 1.3 µs.
                answers += u32::from((8.9..12.4).contains(&ifs));
            }
            assert!(answers > 50, "{profile} {}: {answers}", NODES[number]);
        }
    }
}

/// A comment in the form of another file, where frames have other numbers.
fn without_frames(comment: &str) -> String {
    let said = |text: &str| {
        let parts = text.split("; ").filter(|part| !part.starts_with("answers frame "));
        parts
            .map(|part| part.split(" for the mark of frame ").next().unwrap_or(part))
            .collect::<Vec<_>>()
            .join("; ")
    };
    comment.split('|').map(said).collect::<Vec<_>>().join("|")
}

/// Checks that each frame named in an ACK's comment is earlier data that the ACK acknowledges. Returns their number,
/// and the number of the ACKs that an agent decided.
fn answers(rows: &[BTreeMap<&str, String>]) -> (usize, usize) {
    let number = |row: &BTreeMap<&str, String>, field: &str| row[field].parse::<usize>().expect("a number");
    let own = |row: &&BTreeMap<&str, String>| {
        let is_data = row.get("wlan.fc.type_subtype").is_none_or(|_| kind(row) == DATA);
        is_data && !row["tcp.len"].is_empty() && row["frame.comment"].contains(" first segment it held")
    };
    let decided: Vec<_> = rows.iter().filter(own).collect();
    let mut answers = 0;
    for row in &decided {
        let Some(rest) = row["frame.comment"].split("answers frame ").nth(1) else { continue };
        let answered =
            &rows[rest.split([';', '|']).next().expect("a word").parse::<usize>().expect("a number") - 1];
        assert!(number(answered, "frame.number") < number(row, "frame.number"), "{row:?}");
        let end = number(answered, "tcp.seq") + number(answered, "tcp.len");
        assert!(end > 1000 && number(row, "tcp.ack") >= end, "{answered:?} {row:?}");
        let said = &answered["frame.comment"];
        assert!(said.contains("ACK withheld by ") || said.contains(" decided it, "), "{answered:?} {row:?}");
        answers += 1;
    }
    (answers, decided.len())
}

#[test]
fn flows_ends_have_captures_of_their_own_whose_reasons_their_radios_frames_have_too() {
    let out = run("ends", "delayed", &[]);
    let fields = [
        "frame.interface_name",
        "frame.comment",
        "ip.src",
        "tcp.checksum.status",
        "tcp.len",
        "ip.id",
        "tcp.ack",
        "tcp.seq",
        "frame.number",
    ];
    for (node, address) in [("n0", "10.0.0.1"), ("n3", "10.0.0.4")] {
        let Some(rows) = tshark(&out.join("ends").join(format!("{node}.pcapng")), &fields) else { return };
        assert!(rows.len() > 100, "{node}: {}", rows.len());
        let mut reasons = BTreeSet::new();
        for row in &rows {
            assert_eq!(
                (&row["frame.interface_name"][..], &row["tcp.checksum.status"][..]),
                (node, "1"),
                "{row:?}"
            );
            let is_own = row["ip.src"] == address;
            assert!(!is_own || !row["frame.comment"].is_empty(), "{node}: {row:?}");
            if !row["frame.comment"].is_empty() {
                reasons.insert(without_frames(&row["frame.comment"]));
            }
        }
        assert!(
            reasons.iter().any(|reason| reason.contains("delayed") || reason.contains("newreno")),
            "{reasons:?}"
        );
        let Some(frames) = tshark(&out.join(format!("{node}.pcapng")), &EVERY_FIELD) else { return };
        let (mut explained, mut withheld) = (0, 0);
        for row in
            frames.iter().filter(|row| !row["tcp.len"].is_empty() && row["wlan.ta"].ends_with(&node[1..]))
        {
            let comment = without_frames(&row["frame.comment"]);
            let is_known = reasons.iter().any(|reason| comment.contains(&reason[..]));
            assert!(is_known, "{node}: {row:?}");
            explained += 1;
        }
        for row in frames.iter().filter(|row| row["frame.comment"].contains("ACK withheld by delayed")) {
            assert!(
                row["tcp.len"] == "1000"
                    && reasons.iter().any(|said| row["frame.comment"].contains(&said[..]))
            );
            withheld += 1;
        }
        assert!(explained > 50 && (node == "n0" || withheld > 20), "{node}: {explained} {withheld}");
        let ((at_end, acks), (on_air, frames)) = (answers(&rows), answers(&frames));
        println!("{node}: {at_end} of {acks} ACKs name a frame at the end, {on_air} of {frames} on the air");
        assert!(at_end == acks && on_air == frames, "each ACK names the frame that it answers");
        assert!(node == "n0" || at_end > 20 && on_air > 20, "{node}");
    }
}

#[test]
fn what_became_of_frames_is_told_and_a_packet_that_is_given_up() {
    // The last station receives nothing for a while.
    let outage = "channel={ outages: [{ from: n2, to: n3, begins: 1s, ends: 3s }] }";
    let out = run("lost", "every", &[outage]);
    let comments: Vec<String> = NODES
        .iter()
        .map_while(|node| tshark(&out.join(format!("{node}.pcapng")), &["frame.comment"]))
        .flatten()
        .map(|row| row["frame.comment"].clone())
        .collect();
    if comments.is_empty() {
        return;
    }
    for words in [
        "no answer: the channel did not carry it to n3; the packet is given up",
        "no answer: lost at n",
        "try 7 of at most 7, contention window 1023, backoff ",
        "in answer to an RTS of n0",
        "SIFS after the CTS",
    ] {
        assert!(comments.iter().any(|comment| comment.contains(words)), "{words}");
    }
}

/// The output of `capture why FILE --summary --json`.
fn summary(file: &Path) -> serde_json::Value {
    let done = hopwise(&["capture", "why", &file.to_string_lossy(), "--summary", "--json"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    serde_json::from_slice(&done.stdout).expect("one object")
}

fn sum<'a>(rows: impl Iterator<Item = &'a serde_json::Value>, column: &str) -> u64 {
    rows.map(|row| row[column].as_u64().expect("a count")).sum()
}

/// Without RTS, the MAC repeats data and ACKs after collisions.
#[test]
fn a_segment_that_the_mac_sends_again_is_counted_once() {
    let out = run("tries", "delayed", &["radio.rts_threshold=off"]);
    let rows = |summary: &serde_json::Value, list: &str| summary[list].as_array().expect("a list").clone();
    let mut more = 0;
    for (node, list, column) in [("n0", "sent", "packets"), ("n3", "acks", "count")] {
        let said = summary(&out.join(format!("{node}.pcapng")));
        let tries = rows(&said, "tries");
        let data = || tries.iter().filter(|row| row["frame"] == "data");
        let again = sum(data(), "again");
        let firsts = sum(data(), "tries") - again;
        let counted = sum(rows(&said, list).iter(), column);
        // The handshake and the end of a flow take some frames.
        assert!(counted <= firsts && counted + 4 >= firsts, "{node}: {counted} of {firsts}, {again} again");
        more += again;
    }
    assert!(more > 20, "{more} frames went again");
}

#[test]
fn a_run_with_captures_is_the_run_without_them() {
    for protocol in ["static", "aodv", "dsr"] {
        let set = format!("routing.protocol={protocol}");
        let run_json = |name: &str, options: &[&str]| {
            let out = run_with(&format!("{name}-{protocol}"), "delayed", &[&set], options);
            std::fs::read_to_string(out.join("run.json")).expect("a result")
        };
        assert_eq!(run_json("watched", &["--capture"]), run_json("alone", &[]), "{protocol}");
    }
}

#[test]
fn captures_of_all_radios_make_one_that_names_each() {
    let out = run("merged", "every", &[]);
    let all = out.join("all.pcapng");
    let mut mergecap = Command::new("mergecap");
    mergecap.arg("-w").arg(&all).args(NODES.map(|node| out.join(format!("{node}.pcapng"))));
    let Ok(done) = mergecap.output() else {
        println!("skipped: {}: mergecap is not installed", name_of_test());
        return;
    };
    assert!(done.status.success(), "{}", text(&done.stderr));
    let Some(rows) = tshark(&all, &["frame.interface_name", "frame.time_epoch", "frame.comment"]) else {
        return;
    };
    let names: BTreeSet<_> = rows.iter().map(|row| &row["frame.interface_name"][..]).collect();
    assert_eq!(names, BTreeSet::from(NODES));
    let times: Vec<f64> = rows.iter().map(|row| row["frame.time_epoch"].parse().expect("seconds")).collect();
    assert!(times.is_sorted() && rows.iter().all(|row| !row["frame.comment"].is_empty()));
}

#[test]
fn a_frame_of_any_capture_is_explained_in_a_sentence() {
    let out = run("why", "delayed", &[]);
    let why = |file: &str, frame: u32| {
        let done = hopwise(&["capture", "why", &out.join(file).to_string_lossy(), &frame.to_string()]);
        assert_eq!(done.status.code(), Some(0), "{file} {frame}: {}", text(&done.stderr));
        text(&done.stdout)
    };
    let rts = why("n0.pcapng", 1);
    assert!(
        rts.starts_with(
            "Frame 1 (RTS, 02:00:00:00:00:00 to 02:00:00:00:00:01) left: for n1, try 1 of at most 7"
        ),
        "{rts}"
    );
    let data = (1..100)
        .map(|frame| why("n3.pcapng", frame))
        .find(|said| said.contains("bytes) came in: ACK withheld"));
    assert!(
        data.is_some_and(|said| said.contains("(data, 02:00:00:00:00:02 to 02:00:00:00:00:03; 10.0.0.1:"))
    );
    let ack =
        (1..100).map(|frame| why("ends/n3.pcapng", frame)).find(|said| said.contains("delayed decided it"));
    assert!(ack.is_some_and(|said| said.contains("10.0.0.4:")));
    // A classic capture without packets.
    let classic = out.join("classic.pcap");
    std::fs::write(&classic, [&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..], &[0; 12], &[1, 0, 0, 0]].concat())
        .expect("a file");
    let refused = hopwise(&["capture", "why", &classic.to_string_lossy(), "1"]);
    assert_eq!(refused.status.code(), Some(2));
    let words = "expected a capture in pcapng, of a node or of --capture";
    assert!(text(&refused.stderr).contains(words), "{}", text(&refused.stderr));
}
