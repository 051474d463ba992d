use std::fs;

use miette::Diagnostic;

use super::*;

mod on_trial;
mod transparent;

const LEAST: &str = "node: { name: a, address: 10.7.0.2/24 }\nlinks: [{ kind: tun, name: hw0 }]\n";

fn parsed(text: &str) -> Checked<NodeConfig> {
    Document::parse("node.yaml", text).and_then(|document| read_for_here(&document))
}

fn refused(text: &str) -> String {
    let refusal = parsed(text).expect_err("it is refused");
    let help = refusal.help().map_or(String::new(), |help| help.to_string());
    format!("{refusal} | {help}")
}

#[test]
fn two_keys_are_enough() {
    let config = parsed(LEAST).expect("the least configuration");
    assert_eq!(config.addresses_of(0), ["10.7.0.2/24".parse().expect("a prefix")]);
    assert!(config.socks5.is_none() && config.metrics.is_none());
}

#[test]
fn every_node_file_in_configs_is_accepted() {
    let mut seen = 0;
    for entry in
        fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs")).expect("the folder is there")
    {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).unwrap_or_default();
        if path.extension().is_some_and(|end| end == "yaml") && text.contains("\nnode:") {
            load(&path).expect("the file is accepted");
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[test]
fn the_commented_example_says_what_it_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/node.yaml");
    let config = load(Path::new(path)).expect("the example is accepted");
    assert_eq!(config.forwards.len(), 2);
    assert_eq!(config.forwards[0].to, Side::Mesh(HostPort { host: "gateway".into(), port: 80 }));
    assert_eq!(config.forwards[1].listen, Side::Mesh(HostPort { host: String::new(), port: 8022 }));
    let rules = config.core_rules();
    assert_eq!(rules[1].senders.as_deref(), Some("[newreno, limit:40]"));
    assert_eq!(rules[0].matches.direction, Some(hopwise_core::endpoint::Direction::Incoming));
    assert_eq!(config.endpoint(Vec::new(), [1; 32]).routes.len(), 2);
}

#[test]
fn what_is_wrong_is_refused_at_its_place_with_what_is_accepted() {
    for (more, wanted) in [
        ("socks: {}", "3:1: unknown field `socks` | did you mean `socks5`? expected one of `node`, `links`"),
        ("socks5: { listen: 1080 }", "3:19: `1080` does not fit here | expected an address with a port"),
        (
            "socks5: { listen: 'localhost:1080' }",
            "3:19: this is no address with a port | expected an address with a port up to 65535, such as 127.0.0.1",
        ),
        (
            "socks5: { listen: 127.0.0.1:1080, reads_within: 99ms }",
            "3:49: reads_within: 99ms is out of range | 100ms or more",
        ),
        (
            "socks5: { listen: 127.0.0.1:1080, handshake_within: 0s }",
            "3:53: handshake_within: 0s is out of range | 100ms or more",
        ),
        (
            "socks5: { listen: 127.0.0.1:1080, connections: 0 }",
            "3:48: connections: 0 is out of range | 1 to 65536",
        ),
        (
            "forwards: [{ listen: 127.0.0.1:80, to: mesh:n:80, connections: 70000 }]",
            "3:64: connections: 70000 is out of range | 1 to 65536",
        ),
        (
            "forwards: [{ listen: mesh:80, to: 127.0.0.1:80, reads_within: 1ms }]",
            "3:63: reads_within: 1ms is out of range | 100ms or more",
        ),
        ("stop_within: 5", "3:14: `5` has no unit | expected a time with its unit"),
        ("links: []", "3:1: `links` is there already"),
        ("routes: [{ to: 0.0.0.0/0, link: hw1 }]", "3:33: no link is named `hw1` | expected `hw0`"),
        ("routes: [{ to: 0.0.0.0/0, link: hw0, via: 10.7.0.1 }]", "3:38: `hw0` has no neighbours"),
        ("routes: [{ to: 0.0.0.0, link: hw0 }]", "3:16: `0.0.0.0`: "),
        ("rules: [{ receiver: delaid }]", "3:21: "),
        ("rules: [{ sender: [newreno, hold: 3] }]", "wrong specs"),
        ("rules: [{ sender: [limit:3] }]", "3:20: "),
        ("rules: [{ match: { port: 70000 } }]", "3:26: `70000` does not fit here"),
        ("rules: [{ match: { direction: up } }]", "3:31: `up` does not fit here | expected `out` or `in`"),
        ("forwards: [{ listen: 127.0.0.1:80, to: 127.0.0.1:81 }]", "3:12: both ends are on the same side"),
        (
            "forwards: [{ listen: mesh:10.9.0.1:80, to: 127.0.0.1:81 }]",
            "3:22: 10.9.0.1 is no address of this",
        ),
        ("forwards: [{ listen: 80, to: mesh:n:80 }]", "3:22: `80` does not fit here"),
        ("forwards: [{ listen: a.b, to: mesh:n:80 }]", "3:22: `a.b` | expected 127.0.0.1:8080"),
        ("capture: { file: \"-\" }", "3:18: no file of that name | a file, such as n2.pcapng"),
        ("capture: { file: a.pcapng, links: [hw2] }", "3:36: no link is named `hw2`"),
        (
            "metrics: { names: [\"n2:9184\"] }",
            "3:20: `n2:9184` is no name of a host | a name without a port, such as n2.example",
        ),
        ("capture: { file: a.pcapng, rotate: 1KiB }", "3:36: rotate: 1KiB is out of range | 64KiB or more"),
        ("capture: { file: a.pcapng, rotate: 1MiB, files: 0 }", "3:49: files: 0 is out of range | 1 or more"),
        ("tcp: { profile: reno }", "3:17: `reno` does not fit here | expected `modern` or `ns2`"),
        ("tcp: { recv_buffer: 1KiB }", "3:21: recv_buffer: 1KiB is out of range"),
        (
            "user: no-such-user",
            "3:7: there is no user `no-such-user` on this machine | a user's name, such as",
        ),
        ("control: 5", "3:10: `5` does not fit here | expected a path, such as /run/hopwise/n2.sock"),
    ] {
        let text = refused(&format!("{LEAST}{more}\n"));
        assert!(text.contains(wanted), "{more}: {text}");
    }
}

#[test]
fn passwords_in_a_file_that_each_user_may_read_are_warned_of() {
    let path = std::env::temp_dir().join(format!("hopwise-passwords-{}.yaml", std::process::id()));
    let warning = |users: &str, mode| {
        let text = format!("{LEAST}socks5: {{ listen: 127.0.0.1:1080{users} }}\n");
        fs::write(&path, text).expect("the temporary folder can be written");
        let mode = PermissionsExt::from_mode(mode);
        fs::set_permissions(&path, mode).expect("it is ours");
        shown_passwords(&path, &load(&path).expect("it is accepted"))
    };
    let users = ", users: { ada: secret }";
    let said = warning(users, 0o644).expect("others may read it");
    assert!(said.contains("chmod o-r") && !said.contains("secret"), "{said}");
    assert_eq!((warning(users, 0o640), warning("", 0o644)), (None, None));
    fs::remove_file(path).expect("it is ours");
}

#[test]
fn whoever_listens_has_an_address_of_its_own() {
    let out = |listen: &str| format!("{{ listen: \"{listen}\", to: mesh:n:80 }}");
    for (first, second) in [
        ("127.0.0.1:1080", "127.0.0.1:1080"),
        ("0.0.0.0:1080", "127.0.0.1:1080"),
        ("127.0.0.1:1080", "0.0.0.0:1080"),
        ("[::]:1080", "127.0.0.1:1080"),
        ("[::ffff:127.0.0.1]:1080", "127.0.0.1:1080"),
        ("[::1]:1080", "[::]:1080"),
    ] {
        let text =
            refused(&format!("{LEAST}forwards: [{}]\nsocks5: {{ listen: \"{second}\" }}\n", out(first)));
        let wanted =
            "4:19: `forwards.0.listen` has port 1080 there already | an address and a port of its own";
        assert!(text.contains(wanted), "{first} {second}: {text}");
    }
    for (more, wanted) in [
        ("metrics: {}\nsocks5: { listen: 127.0.0.1:9184 }", "3:10: `socks5.listen` has port 9184"),
        (
            "metrics: { listen: 127.0.0.1:80 }\nsocks5: { listen: 127.0.0.1:80 }",
            "3:20: `socks5.listen` has port 80",
        ),
        (
            "forwards: [{ listen: mesh:80, to: 127.0.0.1:1 }, { listen: mesh:80, to: 127.0.0.1:2 }]",
            "3:60: `forwards.0.listen` has port 80 there already",
        ),
    ] {
        let text = refused(&format!("{LEAST}{more}\n"));
        assert!(text.contains(wanted), "{more}: {text}");
    }
    for more in [
        "metrics: { listen: 127.0.0.1:80 }\nsocks5: { listen: 127.0.0.2:80 }",
        "metrics: { listen: 0.0.0.0:80 }\nsocks5: { listen: \"[::1]:80\" }",
        "metrics: { listen: 127.0.0.1:0 }\nsocks5: { listen: 127.0.0.1:0 }",
        "socks5: { listen: 127.0.0.1:80 }\nforwards: [{ listen: mesh:80, to: 127.0.0.1:1 }]",
        "forwards: [{ listen: mesh:80, to: 127.0.0.1:1 }, { listen: mesh:10.7.0.2:80, to: 127.0.0.1:2 }]",
    ] {
        assert!(parsed(&format!("{LEAST}{more}\n")).is_ok(), "{more}");
    }
}

#[test]
fn links_are_checked_with_their_addresses() {
    let with =
        |links: &str| refused(&format!("node: {{ name: a, address: 10.7.0.2/24 }}\nlinks:\n{links}\n"));
    for (links, wanted) in [
        (
            "  - { kind: tun, name: hw0, kernel: 10.7.0.2/24 }",
            "3:37: 10.7.0.2 stands at `node.address` already",
        ),
        ("  - { kind: raw, name: eth0, kernel: 10.7.0.1/24 }", "3:30: `kernel` is the kernel's address"),
        ("  - { kind: tun, name: hw0 }\n  - { kind: raw, name: hw0 }", "4:24: the name `hw0` is links.0's"),
        ("  - { kind: raw, name: eth0, mtu: 1400 }", "3:30: an interface brings its own MTU"),
        (
            "  - { kind: wifi, name: a }",
            "`wifi` does not fit here | expected one of `tun`, `tun-fast`, `raw`",
        ),
        ("  - { kind: tap, name: a }", "`tap` does not fit here | did you mean `tun`? expected one of"),
        ("  - { kind: tun, name: hw0, queues: 2 }", "3:29: only a TUN with offload has several queues"),
        ("  - { kind: tun-fast, name: hw0, queues: 0 }", "3:42: queues: 0 is out of range | 1 to 256 queues"),
        ("  - { kind: tun-fast, name: hw0, queues: 257 }", "3:42: queues: 257 is out of range"),
        (
            "  - { kind: tun-fast, name: hw0, queues: 2 }\n  - { kind: tun, name: hw1 }",
            "3:34: only the first queue could use the other links",
        ),
        ("  - { kind: tun, name: hw0, filter: tcp }", "3:29: only a live capture takes a filter"),
        ("  - { kind: raw, name: eth0, file: a.pcap }", "3:30: only a replay has a file"),
        ("  - { kind: raw, name: eth0, pace: at-once }", "3:30: only a replay has a pace"),
        (
            "  - { kind: tun, name: much-too-long-a-name }",
            "3:24: `much-too-long-a-name` is no name of an interface",
        ),
        ("  - { kind: tun, name: -all }", "3:24: `-all` is no name of an interface"),
        ("  - { kind: tun, name: hw0, mtu: 500 }", "3:34: mtu: 500 is out of range | 576 to 65535 bytes"),
        (
            "  - { kind: tun, name: hw0, kernel: 10.7.0.255/24 }",
            "3:37: 10.7.0.255 is not the address of a host",
        ),
        (
            "  - { kind: tun, name: hw0, fault: { drop: 5 } }",
            "3:44: `5` has no unit | expected a share from 0% to 100%",
        ),
    ] {
        let text = with(links);
        assert!(text.contains(wanted), "{links}: {text}");
    }
}

#[test]
fn an_address_in_a_list_is_refused_by_itself() {
    for (key, list, wanted) in [
        (
            "address",
            "[10.7.0.3/24, 10.7.0.3/24]  # twice",
            "5:28: 10.7.0.3 stands at `links.0.address.0` already",
        ),
        ("kernel", "[10.7.0.3/24, 10.7.0.2/24]", "5:27: 10.7.0.2 stands at `node.address` already"),
        ("kernel", "[10.7.0.3/24, 10.7.0.255/24]", "5:27: 10.7.0.255 is not the address of a host"),
        ("kernel", "[10.7.0.3/24, 10.7.0.4]", "5:27: `10.7.0.4`: "),
        ("kernel", "[10.7.0.3/24, 7]", "5:27: `7` does not fit here"),
        (
            "kernel",
            "7",
            "5:13: `7` does not fit here | expected an address with its subnet, such as 10.7.0.2/24, or a",
        ),
    ] {
        let link = format!("  - kind: tun\n    name: hw0\n    {key}: {list}\n");
        let text = refused(&format!("node: {{ name: a, address: 10.7.0.2/24 }}\nlinks:\n{link}"));
        assert!(text.contains(wanted), "{list}: {text}");
    }
}

/// Capture links need libpcap.
#[test]
fn captures_are_links_where_the_build_has_them() {
    let config = |links: &str| format!("node: {{ name: a, address: 10.7.0.2/24 }}\nlinks:\n  - {links}\n");
    let live = config("{ kind: pcap, name: wlan0, filter: tcp port 80 }");
    let played = config("{ kind: replay, name: old, file: run.pcap, pace: at-once }");
    if !cfg!(feature = "pcap") {
        assert!(refused(&live).contains("3:13: this build is without libpcap"), "{}", refused(&live));
        return;
    }
    assert_eq!(parsed(&live).expect("accepted").links[0].filter.as_deref(), Some("tcp port 80"));
    assert_eq!(parsed(&played).expect("accepted").links[0].pace, Some(PaceName::AtOnce));
    for (links, wanted) in [
        ("{ kind: replay, name: old }", "3:5: a replay needs a file"),
        ("{ kind: pcap, name: wlan0, file: run.pcap }", "3:32: only a replay has a file"),
        ("{ kind: pcap, name: wlan0, offload: true }", "3:32: this link sends nothing"),
        ("{ kind: tun, name: hw0, checksums: trust }", "3:29: only captures may lack checksums"),
        ("{ kind: pcap, name: wlan0, filter: tcp prot 80 }", "3:40: `tcp prot 80`: "),
        ("{ kind: pcap, name: wlan0, filter: tcp prot 80 }", "syntax error"),
        (
            "{ kind: pcap, name: wlan0, filter: tcp prot 80 }",
            " | a filter in libpcap's language (man pcap-filter), such",
        ),
    ] {
        let text = refused(&config(links));
        assert!(text.contains(wanted), "{links}: {text}");
    }
}

#[test]
fn a_node_on_two_links_has_its_subnet_on_the_first() {
    let text = "node: { name: a, address: 10.7.0.2/24 }\nlinks: [{ kind: tun, name: a0 }, { kind: raw, name: b0 }]\n";
    let config = parsed(text).expect("it is accepted");
    assert_eq!(config.addresses_of(0)[0].to_string(), "10.7.0.2/24");
    assert_eq!(config.addresses_of(1)[0].to_string(), "10.7.0.2/32");
}

#[test]
fn single_tcp_keys_go_over_the_profile() {
    let config = parsed(&format!("{LEAST}tcp: {{ profile: ns2, nagle: true, recv_buffer: 8KiB }}\n"));
    let tcp = config.expect("it is accepted").tcp.config();
    assert!(tcp.nagle && !tcp.sack);
    assert_eq!((tcp.recv_buffer.initial, tcp.recv_buffer.max), (8192, 8192));
}

#[test]
fn acks_for_what_was_read_in_a_row_are_merged_on_a_tun_unless_the_file_says_otherwise() {
    use hopwise_core::endpoint::LinkConfig;
    use hopwise_core::tcp::AckMerge as Merge;
    // As a TUN and a radio's interface describe themselves.
    let radio = || LinkConfig::wire(0, 1500, Vec::new());
    let tun = || LinkConfig { ack_merge: Merge::Read, ..radio() };
    for (links, more, wanted) in [
        (vec![tun()], "", Merge::Read),
        (vec![tun()], "tcp: { ack_merge: off }", Merge::Off),
        (vec![radio()], "", Merge::Off),
        (vec![radio()], "tcp: { ack_merge: read }", Merge::Read),
        (vec![tun(), tun()], "", Merge::Read),
        (vec![tun(), radio()], "", Merge::Off),
        (vec![tun(), radio()], "tcp: { ack_merge: read }", Merge::Read),
    ] {
        let yaml = format!("{links:?} {more}");
        let config = parsed(&format!("{LEAST}{more}\n")).expect("it is accepted").endpoint(links, [1; 32]);
        assert_eq!(config.ack_merge(), wanted, "{yaml}");
    }
}

/// The kernels at both ends of a path between TUN devices are routers, and no hops.
#[test]
fn a_tun_has_two_crossings_unless_the_file_says_otherwise() {
    for (link, wanted) in [
        ("kind: tun, name: hw0", 2),
        ("kind: tun-fast, name: hw0", 2),
        ("kind: tun, name: hw0, crossings: 1", 1),
        ("kind: raw, name: eth0", 0),
        ("kind: raw, name: eth0, crossings: 1", 1),
    ] {
        let text = format!("node: {{ name: a, address: 10.7.0.2/24 }}\nlinks: [{{ {link} }}]\n");
        assert_eq!(parsed(&text).expect("it is accepted").links[0].crossings(), wanted, "{link}");
    }
}

#[test]
fn how_far_peers_are_can_be_said() {
    let hops = |more: &str| parsed(&format!("{LEAST}{more}\n")).expect("it is accepted").tcp.config().hops;
    let known = hops("tcp: { hops: 3, peers_hop_limit: 128 }");
    assert_eq!((known.configured, known.peers_hop_limit), (Some(3), 128));
    assert_eq!(hops("").configured, None);
    let refused = refused(&format!("{LEAST}tcp: {{ hops: 0 }}\n"));
    assert!(refused.contains("hops: 0 is out of range | 1 to 255 hops"), "{refused}");
}

#[test]
fn a_number_that_is_no_port_is_told_to_be_none() {
    for (forward, place) in [
        ("{ listen: mesh:99999, to: 127.0.0.1:80 }", "3:22: `mesh:99999`"),
        ("{ listen: mesh:80, to: 127.0.0.1:0 }", "3:35: `127.0.0.1:0`"),
    ] {
        let text = refused(&format!("{LEAST}forwards: [{forward}]\n"));
        let wanted = format!("{place}: its port is not from 1 to 65535 | expected 127.0.0.1:8080");
        assert!(text.contains(&wanted), "{text}");
    }
}

#[test]
fn hosts_and_ports_are_taken_apart() {
    let host = |text: &str| HostPort::parse(text).map(|found| (found.host, found.port));
    assert_eq!(host("[fd07::2]:80"), Some(("fd07::2".into(), 80)));
    assert_eq!(host("name:80"), Some(("name".into(), 80)));
    for text in ["name", "name:", "name:0", "name:65536", "fd07::2:80", "[x]:80", "a b:80"] {
        assert_eq!(host(text), None, "{text}");
    }
}

#[test]
fn fewer_connections_than_seats_are_warned_of() {
    let warning =
        |more: &str| parsed(&format!("{LEAST}{more}\n")).expect("it is accepted").lacks_connections();
    let seats = "socks5: { listen: '127.0.0.1:1080', connections: 100 }\n\
                 forwards: [{ listen: 'mesh:80', to: '127.0.0.1:80', connections: 30 }]\n";
    assert_eq!([warning(""), warning(&format!("{seats}bounds: {{ connections: 130 }}"))], [None, None]);
    let warning = warning(&format!("{seats}bounds: {{ connections: 129 }}")).expect("there are 130 seats");
    assert!(warning.starts_with("bounds.connections: 129 are fewer than the 130 seats"), "{warning}");
}
