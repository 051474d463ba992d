//! Rules of a router's own firewall that do not hold for what passes the proxy: it names them, and so does the doctor.

use std::net::{SocketAddr, TcpListener, TcpStream};

use super::mishaps::nft;
use super::{By, Network, ways};
use crate::field::HOPWISE;
use crate::world::PATIENCE;

/// The router's rules: no TCP of mobiles to port 7000 of the wire, and port 80 goes to the router's own 8080.
fn rules(radio: &str) -> String {
    format!(
        "table inet wall {{ chain passing {{ type filter hook forward priority 0; \
         iifname {radio} oifname \"wire\" tcp dport 7000 reject with tcp reset; }}; \
         chain turned {{ type nat hook prerouting priority -100; \
         iifname {radio} tcp dport 80 redirect to :8080; }}; }}"
    )
}

const PASSING: &str =
    "inet wall passing: iifname \"radio\" oifname \"wire\" tcp dport 7000 reject with tcp reset";
const TURNED: &str = "inet wall turned: iifname \"radio\" tcp dport 80 redirect to :8080";

/// The log without its marks for quotation.
fn log(network: &Network) -> String {
    network.log().replace('\\', "")
}

#[test]
fn rules_that_do_not_hold_for_what_passes_the_proxy_are_named_with_what_to_add() {
    needs!["nft", "ethtool"];
    let network = Network::new("proxy-walls");
    let _walled = network.fixed.run(|| TcpListener::bind(("10.8.0.1", 7000)).expect("a port"));
    let _own = network.router.run(|| TcpListener::bind(("0.0.0.0", 8080)).expect("a port"));
    let reaches = |port: u16| {
        let address = SocketAddr::from(([10, 8, 0, 1], port));
        network.mobile.run(|| TcpStream::connect_timeout(&address, PATIENCE)).is_ok()
    };
    let doctor = || {
        let said = network.router.output(&[HOPWISE, "doctor"]).stdout;
        String::from_utf8_lossy(&said).into_owned()
    };
    nft(&network, &rules("\"radio\""));
    assert!(!reaches(7000) && reaches(80), "both rules hold without a proxy");
    assert!(doctor().contains("ok       firewall"), "{}", doctor());
    let mut running = network.proxy("ack-hold", "none");
    for rule in [PASSING, TURNED] {
        assert!(log(&network).contains(rule), "{rule}: {}", log(&network));
        assert!(log(&network).contains("name hopf wherever it names radio"), "{}", log(&network));
        let said = doctor();
        assert!(said.contains(rule) && said.contains("[firewall-bypassed]"), "{rule}: {said}");
    }
    running.interrupt();
    nft(&network, "delete table inet wall");
    nft(&network, &rules("{ \"radio\", \"hopf\" }"));
    let mut running = network.proxy("ack-hold", "none");
    assert!(!log(&network).contains("this rule"), "{}", log(&network));
    assert!(doctor().contains("ok       firewall"), "{}", doctor());
    assert!(!reaches(7000) && reaches(80), "both rules hold with what was to be added");
    running.interrupt();
}

#[test]
fn rules_that_break_cut_connections_are_named_where_queues_lead_to_the_proxy() {
    if !ways(name_of_test!()).contains(&By::Nfqueue) {
        return;
    }
    let network = Network::by("proxy-cuts", By::Nfqueue);
    let start = |agent: &str| {
        network.proxy(agent, "none").interrupt();
        log(&network)
    };
    assert!(!start("split").contains("this rule"), "{}", log(&network));
    nft(
        &network,
        "table ip nat { chain leaving { type nat hook postrouting priority 100; oifname \"wire\" masquerade; }; }; \
         table inet wall { chain passing { type filter hook forward priority 0; ct state invalid drop; }; }",
    );
    assert!(!start("ack-hold").contains("this rule"), "{}", log(&network));
    let said = start("split");
    for rule in ["ip nat leaving: oifname \"wire\" masquerade", "inet wall passing: ct state invalid drop"] {
        assert!(said.contains(rule) && said.contains("take `by: tun`"), "{rule}: {said}");
    }
}
