use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use hopwise_host::nl80211::SanityCheck;

use super::printing::line;
use super::*;
use hopwise_node::control::Response;
use hopwise_node::snapshot::{LinkSnapshot, Snapshot};

mod drivers;
mod injected;
mod left;
mod listed;
mod radios;

#[test]
fn a_name_in_a_remedy_is_a_word_for_the_shell() {
    let fix = |name: &str| faults::INTERFACE_DOWN.found("").with("IF", name).fix.expect("a remedy");
    assert!(fix("wlan0").starts_with("ip link set wlan0 up"), "{}", fix("wlan0"));
    assert!(fix("a;reboot").starts_with("ip link set 'a;reboot' up"), "{}", fix("a;reboot"));
    let offloads = faults::OFFLOADS_JOIN.found("").with("IF", "$(id)").with("OFFLOADS", "gro off lro off");
    assert_eq!(offloads.fix.as_deref(), Some("ethtool -K '$(id)' gro off lro off"));
}

/// A machine made of files.
struct Machine(System);

impl Machine {
    fn new(test: &str, files: &[(&str, &str)]) -> Machine {
        let root = std::env::temp_dir().join(format!("hopwise-doctor-{test}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, format!("{text}\n")).expect("a file");
        }
        Machine(System::at(&root))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0.path(""));
    }
}

const CLOCK: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
const CLOCKS: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";

fn verdict(findings: &[Finding], check: &str) -> CheckVerdict {
    let found = findings.iter().find(|finding| finding.check == check);
    found.map(|finding| finding.verdict).expect("it was looked at")
}

#[test]
fn a_machine_in_order_has_nothing_to_mend() {
    let machine = Machine::new(
        "order",
        &[
            ("dev/net/tun", ""),
            ("proc/sys/net/ipv4/conf/all/rp_filter", "2"),
            ("proc/sys/net/ipv4/ip_forward", "1"),
            ("proc/sys/net/ipv6/conf/all/forwarding", "1"),
            (CLOCK, "tsc"),
        ],
    );
    let mut findings = of_machine(&machine.0, None);
    findings.extend(forwarding::examine(&machine.0, None, &[]));
    for check in ["tun", "rp-filter", "forwarding", "forwarding6", "clock"] {
        assert_eq!(verdict(&findings, check), CheckVerdict::Ok, "{check}");
    }
    assert_eq!(verdict(&findings, "links"), CheckVerdict::Skipped);
}

#[test]
fn what_is_wrong_is_found_with_its_remedy() {
    let machine = Machine::new(
        "wrong",
        &[
            ("proc/sys/net/ipv4/conf/all/rp_filter", "0"),
            ("proc/sys/net/ipv4/conf/default/rp_filter", "1"),
            ("proc/sys/net/ipv4/ip_forward", "0"),
            ("proc/sys/net/ipv6/conf/all/forwarding", "0"),
            (CLOCK, "acpi_pm"),
            (CLOCKS, "tsc acpi_pm"),
        ],
    );
    let mut findings = of_machine(&machine.0, None);
    findings.extend(forwarding::examine(&machine.0, None, &["w0", "w1"].map(str::to_owned)));
    assert_eq!(verdict(&findings, "tun"), CheckVerdict::Failure);
    for check in ["rp-filter", "forwarding", "forwarding6", "clock"] {
        assert_eq!(verdict(&findings, check), CheckVerdict::Warning, "{check}");
    }
    let lines: String = findings.iter().map(line).collect();
    for fix in [
        "modprobe tun",
        "rp_filter=2",
        "ip_forward=1",
        "ipv6.conf.all.forwarding=1",
        "echo tsc > /sys/devices",
    ] {
        assert!(lines.contains(fix), "{lines}");
    }
    let worse =
        findings.iter().filter(|finding| finding.verdict != CheckVerdict::Ok && finding.fix.is_none());
    assert!(worse.clone().all(|finding| finding.verdict == CheckVerdict::Skipped), "{worse:?}");
}

