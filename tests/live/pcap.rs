//! A link that captures: the packets of a device that libpcap's filter chooses.

use std::fs;
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_host::{Link, LiveCapture, Received};

use crate::field::{Field, HOPWISE, text};
use crate::namespace::Namespace;
use crate::world::{until, within_patience};

#[test]
fn a_live_capture_sees_what_its_filter_wants_and_nothing_else() {
    needs![];
    let (here, there) = (Namespace::new(), Namespace::new());
    here.join(&there, "wire", "10.8.0.1/24", "10.8.0.2/24");
    let mut link = here.run(|| LiveCapture::open("wire", Some("udp port 7777"))).expect("root may capture");
    here.run(|| {
        let socket = UdpSocket::bind("10.8.0.1:0").expect("the address is the kernel's");
        for (port, text) in [(8888, "not wanted"), (7777, "wanted"), (9999, "nor this"), (7777, "again")] {
            socket.send_to(text.as_bytes(), ("10.8.0.2", port)).expect("it leaves");
        }
    });
    let (mut buffer, mut seen) = (vec![0; 65_536], Vec::new());
    within_patience(until(|| {
        while let Received::Packet(arrived) = link.receive(Instant::ZERO, &mut buffer) {
            assert_eq!(arrived.bytes, usize::from(u16::from_be_bytes([buffer[2], buffer[3]])), "IP alone");
            seen.push(String::from_utf8_lossy(&buffer[28..arrived.bytes]).into_owned());
        }
        seen.len() >= 2
    }));
    assert_eq!(seen, ["wanted", "again"]);
    let refused = here.run(|| LiveCapture::open("wire", Some("no such language"))).expect_err("no filter");
    assert!(refused.to_string().contains("take the filter"), "{refused}");
    assert!(LiveCapture::open("no-such-device", None).is_err());
}

/// The namespace's device leaves checksums to no hardware: its kernel's packets have none when they are captured.
#[test]
fn what_is_captured_before_it_has_a_checksum_is_dropped_unless_the_file_trusts_it() {
    needs!["ethtool"];
    for (checksums, dropped) in [("verify", true), ("trust", false)] {
        let field = Field::new(&format!("sums-{checksums}"));
        let path = field.path("node.yaml");
        let link = format!("{{ kind: pcap, name: wire0, filter: tcp port 81, checksums: {checksums} }}");
        let control = field.path("control.sock");
        let text_of_file =
            format!("node: {{ name: n2, address: 10.9.0.7/24 }}\nlinks: [{link}]\ncontrol: {control}\n");
        fs::write(&path, text_of_file).expect("the folder can be written");
        let _daemon = field.spawn(&path);
        let told = text(&field.node.output(&[HOPWISE, "doctor", "--config", &path]).stdout);
        assert_eq!(told.contains("fix: checksums: trust for wire0"), dropped, "{told}");
        let neighbour = ["neigh", "add", "10.9.0.7", "lladdr", "02:00:00:00:00:07", "dev", "wire0"];
        field.node.ip(&neighbour);
        let address = "10.9.0.7:81".parse().expect("an address");
        let asked = field.node.run(|| TcpStream::connect_timeout(&address, Duration::from_millis(100)));
        assert!(asked.is_err(), "a link that only listens does not answer");
        let links = || field.status()["links"][0]["received_packets"].as_u64();
        within_patience(until(|| links().is_some_and(|packets| packets > 0)));
        let drops = &field.status()["drops"];
        assert_eq!(drops["tcp-checksum"].as_u64().is_some(), dropped, "{drops}");
    }
}
