//! What a node tells of a capture that its file asks for: while it runs, and at its end.

use std::fs;

use rustix::process::Signal;

use crate::field::{Field, PAGE, SOCKS5, THROUGH, text};
use crate::namespace::can_run;
use crate::world::{until, within_patience};

const METRICS: &str = "metrics: { listen: 127.0.0.1:9184 }";

/// The value of a family's only line, or of the one with that label.
fn metric(field: &Field, line: &str) -> u64 {
    let page = text(&field.curl(&["http://127.0.0.1:9184/metrics"]).stdout);
    let value = page.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{line}: {page}"))
}

#[test]
fn a_capture_of_the_file_that_fills_its_disk_says_so_everywhere() {
    if !can_run("a_capture_of_the_file_that_fills_its_disk", &["curl", "python3", "mount"]) {
        return;
    }
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
    assert!(ended.contains(" did not fit on the disk; last error: No space left"), "{ended}");
}

#[test]
fn a_capture_that_lost_nothing_says_how_much_it_has_at_the_end() {
    if !can_run("a_capture_that_lost_nothing_says_how_much", &["curl", "python3"]) {
        return;
    }
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
    let said = format!("INFO hopwise::node::daemon: captured into {file}: ");
    let rest = log.split(&said).nth(1).unwrap_or_else(|| panic!("{log}"));
    assert!(rest.split(" packets, ").next().is_some_and(|count| count.parse::<u64>().is_ok()), "{log}");
}
