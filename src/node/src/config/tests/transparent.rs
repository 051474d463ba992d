//! The keys of `transparent`.

use super::*;

#[test]
fn a_node_that_only_opens_connections_needs_one_key() {
    let config = parsed(&format!("{LEAST}transparent: {{ from: [10.7.0.0/24] }}\n")).expect("it is enough");
    let transparent = config.transparent.as_ref().expect("it is there");
    assert_eq!((transparent.mesh_ports(), transparent.source), (vec![7300], Source::Client));
    assert_eq!(config.lacks_connections(), None);
}

/// Checks the refusals of nodes with these keys. `FROM` and `TO` stand for sound ones.
fn are_refused(all: &[(&str, &str)]) {
    for (more, wanted) in all {
        let more = more
            .replace("TO", "to: [{ network: 10.2.0.0/16, node: 10.7.0.9 }]")
            .replace("FROM", "from: [10.7.0.0/24]");
        let text = refused(&format!("{LEAST}transparent: {{ {more} }}\n"));
        assert!(text.contains(wanted), "{more}: {text}");
    }
}

#[test]
fn each_wrong_key_towards_hosts_is_refused_at_its_place() {
    are_refused(&[
        ("", "3:14: there is nothing to carry | `interfaces` with `to`, `from`, or all three"),
        ("interfaces: [lan0]", "3:14: there is nothing to carry"),
        (
            "from: [10.7.0.0/24], interfaces: [lan0]",
            "3:14: `interfaces` is there without `to` | both of them, or neither",
        ),
        ("to: [{ network: 10.2.0.0/16, node: 10.7.0.9 }]", "3:14: `to` is there without `interfaces`"),
        ("interfaces: [hw0], TO", "`hw0` is a link of this node"),
        ("interfaces: [a/b], TO", "`a/b` is no name of an interface | 1 to 15 letters and digits"),
        ("interfaces: [-all], TO", "`-all` is no name of an interface"),
        ("interfaces: [sixteen-letters-], TO", "`sixteen-letters-` is no name of an interface"),
        ("interfaces: [lan0], ports: [0], TO", "ports: 0 is out of range | 1 to 65535"),
        (
            "interfaces: [lan0], ports: [90-80], TO",
            "`90-80` | expected a port such as 80, or a range such as",
        ),
        ("interfaces: [lan0], ports: [http], TO", "`http`"),
        (
            "interfaces: [lan0], to: [{ network: 10.2.0.0/16, node: 10.7.0.2 }]",
            "10.7.0.2 is an address of this node | the address of another node",
        ),
        (
            "interfaces: [lan0], to: [{ network: 10.2.0.0/16, node: 10.7.0.9 }, { network: 10.2.0.0/16, node: \
             10.7.0.8 }]",
            "10.2.0.0/16 is in `transparent.to.0` already | each network once, the narrower one first",
        ),
        ("interfaces: [lan0], to: [{ network: 10.2/16, node: 10.7.0.9 }]", "`10.2/16`"),
    ]);
}

#[test]
fn keys_that_could_never_match_are_refused() {
    are_refused(&[
        ("interfaces: [lan0, lan0], TO", "`lan0` is there twice | each once"),
        ("interfaces: [lo], TO", "`lo` has no hosts behind it | an interface towards hosts"),
        ("interfaces: [lan0], ports: [80-90, 85], TO", "some of these ports stand at index 0 already"),
        ("interfaces: [lan0], TO, targets: [10.2.0.0/16]", "`targets` is there without `from`"),
    ]);
    let to = |network: &str, node: &str| {
        format!("interfaces: [lan0], to: [{{ network: {network}, node: {node} }}]")
    };
    for (more, wanted) in [
        (to("10.2.0.0/16", "0.0.0.0"), "0.0.0.0 is no address of a machine | the address of another node"),
        (to("10.2.0.0/16", "224.0.0.9"), "224.0.0.9 is no address of a machine"),
        (to("10.2.0.0/16", "255.255.255.255"), "255.255.255.255 is no address of a machine"),
        (to("10.2.0.0/16", "127.0.0.1"), "127.0.0.1 is this machine itself"),
        (to("10.2.0.0/16", "\"fd07::9\""), "fd07::9 is of a version of IP in which this node has no address"),
        (to("127.0.0.0/8", "10.7.0.9"), "hosts open no connection to 127.0.0.0/8 through a router"),
        (to("224.0.0.0/4", "10.7.0.9"), "hosts open no connection to 224.0.0.0/4"),
        (
            to("10.2.0.0/16, node: 10.7.0.8 }, { network: 10.2.3.0/24", "10.7.0.9"),
            "10.2.3.0/24 is in `transparent.to.0` already",
        ),
    ] {
        are_refused(&[(more.as_str(), wanted)]);
    }
}

