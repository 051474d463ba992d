//! Packets from the mesh stay there: the daemon's machine leads them to none of its other devices.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use super::{AODV, Mesh, PORT, Signal, address, can_run, until, within_patience};

const ON_THE_WIRE: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 2);
const SERVED: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 9);

/// A daemon's machine between a stranger of the mesh and a host on its wire. Both know their way to each other.
fn between() -> (Mesh, String) {
    let mesh = Mesh::new("fence", 3, AODV);
    let device = mesh.join(0, 1);
    mesh.nodes[0].join(&mesh.nodes[2], "wire0", "192.168.77.1/24", "192.168.77.2/24");
    mesh.nodes[0].ip(&["route", "add", &format!("{SERVED}/32"), "dev", "wire0"]);
    mesh.nodes[2].ip(&["addr", "add", &format!("{SERVED}/32"), "dev", "lo"]);
    for switch in ["all/rp_filter", "wire0/rp_filter"] {
        mesh.nodes[2].sysctl(&format!("ipv4/conf/{switch}"), "0");
    }
    mesh.nodes[1].ip(&["addr", "add", &format!("{}/32", address(1)), "dev", &device]);
    for host in [ON_THE_WIRE, SERVED] {
        let via = address(0).to_string();
        mesh.nodes[1].ip(&["route", "add", &host.to_string(), "via", &via, "dev", &device, "onlink"]);
    }
    (mesh, device)
}

fn tables(mesh: &Mesh) -> String {
    let output = mesh.nodes[0].output(&["nft", "list", "tables"]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_host_on_the_wire_hears_nothing_from_the_mesh_but_what_is_for_a_served_address() {
    let test = "a_host_on_the_wire_hears_nothing_from_the_mesh_but_what_is_for_a_served_address";
    if !can_run(test, &["ip", "nft"]) {
        return;
    }
    let (mut mesh, device) = between();
    mesh.start_with(0, std::slice::from_ref(&device), &format!("serves: [{SERVED}]\n"));
    assert!(tables(&mesh).contains("table ip hopwise_mesh_hopwise0"), "{}", tables(&mesh));
    let stranger = mesh.nodes[1].run(|| UdpSocket::bind(("0.0.0.0", 0)).expect("a free port"));
    let host = mesh.nodes[2].run(|| UdpSocket::bind(("0.0.0.0", PORT)).expect("a free port"));
    host.set_read_timeout(Some(Duration::from_millis(50))).expect("it has a time");
    let mut heard = Vec::new();
    within_patience(until(|| {
        // They take one way, one after the other.
        let _ = stranger.send_to(b"for the wire", (ON_THE_WIRE, PORT));
        let _ = stranger.send_to(b"for one that is served", (SERVED, PORT));
        let mut packet = [0; 100];
        while let Ok(bytes) = host.recv(&mut packet) {
            heard.push(String::from_utf8_lossy(&packet[..bytes]).into_owned());
        }
        heard.iter().any(|said| said == "for one that is served")
    }));
    assert!(heard.iter().all(|said| said == "for one that is served"), "{heard:?}");

    for signal in [Signal::KILL, Signal::TERM] {
        mesh.end(0, signal);
        within_patience(until(|| !tables(&mesh).contains("hopwise_mesh")));
        let _ = std::fs::remove_file(mesh.folder.join("log0"));
        mesh.start_with(0, std::slice::from_ref(&device), &format!("serves: [{SERVED}]\n"));
        assert!(tables(&mesh).contains("table ip hopwise_mesh_hopwise0"), "{}", tables(&mesh));
    }
}
