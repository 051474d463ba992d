//! Configuration of `hopwise route`.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use hopwise_core::ip::Prefix;
use hopwise_lab::file_kind;
use hopwise_lab::keys;
use hopwise_lab::located::{Checked, Document, YamlPath, one_of};
use hopwise_lab::routing::{RoutingConfig, names, takes};
use hopwise_lab::units::Time;
use hopwise_mesh::constants::{ConstantValues, OnlySimulated};
use hopwise_mesh::{DaemonProtocol, Keys, RoutingProtocol, Trust};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_yaml::Value;

use super::keys::KeyFile;
use hopwise_daemon::check_interface;
use hopwise_daemon::confine::Confine;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::privileges::Privileges;

/// A node of a mesh with routing.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RoutingFile {
    /// Address of this machine in the mesh.
    #[schemars(with = "String")]
    address: Ipv4Addr,
    /// Further addresses that live on this machine, such as addresses of nodes on TUN devices (default: none).
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    serves: Vec<Ipv4Addr>,
    /// Network whose addresses routing searches for, such as 10.0.0.0/24.
    network: String,
    /// Interfaces of the mesh, 1 to 64, which are up and need no addresses.
    interfaces: Vec<String>,
    /// Name of the device that is made for packets without a route.
    #[serde(default = "tun")]
    tun: String,
    /// Control sockets of nodes on this machine, which get news of paths (default: none).
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    nodes: Vec<PathBuf>,
    /// File that keeps the time of the last routing of this node (default: /run/hopwise/route-ADDRESS).
    #[schemars(with = "Option<String>")]
    state: Option<PathBuf>,
    /// Path of the control socket, which `hopwise status` asks (default: no socket).
    #[schemars(with = "Option<String>")]
    control: Option<PathBuf>,
    /// File with the keys that sign messages, here and at all other nodes. It belongs to the daemon's user, and no
    /// other user may read it: `chown hopwise`, `chmod 600` (default: none, and everybody in reach is believed).
    #[schemars(with = "Option<String>")]
    keys: Option<PathBuf>,
    /// Largest difference between the clocks of nodes; it needs `keys` (default: any, as long as times grow).
    clock_within: Option<Time>,
    /// User that a daemon started by root becomes; root: it stays root (default: hopwise, or a
    /// number without a name where there is no such user).
    user: Option<String>,
    /// Confinement of files and system calls by Landlock and seccomp, once everything is open (default on).
    #[serde(default)]
    confine: Confine,
    /// Routing protocol, aodv or dymo, and its constants. Hellos are on unless the file turns them off.
    #[serde(default)]
    routing: RoutingConfig,
}

fn tun() -> String {
    "hopwise0".to_owned()
}

/// A file as a live run writes it for one of its nodes. All else has its default.
#[derive(Clone, Debug, Serialize)]
pub struct NodeFile {
    pub address: Ipv4Addr,
    pub serves: Vec<Ipv4Addr>,
    pub network: &'static str,
    pub interfaces: Vec<String>,
    /// The socket of the programs' endpoint, in a folder of root's.
    pub nodes: Vec<PathBuf>,
}

/// The text of such a file, with this routing.
pub fn text(file: NodeFile, routing: &RoutingConfig) -> Result<String, serde_yaml::Error> {
    let mut routing = serde_yaml::to_value(routing.of_daemon())?;
    if let Some(section) = routing.as_mapping_mut() {
        // A daemon has one set of rules, and not every protocol takes the key.
        section.remove("rules");
    }
    let has_nodes = !file.nodes.is_empty();
    let mut file = serde_yaml::to_value(file)?;
    if let Some(file) = file.as_mapping_mut() {
        if has_nodes {
            file.insert("user".into(), "root".into());
        }
        file.insert("routing".into(), routing);
    }
    serde_yaml::to_string(&file)
}

/// The configuration, checked and ready to run.
#[derive(Clone, Debug)]
pub(super) struct RoutingConfiguration {
    pub address: Ipv4Addr,
    pub(super) serves: Vec<Ipv4Addr>,
    pub(super) network: Prefix,
    pub interfaces: Vec<String>,
    pub(super) tun: String,
    pub(super) state: PathBuf,
    pub control: Option<PathBuf>,
    pub(super) nodes: Vec<PathBuf>,
    pub(super) keys: Option<KeyFile>,
    pub(super) user: Option<String>,
    pub(super) confine: Confine,
    pub(super) protocol: DaemonProtocol,
    pub(super) constants: ConstantValues,
}