#[test]
fn the_links_of_a_configuration_are_looked_at() {
    let machine = Machine::new(
        "links",
        &[
            ("sys/class/net/hw0/tun_flags", "0x1001"),
            ("sys/class/net/hw0/statistics/tx_dropped", "2000"),
            ("sys/class/net/eth0/operstate", "up"),
            ("sys/class/net/eth0/mtu", "1400"),
        ],
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/node.yaml");
    let config = config::load(Path::new(path)).expect("the example");
    let findings = links::examine(&machine.0, &config);
    assert_eq!(verdict(&findings, "device"), CheckVerdict::Warning);
    let lost = findings.iter().find(|finding| finding.fault.as_deref() == Some("device-overflowed"));
    let lost = lost.expect("its queue was full");
    assert!(lost.fix.as_deref().is_some_and(|fix| fix.contains("oifname hw0 tcp flags syn")), "{lost:?}");
    let mtu = findings.iter().find(|finding| finding.check == "mtu").expect("it was looked at");
    assert!(mtu.found.contains("eth0 carries only 1400"), "{mtu:?}");
    let text = "node: { name: a, address: 10.7.0.2/24 }\nlinks: [{ kind: tun, name: hw0 }]\n\
                transparent: { interfaces: [lan9], to: [{ network: 10.2.0.0/16, node: 10.7.0.9 }] }\n";
    let config = config::parse(Path::new("a.yaml"), text).expect("it is sound");
    let findings = links::examine(&machine.0, &config);
    assert!(findings.iter().any(|finding| finding.found.contains("lan9")), "{findings:?}");
}

#[test]
fn a_host_of_a_fleet_with_faults_without_end_does_not_fill_the_screen() {
    let findings = (0..40).map(|_| faults::CLOCK_SLOW.found("x".repeat(100_000))).collect();
    let report = MachineReport { findings, ..MachineReport::default() };
    let hosts = vec![fleet::CheckedHost { host: "n1".to_owned(), report, ..fleet::CheckedHost::default() }];
    let told = printing::fleet(&fleet::FleetReport { hosts, together: Vec::new() });
    assert!(told.contains("n1: and 8 more faults: --json has them"), "{}", told.len());
    assert!(told.lines().all(|line| line.chars().count() < 1_100) && told.len() < 50_000);
}

/// The node of the file is asked at its control socket.
#[test]
fn a_device_of_the_node_that_runs_is_nothing_to_mend() {
    let text =
        "node: { name: a, address: 10.7.0.2/24 }\nlinks: [{ kind: tun, name: hw0 }]\ncontrol: SOCKET\n";
    let machine = Machine::new("running", &[("sys/class/net/hw0/tun_flags", "0x1001")]);
    let socket = machine.0.path("node.sock");
    let config = config::parse(Path::new("a.yaml"), &text.replace("SOCKET", &socket.display().to_string()));
    let config = config.expect("it is sound");
    assert_eq!(verdict(&links::examine(&machine.0, &config), "device"), CheckVerdict::Warning);
    let node = UnixListener::bind(&socket).expect("a socket");
    let link = LinkSnapshot { name: "hw0".into(), ..LinkSnapshot::default() };
    let answer = Response::Status(Box::new(Snapshot { links: vec![link], ..Snapshot::default() }));
    let answer = serde_json::to_string(&answer).expect("JSON") + "\n";
    let answering = thread::spawn(move || {
        let (mut asking, _) = node.accept().expect("it is asked");
        asking.write_all(answer.as_bytes()).expect("it listens");
    });
    let findings = links::examine(&machine.0, &config);
    answering.join().expect("it answered");
    let device = findings.iter().find(|finding| finding.check == "device").expect("it was looked at");
    assert!(device.verdict == CheckVerdict::Ok && device.found.contains("node that runs"), "{device:?}");
}

/// A machine is in order without the things that a node does not use.
#[test]
fn what_a_node_has_no_use_for_is_not_looked_at() {
    let of = |test: &str, check: &str, address: &str, kind: &str| {
        let text =
            format!("node: {{ name: a, address: {address} }}\nlinks: [{{ kind: {kind}, name: hw9 }}]\n");
        let machine = Machine::new(test, &[("node.yaml", &text)]);
        let config = config::load(&machine.0.path("node.yaml")).expect("it is accepted");
        let mut findings = of_machine(&machine.0, Some(&config));
        findings.extend(forwarding::examine(&machine.0, Some(&config), &[]));
        findings.iter().any(|finding| finding.check == check)
    };
    let (v4, both) = ("10.7.0.2/24", "[10.7.0.2/24, \"fd07::2/64\"]");
    assert!(!of("v4", "forwarding6", v4, "tun") && of("v6", "forwarding6", both, "tun"));
    assert!(!of("tun", "net-raw", v4, "tun-fast") && of("raw", "net-raw", v4, "raw"));
}

#[test]
fn several_queues_take_the_right_to_load_a_program() {
    let text = "node: { name: a, address: 10.7.0.2/24 }\nlinks: [{ kind: tun-fast, name: hw9, queues: 2 }]\n";
    let machine =
        Machine::new("queues", &[("node.yaml", text), ("proc/sys/kernel/unprivileged_bpf_disabled", "0")]);
    let config = config::load(&machine.0.path("node.yaml")).expect("it is accepted");
    let findings = links::examine(&machine.0, &config);
    assert_eq!(verdict(&findings, "bpf"), CheckVerdict::Ok);
}

/// A table that a killed node left is distinguished from one in use.
#[test]
fn a_table_that_was_left_behind_is_told_from_one_that_is_in_use() {
    let unix = |claims: &str| format!("Num RefCount Protocol Flags Type St Inode Path\n{claims}");
    let held = "0: 00000002 00000000 00010000 0001 01 3000 @hopwise-raw-br.1";
    for (test, claims, has_table, verdict, said, fix) in [
        ("clean", "", false, CheckVerdict::Ok, "br.1: nft is there", ""),
        (
            "left",
            "",
            true,
            CheckVerdict::Warning,
            "the next start replaces it",
            "nft delete table inet hopwise_br_2e1",
        ),
        ("held", held, true, CheckVerdict::Warning, "a second node is refused", "end the node"),
        ("bare", held, false, CheckVerdict::Failure, "the kernel answers with RST", "start that node again"),
        (
            "other",
            "0: 1 2 3 4 5 6 @hopwise-raw-br.11",
            true,
            CheckVerdict::Warning,
            "was killed",
            "start the node",
        ),
    ] {
        let machine = Machine::new(test, &[("proc/net/unix", &unix(claims))]);
        let finding = links::guarded(&machine.0, "br.1", has_table);
        assert_eq!((finding.verdict, finding.check.as_str()), (verdict, "kernel-rst"), "{finding:?}");
        assert!(finding.found.contains(said), "{finding:?}");
        assert!(finding.fix.unwrap_or_default().contains(fix), "{}", finding.found);
    }
}

/// Each user of the machine may choose any names for sockets.
#[test]
fn a_node_is_found_beside_names_that_are_no_text() {
    let machine = Machine::new("names", &[("proc/net/unix", "")]);
    let rows = b"0: 1 2 3 4 5 6 @\xff\xfe\n0: 1 2 3 4 5 7 @hopwise-raw-br.1\n0: 1 2 3 4 5 8 @\xc3\n";
    fs::write(machine.0.path("proc/net/unix"), rows).expect("a file");
    let finding = links::guarded(&machine.0, "br.1", true);
    assert!(finding.found.contains("a node has it"), "{finding:?}");
}

/// The device's checksums matter only if a capture checks them.
#[cfg(feature = "pcap")]
#[test]
fn checksums_that_a_device_computes_are_found_where_a_capture_looks_at_them() {
    let of = |test: &str, more: &str, computes: bool| {
        let link = format!("{{ kind: pcap, name: eth0{more} }}");
        let text = format!("node: {{ name: a, address: 10.7.0.2/24 }}\nlinks: [{link}]\n");
        let machine = Machine::new(test, &[("node.yaml", &text)]);
        let config = config::load(&machine.0.path("node.yaml")).expect("it is accepted");
        links::checksums(&config.links[0], Ok(computes))
    };
    let found = of("sums", "", true);
    assert_eq!(found.fault.as_deref(), Some("checksums-late"));
    assert!(
        found.found.contains("tcp-checksum") && found.fix.is_some_and(|fix| fix.contains("checksums: trust"))
    );
    assert_eq!(of("sums-trusted", ", checksums: trust", true).verdict, CheckVerdict::Ok);
    assert_eq!(of("sums-off", "", false).verdict, CheckVerdict::Ok);
}

#[test]
fn a_name_of_a_file_begins_no_line_and_turns_no_text_around() {
    let found = faults::SWITCHES_LEFT.found("a\nok b\u{202e}c\u{1b}[2J");
    let finding = Finding { fix: Some("d\te".to_owned()), ..found };
    let expected = format!("warning  switches     a?ok b?c?[2J [switches-left]\n{:22}fix: d?e\n", "");
    assert_eq!(line(&finding), expected);
}

#[test]
fn a_driver_whose_reports_are_odd_is_named_with_each_rule() {
    let station = hopwise_core::StationAddress([2, 0, 0, 0, 0, 1]);
    let sound = stations::odd("wlan0", 3, &[]);
    assert_eq!((sound.len(), sound[0].verdict), (1, CheckVerdict::Ok));
    let odd =
        stations::odd("wlan0", 3, &[(SanityCheck::SignalZero, station), (SanityCheck::NoTxStatus, station)]);
    assert!(odd.iter().all(|finding| finding.verdict == CheckVerdict::Warning));
    assert!(odd[0].found.contains("02:00:00:00:00:01 is not believed (signal-zero): without signal"));
    assert!(odd.iter().all(|finding| finding.fault.as_deref() == Some("driver-odd")));
    let machine = Machine::new("wired", &[("sys/class/net/eth0/address", "")]);
    assert_eq!(
        verdict(&of_interfaces(&machine.0, &mut [], Duration::ZERO), "stations"),
        CheckVerdict::Skipped
    );
}
