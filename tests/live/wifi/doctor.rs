//! `hopwise doctor` on the radios of a real kernel: power save, other networks, a split cell, and rates that change.

use super::hwsim::{Folder, LIMIT, can_run, said};

/// Three nodes on a line. The last one leaves their network for others of its own. Only stations of access points may
/// sleep in mac80211: it becomes one at the end.
const SCRIPT: &str = "\
    on() { ip netns exec \"$@\"; }\n\
    doctor() { on n1 /program/hopwise doctor --exit-zero --state /run/none \"$@\"; }\n\
    mark() { echo mark $1; }\n\
    until on n1 ping -q -c 2 -i 0.2 -W 2 10.0.0.1; do :; done\n\
    mark sound; doctor\n\
    on n2 iw dev air0 ibss leave\n\
    on n2 iw dev air0 ibss join cafe 2412 NOHT fixed-freq 02:ca:fe:00:00:99\n\
    for n in $(seq 60); do doctor > /run/said; grep -q other-networks /run/said && break; sleep 1; done\n\
    mark cafe; cat /run/said\n\
    on n2 iw dev air0 ibss leave\n\
    on n2 iw dev air0 ibss join hopwise 2412 NOHT fixed-freq 02:ca:fe:00:00:98\n\
    for n in $(seq 60); do doctor > /run/said; grep -q cell-split /run/said && break; sleep 1; done\n\
    mark split; cat /run/said\n\
    on n1 iw dev air0 set bitrates\n\
    on n1 ping -q -f -s 1400 -w 60 10.0.0.1 > /dev/null & flood=$!\n\
    for n in $(seq 5); do doctor --look 8s > /run/said; grep -q rate-roams /run/said && break; done\n\
    mark roams; cat /run/said; kill $flood\n\
    on n2 iw dev air0 ibss leave; on n2 ip link set air0 down; on n2 iw dev air0 set type managed\n\
    on n2 iw dev air0 set power_save on; on n2 ip link set air0 up\n\
    mark sleeps; on n2 /program/hopwise doctor --exit-zero --state /run/none";

fn behind<'a>(all: &'a str, mark: &str) -> &'a str {
    let (_, behind) = all.split_once(&format!("mark {mark}\n")).unwrap_or_else(|| panic!("no {mark}: {all}"));
    behind.split("mark ").next().unwrap_or_default()
}

#[test]
fn the_doctor_finds_on_real_radios_what_spoils_a_trial() {
    if !can_run(name_of_test!()) {
        return;
    }
    let folder = Folder::new("doctor");
    let done = folder.world(2, LIMIT, &["--set", "channel.loss=20%"], SCRIPT).output().expect("it starts");
    let all = said(&done);
    let sound = behind(&all, "sound");
    for row in ["air0 can be in an ad hoc network", "air0 does not sleep", "air0 hears no other network"] {
        assert!(sound.contains(row), "{row}: {all}");
    }
    for fault in ["power-save-on", "other-networks", "cell-split", "rate-roams"] {
        assert!(!sound.contains(fault), "{fault}: {all}");
    }
    assert!(behind(&all, "sleeps").contains("[power-save-on]"), "{all}");
    let cafe = behind(&all, "cafe");
    assert!(cafe.contains("[other-networks]") && cafe.contains("cafe (02:ca:fe:00:00:99"), "{all}");
    let split = behind(&all, "split");
    assert!(split.contains("[cell-split]") && split.contains("02:ca:fe:00:00:98"), "{all}");
    assert!(behind(&all, "roams").contains("[rate-roams]"), "{all}");
}
