//! A neighbour that lies: its datagrams end no daemon, lead no packet out of the mesh, and are hardly answered.

use std::net::SocketAddrV4;

use hopwise_mesh::aodv::messages::{AodvMessage, Rrep, Rreq};
use hopwise_mesh::aodvv2::messages::{RouteMessage, rrep_ack};
use hopwise_mesh::rfc5444::{ALL_ROUTERS, Packet};
use hopwise_mesh::{aodv, rfc5444};

use super::*;

const LIAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 66);
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(8, 8, 8, 8);

/// A daemon, and a neighbour that writes its datagrams itself.
struct Lied {
    mesh: Mesh,
    liar: UdpSocket,
    port: u16,
}

impl Lied {
    fn new(test: &str, routing: &'static str, port: u16) -> Lied {
        let mut mesh = Mesh::new(test, 2, routing);
        let device = mesh.join(0, 1);
        mesh.nodes[1].ip(&["addr", "add", &format!("{LIAR}/24"), "dev", &device]);
        mesh.start(0, &[device]);
        let liar = mesh.nodes[1].run(|| {
            let socket = UdpSocket::bind((LIAR, port)).expect("its own address");
            socket.set_broadcast(true).expect("a datagram socket");
            socket.set_ttl(255).expect("a TTL");
            socket.set_multicast_ttl_v4(255).expect("a TTL");
            socket.set_read_timeout(Some(PATIENCE)).expect("above zero");
            socket
        });
        Lied { mesh, liar, port }
    }

    fn say(&self, to: Ipv4Addr, message: &[u8]) {
        self.liar.send_to(message, SocketAddrV4::new(to, self.port)).expect("it leaves");
    }

    fn say_packet(&self, to: Ipv4Addr, packet: &Packet) {
        self.say(to, &packet.bytes().expect("short enough"));
    }

    fn say_aodv(&self, to: Ipv4Addr, message: &AodvMessage) {
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        self.say(to, &bytes);
    }

    fn hear(&self) -> Vec<u8> {
        let mut buffer = vec![0; 65_535];
        let bytes = self.liar.recv(&mut buffer).expect("the daemon answers");
        buffer[..bytes].to_vec()
    }

    /// The daemon's packets until it answers a request that is sent now: by then it has dealt with all before.
    fn heard_of_dymo(&self) -> Vec<Packet> {
        let rreq = way(LIAR, address(0)).rreq();
        self.say_packet(address(0), &Packet::of(rreq));
        let mut heard = Vec::new();
        loop {
            let packet = Packet::parse(&self.hear()).expect("a packet of the daemon's");
            let is_reply = packet.messages.iter().any(|message| RouteMessage::of_rrep(message).is_ok());
            heard.push(packet);
            if is_reply {
                return heard;
            }
        }
    }

    fn assert_inside(&self) {
        let routes = self.mesh.nodes[0].output(&["ip", "-4", "route", "show"]);
        let routes = String::from_utf8_lossy(&routes.stdout).into_owned();
        assert!(!routes.contains("8.8.8.8"), "{routes}");
    }
}

fn way(to: Ipv4Addr, other: Ipv4Addr) -> RouteMessage {
    RouteMessage { hop_limit: 20, to, seq: 7, metric: 0, validity: None, other, other_seq: None }
}

/// A request of 65,437 bytes. Its metrics would each grow by two if they were written anew.
fn swollen() -> Vec<u8> {
    let mut tlvs = vec![15, 0x14, 2, 0, 1, 10, 0xd0, 3, 0, 1, 0, 11, 0x50, 0, 2, 0, 5];
    tlvs.extend([10, 0x80, 3].repeat(21_800));
    let mut body = vec![20, 0, 0, 2, 0, 10, 77, 0, 77, 10, 77, 0, 99];
    body.extend((tlvs.len() as u16).to_be_bytes());
    body.extend(tlvs);
    let size = (body.len() as u16 + 4).to_be_bytes();
    [vec![0, 10, 0x43], size.to_vec(), body].concat()
}

#[test]
fn a_request_as_long_as_a_datagram_ends_no_daemon_and_is_refused() {
    let test = "a_request_as_long_as_a_datagram_ends_no_daemon_and_is_refused";
    needs!["ip"];
    let lied = Lied::new(test, DYMO, rfc5444::PORT);
    lied.say(address(0), &swollen());
    lied.say(ALL_ROUTERS, &swollen());
    assert_eq!(lied.heard_of_dymo().len(), 1, "only the question is answered");
    within_patience(until(|| lied.mesh.log(0).contains("reason=\"routing-refused\"")));
}

#[test]
fn nothing_leads_dymos_packets_out_of_the_network() {
    let test = "nothing_leads_dymos_packets_out_of_the_network";
    needs!["ip"];
    let lied = Lied::new(test, DYMO, rfc5444::PORT);
    for to in [address(0), ALL_ROUTERS] {
        lied.say_packet(to, &Packet::of(rrep_ack(false)));
        lied.say_packet(to, &Packet::of(way(OUTSIDE, address(9)).rreq()));
        lied.say_packet(to, &Packet::of(way(OUTSIDE, address(0)).rrep()));
        lied.say_packet(to, &Packet::of(way(address(9), address(0)).rrep()));
    }
    lied.heard_of_dymo();
    lied.assert_inside();
    assert_eq!(lied.mesh.routes(0), "", "nothing was asked, and nobody is known to hear the daemon");
    within_patience(until(|| lied.mesh.log(0).contains("reason=\"routing-refused\"")));
}