#[test]
fn classes_that_could_never_match_are_refused() {
    let classes = |classes: &str| format!("FROM, classes: [{classes}]");
    for (more, wanted) in [
        (
            classes("{ port: 7301, from: 10.1.0.0/24, to: \"fd02::/64\" }"),
            "`from` and `to` are of different versions of IP",
        ),
        (
            classes("{ port: 7301, ports: [20-30] }, { port: 7302, ports: [22], dscp: 46 }"),
            "`transparent.classes.0` matches all of these connections before | the narrower class first",
        ),
        (classes("{ port: 7301, ports: [22, 22] }"), "some of these ports stand at index 0 already"),
    ] {
        are_refused(&[(more.as_str(), wanted)]);
    }
}

#[test]
fn keys_that_overlap_and_match_are_taken() {
    for more in [
        "interfaces: [lan0], to: [{ network: 10.2.3.0/24, node: 10.7.0.8 }, { network: 0.0.0.0/0, node: 10.7.0.9 }]",
        "interfaces: [lan0], to: [{ network: \"fd02::/64\", node: 10.7.0.9 }]",
        "from: [10.7.0.9], classes: [{ port: 7301, ports: [22], dscp: 46 }, { port: 7302, ports: [20-30] }]",
        "from: [10.7.0.9], classes: [{ port: 7301, from: 10.1.0.0/24 }, { port: 7302, to: 10.1.0.0/24 }]",
    ] {
        parsed(&format!("{LEAST}transparent: {{ {more} }}\n")).expect("it is sound");
    }
}

#[test]
fn each_wrong_key_between_nodes_is_refused() {
    are_refused(&[
        ("FROM, port: 0", "port: 0 is out of range | 1 to 65535"),
        ("FROM, classes: [{ port: 0 }]", "port: 0 is out of range | 1 to 65535"),
        ("FROM, classes: [{ port: 7301, dscp: 64 }]", "dscp: 64 is out of range | 0 to 63"),
        ("FROM, classes: [{ port: 7301, ports: [0] }]", "ports: 0 is out of range | 1 to 65535"),
        ("FROM, classes: [{ dscp: 4 }]", "missing field `port`"),
        ("FROM, source: server", "`server` does not fit here | expected `client` or `own`"),
        ("FROM, answers_within: 1ms", "answers_within: 1ms is out of range | 10ms to 30s"),
        ("FROM, connections: 0", "connections: 0 is out of range | 1 to 65536"),
        ("FROM, idle: 1ms", "idle: 1ms is out of range | 100ms or more"),
        ("FROM, queue: 70000", "queue: 70000 is out of range | 0 to 65535"),
        ("FROM, table: 255", "table: 255 is out of range | 256 to 32765"),
        ("from: [mesh]", "`mesh`"),
        ("FROM, target: []", "unknown field `target` | did you mean `targets`?"),
    ]);
    let forward =
        "forwards: [{ listen: mesh:7300, to: 127.0.0.1:80 }]\ntransparent: { from: [10.7.0.0/24] }\n";
    let text = refused(&format!("{LEAST}{forward}"));
    assert!(
        text.contains("`forwards.0.listen` has port 7300 over Hopwise already | a port of its own"),
        "{text}"
    );
}
