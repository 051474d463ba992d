//! Faults that need a machine of another kind: recorded files, the facts of a driver, the reports of several hosts.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;

use caps::{CapSet, Capability};
use hopwise_core::StationAddress;
use hopwise_host::nl80211::ChannelUse;
use hopwise_host::nl80211::radio::{ChannelSetting, HeardNetwork, InterfaceType, RadioState};

use super::super::fleet::{CheckedHost, together};
use super::super::radio::RadioFacts;
use super::super::stations::Looked;
use super::*;
use hopwise_node::fleet::report::ClockReport;

/// The faults in findings, by their names.
pub(super) fn named(findings: &[Finding]) -> Vec<&str> {
    findings.iter().filter_map(|finding| finding.fault.as_deref()).collect()
}

/// Each finding has a remedy without names in braces, unless it is no fault.
fn all_are_whole(findings: &[Finding]) {
    for finding in findings {
        let is_whole = finding.fix.as_ref().is_some_and(|fix| !fix.contains(['{', '}']));
        assert_eq!(finding.fault.is_some(), finding.fix.is_some(), "{finding:?}");
        assert!(finding.fault.is_none() || is_whole, "{finding:?}");
    }
}

pub(super) fn one(findings: &[Finding], fault: &str) {
    all_are_whole(findings);
    assert_eq!(named(findings), [fault], "{findings:?}");
}

#[test]
fn a_machine_without_its_device_or_with_switches_of_others_is_told_so() {
    let machine = Machine::new("none", &[("proc/sys/net/ipv4/conf/all/rp_filter", "1")]);
    one(&[machine::tun(&machine.0)], "tun-missing");
    one(&[machine::rp_filter(&machine.0)], "rp-filter-strict");
    // A folder cannot be opened for writing, whoever tries.
    let machine = Machine::new("folder", &[("dev/net/tun/x", ""), ("proc/sys/net/ipv4/ip_forward", "0")]);
    one(&[machine::tun(&machine.0)], "tun-refused");
    one(&forwarding::examine(&machine.0, None, &two()), "forwarding-off");
    let files = [("proc/sys/net/ipv6/conf/all/forwarding", "0"), (CLOCK, "hpet"), (CLOCKS, "hpet")];
    let machine = Machine::new("slow", &files);
    one(&forwarding::examine(&machine.0, None, &two()), "forwarding6-off");
    one(&[machine::clock_source(&machine.0)], "clock-slow");
    one(&[machine::clock_is_kept(Ok(false))], "clock-unsynchronised");
    assert_eq!(machine::clock_is_kept(Ok(true)).verdict, CheckVerdict::Ok);
}

/// Interfaces that a machine joins, if it forwards.
fn two() -> [String; 2] {
    ["w0", "w1"].map(str::to_owned)
}

/// A mesh's end forwards nothing, and is no worse for it.
#[test]
fn a_switch_that_is_off_is_a_fault_where_others_need_it() {
    let all = ("proc/sys/net/ipv4/ip_forward", "0");
    let own = ("proc/sys/net/ipv4/conf/w0/forwarding", "1");
    let other = ("proc/sys/net/ipv4/conf/w1/forwarding", "0");
    let of = |test, files: &[(&str, &str)], names: &[String]| {
        let machine = Machine::new(test, files);
        forwarding::examine(&machine.0, None, names)[0].verdict
    };
    assert_eq!(of("end", &[all], &[]), CheckVerdict::Skipped);
    assert_eq!(
        of("end-of-two", &[all, own], &two()[..1]),
        CheckVerdict::Ok,
        "the interface's own switch counts"
    );
    assert_eq!(of("between", &[all, own, other], &two()), CheckVerdict::Warning);
    let config = |kind: &str| {
        let text =
            format!("node: {{ name: a, address: 10.7.0.2/24 }}\nlinks: [{{ kind: {kind}, name: hw9 }}]\n");
        let machine = Machine::new(&format!("end-{kind}"), &[("node.yaml", &text), all]);
        let config = config::load(&machine.0.path("node.yaml")).expect("it is accepted");
        forwarding::examine(&machine.0, Some(&config), &[])
    };
    one(&config("tun"), "forwarding-off");
    assert!(config("raw").is_empty(), "the node forwards by itself");
}

