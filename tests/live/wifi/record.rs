//! Recordings of a real nl80211: three stations of the guest's Wi-Fi stack, their merge, and a simulation of it.

use super::hwsim::{Folder, LIMIT, can_run, said};

#[test]
fn stations_of_a_real_nl80211_are_recorded_merged_and_played() {
    if !can_run(name_of_test!()) {
        return;
    }
    let folder = Folder::new("record");
    let script = "\
        cd /run\n\
        on() { ip netns exec \"$@\"; }\n\
        until on n0 ping -q -c 3 -i 0.2 -W 2 10.0.0.3; do :; done\n\
        on n0 ping -q -i 0.1 10.0.0.3 > /dev/null & ping=$!\n\
        for n in 0 1 2; do on n$n /program/hopwise mesh record air0 --name n$n --for 8s --out n$n.csv & \
        eval r$n=$!; done\n\
        for one in $r0 $r1 $r2; do wait $one; echo ended $?; done\n\
        kill -INT $ping\n\
        /program/hopwise mesh merge n0.csv n1.csv n2.csv --out field.csv && echo mark field && cat field.csv";
    let done = folder.world(2, LIMIT, &[], script).output().expect("it starts");
    let all = said(&done);
    assert_eq!(all.matches("ended 0").count(), 3, "{all}");
    let (page, field) = all.split_once("mark field\n").unwrap_or_else(|| panic!("{all}"));
    let (field, _) = field.split_once("\n--- ").unwrap_or_else(|| panic!("{all}"));
    assert!(page.contains("of 3 nodes (n0, n1, n2)"), "{all}");
    // The radio's power at 200 m, as `iw station get` tells it.
    for link in [",n0,n1,", ",n1,n0,", ",n1,n2,", ",n2,n1,"] {
        let signals = field.lines().filter_map(|line| line.split_once(link)?.1.split(',').next());
        let signals: Vec<_> = signals.filter(|cell| !cell.is_empty()).collect();
        assert!(signals.len() > 20 && signals.iter().all(|cell| cell.starts_with("-60")), "{link}: {all}");
    }
    assert!(!field.contains(",n0,n2,-") && !field.contains(",n2,n0,-"), "{all}");
    let sent =
        field.lines().filter_map(|line| line.split_once(",n1,n2,")?.1.split(',').nth(5)?.parse::<u64>().ok());
    assert!(sent.sum::<u64>() > 20, "{all}");
    folder.plays(field, 2);
}
