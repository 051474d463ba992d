//! Other programs change the machine under a daemon: routes, MTUs, devices.

use super::*;

/// Returns whether one of many datagrams of that length arrives.
fn arrives(mesh: &Mesh, bytes: usize) -> bool {
    let to = mesh.nodes[1].run(|| UdpSocket::bind((address(1), PORT)).expect("a free port"));
    to.set_nonblocking(true).expect("a socket");
    let from = mesh.nodes[0].run(|| UdpSocket::bind((address(0), 0)).expect("a free port"));
    let payload = vec![7; bytes];
    within_patience(until(|| {
        let _ = from.send_to(&payload, (address(1), PORT));
        matches!(to.recv(&mut vec![0; 2_000]), Ok(received) if received == bytes)
    }));
    true
}

/// The first daemon of two, which has found the other one.
fn pair(test: &str, routing: &'static str) -> (Mesh, String) {
    let mut mesh = Mesh::new(test, 2, routing);
    let device = mesh.join(0, 1);
    (0..2).for_each(|node| mesh.start(node, std::slice::from_ref(&device)));
    mesh.wait_for_way(0, 1, 0, "10.77.0.2");
    (mesh, device)
}

#[test]
fn a_packet_that_is_too_large_breaks_no_link() {
    needs!["ip"];
    for routing in [AODV, DYMO] {
        let mut mesh = Mesh::new("large", 2, routing);
        let device = mesh.join(0, 1);
        for node in 0..2 {
            mesh.nodes[node].ip(&["link", "set", &device, "mtu", "1400"]);
            mesh.start(node, std::slice::from_ref(&device));
        }
        let shown = mesh.nodes[0].output(&["ip", "link", "show", "hopwise0"]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("mtu 1400"), "{shown}");
        assert!(arrives(&mesh, 1_472), "the kernel cuts it in pieces that the device carries");
        // The TUN device still takes what the device does not carry any more.
        mesh.nodes[0].ip(&["link", "set", &device, "mtu", "1300"]);
        let from = mesh.nodes[0].run(|| UdpSocket::bind((address(0), 0)).expect("a free port"));
        within_patience(until(|| {
            mesh.nodes[0].output(&["ip", "route", "flush", "proto", "87"]);
            let _ = from.send_to(&[7; 1_372], (address(1), PORT));
            mesh.log(0).contains("too-big") || mesh.log(0).contains("link gone")
        }));
        assert!(!mesh.log(0).contains("link gone"), "{}", mesh.log(0));
        assert!(arrives(&mesh, 100));
    }
}

#[test]
fn a_packet_that_the_own_firewall_drops_breaks_no_link() {
    needs!["ip", "nft"];
    let (mesh, device) = pair("firewall", AODV);
    let rules = format!(
        "add table ip t; add chain ip t o {{ type filter hook output priority 0; }}; \
         add rule ip t o oifname {device} udp dport {PORT} drop"
    );
    let done = mesh.nodes[0].output(&["nft", &rules]);
    assert!(done.status.success(), "{done:?}");
    let from = mesh.nodes[0].run(|| UdpSocket::bind((address(0), 0)).expect("a free port"));
    within_patience(until(|| {
        mesh.nodes[0].output(&["ip", "route", "flush", "proto", "87"]);
        let _ = from.send_to(&[7; 100], (address(1), PORT));
        mesh.log(0).contains("undelivered") || mesh.log(0).contains("link gone")
    }));
    assert!(!mesh.log(0).contains("link gone"), "{}", mesh.log(0));
}

#[test]
fn a_route_that_the_kernel_has_lost_is_set_again() {
    needs!["ip"];
    for routing in [AODV, DYMO] {
        let (mesh, device) = pair("lost-route", routing);
        let ways: [&[&[&str]]; 2] = [
            &[&["route", "flush", "proto", "87"]],
            &[&["link", "set", &device, "down"], &["link", "set", &device, "up"]],
        ];
        for way in ways {
            way.iter().for_each(|arguments| mesh.nodes[0].ip(arguments));
            // While packets go on, the protocol takes the route for one that is used and keeps it.
            mesh.wait_for_way(0, 1, 0, "10.77.0.2");
            assert!(arrives(&mesh, 100));
        }
    }
}