#[test]
fn a_host_that_others_send_through_has_to_forward() {
    let end = host("n1", "02:00:00:00:00:01", 1_500, "10.0.0.1/24");
    let relay = |switch| {
        let mut relay = host("n2", "02:00:00:00:00:02", 1_500, "10.0.0.2/24");
        relay.report.forwarding.v4 = Some(switch);
        relay
    };
    let mut other = host("n3", "02:00:00:00:00:03", 1_500, "10.0.0.3/24");
    other.report.forwarding.v4 = Some(false);
    let beside = |relay: CheckedHost| together(&[end.clone(), relay, other.clone()]);
    assert_eq!(named(&beside(relay(false))), [""; 0], "no route leads through it");
    other.report.forwarding.through = vec!["10.0.0.2".parse().expect("an address")];
    let beside = |relay: CheckedHost| together(&[end.clone(), relay, other.clone()]);
    let found = beside(relay(false));
    one(&found, "forwarding-off");
    assert!(found.iter().any(|finding| finding.found == "n2: off, and n3 sends through it"), "{found:?}");
    assert_eq!(named(&beside(relay(true))), [""; 0]);
}

/// Capabilities belong to threads, so that this one may give its own up.
#[test]
fn a_capability_that_is_missing_is_named_with_the_way_to_it() {
    let looked = || {
        let all = [
            Capability::CAP_NET_ADMIN,
            Capability::CAP_NET_RAW,
            Capability::CAP_BPF,
            Capability::CAP_SYS_ADMIN,
        ];
        for capability in all {
            caps::drop(None, CapSet::Effective, capability).expect("each may give up its own");
        }
        let machine = Machine::new("caps", &[("proc/sys/kernel/unprivileged_bpf_disabled", "2")]);
        let findings = of_machine(&machine.0, None);
        (findings, machine::programs(&machine.0))
    };
    let (findings, programs) = thread::spawn(looked).join().expect("it ends");
    assert!(named(&findings).contains(&"no-net-admin") && named(&findings).contains(&"no-net-raw"));
    all_are_whole(&findings);
    one(&[programs], "no-bpf");
}

#[test]
fn hop_limits_that_begin_elsewhere_are_found_with_their_key() {
    let files = [("proc/sys/net/ipv4/ip_default_ttl", "128"), ("proc/sys/net/ipv6/conf/all/hop_limit", "64")];
    let machine = Machine::new("hops", &files);
    let none = || Err(io::ErrorKind::NotFound.into());
    let findings = machine::hop_limits(&machine.0, &[], none());
    one(&findings, "hop-limit-other");
    let fix = findings[0].fix.as_deref().unwrap_or_default();
    assert!(
        fix.contains("sysctl -w net/ipv4/ip_default_ttl=64") && fix.contains("peers_hop_limit: 128"),
        "{fix}"
    );
    let files = [("proc/sys/net/ipv4/ip_default_ttl", "64"), ("proc/sys/net/ipv6/conf/w0/hop_limit", "255")];
    let machine = Machine::new("hops6", &files);
    one(&machine::hop_limits(&machine.0, &["w0".to_owned()], none()), "hop-limit-other");
    assert_eq!(machine::hop_limits(&machine.0, &[], none())[0].verdict, CheckVerdict::Ok);
}

