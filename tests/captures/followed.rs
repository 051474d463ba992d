//! `hopwise capture follow`: a segment's way agrees with the radios' own log, and a loss is named.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::merged::{Packet, changed, packets};
use super::{hopwise, run_with, text};

/// The merged capture of a run, in the folder of its files.
fn merged(out: &Path, nodes: usize) -> String {
    let file = |name: String| out.join(name).to_string_lossy().into_owned();
    let radios = (0..nodes).map(|node| file(format!("n{node}.pcapng")));
    let ends = [0, nodes - 1].map(|node| file(format!("ends/n{node}.pcapng")));
    let files: Vec<_> = radios.chain(ends).collect();
    let all = file("all.pcapng".to_owned());
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    let done = hopwise(&[&["capture", "merge"], &files[..], &["-o", &all]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    all
}

fn followed(all: &str, segment: &str) -> Value {
    let done = hopwise(&["capture", "follow", all, segment, "--json"]);
    assert_eq!(done.status.code(), Some(0), "{segment}: {}", text(&done.stderr));
    serde_json::from_slice(&done.stdout).expect("JSON")
}

/// Tries and airtime of one frame that a station sends, by the frame log: kind of frame, sender, receiver, seconds.
fn logged(log: &str, from: f64, until: f64, sender: usize) -> (usize, usize, f64) {
    let rows = log.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (mut rts, mut data, mut airtime) = (0, 0, 0.0);
    for row in rows.filter(|row| row[3] == "sends") {
        let (begin, end): (f64, f64) = (row[0].parse().expect("s"), row[1].parse().expect("s"));
        if begin < from - 1e-6 || begin > until {
            continue;
        }
        let is_own = row[5] == sender.to_string();
        let is_answer = row[6] == sender.to_string() && matches!(row[4], "cts" | "ack");
        rts += usize::from(is_own && row[4] == "rts");
        data += usize::from(is_own && row[4] == "data");
        if (is_own && matches!(row[4], "rts" | "data")) || is_answer {
            airtime += end - begin;
        }
    }
    (rts, data, airtime)
}

#[test]
fn each_hop_of_a_segment_is_that_of_the_frame_log() {
    let out = run_with("followed", "every", &[], &["--capture", "--frames"]);
    let all = merged(&out, 4);
    let log = std::fs::read_to_string(out.join("frames.csv")).expect("a frame log");
    let end = packets(&out.join("ends/n3.pcapng"));
    // The segment that came last but some, when all queues are full.
    let nth =
        end.iter().rposition(|packet| packet.is_inbound && packet.data.len() > 1000).expect("data") - 40;
    let place = packets(all.as_ref()).iter().position(|packet| packet.data == end[nth].data).expect("merged");
    let way = followed(&all, &(place + 1).to_string());
    let sendings = way["sendings"].as_array().expect("a list");
    assert!(sendings.iter().any(|sending| sending["is_there"] == true), "{way}");
    let sending = &sendings[0];
    let steps = sending["steps"].as_array().expect("a list");
    let hops: Vec<_> = steps.iter().filter_map(|step| step.get("hop")).collect();
    let names = |field: &str| hops.iter().map(|hop| hop[field].as_str().unwrap_or("")).collect::<Vec<_>>();
    assert_eq!((names("from"), names("to")), (vec!["n0", "n1", "n2"], vec!["n1", "n2", "n3"]), "{way}");
    let mut came = steps[0]["left"]["at_ns"].as_i64().expect("it left");
    for (sender, hop) in hops.iter().enumerate() {
        let number = |field: &str| hop[field].as_i64().expect("a number");
        assert_eq!(number("waited_ns"), number("first_try_ns") - came, "{hop}");
        assert!(number("waited_ns") >= 0, "{hop}");
        came = number("heard_ns");
        let seconds = |nanos: i64| nanos as f64 / 1e9;
        // Up to the ACK that follows.
        let until = seconds(came) + 20e-6;
        let (rts, data, airtime) = logged(&log, seconds(number("first_try_ns")), until, sender);
        assert_eq!((number("rts"), number("data")), (rts as i64, data as i64), "{hop}");
        // By ns-2's sizes a frame is 2 bytes shorter.
        let most = 8e-6 * data as f64 + 1e-6;
        assert!((seconds(number("airtime_ns")) - airtime).abs() <= most, "{hop} {airtime}");
    }
    let arrived = steps.last().and_then(|step| step["came"]["at_ns"].as_i64()).expect("it came");
    assert!((arrived - came).abs() < 10_000, "{arrived} {came}");
    is_the_same_by_its_byte(&all, &way);
}

/// The segment by the number of its byte, as data and as text.
fn is_the_same_by_its_byte(all: &str, way: &Value) {
    let part = |field: &str| way[field].as_str().expect("text");
    let by_byte = format!("{}-{}/{}", part("from"), part("to"), way["seq"]);
    assert_eq!(&followed(all, &by_byte), way);
    let page = text(&hopwise(&["capture", "follow", all, &by_byte]).stdout);
    assert!(page.contains("hop  from  to  waited ms  RTS  data  airtime ms  there at s"), "{page}");
    assert!(page.contains("\nCame to ends/n3 after "), "{page}");
}

#[test]
fn a_segment_that_the_radio_gave_up_is_lost_there_and_sent_again() {
    let out = run_with("followed-lost", "every", &["channel={ loss: 25% }"], &["--capture"]);
    let all = merged(&out, 4);
    // A packet whose RTS all went unanswered is in no data frame.
    let gave_up = |packet: &&Packet| {
        let is_last = packet.comments.iter().any(|text| text.ends_with("; the packet is given up"));
        is_last && packet.interface == "n0" && packet.data.len() < 100
    };
    let frames = packets(all.as_ref());
    let at = frames.iter().rfind(gave_up).expect("a quarter of all frames is lost").at;
    let is_segment = |packet: &Packet| {
        packet.interface == "ends/n0" && !packet.is_inbound && packet.data.len() > 1000 && packet.at < at
    };
    let numbers = frames.iter().zip(1..).filter(|(packet, _)| is_segment(packet)).map(|(_, number)| number);
    let mut lost = BTreeSet::new();
    for number in numbers {
        let number: usize = number;
        let way = followed(&all, &number.to_string());
        let sendings = way["sendings"].as_array().expect("a list");
        for (nth, sending) in sendings.iter().enumerate() {
            let end = sending["end"].as_str().expect("text");
            if end.starts_with("Lost at ends/n0, which gave a packet up") {
                assert!(end.contains("7 RTS without a CTS, the last: "), "{end}");
                assert_eq!(sending["is_there"], false);
                assert!(nth + 1 < sendings.len(), "TCP sent it again: {way}");
                lost.insert(way["seq"].as_u64());
            }
        }
    }
    assert_eq!(lost.len(), 1);
}

#[test]
fn what_names_no_segment_is_refused_with_what_would() {
    let out = run_with("followed-none", "every", &["run.duration=1s"], &["--capture"]);
    let end = out.join("ends/n3.pcapng").to_string_lossy().into_owned();
    let radio = out.join("n1.pcapng").to_string_lossy().into_owned();
    let number = packets(end.as_ref()).len();
    for (file, segment, problem) in [
        (&end, "999999", format!("it has {number} frames, expected a frame from 1 to {number}")),
        (&radio, "1", "has no TCP segment".to_owned()),
        (&end, "10.0.0.9:1-10.0.0.1:2/1", "it has no data from 10.0.0.9:1 to 10.0.0.1:2".to_owned()),
        (&end, "x", "FROM-TO/SEQ".to_owned()),
    ] {
        let done = hopwise(&["capture", "follow", file, segment]);
        assert_eq!(done.status.code(), Some(2), "{segment}");
        assert!(text(&done.stderr).contains(&problem), "{segment}: {}", text(&done.stderr));
    }
    let without = hopwise(&["capture", "why", &end]);
    assert_eq!(without.status.code(), Some(2));
    assert!(text(&without.stderr).contains("or --summary for all packets"), "{}", text(&without.stderr));
}

/// The capture without directions and comments, as a monitor beside the station writes it.
fn overheard(out: &Path, node: usize) -> String {
    let (from, to) = (out.join(format!("n{node}.pcapng")), out.join(format!("mon{node}.pcapng")));
    changed(&from, &to, |packet| packet.options.clear());
    to.to_string_lossy().into_owned()
}

/// Monitors beside all stations and the captures of both ends tell of each hop what the radios tell.
#[test]
fn monitors_beside_the_stations_tell_the_tries_of_each_hop() {
    let out = run_with("followed-overheard", "every", &["channel={ loss: 10% }"], &["--capture"]);
    let all = merged(&out, 4);
    let monitors: Vec<_> = (0..4).map(|node| overheard(&out, node)).collect();
    let ends = [0, 3].map(|node| out.join(format!("ends/n{node}.pcapng")).to_string_lossy().into_owned());
    let heard = out.join("heard.pcapng").to_string_lossy().into_owned();
    let files: Vec<_> = monitors.iter().chain(&ends).map(String::as_str).collect();
    let done = hopwise(&[&["capture", "merge"], &files[..], &["-o", &heard]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(!text(&done.stdout).contains("one way only"), "{}", text(&done.stdout));
    let (mut again, mut compared) = (0, 0);
    for number in (1..=30_u32).map(|nth| nth * 2_000 + 1) {
        let way = followed_by_byte(&all, number);
        let told = followed_by_byte(&heard, number);
        let hops = |way: &Value| -> Vec<Value> {
            let steps = way["sendings"][0]["steps"].as_array().expect("a list");
            steps.iter().filter_map(|step| step.get("hop").cloned()).collect()
        };
        assert_eq!(hops(&told).len(), hops(&way).len(), "{told} {way}");
        for (radio, monitor) in hops(&way).iter().zip(hops(&told)) {
            let place = |name: &Value| name.as_str().expect("text").trim_start_matches('n').to_owned();
            let station = |nth: &str| format!("02:00:00:00:00:0{nth}");
            assert_eq!(monitor["from"], station(&place(&radio["from"])), "{monitor}");
            assert_eq!(monitor["to"], station(&place(&radio["to"])), "{monitor}");
            for count in ["rts", "data"] {
                assert_eq!(monitor[count], radio[count], "{count} of byte {number}: {monitor} {radio}");
            }
            let data = monitor["data"].as_u64().expect("a number");
            assert_eq!(monitor["lost"].as_array().map(Vec::len), usize::try_from(data - 1).ok(), "{monitor}");
            again += data - 1;
            compared += 1;
        }
        assert_eq!(told["sendings"][0]["is_there"], way["sendings"][0]["is_there"], "{told}");
    }
    println!("{compared} hops, {again} data frames that were sent again");
    assert!(compared > 60 && again > 3);
}

fn followed_by_byte(all: &str, number: u32) -> Value {
    let ends = packets(all.as_ref());
    // Its SYN is the first IP packet that leaves an end.
    let first = ends.iter().find(|packet| packet.data[0] == 0x45 && !packet.is_inbound).expect("a SYN");
    let port = u16::from_be_bytes([first.data[20], first.data[21]]);
    followed(all, &format!("10.0.0.1:{port}-10.0.0.4:5001/{number}"))
}
