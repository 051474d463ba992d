//! The reports of a node about a capture in its file: while it runs, and at its end.

use std::fs;

use rustix::process::Signal;

use crate::field::{Field, HOPWISE, PAGE, SOCKS5, THROUGH, text};
use crate::world::{until, within_patience};

const METRICS: &str = "metrics: { listen: 127.0.0.1:9184 }";

/// The value of a family's only line, or of the one with that label.
fn metric(field: &Field, line: &str) -> u64 {
    let page = text(&field.curl(&["http://127.0.0.1:9184/metrics"]).stdout);
    let value = page.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{line}: {page}"))
}

/// The timeouts of all causes.
fn timeouts(field: &Field) -> u64 {
    let of = |cause| metric(field, &format!("hopwise_timeouts_total{{cause=\"{cause}\"}}"));
    ["first", "repeated"].map(of).iter().sum()
}

#[test]
fn a_capture_of_the_file_that_fills_its_disk_says_so_everywhere() {
    needs!["curl", "python3", "mount"];
    let field = Field::new("full-from-file");
    fs::write(field.path("www/big"), vec![7; 3_000_000]).expect("the folder can be written");
    let file = field.small_disk("512k") + "/a.pcapng";
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let mut daemon = field.daemon(&format!("{SOCKS5}\n{METRICS}\ncapture: {{ file: {file} }}"));
    for _ in 0..2 {
        let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/big", "-o", "/dev/null"]].concat());
        assert!(page.status.success(), "{}", text(&page.stderr));
    }
    let lost = "hopwise_capture_packets_lost_total{reason=\"disk\"}";
    within_patience(until(|| metric(&field, lost) > 0));
    assert_eq!(metric(&field, "hopwise_capture_failed"), 1);
    let page = text(&field.ask(&["status"]).stdout);
    assert!(page.contains(" lost; last error: No space left on device"), "{page}");
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    let log = field.log();
    let warnings: Vec<_> = log.lines().filter(|line| line.contains("WARN") && line.contains(&file)).collect();
    let [begun, ended] = warnings[..] else { panic!("when it begins and when it ends: {log}") };
    assert!(begun.contains("the capture cannot write") && begun.contains("No space left"), "{begun}");
    assert!(ended.contains("captured, not all of it, into ") && ended.contains(" packets, "), "{ended}");
    assert!(ended.contains(" could not be written; last error: No space left"), "{ended}");
}

#[test]
fn a_capture_that_lost_nothing_says_how_much_it_has_at_the_end() {
    needs!["curl", "python3"];
    let field = Field::new("all-of-it");
    let file = field.path("a.pcapng");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let mut daemon = field.daemon(&format!("{SOCKS5}\n{METRICS}\ncapture: {{ file: {file} }}"));
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
    within_patience(until(|| metric(&field, "hopwise_capture_packets_total") > 0));
    assert_eq!(metric(&field, "hopwise_capture_running"), 1);
    assert_eq!(metric(&field, "hopwise_capture_files_total"), 1);
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    let log = field.log();
    let said = format!("INFO hopwise_node::daemon: captured into {file}: ");
    let rest = log.split(&said).nth(1).unwrap_or_else(|| panic!("{log}"));
    assert!(rest.split(" packets, ").next().is_some_and(|count| count.parse::<u64>().is_ok()), "{log}");
}

/// A device finishes the checksums, and the file must hold finished ones.
#[test]
fn a_capture_of_a_fast_link_holds_sound_checksums_and_says_what_acks_answer() {
    needs!["curl", "python3", "tshark"];
    let field = Field::new("sound");
    fs::write(field.path("www/big"), vec![7; 300_000]).expect("the folder can be written");
    let file = field.path("a.pcapng");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let settings = format!("{SOCKS5}\n{METRICS}\ncapture: {{ file: {file} }}");
    let mut daemon = field.daemon_over("kind: tun-fast, queues: 2", &settings);
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/big", "-o", "/dev/null"]].concat());
    assert!(page.status.success(), "{}", text(&page.stderr));
    assert!(metric(&field, "hopwise_segments_sent_total{what=\"new\"}") > 0);
    assert_eq!(timeouts(&field), field.status()["totals"]["timeouts"]);
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    let of = |options: &[&str]| {
        let words = [&["tshark", "-r", &file, "-o", "tcp.check_checksum:TRUE"], options].concat();
        text(&field.node.output(&words).stdout)
    };
    let sound = of(&["-Y", "tcp.checksum.status == 1", "-T", "fields", "-e", "frame.number"]);
    let all = of(&["-Y", "tcp", "-T", "fields", "-e", "frame.number"]);
    assert!(all.lines().count() > 10 && sound == all, "{sound}\n{all}");
    let back = of(&["-Y", "frame.time_delta < 0", "-T", "fields", "-e", "frame.number"]);
    assert_eq!(back, "", "time goes on");
    let fields = ["frame.number", "frame.packet_flags_direction", "tcp.stream", "frame.comment"];
    let fields: Vec<_> = fields.iter().flat_map(|field| ["-e", field]).collect();
    let rows = of(&[&["-Y", "tcp", "-T", "fields"][..], &fields].concat());
    let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split('\t').collect()).collect();
    // An ACK answers a frame of its own connection that came before it.
    let mut answers = 0;
    for row in &rows {
        let Some(rest) = row.get(3).and_then(|comment| comment.split("answers frame ").nth(1)) else {
            continue;
        };
        let answered = rest.split(';').next();
        let place = rows.iter().position(|other| Some(other[0]) == answered);
        let came = place.map(|place| &rows[place]).unwrap_or_else(|| panic!("{row:?}"));
        let number = |row: &[&str]| row[0].parse::<u64>().expect("a number");
        assert!(number(came) < number(row) && came[2] == row[2], "{came:?} {row:?}");
        assert_eq!(u32::from_str_radix(came[1].trim_start_matches("0x"), 16), Ok(1), "it came: {came:?}");
        answers += 1;
    }
    assert!(answers > 2, "{rows:?}");
    let summary = field.node.output(&[HOPWISE, "capture", "why", &file, "--summary", "--json"]);
    let summary: serde_json::Value = serde_json::from_slice(&summary.stdout).expect("one object");
    assert!(summary["acks"].as_array().is_some_and(|acks| !acks.is_empty()), "{summary}");
    let refused = field.ask(&["capture", "start", "-"]);
    assert!(text(&refused.stderr).contains("expected its name"), "{}", text(&refused.stderr));
}
