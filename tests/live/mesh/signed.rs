//! Daemons that share a key: they find each other, change the key while they run, and accept no other neighbour.

use std::os::unix::fs::{PermissionsExt, chown};

use hopwise_daemon::privileges::Privileges;
use hopwise_mesh::aodv;
use hopwise_mesh::aodv::messages::{AodvMessage, Rreq};
use hopwise_mesh::aodvv2::messages::rrep_ack;
use hopwise_mesh::rfc5444::{self, Packet};

use super::*;
use crate::namespace::can_run;

const LIAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 66);

/// The message of a neighbour without the key.
fn unsigned_aodv() -> Vec<u8> {
    let rreq = Rreq {
        is_join: false,
        is_repair: false,
        is_gratuitous: false,
        is_destination_only: false,
        hop_count: 0,
        id: 1,
        dst: address(0),
        dst_seq: None,
        origin: LIAR,
        origin_seq: 7,
    };
    let mut bytes = Vec::new();
    AodvMessage::Rreq(rreq).emit(&mut bytes);
    bytes
}

fn unsigned_dymo() -> Vec<u8> {
    Packet::of(rrep_ack(true)).bytes().expect("short enough")
}

struct Signed {
    mesh: Mesh,
    line: String,
}

impl Signed {
    fn keys(&self) -> PathBuf {
        self.mesh.folder.join("keys")
    }

    /// Writes these keys; the first one signs.
    fn write(&self, ids: &[u8]) {
        let text: String =
            ids.iter().map(|id| format!("{id} {}\n", format!("{id:02x}").repeat(32))).collect();
        fs::write(self.keys(), text).expect("the folder can be written");
        fs::set_permissions(self.keys(), fs::Permissions::from_mode(0o600)).expect("our own file");
        let user = Privileges::of_daemons().first().copied();
        chown(self.keys(), user, None).expect("root may");
    }

    fn start(&mut self, node: usize, devices: &[String]) {
        let more = format!("keys: {}\n", self.keys().display());
        self.mesh.start_with(node, devices, &more);
    }

    /// Lets both daemons read the keys anew.
    fn change(&self, ids: &[u8]) {
        let said = |node| self.mesh.log(node).matches("the keys were read anew").count();
        let before = [0, 1].map(said);
        self.write(ids);
        for node in [0, 1] {
            self.mesh.tell(node, Signal::HUP);
            within_patience(until(|| said(node) > before[node]));
        }
    }

    /// The first daemon's note of what it has heard of the second one.
    fn heard(&self) -> Option<String> {
        let state = fs::read_to_string(self.mesh.folder.join("state0")).unwrap_or_default();
        state.lines().find(|line| line.starts_with("heard 10.77.0.2 ")).map(ToOwned::to_owned)
    }

    /// The next start of the first daemon knows all that it has heard of the second one. It cannot be played then.
    fn start_again(&mut self, devices: &[String]) {
        self.mesh.end(1, Signal::KILL);
        self.mesh.end(0, Signal::TERM);
        let before = self.heard();
        assert!(before.is_some());
        self.start(0, devices);
        fs::write(self.mesh.folder.join("state0"), "").expect("the folder can be written");
        within_patience(until(|| self.heard() == before));
    }

    fn transfer(&self) {
        Mesh::transfer(&mut self.mesh.connect(0, 1).expect("a way"), 100_000);
    }
}

fn only_holders_of_the_key_are_heard(test: &str, routing: &'static str, port: u16, unsigned: &[u8]) {
    if !can_run(test, &["ip"]) {
        return;
    }
    let mesh = Mesh::new(test, 3, routing);
    let (line, device) = (mesh.join(0, 1), mesh.join(0, 2));
    mesh.nodes[2].ip(&["addr", "add", &format!("{LIAR}/24"), "dev", &device]);
    let mut signed = Signed { mesh, line: line.clone() };
    signed.write(&[1]);
    let devices = [line.clone(), device];
    signed.start(0, &devices);
    signed.start(1, &[line]);
    signed.mesh.serve(1);
    signed.transfer();
    let liar = signed.mesh.nodes[2].run(|| UdpSocket::bind((LIAR, port)).expect("its own address"));
    liar.set_broadcast(true).expect("a datagram socket");
    liar.set_ttl(255).expect("a TTL");
    for to in [address(0), Ipv4Addr::BROADCAST] {
        liar.send_to(unsigned, (to, port)).expect("it leaves");
    }
    within_patience(until(|| signed.mesh.log(0).contains("reason=\"routing-refused\"")));
    assert!(!signed.mesh.routes(0).contains("10.77.0.66"), "{}", signed.mesh.routes(0));
    for keys in [&[1, 2][..], &[2, 1], &[2]] {
        signed.change(keys);
        signed.transfer();
    }
    // A daemon that starts again counts on above all that it has signed, since lower numbers would be ignored.
    signed.mesh.end(1, Signal::KILL);
    let line = signed.line.clone();
    signed.start(1, &[line]);
    signed.transfer();
    assert!(!signed.mesh.log(0).contains("are not signed"), "{}", signed.mesh.log(0));
    signed.start_again(&devices);
}

#[test]
fn daemons_of_aodv_with_a_key_hear_nobody_else_and_change_it_while_they_run() {
    let test = "daemons_of_aodv_with_a_key_hear_nobody_else_and_change_it_while_they_run";
    only_holders_of_the_key_are_heard(test, AODV, aodv::PORT, &unsigned_aodv());
}

#[test]
fn daemons_of_dymo_with_a_key_hear_nobody_else_and_change_it_while_they_run() {
    let test = "daemons_of_dymo_with_a_key_hear_nobody_else_and_change_it_while_they_run";
    only_holders_of_the_key_are_heard(test, DYMO, rfc5444::PORT, &unsigned_dymo());
}

#[test]
fn a_daemon_without_keys_says_that_its_network_has_to_be_trusted() {
    let test = "a_daemon_without_keys_says_that_its_network_has_to_be_trusted";
    needs!["ip"];
    for routing in [AODV, DYMO] {
        let mut mesh = Mesh::new(test, 2, routing);
        let line = mesh.join(0, 1);
        mesh.start(0, &[line]);
        let said = || mesh.log(0).contains("messages are not signed: this network has to be trusted");
        within_patience(until(said));
    }
}
