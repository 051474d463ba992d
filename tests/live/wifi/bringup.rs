//! `hopwise mesh up` on the radios of a real kernel: an ad hoc network and a mesh of 802.11s, and back.

use super::hwsim::{Folder, LIMIT, can_run, said};

/// Two radios that belong to no network and are switched off (rfkill), with functions for both: each has a file, and
/// its state before.
const BEGIN: &str = "\
    on() { ip netns exec \"$@\"; }\n\
    mesh() { on $1 /program/hopwise mesh $2 $3 $4 --state /run/h$1; }\n\
    state() { on $1 sh -c 'iw dev air0 info | grep -e type -e ssid -e channel; ip addr show air0; ip route; \
      cat /sys/class/net/air0/phy80211/rfkill*/soft; iw reg get | grep country | head -1'; }\n\
    same() { tries=0; until state $1 > /run/after-$1; cmp -s /run/before-$1 /run/after-$1; do \
      tries=$((tries+1)); [ $tries -lt 20 ] || { diff /run/before-$1 /run/after-$1; return 1; }; sleep 0.5; done; }\n\
    for n in n0 n1; do\n\
      for of in all default air0; do on $n sysctl -q -w net.ipv6.conf.$of.disable_ipv6=0; done\n\
      on $n iw dev air0 ibss leave; on $n iw dev air0 set bitrates; on $n ip link set air0 down\n\
      on $n iw dev air0 set type managed; on $n ip addr flush dev air0; on $n ip addr add 10.1.0.7/24 dev air0\n\
      on $n sh -c 'for soft in /sys/class/net/air0/phy80211/rfkill*/soft; do echo 1 > $soft; done'\n\
      on $n ip link set air0 up && exit 10\n\
      state $n > /run/before-$n\n\
    done\n\
    file() { echo \"clock: ignore\"; echo \"country: US\"; echo \"interfaces:\"; \
      echo \"  - { name: air0, addresses: [10.66.0.$1/24, 'fd66::$1/64'], mtu: 1400, $2 }\"; }\n";

/// Joins both, reaches one from the other, and puts both back.
const END: &str = "\
    for n in n0 n1; do mesh $n up /run/$n.yaml --no-confirm || exit 3; done\n\
    tries=0\n\
    until on n0 ping -q -c 2 -W 2 10.66.0.2; do tries=$((tries+1)); [ $tries -lt 60 ] || exit 4; done\n\
    on n0 ping -6 -q -c 2 -W 5 fd66::2 || exit 5\n\
    echo mark info; on n0 iw dev air0 info; on n0 iw dev air0 link; iw reg get | head -2\n\
    echo mark station; on n0 iw dev air0 station dump\n\
    echo mark again; mesh n0 up /run/n0.yaml --no-confirm\n\
    echo mark back\n\
    for n in n0 n1; do mesh $n down || exit 6; done; for n in n0 n1; do same $n || exit 7; done\n\
    echo all is back; ls /run/hn0 /run/hn1\n";

/// Runs the script with the files of a mode, and returns what was printed.
fn run(test: &str, mode: &str, middle: &str) -> String {
    let folder = Folder::new(test);
    let files = format!("file 1 \"{mode}\" > /run/n0.yaml; file 2 \"{mode}\" > /run/n1.yaml\n{middle}");
    let script = format!("{BEGIN}{files}{END}");
    let done = folder.world(1, LIMIT, &[], &script).output().expect("it starts");
    let all = said(&done);
    assert_eq!(done.status.code(), Some(0), "{all}");
    assert!(all.contains("all is back"), "{all}");
    all
}

fn behind<'a>(all: &'a str, mark: &str) -> &'a str {
    let (_, behind) = all.split_once(&format!("mark {mark}\n")).unwrap_or_else(|| panic!("no {mark}: {all}"));
    behind.split("mark ").next().unwrap_or_default()
}

#[test]
fn two_radios_come_up_in_an_ad_hoc_network_and_go_back() {
    if !can_run(name_of_test!()) {
        return;
    }
    let mode = "mode: ibss, ssid: up, channel: 1, bssid: '02:ca:fe:00:00:77', rates: [2mbit], \
                multicast_rate: 1mbit, tx_power: 10";
    // A channel that the domain does not allow: the step is named with what would be accepted, and goes back.
    let refused = "\
        sed 's/channel: 1,/channel: 14,/' /run/n0.yaml > /run/wrong.yaml\n\
        echo mark refused; mesh n0 up /run/wrong.yaml --no-confirm 2>&1 && exit 8\n\
        same n0 || exit 9\n";
    let all = run("up-ibss", mode, refused);
    let wrong = behind(&all, "refused");
    for wanted in ["join the ad hoc network `up` at 2484 MHz", "one of 2412, 2417"] {
        assert!(wrong.contains(wanted), "{wanted}: {all}");
    }
    let info = behind(&all, "info");
    for wanted in [
        "type IBSS",
        "ssid up",
        "channel 1 (2412 MHz)",
        "txpower 10.00 dBm",
        "country US",
        "Joined IBSS 02:ca:fe:00:00:77",
    ] {
        assert!(info.contains(wanted), "{wanted}: {all}");
    }
    assert!(behind(&all, "station").contains("tx bitrate:\t2.0 MBit/s"), "{all}");
    assert!(behind(&all, "again").contains("up already"), "{all}");
}

#[test]
fn two_radios_come_up_in_a_mesh_of_802_11s_and_go_back() {
    if !can_run(name_of_test!()) {
        return;
    }
    let all = run("up-11s", "mode: mesh, ssid: up, frequency: 2412, rates: [6mbit, 12mbit]", "");
    let info = behind(&all, "info");
    assert!(info.contains("type mesh point") && info.contains("channel 1 (2412 MHz)"), "{all}");
    let station = behind(&all, "station");
    assert!(station.contains("mesh plink:\tESTAB"), "{all}");
    assert!(
        ["6.0", "12.0"].iter().any(|rate| station.contains(&format!("tx bitrate:\t{rate} MBit/s"))),
        "{all}"
    );
}