#[test]
fn a_packet_full_of_questions_gets_one_answer() {
    let test = "a_packet_full_of_questions_gets_one_answer";
    needs!["ip"];
    let lied = Lied::new(test, DYMO, rfc5444::PORT);
    for questions in [150, 8_180] {
        let messages = std::iter::repeat_n(rrep_ack(true), questions).collect();
        lied.say_packet(address(0), &Packet { messages, ..Packet::default() });
    }
    let heard = lied.heard_of_dymo();
    assert_eq!(heard.len(), 2, "an acknowledgement and the reply: {heard:?}");
}

fn request(id: u32, origin: Ipv4Addr, dst: Ipv4Addr) -> Rreq {
    Rreq {
        is_join: false,
        is_repair: false,
        is_gratuitous: false,
        is_destination_only: false,
        hop_count: 0,
        id,
        dst,
        dst_seq: None,
        origin,
        origin_seq: 7,
    }
}

#[test]
fn nothing_leads_aodvs_packets_out_of_the_network() {
    let test = "nothing_leads_aodvs_packets_out_of_the_network";
    needs!["ip"];
    let lied = Lied::new(test, AODV, aodv::PORT);
    let rrep = |dst| Rrep {
        is_repair: false,
        wants_ack: false,
        prefix_size: 0,
        hop_count: 0,
        dst,
        dst_seq: 7,
        origin: address(0),
        lifetime_ms: 3_600_000,
    };
    for to in [address(0), Ipv4Addr::BROADCAST] {
        lied.say_aodv(to, &AodvMessage::Rrep(rrep(OUTSIDE)));
        lied.say_aodv(to, &AodvMessage::Rrep(rrep(address(9))));
        lied.say_aodv(to, &AodvMessage::Rreq(request(1, OUTSIDE, address(9))));
    }
    // The daemon answers this one: it has dealt with all before.
    lied.say_aodv(Ipv4Addr::BROADCAST, &AodvMessage::Rreq(request(2, LIAR, address(0))));
    let is_answer = |bytes: &[u8]| match AodvMessage::parse(bytes) {
        Ok((AodvMessage::Rrep(rrep), _)) => rrep.origin == LIAR,
        _ => false,
    };
    while !is_answer(&lied.hear()) {}
    lied.assert_inside();
    within_patience(until(|| lied.mesh.routes(0).contains("10.77.0.66")));
    assert!(!lied.mesh.routes(0).contains("10.77.0.10"), "{}", lied.mesh.routes(0));
    within_patience(until(|| lied.mesh.log(0).contains("reason=\"routing-refused\"")));
}

#[test]
fn a_route_of_another_program_to_a_host_stays() {
    let test = "a_route_of_another_program_to_a_host_stays";
    needs!["ip"];
    let lied = Lied::new(test, AODV, aodv::PORT);
    let (node, liar) = (&lied.mesh.nodes[0], LIAR.to_string());
    node.ip(&["route", "add", &liar, "dev", "mesh01"]);
    within_patience(until(|| {
        lied.say_aodv(Ipv4Addr::BROADCAST, &AodvMessage::Rreq(request(1, LIAR, address(9))));
        lied.mesh.log(0).contains("another program has one to that host, which stays")
    }));
    let left = || {
        let shown = node.output(&["ip", "-4", "route", "show", &liar]);
        String::from_utf8_lossy(&shown.stdout).into_owned()
    };
    assert!(left().contains("mesh01") && !left().contains("proto 87"), "{}", left());
    // Once it is gone the daemon's own takes its place.
    node.ip(&["route", "del", &liar]);
    let mut id = 1;
    within_patience(until(|| {
        id += 1;
        lied.say_aodv(Ipv4Addr::BROADCAST, &AodvMessage::Rreq(request(id, LIAR, address(9))));
        left().contains("proto 87")
    }));
}

#[test]
fn a_message_from_a_port_that_any_user_may_have_is_refused() {
    let test = "a_message_from_a_port_that_any_user_may_have_is_refused";
    needs!["ip"];
    let lied = Lied::new(test, AODV, aodv::PORT);
    let user = lied.mesh.nodes[1].run(|| UdpSocket::bind((LIAR, PORT)).expect("its own address"));
    user.set_broadcast(true).expect("a datagram socket");
    let mut bytes = Vec::new();
    AodvMessage::Rreq(request(1, address(9), address(0))).emit(&mut bytes);
    user.send_to(&bytes, (Ipv4Addr::BROADCAST, aodv::PORT)).expect("it leaves");
    within_patience(until(|| lied.mesh.log(0).contains("reason=\"routing-refused\"")));
    assert_eq!(lied.mesh.routes(0), "");
    lied.say(Ipv4Addr::BROADCAST, &bytes);
    within_patience(until(|| lied.mesh.routes(0).contains("10.77.0.10")));
}