impl RoutingConfiguration {
    /// The keys of the network, if it has some.
    pub(super) fn read_keys(&self) -> Result<Option<Keys>, Failure> {
        let read = |file: &KeyFile| {
            file.read().map_err(|problem| Failure::refused(file.path.display().to_string(), problem))
        };
        self.keys.as_ref().map(read).transpose()
    }
}

const MOST_INTERFACES: usize = 64;

hopwise_lab::schema_of!(RoutingFile, checked by read);

/// An interface of the file that this machine does not have.
pub(super) fn absent_interface(document: &Document, config: &RoutingConfiguration) -> Option<Failure> {
    let interfaces = config.interfaces.iter().enumerate();
    let at = |nth| YamlPath::root().key("interfaces").index(nth);
    hopwise_daemon::absent(document, interfaces.map(|(nth, name)| (at(nth), name.as_str())))
}

/// Reads and checks a configuration from its text.
#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn parse(text: &str) -> Checked<RoutingConfiguration> {
    read(&Document::parse("route.yaml", text)?)
}

pub(super) fn read(document: &Document) -> Checked<RoutingConfiguration> {
    file_kind::ROUTE.check(document)?;
    keys::check(document, json_schema())?;
    let root = YamlPath::root();
    refuse_unspoken_protocol(document, &root.key("routing"))?;
    let file: RoutingFile = document.read()?;
    let network: Prefix = file.network.parse().map_err(|error| {
        let problem = format!("`{}`: {error}", file.network);
        document.refuse(&root.key("network"), problem, "a network such as 10.0.0.0/24")
    })?;
    check_addresses(document, &file, network)?;
    check_number_of_interfaces(document, &file)?;
    check_interface(document, &root.key("tun"), &file.tun)?;
    check_state(document, file.state.as_deref())?;
    check_interfaces(document, &file)?;
    let at = root.key("routing");
    refuse_what_is_simulated(document, &file, &at)?;
    let Some(protocol) = file.routing.protocol().daemon else {
        return Err(document.refuse_key(&at, "static routes need no daemon", STATIC_INSTEAD));
    };
    refuse_foreign_keys(document, file.routing.protocol())?;
    let constants = file.routing.of_daemon().plan(document, &at)?.constants;
    let state = format!("/run/hopwise/route-{}", file.address);
    Ok(RoutingConfiguration {
        address: file.address,
        serves: file.serves,
        network,
        interfaces: file.interfaces,
        tun: file.tun,
        state: file.state.unwrap_or_else(|| PathBuf::from(state)),
        control: file.control,
        nodes: file.nodes,
        keys: file.keys.map(|path| KeyFile {
            path,
            clock_within: file.clock_within.map(|time| time.0),
            user: Privileges::uid_of_daemon(file.user.as_deref()),
        }),
        user: file.user,
        confine: file.confine,
        protocol,
        constants,
    })
}

fn check_number_of_interfaces(document: &Document, file: &RoutingFile) -> Checked {
    if !file.interfaces.is_empty() && file.interfaces.len() <= MOST_INTERFACES {
        return Ok(());
    }
    let at = YamlPath::root().key("interfaces");
    let accepted = "1 to 64 interfaces, such as [wlan0]";
    Err(document.refuse(&at, "the number of interfaces is out of bounds", accepted))
}

/// Each interface is there once, and none is the TUN device.
fn check_interfaces(document: &Document, file: &RoutingFile) -> Checked {
    hopwise_daemon::check_interfaces(document, &YamlPath::root().key("interfaces"), &file.interfaces)?;
    if !file.interfaces.contains(&file.tun) {
        return Ok(());
    }
    let problem = format!("`{}` is one of `interfaces`", file.tun);
    let accepted = "a name that no device has, such as hopwise0";
    Err(document.refuse(&YamlPath::root().key("tun"), problem, accepted))
}

/// A file, or nothing yet. Its owner is looked at when it is opened.
fn check_state(document: &Document, path: Option<&Path>) -> Checked {
    let Some(path) = path else { return Ok(()) };
    let is_other = fs::symlink_metadata(path).is_ok_and(|facts| !facts.is_file());
    if path.file_name().is_some() && !is_other {
        return Ok(());
    }
    let problem = format!("{} is no file", path.display());
    let accepted = "the path of a file that the daemon makes, such as /run/hopwise/route";
    Err(document.refuse(&YamlPath::root().key("state"), problem, accepted))
}

