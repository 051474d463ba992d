//! `hopwise replay`: captures decided again, other agents beside them, and files that cannot be replayed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use serde_json::Value;

const CHAIN: &str = "
world: sim
topology: { kind: chain, hops: 3, spacing_m: 200 }
radio: { profile: dsss-2mbps, queue_packets: 50, rts_threshold: 0 }
mac: { rules: standard }
routing: { protocol: static }
tcp: { profile: modern }
traffic:
  - { from: first, to: last, kind: bulk, segment_bytes: 1000 }
arms:
  dca: { receiver: dca, sender: [newreno] }
run: { duration: 12s, warmup: 0s, seeds: 1 }
";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn hopwise(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hopwise")).args(words).output().expect("it was built with the tests")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("replays")
}

/// The captures of a run of three hops under the agent `dca`.
static RUN: LazyLock<PathBuf> = LazyLock::new(|| run("run", "run.seeds=1"));

/// The captures of that run with a value set.
fn run(name: &str, set: &str) -> PathBuf {
    let (scenario, out) = (written("chain.yaml", CHAIN.as_bytes()), folder().join(name));
    // The run before would be kept.
    let _ = fs::remove_dir_all(&out);
    let path = out.to_string_lossy();
    let done = hopwise(&["run", &scenario, "--arm", "dca", "--set", set, "--out", &path, "--capture"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    out
}

/// The file of the end that gets the data.
fn receiver() -> String {
    RUN.join("ends/n3.pcapng").to_string_lossy().into_owned()
}

fn replay(words: &[&str]) -> Output {
    hopwise(&[&["replay"], words].concat())
}

fn json(words: &[&str]) -> Value {
    let done = replay(&[words, &["--json"]].concat());
    assert_eq!(done.status.code(), Some(0), "{}{}", text(&done.stdout), text(&done.stderr));
    serde_json::from_slice(&done.stdout).expect("one object")
}

/// A file with these bytes.
fn written(name: &str, bytes: &[u8]) -> String {
    fs::create_dir_all(folder()).expect("the folder can be written");
    let path = folder().join(name);
    fs::write(&path, bytes).expect("the folder can be written");
    path.to_string_lossy().into_owned()
}

/// The bytes of the receiver's capture, and the ranges of the blocks of its decision log.
fn blocks() -> (Vec<u8>, Vec<std::ops::Range<usize>>) {
    let bytes = fs::read(receiver()).expect("the run wrote it");
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let end = at + word(at + 4) as usize;
        if word(at) == hopwise_core::tcp::decisions::BLOCK_TYPE {
            found.push(at..end);
        }
        at = end;
    }
    (bytes, found)
}

#[test]
fn the_capture_of_a_run_is_decided_the_same_and_others_are_told_beside_it() {
    let told = json(&[&receiver(), "--receiver", "immediate", "--receiver", "dca", "--receiver", "delayed"]);
    assert_eq!(told["different"], 0, "{told}");
    let [connection] = &told["connections"].as_array().expect("a list")[..] else { panic!("{told}") };
    assert_eq!(connection["receiver"], "dca");
    let names: Vec<_> = connection["others"].as_array().expect("a list").iter().collect();
    let [immediate, delayed] = names[..] else { panic!("the live agent is no other: {connection}") };
    let number = |value: &Value| value.as_f64().expect("a number");
    assert!(number(&connection["arrivals"]) > 100.0, "{connection}");
    assert_eq!(immediate["spec"], "immediate");
    assert!(number(&immediate["acks"]) > number(&delayed["acks"]), "{connection}");
    assert_eq!(number(&immediate["longest_wait_ms"]), 0.0);
    assert!(number(&delayed["longest_wait_ms"]) > number(&delayed["mean_wait_ms"]), "{connection}");
}

/// A FIN is acknowledged too, and is no segment with data.
#[test]
fn acks_that_acknowledge_nothing_new_are_told_apart() {
    let whole = run("whole", "traffic.0.bytes=20kB").join("ends/n3.pcapng");
    let told = json(&[&whole.to_string_lossy(), "--receiver", "immediate"]);
    let connection = &told["connections"][0];
    let immediate = &connection["others"][0];
    let number = |value: &Value| value.as_u64().expect("a number");
    assert!(number(&immediate["without_segments"]) > 0, "{connection}");
    let new = number(&immediate["acks"]) - number(&immediate["without_segments"]);
    assert_eq!(new, number(&connection["arrivals"]), "{connection}");
}

#[test]
fn text_says_what_was_compared_and_that_other_arrivals_would_have_come() {
    let done = replay(&[&receiver(), "--receiver", "immediate"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let page = text(&done.stdout);
    assert!(page.starts_with("connection 1, data from 10.0.0.1:"), "{page}");
    for words in [", receiver dca", ": none differs", "Their own ACKs would have led to others"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let alone = text(&replay(&[&receiver()]).stdout);
    assert!(!alone.contains("Other agents"), "{alone}");
}

#[test]
fn a_connection_is_chosen_by_its_number_or_by_an_end() {
    let whole = json(&[&receiver()]);
    let connection = &whole["connections"][0];
    for wanted in [&connection["number"], &connection["from"], &connection["to"]] {
        let told = json(&[&receiver(), "--connection", wanted.as_str().expect("text")]);
        assert_eq!(told["connections"], whole["connections"]);
    }
    let refused = replay(&[&receiver(), "--connection", "9"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("no connection `9`: expected a number"),
        "{}",
        text(&refused.stderr)
    );
}

/// The log is written anew with another agent's name, as if that agent had decided.
#[test]
fn a_decision_that_differs_is_shown_with_its_time_its_frame_and_both_reasons() {
    let (bytes, ranges) = blocks();
    let mut bent = bytes[..ranges[0].start].to_vec();
    let mut writer = hopwise_core::tcp::decisions::BlockWriter::new(0);
    for range in &ranges {
        let block = hopwise_core::tcp::decisions::Block::read(&bytes[range.start + 8..range.end - 4]);
        let mut entries = block.expect("it is sound").entries.to_vec();
        if let Some(at) = entries.windows(4).position(|bytes| bytes == [3, b'd', b'c', b'a']) {
            entries.splice(at..at + 4, *b"\x09immediate");
        }
        writer.push(&entries);
        bent.extend(writer.block(std::time::Duration::ZERO).expect("it has entries"));
    }
    let file = written("bent.pcapng", &bent);
    let done = replay(&[&file]);
    let (page, said) = (text(&done.stdout), text(&done.stderr));
    assert_eq!(done.status.code(), Some(1), "{page}{said}");
    assert!(page.contains("one differs\n  first difference at "), "{page}");
    assert!(page.contains(&format!(" of {file}, when data arrived:")), "{page}");
    assert!(page.contains("in the capture: no ACK yet, ") && page.contains("in the replay:  "), "{page}");
    assert!(said.contains("replay: a decision of 1 connection differs"), "{said}");
}

#[test]
fn what_was_cut_off_is_replayed_up_to_there() {
    let (bytes, ranges) = blocks();
    let file = written("cut.pcapng", &bytes[..ranges[ranges.len() - 1].end - 3]);
    let done = replay(&[&file]);
    // With a single block, nothing of the log is left.
    let said = text(&done.stdout) + &text(&done.stderr);
    if ranges.len() > 1 {
        assert_eq!(done.status.code(), Some(0), "{said}");
        assert!(said.contains("ends in the middle of a block, as after a kill"), "{said}");
        assert!(said.contains("still open at the end of the log"), "{said}");
    }
}

/// Its RST leaves after its end is in the log.
#[test]
fn a_connection_that_its_program_aborts_is_no_lost_one() {
    let stops = CHAIN.replace("segment_bytes: 1000", "segment_bytes: 1000, stop: 3s");
    let (scenario, out) = (written("stops.yaml", stops.as_bytes()), folder().join("stops"));
    let _ = fs::remove_dir_all(&out);
    let path = out.to_string_lossy();
    let done = hopwise(&["run", &scenario, "--out", &path, "--capture"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    for node in ["n0", "n3"] {
        let told = json(&[&out.join(format!("ends/{node}.pcapng")).to_string_lossy()]);
        assert_eq!(told["without_beginning"], 0, "{node}: {told}");
    }
}

#[test]
fn damage_and_gaps_are_said_and_end_the_connections_that_they_touch() {
    let (bytes, ranges) = blocks();
    assert!(ranges.len() > 1, "the log needs several blocks: {ranges:?}");
    let mut bent = bytes.clone();
    bent[ranges[1].start + 60] ^= 1;
    let done = replay(&[&written("damaged.pcapng", &bent)]);
    let page = text(&done.stdout);
    assert_eq!(done.status.code(), Some(1), "{page}");
    assert!(page.contains("a block of the decision log is damaged: its checksum is wrong"), "{page}");
    let without = [&bytes[..ranges[0].start], &bytes[ranges[0].end..]].concat();
    let done = replay(&[&written("headless.pcapng", &without)]);
    let page = text(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{page}");
    assert!(page.contains("the log begins in an earlier file"), "{page}");
}

#[test]
fn files_without_decisions_are_refused_with_what_they_are() {
    let (bytes, ranges) = blocks();
    let mut version = bytes.clone();
    version[ranges[0].start + 8 + 4] = 9;
    let foreign = text(&bytes[..64]).replace("hopwise", "hopwisf");
    assert!(foreign.contains("hopwisf"));
    let mut other = bytes[..ranges[0].start].to_vec();
    let at = other.windows(8).position(|word| word == b"hopwise ").expect("it says who wrote it");
    other[at..at + 7].copy_from_slice(b"another");
    let radio = RUN.join("n3.pcapng").to_string_lossy().into_owned();
    let classic = [&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..], &[0; 12], &[1, 0, 0, 0]].concat();
    for (file, problem) in [
        (written("empty", b""), "it is empty: expected a capture that Hopwise wrote"),
        (written("short", b"ab"), "it is no capture"),
        (written("text", b"what is this"), "it is no capture"),
        (written("classic.pcap", &classic), "it is a classic pcap, which has no decisions"),
        (written("version.pcapng", &version), "a decision log of version 9: this program reads version 2"),
        (written("other.pcapng", &other), "another 0.1.0 wrote it, and it has no decision log"),
        (radio, "it has no decision log, as the capture of a radio"),
        (folder().join("absent").to_string_lossy().into_owned(), "No such file"),
    ] {
        let done = replay(&[&file]);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{file}: {said}");
        assert!(said.contains(problem) && said.contains(&file), "{file}: {said}");
    }
    let twice = replay(&[&receiver(), &receiver()]);
    assert!(text(&twice.stderr).contains("expected the files of one capture, each of them once"));
    assert_eq!(replay(&[]).status.code(), Some(2));
    let spec = replay(&[&receiver(), "--receiver", "delyed"]);
    assert!(text(&spec.stderr).contains("did you mean `delayed`?"), "{}", text(&spec.stderr));
}

/// A stranger may send a file whose log was made by hand, with sound checksums.
#[test]
fn no_file_ends_the_program_otherwise() {
    let (bytes, ranges) = blocks();
    let mut random = 1_u64;
    let mut next = |most: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % most
    };
    for nth in 0..60 {
        let mut bent = bytes.clone();
        // Into the headers, the blocks of the log, or anywhere.
        let place = match nth % 3 {
            0 => 0..200,
            1 => ranges[0].start..ranges[0].end,
            _ => 0..bent.len(),
        };
        for _ in 0..1 + nth % 4 {
            let at = place.start + next(place.len());
            bent[at] = next(256) as u8;
        }
        bent.truncate(bent.len() - next(bent.len() / 4));
        let done = replay(&[&written("stranger.pcapng", &bent), "--receiver", "tack"]);
        let said = text(&done.stderr);
        assert!(matches!(done.status.code(), Some(0..=2)) && !said.contains("panicked"), "{nth}: {said}");
    }
}