#[test]
fn routes_of_another_daemon_stay() {
    needs!["ip"];
    let mut mesh = Mesh::new("others", 2, AODV);
    let device = mesh.join(0, 1);
    let node = &mesh.nodes[0];
    node.ip(&["addr", "add", "10.99.0.1/32", "dev", "lo"]);
    node.ip(&["route", "add", "10.99.0.9/32", "dev", &device, "proto", "87", "src", "10.99.0.1"]);
    mesh.start(0, std::slice::from_ref(&device));
    assert!(mesh.routes(0).contains("10.99.0.9"), "at the start");
    mesh.end(0, Signal::TERM);
    assert!(mesh.routes(0).contains("10.99.0.9"), "at the end");
}

#[test]
fn routes_of_a_killed_daemon_are_found_and_removed_by_doctor_and_those_of_a_running_one_stay() {
    needs!["ip"];
    let mut mesh = Mesh::new("left", 2, AODV);
    let device = mesh.join(0, 1);
    // Otherwise the kernel would remove the routes with the address of the TUN device.
    mesh.nodes[0].ip(&["addr", "add", "10.77.0.1/32", "dev", &device]);
    mesh.start(0, std::slice::from_ref(&device));
    mesh.nodes[0].ip(&["route", "add", "10.77.0.9/32", "dev", &device, "proto", "87", "src", "10.77.0.1"]);
    let folder = mesh.folder.to_string_lossy().into_owned();
    let doctor = |mesh: &Mesh, more: &[&str]| {
        let output = mesh.nodes[0].output(&[&[HOPWISE, "doctor", "--state", &folder], more].concat());
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let said = doctor(&mesh, &["--repair"]);
    assert!(said.contains("no killed daemon left any route to a host"), "{said}");
    assert!(mesh.routes(0).contains("10.77.0.9"), "its daemon runs");
    mesh.end(0, Signal::KILL);
    assert!(mesh.routes(0).contains("10.77.0.9"), "nothing removes it");
    let said = doctor(&mesh, &[]);
    assert!(
        said.contains("a killed `hopwise route` left 1 route to a host") && said.contains("[routes-left]"),
        "{said}"
    );
    let said = doctor(&mesh, &["--repair"]);
    assert!(said.contains("1 route to a host removed"), "{said}");
    assert_eq!(mesh.routes(0), "");
}

/// Until the daemon has ended by itself; answers its log.
fn ended(mesh: &mut Mesh) -> String {
    let daemon = mesh.daemons[0].as_mut().expect("it runs");
    let mut status = None;
    within_patience(until(|| {
        status = daemon.try_wait().expect("a child");
        status.is_some()
    }));
    assert!(status.is_some_and(|status| !status.success()), "{status:?}");
    mesh.log(0)
}

#[test]
fn a_tun_device_without_its_network_ends_the_daemon() {
    needs!["ip"];
    for lose in [&["link", "set", "hopwise0", "down"][..], &["route", "del", "10.77.0.0/24"]] {
        let mut mesh = Mesh::new("tun-down", 2, AODV);
        let device = mesh.join(0, 1);
        mesh.start(0, std::slice::from_ref(&device));
        mesh.nodes[0].ip(lose);
        let log = ended(&mut mesh);
        assert!(log.contains("the route to 10.77.0.0/24 over the device `hopwise0` is gone"), "{log}");
    }
}

#[test]
fn switches_of_a_device_with_a_new_name_are_put_back() {
    needs!["ip", "sysctl"];
    let mut mesh = Mesh::new("renamed", 2, AODV);
    let device = mesh.join(0, 1);
    let values = |mesh: &Mesh, device: &str| {
        ["forwarding", "rp_filter", "send_redirects", "accept_redirects"].map(|switch| {
            let key = format!("net.ipv4.conf.{device}.{switch}");
            String::from_utf8_lossy(&mesh.nodes[0].output(&["sysctl", "-n", &key]).stdout).into_owned()
        })
    };
    let before = values(&mesh, &device);
    mesh.start(0, std::slice::from_ref(&device));
    assert_ne!(values(&mesh, &device), before);
    mesh.nodes[0].ip(&["link", "set", &device, "down"]);
    mesh.nodes[0].ip(&["link", "set", &device, "name", "renamed0"]);
    let log = ended(&mut mesh);
    assert!(log.contains(&format!("the device `{device}` was removed or made anew")), "{log}");
    assert_eq!(values(&mesh, "renamed0"), before);
}
