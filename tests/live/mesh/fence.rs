//! Packets from the mesh stay there: the daemon's machine leads them to none of its other devices.

use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::{AODV, HOPWISE, Mesh, PORT, Signal, address, until, within_patience};

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
    needs!["ip", "nft"];
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
        let _ = fs::remove_file(mesh.folder.join("log0"));
        mesh.start_with(0, std::slice::from_ref(&device), &format!("serves: [{SERVED}]\n"));
        assert!(tables(&mesh).contains("table ip hopwise_mesh_hopwise0"), "{}", tables(&mesh));
    }
}

/// Starts a daemon that finds this script when it looks for nft.
fn with_nft(mesh: &Mesh, node: usize, device: &str, script: &str) -> Child {
    let folder = mesh.folder.join(format!("nft{node}"));
    fs::create_dir(&folder).expect("the folder can be written");
    let nft = folder.join("nft");
    let script = format!("#!/bin/sh\ncd '{}'\n{script}\n", folder.display());
    fs::write(&nft, script).expect("the folder can be written");
    // The daemon and what it starts belong to another user.
    for path in [&nft, &folder] {
        fs::set_permissions(path, Permissions::from_mode(0o777)).expect("our own file");
    }
    let config = mesh.folder.join(format!("route{node}.yaml"));
    let (address, state) = (address(node), mesh.folder.join(format!("state{node}")));
    let text = format!(
        "address: {address}\nnetwork: 10.77.0.0/24\ninterfaces: [{device}]\nstate: {}\nrouting: {AODV}\n",
        state.display()
    );
    fs::write(&config, text).expect("the folder can be written");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = mesh.nodes[node].command(&[HOPWISE, "route", &config.to_string_lossy()]);
    command.env("PATH", path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("ip netns exec runs")
}

#[test]
fn a_daemon_whose_nft_does_not_answer_ends_and_leaves_nothing_behind() {
    let test = "a_daemon_whose_nft_does_not_answer_ends_and_leaves_nothing_behind";
    needs!["ip"];
    let mesh = Mesh::new(test, 3, AODV);
    let hangs = "sleep 10000 & echo $$ $! >> processes; wait";
    let owner_hangs = format!("test \"$1\" != -i || {{ {hangs}; }}");
    let devices = [mesh.join(0, 1), mesh.join(1, 2)];
    let forwards = |node: usize| {
        let switch = format!("/proc/sys/net/ipv4/conf/{}/forwarding", devices[node / 2]);
        mesh.nodes[node].output(&["cat", &switch]).stdout
    };
    let before = [forwards(0), forwards(2)];
    let daemons =
        [(0, with_nft(&mesh, 0, &devices[0], hangs)), (2, with_nft(&mesh, 2, &devices[1], &owner_hangs))];
    for (node, daemon) in daemons {
        let ended = daemon.wait_with_output().expect("it ran");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{said}");
        let wanted = ["keep what comes in from the mesh there", "gave no answer within 30 s, and was ended"];
        assert!(wanted.iter().all(|wanted| said.contains(wanted)), "{said}");
        let processes = fs::read_to_string(mesh.folder.join(format!("nft{node}/processes")));
        let processes = processes.expect("it was asked");
        for id in processes.split_whitespace() {
            // One that nobody has waited for yet has no words.
            let words = || fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            within_patience(until(|| words().is_empty()));
        }
        let links = mesh.nodes[node].output(&["ip", "-o", "link"]);
        assert!(!String::from_utf8_lossy(&links.stdout).contains("hopwise0"));
        assert_eq!(forwards(node), before[node / 2]);
    }
}
