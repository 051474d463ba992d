//! TUN devices that were made to stay: a node takes them as they are, and leaves them unchanged.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use crate::field::{Field, HOPWISE, PAGE, SOCKS5, THROUGH, text, user_of_daemons};

/// The device was made to stay, and remains for the next program.
#[test]
fn a_device_that_was_there_is_left_as_it_was() {
    needs!["curl", "python3"];
    for (nth, (kind, user)) in
        [("kind: tun, mtu: 1400", ""), ("kind: tun", "user: nobody"), ("kind: tun-fast", "user: nobody")]
            .into_iter()
            .enumerate()
    {
        let field = Field::new(&format!("lent-{nth}"));
        let _server = field.serve(&field.web, "10.9.0.2", "80");
        field.node.ip(&["tuntap", "add", "hw0", "mode", "tun"]);
        field.node.ip(&["addr", "add", "10.7.0.9/32", "dev", "hw0"]);
        let shown = || shown(&field);
        let before = shown();
        let mut daemon = field.daemon_over(kind, &format!("{SOCKS5}\n{user}"));
        let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
        assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
        assert_ne!(shown(), before);
        daemon.tell(Signal::TERM);
        assert_eq!(daemon.ended(), Some(0), "{}", field.log());
        assert_eq!(shown(), before, "{kind} {user}: {}", field.log());
    }
}

/// The changes of a killed node are on disk, also the changes of several nodes.
#[test]
fn a_device_that_killed_nodes_changed_comes_back_with_the_next_end_and_by_repair() {
    needs![];
    for (nth, kind) in ["tun", "tun-fast"].into_iter().enumerate() {
        let field = Field::new(&format!("killed-lent-{nth}"));
        // Root trusts the files of a daemon's user in folders that are closed to other users.
        let user = user_of_daemons();
        std::os::unix::fs::chown(&field.folder, Some(user), Some(user)).expect("root may");
        fs::set_permissions(&field.folder, fs::Permissions::from_mode(0o755)).expect("it is ours");
        for words in [
            "tuntap add hw0 mode tun",
            "link set hw0 mtu 1400 txqueuelen 700",
            "addr add 10.7.0.9/32 dev hw0",
        ] {
            ip(&field, words);
        }
        let before = shown(&field);
        let folder = field.path("");
        let doctor = |more: &[&str]| {
            let words = [&[HOPWISE, "doctor", "--state", &folder], more].concat();
            text(&field.node.output(&words).stdout)
        };
        let kill = |kind: &str| {
            let mut daemon = field.daemon_over(kind, "");
            assert!(doctor(&[]).contains("no killed daemon left a device"), "{}", doctor(&[]));
            daemon.tell(Signal::KILL);
            assert_eq!(daemon.ended(), None, "a signal ended it");
            assert_ne!(shown(&field), before);
        };
        kill(&format!("kind: {kind}"));
        kill(&format!("kind: {kind}, mtu: 1350"));
        let mut daemon = field.daemon_over(&format!("kind: {kind}"), "");
        daemon.tell(Signal::TERM);
        assert_eq!(daemon.ended(), Some(0), "{}", field.log());
        assert_eq!(shown(&field), before, "{kind}: {}", field.log());

        kill(&format!("kind: {kind}"));
        let said = doctor(&[]);
        assert!(
            said.contains("hw0: a killed daemon left it changed") && said.contains("[lent-left]"),
            "{said}"
        );
        let planted = plant(&field);
        let said = doctor(&["--repair"]);
        assert!(said.contains("hw0: as it was before") && said.contains("wire0 is no TUN device"), "{said}");
        assert_eq!(shown(&field), before, "{kind}: {said}");
        fs::remove_file(planted).expect("it is there");
        assert!(doctor(&[]).contains("no killed daemon left a device"), "{}", doctor(&[]));
    }
}

/// A file as of the killed node, about a device that no node had.
fn plant(field: &Field) -> String {
    let files = fs::read_dir(&field.folder).expect("the folder is there").flatten();
    let left = files.map(|file| file.path()).find(|path| path.to_string_lossy().ends_with(".lent"));
    let lines = fs::read_to_string(left.expect("the killed node's")).expect("a file");
    let index = |device: &str| {
        let index = field.node.output(&["cat", &format!("/sys/class/net/{device}/ifindex")]);
        format!("device {}", text(&index.stdout).trim())
    };
    let planted = field.path("planted.lent");
    fs::write(&planted, lines.replace(&index("hw0"), &index("wire0"))).expect("the folder can be written");
    planted
}

/// The state of the device as `ip` shows it.
fn shown(field: &Field) -> [String; 3] {
    let ip = |words: &[&str]| text(&field.node.output(&[&["ip"], words].concat()).stdout);
    let keeps = "cat /proc/sys/net/ipv6/conf/hw0/keep_addr_on_down";
    let keeps = text(&field.node.output(&["sh", "-c", keeps]).stdout);
    // The device gets a queue when it comes up for the first time, and never loses it again.
    let device = ip(&["addr", "show", "dev", "hw0"]);
    let mut words: Vec<_> = device.split_whitespace().collect();
    let queue = words.iter().position(|word| *word == "qdisc").expect("each device has one");
    words.remove(queue + 1);
    let device = words.join(" ");
    [device, ip(&["route", "show", "table", "all", "dev", "hw0"]), keeps]
}