#[test]
fn a_governor_that_saves_power_is_found_on_any_cpu() {
    const FIRST: &str = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
    const SECOND: &str = "sys/devices/system/cpu/cpufreq/policy4/scaling_governor";
    let of = |test: &str, second: &str| {
        let machine = Machine::new(test, &[(FIRST, "performance"), (SECOND, second)]);
        machine::governor(&machine.0)
    };
    one(&[of("governor", "ondemand")], "governor-slow");
    assert!(of("governor-named", "ondemand").found.contains("policy4"));
    assert_eq!(of("governor-quick", "performance").verdict, CheckVerdict::Ok);
    let none = Machine::new("governor-none", &[]);
    assert_eq!(machine::governor(&none.0).verdict, CheckVerdict::Skipped);
}

/// A machine whose `vcgencmd` prints this.
fn pi(test: &str, script: &str) -> Machine {
    let machine = Machine::new(test, &[("usr/bin/vcgencmd", &format!("#!/bin/sh\n{script}"))]);
    let program = machine.0.path("usr/bin/vcgencmd");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    machine
}

#[test]
fn a_pi_tells_its_supply_and_its_heat_by_its_program_its_file_or_its_sensor() {
    let of = |test: &str, number: &str| {
        let machine = pi(test, &format!("[ \"$1\" = get_throttled ] && echo throttled={number}"));
        power::examine(&machine.0)
    };
    assert_eq!(of("pi-sound", "0x0")[0].verdict, CheckVerdict::Ok);
    one(&of("pi-now", "0x1"), "under-voltage");
    one(&of("pi-was", "0x10000"), "under-voltage");
    one(&of("pi-hot", "0x8"), "throttled");
    let both = of("pi-both", "0x50005");
    assert_eq!(named(&both), ["under-voltage", "throttled"]);
    assert!(both[0].found.contains("is below"), "{both:?}");
    assert!(of("pi-past", "0x50000")[1].found.contains("was, since the start"));
    // An old kernel of Raspberry Pi OS without the program, and one with neither.
    let file = Machine::new("pi-file", &[("sys/devices/platform/soc/soc:firmware/get_throttled", "50000")]);
    assert_eq!(named(&power::examine(&file.0)), ["under-voltage", "throttled"]);
    let sensor = |test: &str, alarm: &str| {
        let files = [
            ("sys/class/hwmon/hwmon0/name", "cpu_thermal"),
            ("sys/class/hwmon/hwmon1/name", "rpi_volt"),
            ("sys/class/hwmon/hwmon1/in0_lcrit_alarm", alarm),
        ];
        power::examine(&Machine::new(test, &files).0)
    };
    one(&sensor("pi-alarm", "1"), "under-voltage");
    assert_eq!(sensor("pi-silent", "0")[0].verdict, CheckVerdict::Ok);
    let refused = power::examine(&pi("pi-refused", "echo VCHI initialization failed >&2; exit 255").0);
    assert!(refused[0].verdict == CheckVerdict::Skipped && refused[0].found.contains("VCHI"), "{refused:?}");
    assert_eq!(power::examine(&Machine::new("pi-none", &[]).0)[0].verdict, CheckVerdict::Skipped);
}

#[test]
fn a_card_that_is_too_slow_or_too_full_for_captures_is_found() {
    let folder = Path::new("/captures");
    let of = |written, free| {
        let disk = captures::Disk { written, within: Duration::from_secs(1), free };
        captures::of(folder, disk, 50_000_000)
    };
    let (quick, roomy) = (10_000_000, 1 << 40);
    one(&of(6_000_000, roomy), "captures-slow");
    one(&of(quick, 1_000_000_000), "captures-full");
    assert_eq!(of(quick, roomy)[0].verdict, CheckVerdict::Ok);
    one(&captures::examine(Path::new("/proc/no-such-folder"), 1), "captures-refused");
    let machine = Machine::new("disk", &[("x", "")]);
    let findings = captures::examine(&machine.0.path(""), u64::MAX);
    assert_eq!(named(&findings), ["captures-slow", "captures-full"]);
    assert_eq!(machine.0.names(""), ["x"], "what was written is removed");
}

