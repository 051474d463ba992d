//! `by: nfqueue` by the rules of iptables, on kernels without its table `security` as well.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::{Pid, Signal, kill_process};

use super::{By, Network, ways};
use crate::field::HOPWISE;

/// Takes the place of a program, and refuses an input with that text.
fn refuse(network: &Network, program: &str, text: &str) {
    let real = network.router.output(&["sh", "-c", &format!("command -v {program}")]).stdout;
    let real = String::from_utf8(real).expect("a path");
    // Without a terminal each of them reads its standard input to its end.
    let script = format!(
        "#!/bin/sh\ninput=$(cat)\ncase $input in *'{text}'*) echo \"no {text} here\" >&2; exit 1;; esac\n\
         printf '%s\\n' \"$input\" | {} \"$@\"\n",
        real.trim()
    );
    let folder = network.path("bin");
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join(program);
    fs::write(&path, script).expect("the folder can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

#[test]
fn a_kernel_without_the_table_security_leads_packets_to_the_proxy_from_mangle() {
    if !ways(name_of_test!()).contains(&By::Nfqueue) {
        return;
    }
    let network = Network::by("proxy-mangle", By::Nfqueue);
    refuse(&network, "nft", "queue flags");
    refuse(&network, "iptables-restore", "*security");
    refuse(&network, "ip6tables-restore", "*security");
    // The second start finds the rules of the first, which was killed.
    for signal in [Signal::KILL, Signal::INT] {
        let mut running = network.proxy("ack-hold", "none");
        assert!(network.log().contains("before the router's own filter"), "{}", network.log());
        let left = network.left_behind();
        assert_eq!(left.matches("-A FORWARD -j HOPWISE-7100").count(), 1, "{left}");
        let transfer = network.transfer("cubic");
        transfer.wait_for(1_000_000);
        let status = network.tell("{\"tell\":\"status\"}");
        assert!(!status.contains("\"packets\":0"), "{status}");
        kill_process(Pid::from_child(&running.0), signal).expect("it runs");
        running.0.wait().expect("a child");
        transfer.wait_for(1_000_000);
    }
    assert_eq!(network.left_behind(), "");
}

#[test]
fn of_the_tables_of_iptables_none_stays_that_was_not_there_before() {
    if !ways(name_of_test!()).contains(&By::Nfqueue) {
        return;
    }
    let tables = |network: &Network| {
        let listed = network.router.output(&["nft", "list", "tables"]);
        String::from_utf8_lossy(&listed.stdout).into_owned()
    };
    for rule in [None, Some("-I"), Some("-D")] {
        let network = Network::by("proxy-tables", By::Nfqueue);
        refuse(&network, "nft", "queue flags");
        let before = tables(&network);
        let mut running = network.proxy("ack-hold", "none");
        if rule.is_some() {
            // A rule that another program adds meanwhile stays, and its table with it.
            let added = ["iptables", "-t", "security", "-I", "OUTPUT", "-j", "ACCEPT"];
            assert!(network.router.output(&added).status.success());
        }
        if rule == Some("-D") {
            let removed = ["iptables", "-t", "security", "-D", "OUTPUT", "-j", "ACCEPT"];
            assert!(network.router.output(&removed).status.success());
        }
        running.interrupt();
        if rule == Some("-I") {
            assert!(tables(&network).contains("table ip security"), "{}", tables(&network));
        } else {
            assert_eq!(tables(&network), before, "{rule:?}");
        }
    }
}

#[test]
fn rules_into_queues_that_a_killed_proxy_left_are_found_and_removed_by_doctor() {
    if !ways(name_of_test!()).contains(&By::Nfqueue) {
        return;
    }
    for has_security in [true, false] {
        let network = Network::by("proxy-queues", By::Nfqueue);
        if !has_security {
            refuse(&network, "nft", "queue flags");
            refuse(&network, "iptables-restore", "*security");
            refuse(&network, "ip6tables-restore", "*security");
        }
        let doctor = |more: &[&str]| {
            let said = network.router.output(&[&[HOPWISE, "doctor"], more].concat());
            String::from_utf8_lossy(&said.stdout).into_owned()
        };
        let mut running = network.proxy("ack-hold", "none");
        for more in [&[][..], &["--repair"]] {
            assert!(doctor(more).contains("ok       queues"), "{}", doctor(more));
        }
        assert!(!network.left_behind().is_empty(), "those of one that runs stay");
        running.0.kill().expect("it runs");
        running.0.wait().expect("a child");
        let said = doctor(&[]);
        assert!(said.contains("left rules into netfilter queue 7100"), "{said}");
        assert!(said.contains("[queues-left]"), "{said}");
        let repaired = doctor(&["--repair"]);
        assert!(repaired.contains("rules into netfilter queue 7100 removed"), "{repaired}");
        assert_eq!(network.left_behind(), "");
    }
}
