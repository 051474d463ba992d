//! Requirements of a sound file that this machine cannot meet, each with its key and a remedy.

use std::io::{self, ErrorKind};

use hopwise_host::netlink::NetlinkError;
use hopwise_host::transparent::TransparentError;
use hopwise_lab::located::{Document, YamlPath};

use super::config::{self, LinkKind, NodeConfig};
use super::links::Unopened;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::privileges::PrivilegeError;
use hopwise_daemon::shell;

/// A requirement that could not be met when the daemon started.
#[derive(Debug)]
pub(super) enum UnmetRequirement {
    Link(Unopened),
    Control(io::Error),
    Listener(Failure),
    Transparent(TransparentError),
    /// In words, since a capture may be refused for our own reasons.
    Capture(String),
}

impl UnmetRequirement {
    pub(super) fn failure(self, document: &Document, config: &NodeConfig) -> Failure {
        let root = YamlPath::root();
        match self {
            UnmetRequirement::Link(unopened) => link(document, config, &unopened),
            UnmetRequirement::Control(error) => {
                let path = config.control.as_deref().unwrap_or("".as_ref()).display();
                let problem = format!("make the control socket: {path}: {error}");
                let remedy = match error.kind() {
                    ErrorKind::AddrInUse | ErrorKind::AlreadyExists => "name a path that is free",
                    _ => "name a path in a folder that can be written",
                };
                at(document, &root.key("control"), &problem, Some(remedy))
            }
            UnmetRequirement::Listener(Failure::Unbound { address, error }) => {
                let path = config::path_at(config, address).unwrap_or_default();
                at(document, &path, &format!("listen: {address}: {error}"), remedy_of_bind(&error))
            }
            UnmetRequirement::Listener(other) => other,
            UnmetRequirement::Transparent(error) => transparent(document, &error),
            UnmetRequirement::Capture(problem) => {
                let who = config.user.as_deref().map_or(String::new(), |user| format!(" by `{user}`"));
                let remedy = format!("name a file that can be written{who}");
                at(document, &root.key("capture").key("file"), &format!("capture: {problem}"), Some(&remedy))
            }
        }
    }
}

pub(super) fn user(document: &Document, error: &PrivilegeError) -> Failure {
    let remedy = matches!(error, PrivilegeError::NotRoot(_)).then_some("start it as root, or without `user`");
    at(document, &YamlPath::root().key("user"), &error.to_string(), remedy)
}

fn at(document: &Document, path: &YamlPath, problem: &str, remedy: Option<&str>) -> Failure {
    let remedy = remedy.map_or(String::new(), |remedy| format!("; {remedy}"));
    Failure::Unmet { place: document.pointing_at(path), problem: format!("{problem}{remedy}") }
}

fn link(document: &Document, config: &NodeConfig, Unopened { nth, error }: &Unopened) -> Failure {
    let (link, path) = (&config.links[*nth], YamlPath::root().key("links").index(*nth));
    let problem = format!("open a link: {error}");
    // `any` is libpcap's name for all interfaces.
    let is_missing =
        || link.name != "any" && !std::path::Path::new("/sys/class/net").join(&link.name).exists();
    let (key, remedy) = match link.kind {
        LinkKind::Replay => ("file", Some("name a capture that is there and can be read")),
        LinkKind::Raw | LinkKind::Pcap if is_missing() => {
            ("name", Some("name an interface that `ip link` shows"))
        }
        LinkKind::Tun | LinkKind::TunFast if error.is_taken() => {
            ("name", Some("stop that process, or name another device, such as hw1"))
        }
        _ => ("name", None),
    };
    let as_root = shell::as_root().filter(|_| error.is_forbidden());
    at(document, &path.key(key), &problem, as_root.as_deref().or(remedy))
}

fn transparent(document: &Document, error: &TransparentError) -> Failure {
    let at_key = YamlPath::root().key("transparent");
    let as_root = shell::as_root().filter(|_| error.is_forbidden());
    let remedy = match error {
        TransparentError::QueueTaken(_) => Some("name a `queue` that no other program has"),
        TransparentError::Step(NetlinkError::System { .. }) => None,
        TransparentError::Step(_) => Some("name a `table` without routes"),
    };
    at(document, &at_key, &format!("carry connections: {error}"), as_root.as_deref().or(remedy))
}