/// Checks that the node's own address and the addresses that it serves are different hosts of the network.
fn check_addresses(document: &Document, file: &RoutingFile, network: Prefix) -> Checked {
    let root = YamlPath::root();
    if !network.contains(file.address.into()) {
        let problem = format!("{} is outside {network}", file.address);
        return Err(document.refuse(&root.key("address"), problem, "an address in `network`"));
    }
    let trust = Trust { network: Some(network), ..Trust::default() };
    if !trust.covers(file.address) {
        let problem = format!("{} is not the address of a host", file.address);
        return Err(document.refuse(&root.key("address"), problem, "an address that only this machine has"));
    }
    for (nth, served) in file.serves.iter().enumerate() {
        let at = root.key("serves").index(nth);
        if !network.contains((*served).into()) {
            let problem = format!("{served} is outside {network}");
            return Err(document.refuse(&at, problem, "an address in `network`"));
        }
        if !trust.covers(*served) || *served == file.address {
            let problem = format!("{served} is not the address of another host");
            return Err(document.refuse(&at, problem, "an address of a node on this machine"));
        }
    }
    Ok(())
}

/// The protocols that a daemon speaks.
pub(crate) fn spoken() -> Vec<&'static str> {
    names(|protocol| protocol.daemon.is_some())
}

/// The section of a file that names a daemon's protocol.
const STATIC_INSTEAD: &str = "routing: { protocol: aodv }";

/// Refuses a name that is none of a protocol, before the reader names all protocols of simulations in its place.
fn refuse_unspoken_protocol(document: &Document, at: &YamlPath) -> Checked {
    let at = at.key("protocol");
    let Some(name) = document.value_of(&at).and_then(Value::as_str) else { return Ok(()) };
    if RoutingProtocol::named(name).is_some() {
        return Ok(());
    }
    let accepted = one_of(name, &spoken());
    Err(document.refuse(&at, format_args!("no routing protocol is called `{name}`"), &accepted))
}

/// Refuses what only simulations obey, and a time for clocks that no message carries.
fn refuse_what_is_simulated(document: &Document, file: &RoutingFile, at: &YamlPath) -> Checked {
    let (only, of_keys) = ("this key is only for simulations", "`keys: FILE` beside `network`");
    if let Some((what, at)) = file.routing.only_simulated(at) {
        return Err(match what {
            OnlySimulated::Protocol => {
                let problem = if file.routing.protocol().live.is_kernel() {
                    "this protocol is the kernel's own, and no daemon speaks it"
                } else {
                    "this protocol is only for simulations"
                };
                document.refuse(&at, problem, &spoken().join(" or "))
            }
            OnlySimulated::Rules => document.refuse(&at, "the rules of ns-2 are for simulations", "rfc3561"),
            OnlySimulated::Signed => document.refuse_key(&at, only, of_keys),
            OnlySimulated::HopLimit => {
                let accepted = "no such key: programs and the kernel set the hop limit of their packets";
                document.refuse_key(&at, only, accepted)
            }
            OnlySimulated::Forwarding => {
                document.refuse_key(&at, only, "no such key: the kernel forwards packets and queues them")
            }
        });
    }
    if file.clock_within.is_some() && file.keys.is_none() {
        let problem = "without keys no message carries a time";
        return Err(document.refuse_key(&YamlPath::root().key("clock_within"), problem, of_keys));
    }
    Ok(())
}