fn ip(field: &Field, words: &str) {
    field.node.ip(&words.split(' ').collect::<Vec<_>>());
}

/// A node with these addresses, and with `device` as its device's settings.
fn node_on(field: &Field, kind: &str, addresses: &str, device: &str) -> String {
    let path = field.path("node.yaml");
    let text = format!(
        "node: {{ name: n2, address: [{addresses}] }}\nlinks: [{{ kind: {kind}, name: hw0, {device} }}]\n\
         control: {}\n",
        field.path("control.sock")
    );
    fs::write(&path, text).expect("the folder can be written");
    path
}

#[test]
fn a_device_that_was_there_is_left_as_it_was_whatever_was_done_to_it_meanwhile() {
    needs![];
    // A subnet's first address takes the second one along, and a device that goes down takes the routes.
    let several = "kernel: [10.7.0.1/24, 10.7.0.9/24]";
    for (nth, (own, device, meanwhile)) in [
        ("10.5.0.1/32", several, &[][..]),
        ("10.5.0.1/32", several, &["link set hw0 down", "link set hw0 up"]),
        ("10.5.0.1/32", several, &["addr del 10.7.0.9/24 dev hw0"]),
        ("fd05::1/64", "kernel: [10.7.0.1/24]", &[]),
        ("10.5.0.1/32", several, &["link set hw0 down", "link set hw0 name hw1", "link set hw1 up"]),
    ]
    .into_iter()
    .enumerate()
    {
        let field = Field::new(&format!("meanwhile-{nth}"));
        field.node.ip(&["tuntap", "add", "hw0", "mode", "tun"]);
        field.node.ip(&["addr", "add", own, "dev", "hw0"]);
        // An address of IPv6 is shown with other flags until it has been up.
        field.node.sysctl("ipv6/conf/hw0/keep_addr_on_down", "1");
        field.node.ip(&["link", "set", "hw0", "up"]);
        field.node.ip(&["link", "set", "hw0", "down"]);
        field.node.sysctl("ipv6/conf/hw0/keep_addr_on_down", "0");
        let before = shown(&field);
        assert!(before[0].contains(own), "{before:?}");
        let mut daemon = field.spawn(&node_on(&field, "tun", "10.7.0.2/24, 10.6.0.2/24", device));
        assert_ne!(shown(&field), before);
        for words in meanwhile {
            ip(&field, words);
        }
        daemon.tell(Signal::TERM);
        assert_eq!(daemon.ended(), Some(0), "{}", field.log());
        if meanwhile.iter().any(|words| words.ends_with("hw1")) {
            field.node.ip(&["link", "set", "hw1", "name", "hw0"]);
        }
        assert_eq!(shown(&field), before, "{own} {device} {meanwhile:?}: {}", field.log());
        assert!(!field.log().contains("stays"), "{}", field.log());
    }
}

#[test]
fn a_device_that_was_there_is_left_as_it_was_by_a_start_that_fails() {
    needs![];
    for kind in ["tun", "tun-fast"] {
        let field = Field::new(&format!("half-{kind}"));
        field.node.ip(&["tuntap", "add", "hw0", "mode", "tun"]);
        field.node.sysctl("ipv6/conf/hw0/disable_ipv6", "1");
        let before = shown(&field);
        let config = node_on(&field, kind, "10.7.0.2/24", "mtu: 1400, kernel: [10.7.0.1/24, \"fd07::1/64\"]");
        let refused = field.refused(&config);
        let said = text(&refused.stderr);
        assert!(refused.status.code() == Some(1) && said.contains("add address fd07::1/64"), "{said}");
        assert_eq!(shown(&field), before, "{kind}: {said}");
    }
}

/// A route of IPv6 that is removed without a metric is the first that there is.
#[test]
fn a_route_of_its_owner_stays_whatever_its_metric() {
    needs![];
    let field = Field::new("metrics");
    for words in [
        "tuntap add hw0 mode tun",
        // The kernel gives it an address when it is first used.
        "link set hw0 addrgenmode none",
        "link set hw0 up",
        "addr add fd05::9/128 dev hw0 nodad",
        "route add fd06::/64 dev hw0 proto static metric 100",
        "route add 10.6.0.0/24 dev hw0 metric 100",
        // The route for packets without any other.
        "route add blackhole 10.6.0.0/24 metric 4278198272",
    ] {
        ip(&field, words);
    }
    let before = shown(&field);
    let mut daemon = field.spawn(&node_on(&field, "tun", "10.6.0.2/24, \"fd06::2/64\"", ""));
    assert_ne!(shown(&field), before);
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    assert_eq!(shown(&field), before, "{}", field.log());
}