#[test]
fn an_interface_that_is_gone_or_down_is_named() {
    let machine = Machine::new("down", &[("sys/class/net/w0/operstate", "down")]);
    one(&[interfaces::state(&machine.0, "w0")], "interface-down");
    one(&[interfaces::state(&machine.0, "w1")], "interface-missing");
    let joining = ["rx-gro".to_owned()];
    one(&[interfaces::offloads("w0", &joining)], "offloads-join");
    let noted = interfaces::noted("w0", &joining);
    assert_eq!((noted.verdict, noted.fix), (CheckVerdict::Ok, None), "Linux is as it is, for all programs");
}

#[test]
fn links_of_a_node_that_cannot_be_opened_are_named() {
    let text = |link: &str| format!("node: {{ name: a, address: 10.7.0.2/24 }}\nlinks: [{link}]\n");
    let of = |test: &str, link: &str, files: &[(&str, &str)]| {
        let text = text(link);
        let machine = Machine::new(test, &[files, &[("node.yaml", text.as_str())]].concat());
        let config = config::load(&machine.0.path("node.yaml")).expect("it is accepted");
        links::examine(&machine.0, &config)
    };
    let tun = "{ kind: tun, name: hw9 }";
    assert_eq!(named(&of("taken", tun, &[("sys/class/net/hw9/tun_flags", "1")])), ["device-taken"]);
    assert_eq!(named(&of("no-tun", tun, &[("sys/class/net/hw9/mtu", "1500")])), ["device-no-tun"]);
    let narrow = [("sys/class/net/eth0/operstate", "up"), ("sys/class/net/eth0/mtu", "1400")];
    one(&of("narrow", tun, &narrow)[1..], "mtu-of-path");
    if cfg!(feature = "pcap") {
        one(&of("replay", "{ kind: replay, name: r, file: /no/such.pcapng }", &[]), "recording-unreadable");
    }
}

#[test]
fn a_table_that_is_left_in_use_or_gone_has_its_own_name() {
    let held = "0: 00000002 00000000 00010000 0001 01 3000 @hopwise-raw-w0";
    let of = |test: &str, rows: &str, has_table| {
        links::guarded(&Machine::new(test, &[("proc/net/unix", rows)]).0, "w0", has_table)
    };
    one(&[of("guard-both", held, true)], "link-in-use");
    one(&[of("guard-left", "", true)], "guard-left");
    one(&[of("guard-gone", held, false)], "kernel-answers");
}

pub(super) fn radio() -> RadioFacts {
    let channel = ChannelSetting { mhz: 2_412, width: 0, centre_mhz: 2_412 };
    let state = RadioState {
        kind: InterfaceType::IBSS,
        ssid: Some(b"roof".to_vec()),
        channel: Some(channel),
        power: None,
    };
    let kinds = vec![InterfaceType::MANAGED, InterfaceType::IBSS];
    RadioFacts {
        kinds,
        power_save: Some(false),
        state: Some(state),
        networks: vec![network(1, "roof", true)],
        country: Some("DE".to_owned()),
        coverage_class: Some(1),
        driver: Some("ath9k".to_owned()),
    }
}

pub(super) fn network(last: u8, name: &str, is_ours: bool) -> HeardNetwork {
    HeardNetwork {
        bssid: StationAddress([2, 0, 0, 0, 0, last]),
        mhz: 2_412,
        name: name.as_bytes().to_vec(),
        signal_dbm: Some(-60),
        age: Some(Duration::from_millis(100)),
        is_ours,
        slowest_basic_bps: Some(5_500_000),
    }
}