fn remedy_of_bind(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::AddrNotAvailable => Some("name an address of this machine (`ip addr` shows them)"),
        ErrorKind::AddrInUse => Some("name a port that is free (`ss -ltnp` shows who has it)"),
        ErrorKind::PermissionDenied => Some("name a port from 1024 on, or give it CAP_NET_BIND_SERVICE"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hopwise_host::LinkError;

    use super::*;

    const FILE: &str = "\
node: { name: a, address: 10.7.0.2/24 }
links:
  - { kind: tun, name: hw0 }
  - { kind: raw, name: no-such-device }
control: /no/folder/a.sock
user: nobody
capture: { file: /no/folder/a.pcapng }
socks5: { listen: 127.0.0.1:1080 }
forwards:
  - { listen: mesh:81, to: 127.0.0.1:80 }
  - { listen: 203.0.113.1:81, to: mesh:n:80 }
";

    /// With a place, the key and a remedy; libpcap's kinds of links are opened in `tests/live`.
    #[test]
    fn what_cannot_be_had_is_said_with_the_key_that_asks_for_it() {
        let document = Document::parse("n.yaml", FILE).expect("it is YAML");
        let config: NodeConfig = document.read().expect("it is accepted");
        let what = "it is no Ethernet device";
        let link = |nth: usize| {
            let error = LinkError::Setting { device: config.links[nth].name.clone(), what };
            UnmetRequirement::Link(Unopened { nth, error })
        };
        let unbound = |address: &str, kind: ErrorKind| {
            let address = address.parse().expect("an address");
            UnmetRequirement::Listener(Failure::Unbound { address, error: kind.into() })
        };
        for (unmet, wanted) in [
            (link(0), "n.yaml:3:24: `links.0.name`: open a link: hw0: it is no Ethernet device"),
            (
                link(1),
                "n.yaml:4:24: `links.1.name`: open a link: no-such-device: it is no Ethernet device; name an",
            ),
            (
                UnmetRequirement::Control(ErrorKind::NotFound.into()),
                "n.yaml:5:10: `control`: make the control socket: /no/",
            ),
            (
                UnmetRequirement::Capture("denied".into()),
                "n.yaml:7:18: `capture.file`: capture: denied; name a file that can be \
                                               written by `nobody`",
            ),
            (
                unbound("127.0.0.1:1080", ErrorKind::AddrInUse),
                "n.yaml:8:19: `socks5.listen`: listen: 127.0.0.1:1080: ",
            ),
            (
                unbound("203.0.113.1:81", ErrorKind::AddrNotAvailable),
                "n.yaml:11:15: `forwards.1.listen`: listen: 203.",
            ),
        ] {
            let said = unmet.failure(&document, &config).to_string();
            assert!(said.starts_with(wanted), "{said}");
        }
        let said = user(&document, &PrivilegeError::NotRoot("nobody".into())).to_string();
        assert_eq!(
            said,
            "n.yaml:6:7: `user`: only root can become `nobody`; start it as root, or without `user`"
        );
        let said = unbound("127.0.0.1:1080", ErrorKind::AddrInUse).failure(&document, &config).to_string();
        assert!(said.ends_with("; name a port that is free (`ss -ltnp` shows who has it)"), "{said}");
    }

    #[test]
    fn a_device_of_another_program_is_told_to_be_one() {
        let document = Document::parse("n.yaml", FILE).expect("it is YAML");
        let config: NodeConfig = document.read().expect("it is accepted");
        let taken = LinkError::System {
            doing: "create the TUN device",
            device: "hw0".into(),
            error: ErrorKind::ResourceBusy.into(),
            takes: "CAP_NET_ADMIN",
        };
        let said =
            UnmetRequirement::Link(Unopened { nth: 0, error: taken }).failure(&document, &config).to_string();
        assert!(said.ends_with("; stop that process, or name another device, such as hw1"));
    }
}