#[test]
fn what_would_change_the_addresses_of_a_device_that_was_there_is_refused() {
    needs![];
    let field = Field::new("addresses");
    for words in [
        "tuntap add hw0 mode tun",
        "link set hw0 addrgenmode none",
        "link set hw0 up",
        "addr add fd07::1/128 dev hw0 nodad",
    ] {
        ip(&field, words);
    }
    let before = shown(&field);
    for (address, device, why) in [
        ("10.6.0.2/24", "mtu: 1279", "mtu: 1279: the device was there before and has addresses of IPv6"),
        (
            "\"fd07::2/64\"",
            "kernel: [\"fd07::1/64\"]",
            "the device has the address of fd07::1/64 with another prefix length",
        ),
    ] {
        let config = node_on(&field, "tun", address, device);
        let refused = field.refused(&config);
        let said = text(&refused.stderr);
        assert!(refused.status.code() == Some(1) && said.contains(why), "{said}");
        assert_eq!(shown(&field), before, "{said}");
    }
}

/// The kernel lists more than routes, and makes addresses of its own.
#[test]
fn what_the_kernel_keeps_of_its_own_refuses_nobody() {
    needs![];
    let field = Field::new("own");
    for words in ["tuntap add hw0 mode tun", "link set hw0 up", "addr add fd09::9/128 dev lo nodad"] {
        ip(&field, words);
    }
    for (address, device) in [
        ("10.6.0.2/24", "mtu: 1000"),
        // After the first case the device has an address of the kernel's.
        ("10.6.0.2/24", "mtu: 1000"),
        ("\"fd07::2/64\"", "kernel: [\"fe80::7/64\"]"),
        ("\"fd07::2/64\"", "kernel: [\"fd09::9/128\"]"),
    ] {
        let mut daemon = field.spawn(&node_on(&field, "tun", address, device));
        daemon.tell(Signal::TERM);
        assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    }
}

/// The route of an address, which `hopwise mesh up` may have given, is told by it.
fn assert_told_by_whom(said: &str, taken: &str) {
    let by = match taken {
        "10.6.1.2/24" => "wire0 has 10.6.1.1/24 (`ip addr` shows it)",
        _ if taken.starts_with("fd06:1::") => "wire0 has fd06:1::1/64 (`ip addr` shows it)",
        _ => "(`ip route` shows it)",
    };
    assert!(said.contains(by) && said.contains("`addresses: []`") == by.contains("wire0"), "{said}");
}

/// With the route taken over, hosts behind it would be cut off; with the route left, the node would be.
#[test]
fn a_route_that_leads_elsewhere_is_not_taken_over() {
    needs![];
    let field = Field::new("taken");
    let node = &field.node;
    node.ip(&["tuntap", "add", "hw0", "mode", "tun"]);
    node.ip(&["link", "set", "hw0", "up"]);
    // With a device's last address the kernel takes its routes.
    node.ip(&["addr", "add", "10.5.9.9/32", "dev", "hw0"]);
    let own = "10.5.0.0/24 dev hw0 proto 77";
    for route in [own, "10.6.0.0/24 via 10.9.0.2", "fd06::/64 dev wire0"] {
        ip(&field, &format!("route add {route}"));
    }
    let routes = || {
        let shown = |family| text(&node.output(&["ip", family, "route", "show"]).stdout);
        let all = (shown("-4") + &shown("-6")).replace("linkdown", "");
        // Routes of the links themselves come and go with them.
        let own = all.lines().filter(|line| !line.starts_with("fe80"));
        own.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    // The route of a LAN, as NetworkManager has it: ours would come before it.
    node.ip(&["addr", "add", "10.6.1.1/24", "dev", "wire0", "metric", "600"]);
    // The kernel gives it a smaller metric than a route gets.
    node.ip(&["addr", "add", "fd06:1::1/64", "dev", "wire0", "nodad"]);
    let before = routes();
    let own = "10.7.0.1/24";
    for (ours, kernel, taken) in [
        ("10.6.0.2/24", own, "10.6.0.2/24"),
        ("\"fd06::2/64\"", own, "fd06::2/64"),
        ("10.6.1.2/24", own, "10.6.1.2/24"),
        ("\"fd06:1::2/64\"", own, "fd06:1::2/64"),
        ("10.6.0.2/24", "10.6.0.1/24", "10.6.0.1/24"),
        ("\"fd06:1::2/64\"", "\"fd06:1::3/64\"", "fd06:1::3/64"),
    ] {
        let config = node_on(&field, "tun", &format!("10.5.0.2/24, {ours}"), &format!("kernel: [{kernel}]"));
        let refused = field.refused(&config);
        let said = text(&refused.stderr);
        assert!(said.contains(&format!("a route to {taken} leads elsewhere already")), "{said}");
        assert_told_by_whom(&said, taken);
        assert_eq!((refused.status.code(), routes()), (Some(1), before.clone()));
    }
    // A route through the device itself belongs to its owner, and stays as it is.
    let mut daemon = field.spawn(&node_on(&field, "tun", "10.5.0.2/24", "kernel: [10.7.0.1/24]"));
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    assert_eq!(routes(), before);
}
