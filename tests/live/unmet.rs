//! Wishes of a node's file that the machine cannot meet, and files that a running node will not read.

use std::fs;

use rustix::process::Signal;

use crate::field::{Field, HOPWISE, PAGE, SOCKS5, THROUGH, text};
use crate::world::{until, within_patience};

#[test]
fn what_cannot_be_had_at_the_start_is_said_with_its_place_its_key_and_a_remedy() {
    needs![];
    let field = Field::new("unmet");
    let elsewhere = "203.0.113.1:80";
    let own_address = "name an address of this machine";
    for (more, wanted, remedy) in [
        (
            format!("socks5: {{ listen: {elsewhere} }}"),
            ":5:19: `socks5.listen`: listen: 203.0.113.1:80: ",
            own_address,
        ),
        (format!("metrics: {{ listen: {elsewhere} }}"), ":5:20: `metrics.listen`: listen: ", own_address),
        (
            format!("forwards: [{{ listen: {elsewhere}, to: mesh:n:80 }}]"),
            ":5:22: `forwards.0.listen`: listen: ",
            own_address,
        ),
        (
            "capture: { file: /proc/a.pcapng }".to_owned(),
            ":5:18: `capture.file`: capture: /proc/a.pcapng: ",
            "name a file that can be written",
        ),
    ] {
        let ended = field.refused(&field.config(&more));
        let said = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("node.yaml{wanted}")) && said.contains(remedy), "{said}");
    }
}

/// As in a container that was started without the device.
#[test]
fn a_kernel_without_devices_for_tuns_is_said_with_what_brings_them() {
    needs!["mount"];
    let field = Field::new("no-clone");
    let config = field.config("");
    let script = format!("mount -t tmpfs none /dev/net && exec {HOPWISE} node {config}");
    let ended = field.node.command(&["sh", "-c", &script]).output().expect("ip netns exec runs");
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("there is no /dev/net/tun") && said.contains("--device=/dev/net/tun"), "{said}");
}

#[test]
fn a_link_that_is_not_there_is_said_with_its_place_and_key() {
    needs!["nft"];
    let field = Field::new("no-link");
    let mut links =
        vec![("kind: raw, name: gone0", "2:28: `links.0.name`: open a link: gone0: ", "`ip link`")];
    if cfg!(feature = "pcap") {
        links.extend([
            ("kind: pcap, name: gone0", "2:29: `links.0.name`: open a link: gone0: ", "`ip link`"),
            (
                "kind: replay, name: old, file: /no.pcap",
                "2:42: `links.0.file`: open a link: /no.pcap: ",
                "name a capture",
            ),
        ]);
    }
    for (link, wanted, remedy) in links {
        let path = field.path("node.yaml");
        let text_of_file = format!("node: {{ name: n2, address: 10.7.0.2/24 }}\nlinks: [{{ {link} }}]\n");
        fs::write(&path, text_of_file).expect("the folder can be written");
        let ended = field.refused(&path);
        let said = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(said.contains(wanted) && said.contains(remedy), "{said}");
    }
}

/// The log has one line for it, and shows no file.
#[test]
fn a_file_that_a_hangup_finds_wrong_is_refused_with_what_would_be_accepted() {
    needs![];
    let field = Field::new("hangup-says");
    let daemon = field.daemon(SOCKS5);
    field.config(&format!("{SOCKS5}\nstop_within: 5"));
    daemon.tell(Signal::HUP);
    within_patience(until(|| field.log().contains("the old rules stay")));
    let log = field.log();
    let line = log.lines().find(|line| line.contains("the old rules stay")).unwrap_or_default();
    assert!(line.contains("node.yaml:6:14: ") && line.contains("expected a time with its unit"), "{line}");
}

#[test]
fn socks5_beyond_the_loopback_without_users_or_allow_is_said_at_the_start() {
    needs![];
    let field = Field::new("open-socks5");
    let beyond = "socks5: { listen: 10.9.0.1:1080";
    for (socks5, is_said) in [
        (format!("{beyond} }}"), true),
        (format!("{beyond}, users: {{ ada: secret }} }}"), false),
        (format!("{beyond}, allow: {{ clients: [10.9.0.0/24] }} }}"), false),
        (SOCKS5.to_owned(), false),
    ] {
        let _daemon = field.daemon(&socks5);
        let log = field.log();
        assert_eq!(log.contains("socks5 takes each client that reaches it"), is_said, "{socks5}: {log}");
    }
}

#[test]
fn curl_logs_in_at_socks5_with_its_password_alone() {
    needs!["curl", "python3"];
    let field = Field::new("login");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let _daemon = field.daemon("socks5: { listen: 127.0.0.1:1080, users: { ada: secret } }");
    let get = |login: &[&str]| field.curl(&[&THROUGH[..], login, &["http://10.9.0.2/"]].concat());
    let page = get(&["--proxy-user", "ada:secret"]);
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
    for login in [&["--proxy-user", "ada:wrong"][..], &["--proxy-user", "eve:secret"], &[]] {
        let refused = get(login);
        // curl's number for "proxy handshake error".
        assert_eq!((text(&refused.stdout).as_str(), refused.status.code()), ("", Some(97)), "{login:?}");
    }
}

/// YAML takes a password of digits for a number.
#[test]
fn a_password_that_does_not_fit_stays_out_of_the_log_and_of_what_a_check_says() {
    needs![];
    let field = Field::new("passwords");
    let users = |password: &str| {
        format!("socks5:\n  listen: 127.0.0.1:1080\n  users: {{ ada: {password} }}\ncaptures: []")
    };
    let config = field.config(&users("'99887766'"));
    let daemon = field.spawn(&config);
    let readable = "each user of this machine can read the passwords";
    assert!(field.log().contains(readable), "{}", field.log());
    let checked = field.node.output(&[HOPWISE, "node", "--check", &config]);
    assert!(checked.status.success() && text(&checked.stderr).contains(readable));
    field.config(&users("99887766"));
    daemon.tell(Signal::HUP);
    within_patience(until(|| field.log().contains("the old rules stay")));
    let checked = field.node.output(&[HOPWISE, "node", "--check", &config]);
    assert_eq!(checked.status.code(), Some(2));
    for said in [field.log(), text(&checked.stderr)] {
        assert!(said.contains("node.yaml:7:17: ") && !said.contains("99887766"), "{said}");
    }
}