#[test]
fn radios_that_cannot_mesh_sleep_or_share_their_channel_are_found() {
    let sound = radio::examine("w0", &radio(), 1);
    assert!(sound.iter().all(|finding| finding.verdict == CheckVerdict::Ok), "{sound:?}");
    let with =
        |kinds: &[InterfaceType]| radio::examine("w0", &RadioFacts { kinds: kinds.to_vec(), ..radio() }, 1);
    one(&with(&[InterfaceType::MANAGED]), "no-mesh-mode");
    one(&with(&[InterfaceType::MANAGED, InterfaceType::MESH]), "no-ad-hoc");
    one(&radio::examine("w0", &RadioFacts { power_save: Some(true), ..radio() }, 1), "power-save-on");
    let hearing = |networks: Vec<HeardNetwork>| {
        let networks = [vec![network(1, "roof", true)], networks].concat();
        radio::examine("w0", &RadioFacts { networks, ..radio() }, 1)
    };
    one(&hearing(vec![network(9, "cafe", false)]), "other-networks");
    one(&hearing(vec![HeardNetwork { mhz: 2_422, ..network(9, "cafe", false) }]), "other-networks");
    one(&hearing(vec![network(9, "roof", false)]), "cell-split");
    let far = HeardNetwork { mhz: 2_437, ..network(9, "cafe", false) };
    let old = HeardNetwork { age: Some(Duration::from_secs(40)), ..network(9, "cafe", false) };
    assert_eq!(named(&hearing(vec![far, old])), [""; 0]);
    let many = hearing((10..15).map(|last| network(last, "", false)).collect());
    assert!(many[2].found.contains("a hidden one") && many[2].found.contains("and 2 more"), "{many:?}");
}

/// In 802.11s each station has a BSSID of its own.
#[test]
fn stations_of_the_own_mesh_are_no_other_network() {
    let state = radio().state.map(|state| RadioState { kind: InterfaceType::MESH, ..state });
    let networks = vec![network(1, "roof", true), network(2, "roof", false)];
    let findings = radio::examine("w0", &RadioFacts { state, networks, ..radio() }, 1);
    assert_eq!(named(&findings), [""; 0]);
}

#[test]
fn a_channel_is_busy_by_what_others_send() {
    let used = |active: u64, busy: u64, sent: u64| {
        let ms = |ms| Some(Duration::from_millis(ms));
        Some(ChannelUse { active: ms(active), busy: ms(busy), sending: ms(sent), ..ChannelUse::default() })
    };
    let of = |after| radio::busy("w0", used(1_000, 900, 0), after);
    one(&[of(used(2_000, 1_300, 50))], "channel-busy");
    assert_eq!(of(used(2_000, 1_300, 150)).verdict, CheckVerdict::Ok, "the radio itself sent most of it");
    assert_eq!(of(None).verdict, CheckVerdict::Skipped);
    assert_eq!(of(used(1_000, 900, 0)).verdict, CheckVerdict::Skipped, "nothing was counted");
}

#[test]
fn a_rate_that_changes_under_one_station_roams() {
    let station = |last| StationAddress([2, 0, 0, 0, 0, last]);
    let of = |rates: &[(u8, &[u64])]| {
        let rates: BTreeMap<_, _> =
            rates.iter().map(|(last, all)| (station(*last), all.iter().copied().collect())).collect();
        stations::examine("w0", &Ok(Looked { rates, ..Looked::default() }))
    };
    one(&of(&[(1, &[11_000_000]), (2, &[11_000_000, 5_500_000])]), "rate-roams");
    assert_eq!(named(&of(&[(1, &[11_000_000]), (2, &[2_000_000])])), [""; 0], "each has one");
}

#[test]
fn an_address_that_the_kernel_gave_up_or_another_station_answers_for_is_a_duplicate() {
    let facts = |addresses: &[&str]| InterfaceFacts {
        name: "w0".to_owned(),
        addresses: addresses.iter().map(|text| (*text).to_owned()).collect(),
        ..InterfaceFacts::default()
    };
    let row = "fd660000000000000000000000000001 03 40 00 c8 w0";
    let refused = Machine::new("dad", &[("proc/net/if_inet6", row)]);
    let nobody = |_| Ok(Vec::new());
    let found = interfaces::addresses(&refused.0, &facts(&["fd66::1/64"]), &nobody);
    one(std::slice::from_ref(&found), "duplicate-address");
    assert!(found.found.contains("another host has fd66::1"), "{found:?}");
    let machine = Machine::new("arp", &[("proc/net/if_inet6", &row.replace("c8", "80"))]);
    let somebody = |_| Ok(vec![StationAddress([2, 0, 0, 0, 0, 7])]);
    let own = facts(&["10.0.0.1/24", "fe80::1/64"]);
    one(&[interfaces::addresses(&machine.0, &own, &somebody)], "duplicate-address");
    assert_eq!(interfaces::addresses(&machine.0, &own, &nobody).verdict, CheckVerdict::Ok);
}

