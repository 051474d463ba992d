//! A link that listens: what passes a device, as libpcap's filter chooses it.

use std::net::UdpSocket;

use hopwise_core::Instant;
use hopwise_host::{Link, LiveCapture, Received};

use crate::namespace::{Namespace, can_run};
use crate::world::{until, within_patience};

#[test]
fn a_live_capture_sees_what_its_filter_wants_and_nothing_else() {
    if !can_run("a_live_capture_sees_what_its_filter_wants_and_nothing_else", &[]) {
        return;
    }
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
