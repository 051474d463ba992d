//! The kernel's switches: changed on the mesh alone, and back to their old values after any end.

use std::fs;

use super::{AODV, HOPWISE, Mesh, Signal, can_run};

/// What a routing daemon may change, of every interface but its TUN device.
fn switches(mesh: &Mesh) -> String {
    let script = "grep -H . /proc/sys/net/ipv4/ip_forward \
                  /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv4/conf/*/rp_filter \
                  /proc/sys/net/ipv4/conf/*/send_redirects | grep -v hopwise0";
    let output = mesh.nodes[0].output(&["sh", "-c", script]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn value(mesh: &Mesh, key: &str) -> String {
    let output = mesh.nodes[0].output(&["sysctl", "-n", &format!("net.ipv4.{key}")]);
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_killed_routing_daemon_leaves_no_switch_changed_for_good() {
    let test = "a_killed_routing_daemon_leaves_no_switch_changed_for_good";
    if !can_run(test, &["ip", "sysctl", "sh", "grep"]) {
        return;
    }
    let mut mesh = Mesh::new("switches", 2, AODV);
    let device = mesh.join(0, 1);
    mesh.nodes[0].ip(&["link", "add", "uplink", "type", "veth", "peer", "name", "uplink1"]);
    for (key, set) in [("all.rp_filter", "1"), ("uplink.rp_filter", "0"), ("uplink.forwarding", "0")] {
        mesh.nodes[0].sysctl(&format!("ipv4/conf/{}", key.replace('.', "/")), set);
    }
    let before = switches(&mesh);
    mesh.start(0, std::slice::from_ref(&device));
    assert_eq!(value(&mesh, &format!("conf.{device}.forwarding")), "1");
    assert_eq!(value(&mesh, "conf.all.rp_filter"), "0");
    assert_eq!(value(&mesh, "conf.uplink.rp_filter"), "1", "the uplink is filtered as before");
    assert_eq!(value(&mesh, "conf.uplink.forwarding"), "0", "the uplink does not forward");
    assert_eq!(value(&mesh, "ip_forward"), "0");

    mesh.end(0, Signal::KILL);
    assert_ne!(switches(&mesh), before, "a killed daemon puts nothing back");
    let folder = mesh.folder.to_string_lossy().into_owned();
    let look = mesh.nodes[0].output(&[HOPWISE, "doctor", "--state", &folder]);
    assert!(String::from_utf8_lossy(&look.stdout).contains("--repair"), "{look:?}");
    let repair = mesh.nodes[0].output(&[HOPWISE, "doctor", "--repair", "--state", &folder]);
    assert!(String::from_utf8_lossy(&repair.stdout).contains("put back"), "{repair:?}");
    assert_eq!(switches(&mesh), before);

    mesh.start(0, std::slice::from_ref(&device));
    mesh.end(0, Signal::KILL);
    let _ = fs::remove_file(mesh.folder.join("log0"));
    mesh.start(0, std::slice::from_ref(&device));
    mesh.end(0, Signal::TERM);
    assert_eq!(switches(&mesh), before, "the next daemon's end puts back what the first one changed");
}