#[test]
fn acks_that_nobody_heard_are_told_from_a_lossy_path() {
    let of = |sent, heard, resent| {
        acks::finding("n1 hears n2", Ok(acks::ConnectionAcks { sent, heard, data: 700, resent }))
    };
    one(&[of(350, 180, 0)], "acks-missing");
    one(&[of(350, 300, 10)], "acks-missing");
    assert_eq!(of(350, 351, 0).verdict, CheckVerdict::Ok, "the handshake has one that is not counted");
    assert_eq!(of(350, 300, 70).verdict, CheckVerdict::Ok, "a tenth of the data was lost as well");
    assert_eq!(of(12, 2, 0).verdict, CheckVerdict::Skipped);
    assert_eq!(acks::finding("x", Err(io::ErrorKind::TimedOut.into())).verdict, CheckVerdict::Skipped);
}

pub(super) fn host(name: &str, station: &str, mtu: u32, address: &str) -> CheckedHost {
    let facts = InterfaceFacts {
        name: "wlan0".to_owned(),
        station: Some(station.to_owned()),
        mtu: Some(mtu),
        addresses: vec![address.to_owned(), "fe80::1/64".to_owned()],
        ..InterfaceFacts::default()
    };
    let report =
        MachineReport { interfaces: vec![facts], version: "1".to_owned(), ..MachineReport::default() };
    let clock = Some(ClockReport { ahead_ms: 3.0, within_ms: 5.0 });
    CheckedHost { host: name.to_owned(), clock, report, ..CheckedHost::default() }
}

#[test]
fn hosts_are_compared_by_addresses_mtu_clocks_and_versions() {
    let first = || host("n1", "02:00:00:00:00:01", 1_500, "10.0.0.1/24");
    let second = || host("n2", "02:00:00:00:00:02", 1_500, "10.0.0.2/24");
    let sound = together(&[first(), second()]);
    assert!(sound.iter().all(|finding| finding.verdict == CheckVerdict::Ok), "{sound:?}");
    let beside = |other: CheckedHost| together(&[first(), other]);
    let same_ip = beside(host("n2", "02:00:00:00:00:02", 1_500, "10.0.0.1/16"));
    one(&same_ip, "duplicate-address");
    assert!(same_ip[0].found.contains("10.0.0.1: n1 wlan0, n2 wlan0"), "{same_ip:?}");
    one(&beside(host("n2", "02:00:00:00:00:01", 1_500, "10.0.0.2/24")), "duplicate-address");
    let narrow = beside(host("n2", "02:00:00:00:00:02", 1_400, "10.0.0.2/24"));
    one(&narrow, "mtu-differs");
    assert!(narrow[1].fix.as_ref().is_some_and(|fix| fix.contains("wlan0 mtu 1400")), "{narrow:?}");
    let late = Some(ClockReport { ahead_ms: -40.0, within_ms: 5.0 });
    one(&beside(CheckedHost { clock: late, ..second() }), "clock-skew");
    let unsure = Some(ClockReport { ahead_ms: -40.0, within_ms: 30.0 });
    assert_eq!(named(&beside(CheckedHost { clock: unsure, ..second() })), [""; 0]);
    let mut newer = second();
    newer.report.version = "2".to_owned();
    one(&beside(newer), "versions-differ");
}