/// Constants of an unused protocol have no effect.
fn refuse_foreign_keys(document: &Document, protocol: &RoutingProtocol) -> Checked {
    let given = document.value_at("routing").and_then(Value::as_mapping);
    let keys = given.into_iter().flat_map(|given| given.keys().filter_map(Value::as_str));
    for key in keys {
        let at = YamlPath::root().key("routing").key(key);
        if !takes(protocol, key) {
            let problem = format!("`{key}` belongs to another protocol");
            return Err(document.refuse_key(&at, problem, "the constants of dymo in a section `dymo`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hopwise_mesh::constants::ConstantValue as Constant;

    use super::*;

    fn refused(text: &str) -> String {
        let document = Document::parse("route.yaml", text).expect("YAML");
        read(&document).expect_err("it makes no sense").to_string()
    }

    const GOOD: &str =
        "address: 10.0.0.1\nnetwork: 10.0.0.0/24\ninterfaces: [wlan0]\nrouting: { protocol: aodv }\n";

    #[test]
    fn an_interface_that_is_not_there_is_named_at_its_place() {
        let said = |interfaces: &str| {
            let document = Document::parse("route.yaml", &GOOD.replace("[wlan0]", interfaces)).expect("YAML");
            let config = read(&document).expect("a sound file");
            absent_interface(&document, &config).map(|failure| failure.to_string())
        };
        assert_eq!(said("[lo]"), None);
        let expected = "route.yaml:3:18: `interfaces.1`: no interface is called `hwnot0` here";
        assert!(
            said("[lo, hwnot0]").is_some_and(|said| said.starts_with(expected)),
            "{:?}",
            said("[lo, hwnot0]")
        );
    }

    #[test]
    fn a_short_file_is_enough_and_hellos_are_said() {
        let config = read(&Document::parse("route.yaml", GOOD).expect("YAML")).expect("accepted");
        assert!(config.constants.is_on("hello") && config.protocol.port == 654);
        assert_eq!((config.tun.as_str(), config.interfaces.len()), ("hopwise0", 1));
    }

    #[test]
    fn dymo_has_constants_of_its_own_and_asks_for_signs_of_life() {
        let dymo = GOOD.replace("protocol: aodv", "protocol: dymo, dymo: { max_hopcount: 9 }");
        let config = read(&Document::parse("route.yaml", &dymo).expect("YAML")).expect("accepted");
        assert!(config.constants.is_on("hello"));
        assert_eq!(config.constants.get("max_hopcount"), Some(Constant::Count(9)));
        let protocol = config.protocol;
        assert_eq!((protocol.port, protocol.everyone), (269, Ipv4Addr::new(224, 0, 0, 109)));
    }

    #[test]
    fn a_file_for_a_node_of_a_live_run_has_the_constants_of_its_scenario_and_is_accepted() {
        let seconds = |secs| Constant::Time(std::time::Duration::from_secs(secs));
        for (routing, hello, name, value) in [
            ("{ protocol: aodv, ttl_start: 5, rules: rfc3561 }", true, "ttl_start", Constant::Count(5)),
            (
                "{ protocol: aodv, hello: false, active_route_timeout: 2s }",
                false,
                "active_route_timeout",
                seconds(2),
            ),
            ("{ protocol: dymo, dymo: { max_hopcount: 9 } }", true, "max_hopcount", Constant::Count(9)),
        ] {
            let given: RoutingConfig = serde_yaml::from_str(routing).expect("YAML");
            let file = NodeFile {
                address: Ipv4Addr::new(10, 0, 0, 1),
                serves: vec![Ipv4Addr::new(10, 64, 0, 1)],
                network: hopwise_lab::live::NETWORK,
                interfaces: vec!["air0".to_owned()],
                nodes: Vec::new(),
            };
            let text = text(file, &given).expect("YAML");
            let config = read(&Document::parse("route.yaml", &text).expect("YAML")).expect("accepted");
            assert_eq!(config.constants.is_on("hello"), hello, "{text}");
            assert_eq!(config.constants.get(name), Some(value), "{text}");
            assert_eq!(config.serves, [Ipv4Addr::new(10, 64, 0, 1)]);
        }
    }

    #[test]
    fn the_file_that_comes_with_us_is_accepted() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/route.yaml");
        assert!(Document::load_with(Path::new(path), read).is_ok());
    }

    /// A text of a good file, its replacement, and the problem.
    const REFUSED: &[(&str, &str, &str)] = &[
        ("10.0.0.1", "10.9.0.1", "route.yaml:1:10: 10.9.0.1 is outside"),
        (
            "10.0.0.1\nnetwork: 10.0.0.0/24",
            "224.0.0.1\nnetwork: 224.0.0.0/4",
            "224.0.0.1 is not the address of a host",
        ),
        ("10.0.0.1\n", "10.0.0.255\n", "10.0.0.255 is not the address of a host"),
        ("10.0.0.1\n", "10.0.0.0\n", "10.0.0.0 is not the address of a host"),
        ("[wlan0]", "[wlan0]\nserves: [10.0.0.1]", "10.0.0.1 is not the address of another host"),
        ("protocol: aodv", "protocol: aodv, key: secret", "`key` changes nothing here"),
        ("protocol: aodv", "protocol: aodv, ack_seq: true, key: ' '", "the key is empty"),
        ("protocol: aodv", "protocol: dymo, dymo: { key: secret }", "`key` changes nothing here"),
        ("10.0.0.0/24", "10.0.0.0/99", "route.yaml:2:10: `10.0.0.0/99`"),
        ("[wlan0]", "[wlan0]\nserves: [10.9.0.1]", "10.9.0.1 is outside"),
        ("[wlan0]", "[all]", "`all` is no name of an interface"),
        ("[wlan0]", "[-all]", "`-all` is no name of an interface"),
        ("[wlan0]", "['..']", "`..` is no name of an interface"),
        ("[wlan0]", "[a23456789012345b]", "`a23456789012345b` is no name of an interface"),
        ("[wlan0]", "[wlan0]\ntun: hop%d", "`hop%d` is no name of an interface"),
        ("[wlan0]", "[wlan0]\ntun: wlan0", "`wlan0` is one of `interfaces`"),
        ("[wlan0]", "[wlan0]\nstate: /", "/ is no file"),
        ("[wlan0]", "[wlan0]\nstate: /tmp", "/tmp is no file"),
        ("[wlan0]", "[wlan0]\nstate: /dev/null", "/dev/null is no file"),
        ("[wlan0]", "[]", "the number of interfaces is out of bounds"),
        ("[wlan0]", "[wlan0, wlan0]", "`wlan0` is there twice"),
        ("protocol: aodv", "protocol: static", "static routes need no daemon"),
        ("protocol: aodv", "protocol: aodv, rules: ns2", "the rules of ns-2"),
        ("protocol: aodv", "protocol: aodv, signed: true", "this key is only for simulations"),
        ("protocol: aodv", "protocol: dymo, dymo: { signed: true }", "this key is only for simulations"),
        ("protocol: aodv", "protocol: aodv, data_hop_limit: 5", "this key is only for simulations"),
        ("protocol: aodv", "protocol: aodv, rerr_to_source: true", "this key is only for simulations"),
        ("protocol: aodv", "protocol: aodv, rerr_discards: true", "this key is only for simulations"),
        ("[wlan0]", "[wlan0]\nclock_within: 10s", "without keys no message carries a time"),
        ("protocol: aodv", "protocol: aodv, net_diameter: 0", "net_diameter: 0 is out of range"),
        ("protocol: aodv", "protocol: aodv, hello_interval: 2h", "hello_interval: 2h is out of range"),
        ("protocol: aodv", "protocol: dymo, ttl_start: 3", "`ttl_start` belongs to another protocol"),
        (
            "protocol: aodv",
            "protocol: dymo, dymo: { hello_interval: 2h }",
            "hello_interval: 2h is out of range",
        ),
    ];

    /// The refusal of that protocol, with what it says would be accepted.
    fn answered(protocol: &str) -> String {
        let refusal = parse(&GOOD.replace("protocol: aodv", &format!("protocol: {protocol}")));
        let refusal = refusal.expect_err("it is refused");
        let help = miette::Diagnostic::help(&*refusal).map_or(String::new(), |help| help.to_string());
        format!("{refusal}; {help}")
    }

    #[test]
    fn a_wrong_name_of_a_protocol_is_answered_with_those_that_a_daemon_speaks() {
        let said = answered("olsr");
        assert!(
            said.contains("no routing protocol is called `olsr`") && said.contains("aodv, dymo"),
            "{said}"
        );
        let near = answered("aodvv");
        assert!(near.contains("did you mean `aodv`? expected one of aodv, dymo"), "{near}");
        let others = [
            ("only for simulations", ["dsr", "gpsr"]),
            ("the kernel's own, and no daemon speaks it", ["batman", "hwmp"]),
        ];
        for (problem, protocols) in others {
            for said in protocols.map(answered) {
                assert!(said.contains(problem) && said.contains("aodv or dymo"), "{said}");
            }
        }
        for word in ["olsr", "aodvv"] {
            let said = answered(word);
            assert!(
                ["static", "dsr", "gpsr", "batman", "hwmp"].iter().all(|other| !said.contains(other)),
                "{said}"
            );
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_where_it_stands() {
        for &(from, to, problem) in REFUSED {
            let said = refused(&GOOD.replace(from, to));
            assert!(said.contains(problem), "{said}");
        }
    }
}
