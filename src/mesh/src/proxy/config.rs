//! Configuration of `hopwise proxy`: the keys, their meaning, and the checks that need several keys.

use std::net::IpAddr;
use std::path::PathBuf;

use hopwise_agents::base_station::forecast::ForecastSettings;
use hopwise_agents::registry::{DEFAULT_BASE_STATION, Kind};
use hopwise_agents::validate_base_station;
use hopwise_core::{LinkId, StationAddress};
use hopwise_lab::file_kind;
use hopwise_lab::keys;
use hopwise_lab::located::{Checked, Document, YamlPath};
use hopwise_lab::rules::Network;
use hopwise_lab::units::{Size, Time, number};
use hopwise_lab::words::OrOff;
use hopwise_mesh::{ProxyConfig, ProxyRule};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use hopwise_daemon::check_interface;
use hopwise_daemon::confine::Confine;
use hopwise_daemon::failure::Failure;
use hopwise_node::config::Fault;

/// The proxy's two sides, as its driver numbers them.
pub(super) const FIXED: LinkId = LinkId(0);
pub(super) const MOBILE: LinkId = LinkId(1);

/// A proxy of a base station, on a router between a wire and a radio.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProxySettings {
    /// TUN device of the fixed side, through which packets pass (default `{ name: hopf }`).
    #[serde(default = "fixed")]
    pub(super) fixed: Device,
    /// TUN device of the mobile side (default `{ name: hopm }`).
    #[serde(default = "mobile")]
    pub(super) mobile: Device,
    /// Path on which the traffic of a router reaches the proxy (default: none, and the administrator leads it there).
    pub(super) steer: Option<Steer>,
    /// Base-station agent of every flow without a rule of its own, such as `ack-hold` (default none).
    pub(super) agent: Option<String>,
    /// Rules that choose the agents of single flows; the first one that matches applies (default: none).
    #[serde(default)]
    pub(super) rules: Vec<Rule>,
    /// The most that flows take.
    #[serde(default)]
    pub(super) limits: Limits,
    /// Path of the control socket, for `hopwise proxy status` and `event`.
    #[serde(default = "control")]
    #[schemars(with = "String")]
    pub control: PathBuf,
    /// Interfaces whose carrier shows whether their mobiles can be reached (default: none).
    #[serde(default)]
    pub(super) carriers: Vec<Carrier>,
    /// Wi-Fi interfaces whose stations are polled (default: none).
    #[serde(default)]
    pub stations: Vec<Stations>,
    /// Fades that are known before they come (default: none).
    #[serde(default)]
    pub(super) schedule: Vec<Fade>,
    /// Forecast of fades from the strength of the signals of mobiles, which `stations` or `hopwise proxy event signal`
    /// report (default: none).
    pub(super) forecast: Option<Forecast>,
    /// Time without commands after which a proxy is killed, so that its traffic continues without it; off: never
    /// (default 1s).
    #[serde(default = "watchdog")]
    #[schemars(extend("x-range" = "600ms or more"))]
    pub(super) watchdog: OrOff<Time>,
    /// File for the trace (default: none).
    #[schemars(with = "Option<String>")]
    pub(super) trace: Option<PathBuf>,
    /// User that a daemon started by root becomes; root: it stays root (default: hopwise, or a
    /// number without a name where there is no such user).
    pub(super) user: Option<String>,
    /// Confinement of files and system calls by Landlock and seccomp, once everything is open (default on).
    #[serde(default)]
    pub(super) confine: Confine,
}

/// A TUN device.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Device {
    /// Name of the device.
    pub name: String,
    /// Faults that the device applies to packets, for tests (default: none).
    pub(super) fault: Option<Fault>,
}

fn fixed() -> Device {
    Device { name: "hopf".to_owned(), fault: None }
}

fn mobile() -> Device {
    Device { name: "hopm".to_owned(), fault: None }
}

fn watchdog() -> OrOff<Time> {
    OrOff::On(Time::millis::<1_000>())
}

pub(super) fn control() -> PathBuf {
    PathBuf::from("/run/hopwise/proxy.sock")
}

/// A router with an interface to the wire and one to the radio.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Steer {
    /// Interface to the wire.
    pub(super) wire: String,
    /// Interface to the radio.
    pub(super) radio: String,
    /// Networks of the mobiles, at least one.
    pub(super) mobiles: Vec<Network>,
    /// Path of the packets (default tun).
    #[serde(default)]
    pub(super) by: By,
    // The kernel's own tables end at 255, its own rules begin at 32766, and the second table is the next one.
    /// First of two routing tables for the proxy alone, and the priority of the routing rules that lead there (by: tun;
    /// default 7100).
    #[schemars(extend("x-range" = "256 to 32765", "x-unit" = "no unit"))]
    table: Option<u32>,
    /// First of two queues for the proxy alone (by: nfqueue; default 7100).
    #[schemars(extend("x-range" = "0 to 65534", "x-unit" = "no unit"))]
    queue: Option<u16>,
}

/// The path on which the router's traffic reaches the proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum By {
    /// Routing rules lead through the devices `fixed` and `mobile`.
    #[default]
    Tun,
    /// The kernel queues packets for a verdict before it forwards them.
    Nfqueue,
    /// Both interfaces are ports of one bridge.
    Bridge,
}

/// Default of the first routing table and of the first queue.
const FIRST: u16 = 7100;

impl Steer {
    pub(super) fn table(&self) -> u32 {
        self.table.unwrap_or(FIRST.into())
    }

    pub(super) fn queue(&self) -> u16 {
        self.queue.unwrap_or(FIRST)
    }
}

/// A rule that chooses the agent of a flow. The first rule that matches applies.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    /// Flows that the rule applies to (default: all).
    #[serde(default, rename = "match")]
    pub(super) matches: Match,
    /// Base-station agent of the flow, or none.
    pub(super) agent: String,
}

/// Conditions on a flow. A rule applies if all conditions given here hold.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Match {
    /// Network or address of the mobile (default: any).
    pub(super) mobile: Option<Network>,
    /// Network or address of the other end (default: any).
    pub(super) fixed: Option<Network>,
    /// Port of either end (default: any).
    pub(super) port: Option<u16>,
}

/// The most that flows take.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Limits {
    /// Number of flows.
    #[schemars(extend("x-range" = "1 or more", "x-unit" = "flows"))]
    pub(super) flows: usize,
    /// Memory for the waiting packets of all flows, and for the buffers of flows that are cut in two.
    pub(super) kept: Size,
    /// Memory for the waiting packets of one flow.
    pub(super) kept_a_flow: Size,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { flows: 10_000, kept: Size(64 << 20), kept_a_flow: Size(8 << 20) }
    }
}

/// An interface whose carrier shows whether its mobiles can be reached.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Carrier {
    /// Name of the interface.
    pub interface: String,
    /// Addresses of its mobiles.
    pub(super) mobiles: Vec<IpAddr>,
}

/// Forecast of fades from the strength of the signals of mobiles.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Forecast {
    /// Signal below which a link is lost.
    #[schemars(extend("x-range" = "-150 to 0"))]
    pub(super) threshold_dbm: f64,
    /// Rise above the threshold from which a link is back.
    #[schemars(extend("x-range" = "0 to 50"))]
    pub(super) hysteresis_db: f64,
    /// Time before a fade at which it is foretold.
    pub(super) lead: Time,
    /// Time span of the samples that the trend is fitted to.
    pub(super) window: Time,
    /// Time without a sample after which a mobile is gone.
    pub(super) silence: Time,
    /// Expected length of the first fade.
    pub(super) first: Time,
}

impl Default for Forecast {
    fn default() -> Forecast {
        let ForecastSettings { threshold_dbm, hysteresis_db, lead, window, silence, first } =
            ForecastSettings::default();
        let [lead, window, silence, first] = [lead, window, silence, first].map(Time);
        Forecast { threshold_dbm, hysteresis_db, lead, window, silence, first }
    }
}

impl Forecast {
    pub(super) fn settings(&self) -> ForecastSettings {
        ForecastSettings {
            threshold_dbm: self.threshold_dbm,
            hysteresis_db: self.hysteresis_db,
            lead: self.lead.0,
            window: self.window.0,
            silence: self.silence.0,
            first: self.first.0,
        }
    }
}

/// A Wi-Fi interface, and the mobiles among its stations.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Stations {
    /// Name of the Wi-Fi interface.
    pub interface: String,
    /// Mobiles among its stations.
    pub(super) mobiles: Vec<StationOf>,
    /// Time between two looks at the mobiles; the driver reports every 50 ms.
    #[serde(default = "Time::millis::<100>")]
    #[schemars(extend("x-range" = "50ms or more"))]
    pub(super) every: Time,
    /// Age beyond which a signal is ignored.
    #[serde(default = "Time::millis::<500>")]
    pub(super) stale: Time,
    /// Time without a frame after which a station is gone.
    #[serde(default = "Time::millis::<2_000>")]
    pub(super) silence: Time,
    /// Number of consecutive undelivered frames after which a station is gone.
    #[serde(default = "number::<u32, 50>")]
    #[schemars(extend("x-range" = "0 or more", "x-unit" = "frames"))]
    pub(super) failures: u32,
}

/// A mobile, and its station.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StationOf {
    /// Address of the mobile.
    pub address: IpAddr,
    /// Its Ethernet address, as `iw dev wlan0 station dump` writes it.
    pub station: Hardware,
}

/// An address as `iw dev wlan0 station dump` writes it.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(with = "String")]
pub(super) struct Hardware(pub(super) StationAddress);

impl<'de> Deserialize<'de> for Hardware {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Hardware, D::Error> {
        let text = String::deserialize(from)?;
        let custom = |error| serde::de::Error::custom(format_args!("`{text}`: {error}"));
        text.parse().map(Hardware).map_err(custom)
    }
}

/// A fade that is known, with times from the start of the proxy.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fade {
    /// Address of the mobile.
    pub(super) mobile: IpAddr,
    /// Start of the fade.
    pub(super) begins: Time,
    /// End of the fade, after its start.
    pub(super) ends: Time,
    /// Time before the fade at which the proxy is told.
    #[serde(default = "Time::millis::<200>")]
    pub(super) lead: Time,
}

hopwise_lab::schema_of!(ProxySettings, checked by read);

/// An interface with a carrier that this machine does not have.
pub(super) fn absent_carrier(document: &Document, config: &ProxySettings) -> Option<Failure> {
    let carriers = config.carriers.iter().enumerate();
    let at = |nth| YamlPath::root().key("carriers").index(nth).key("interface");
    hopwise_daemon::absent(document, carriers.map(|(nth, carrier)| (at(nth), carrier.interface.as_str())))
}

/// Reads and checks a configuration from its text.
#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn parse(text: &str) -> Checked<ProxySettings> {
    read(&Document::parse("proxy.yaml", text)?)
}

pub(super) fn read(document: &Document) -> Checked<ProxySettings> {
    file_kind::PROXY.check(document)?;
    keys::check(document, json_schema())?;
    let config: ProxySettings = document.read()?;
    let spec = |at: &YamlPath, spec: &str| {
        validate_base_station(spec).map_err(|error| document.refuse_spec(at, Kind::BaseStation, &error))
    };
    if let Some(agent) = &config.agent {
        spec(&YamlPath::root().key("agent"), agent)?;
    }
    for (nth, rule) in config.rules.iter().enumerate() {
        spec(&YamlPath::root().key("rules").index(nth).key("agent"), &rule.agent)?;
    }
    for (key, device) in [("fixed", &config.fixed), ("mobile", &config.mobile)] {
        check_interface(document, &YamlPath::root().key(key).key("name"), &device.name)?;
    }
    if config.fixed.name == config.mobile.name {
        let at = YamlPath::root().key("mobile").key("name");
        return Err(document.refuse_key(&at, "both sides have the same device", "another name"));
    }
    if let Some(steer) = &config.steer {
        check_steer(document, steer)?;
    }
    for (nth, fade) in config.schedule.iter().enumerate() {
        if fade.ends.0 <= fade.begins.0 {
            let at = YamlPath::root().key("schedule").index(nth).key("ends");
            return Err(document.refuse(&at, "the end is before the beginning", "later than `begins`"));
        }
    }
    Ok(config)
}

fn check_steer(document: &Document, steer: &Steer) -> Checked {
    let at = YamlPath::root().key("steer");
    if steer.mobiles.is_empty() {
        let accepted = "a network such as 10.9.0.0/24";
        return Err(document.refuse(&at.key("mobiles"), "no mobile is named", accepted));
    }
    for (key, name) in [("wire", &steer.wire), ("radio", &steer.radio)] {
        check_interface(document, &at.key(key), name)?;
    }
    if steer.wire == steer.radio {
        return Err(document.refuse(
            &at.key("radio"),
            "the wire and the radio are the same interface",
            "another interface",
        ));
    }
    let others = [
        ("table", steer.table.is_some(), By::Tun, "tun"),
        ("queue", steer.queue.is_some(), By::Nfqueue, "nfqueue"),
    ];
    for (key, is_given, by, name) in others {
        if is_given && steer.by != by {
            let accepted = format!("it goes with `by: {name}`");
            return Err(document.refuse_key(&at.key(key), "the key has no effect here", &accepted));
        }
    }
    Ok(())
}

impl ProxySettings {
    /// Returns whether some flow may be cut in two.
    pub(super) fn cuts(&self) -> bool {
        let mut agents = self.agent.iter().chain(self.rules.iter().map(|rule| &rule.agent));
        agents.any(|agent| agent.split(':').next() == Some("split"))
    }

    pub(super) fn proxy(&self, trace_events: usize) -> ProxyConfig {
        let prefix = |network: &Option<Network>| network.as_ref().map(|network| network.0);
        let rule = |rule: &Rule| ProxyRule {
            mobile: prefix(&rule.matches.mobile),
            fixed: prefix(&rule.matches.fixed),
            port: rule.matches.port,
            agent: rule.agent.clone(),
        };
        let default = self.agent.as_deref().unwrap_or(DEFAULT_BASE_STATION);
        let base = ProxyConfig::new(FIXED, MOBILE, default);
        let bytes = |size: &Size| usize::try_from(size.0).unwrap_or(usize::MAX);
        ProxyConfig {
            rules: self.rules.iter().map(rule).chain(base.rules.iter().cloned()).collect(),
            most_flows: self.limits.flows,
            most_kept_bytes: bytes(&self.limits.kept),
            most_kept_bytes_a_flow: bytes(&self.limits.kept_a_flow),
            trace_events,
            ..base
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let document = Document::parse("proxy.yaml", text).expect("a document");
        let refusal = read(&document).expect_err(text);
        format!(
            "{refusal} ({})",
            miette::Diagnostic::help(&*refusal).map_or_else(String::new, |h| h.to_string())
        )
    }

    #[test]
    fn the_example_is_accepted_and_says_what_it_says() {
        let text = include_str!("../../../../configs/proxy.yaml");
        let config = read(&Document::parse("proxy.yaml", text).expect("a document")).expect("accepted");
        let proxy = config.proxy(0);
        let agents: Vec<_> = proxy.rules.iter().map(|rule| rule.agent.as_str()).collect();
        assert_eq!(agents, ["none", "ack-hold"]);
        assert!(config.steer.is_some());
        assert_eq!(config.watchdog, watchdog());
        let off = read(&Document::parse("proxy.yaml", "watchdog: off\n").expect("a document"));
        assert_eq!(off.expect("accepted").watchdog, OrOff::Off);
    }

    /// A file, and the refusal.
    const REFUSED: &[(&str, &str)] = &[
        ("agent: ack-hild\n", "proxy.yaml:1:8: no base-station agent is called `ack-hild`"),
        ("agent: delayed\n", "a base-station agent is wanted"),
        ("rules:\n  - { agent: \"ack-hold:mode=best\" }\n", "`mode` cannot be `best`"),
        ("fixed: { name: x }\nmobile: { name: x }\n", "both sides have the same device"),
        ("steer: { wire: a, radio: b, mobiles: [] }\n", "no mobile is named"),
        ("steer: { wire: -all, radio: b, mobiles: [10.0.0.0/8] }\n", "proxy.yaml:1:16: `-all` is no name"),
        ("mobile: { name: -all }\n", "proxy.yaml:1:17: `-all` is no name of an interface"),
        ("steer: { wire: a, radio: a, mobiles: [10.0.0.0/8] }\n", "another interface"),
        ("steer: { wire: a, radio: b, mobiles: [10.0.0.0/8], table: 254 }\n", "(256 to 32765)"),
        ("schedule: [{ mobile: 10.0.0.1, begins: 5s, ends: 4s }]\n", "the end is before the beginning"),
        ("schedule: [{ mobile: 10.0.0.1, begins: -5s, ends: 4s }]\n", "a time with its unit"),
        ("steer: { wire: a, radio: b, mobiles: [10.0.0.0/8], queue: 3 }\n", "it goes with `by: nfqueue`"),
        ("steer: { wire: a, radio: b, mobiles: [10.0.0.0/8], by: bridge, table: 300 }\n", "`by: tun`"),
        ("steer: { wire: a, radio: b, mobiles: [10.0.0.0/8], by: veth }\n", "`veth` does not fit here"),
        (
            "stations: [{ interface: w, mobiles: [{ address: 10.0.0.1, station: 2:0 }] }]\n",
            "no Ethernet address",
        ),
        ("stations: [{ interface: w, every: 1ms, mobiles: [] }]\n", "(50ms or more)"),
        ("limits: { flows: 0 }\n", "flows: 0 is out of range"),
        ("forecast: { threshold_dbm: 3 }\n", "(-150 to 0)"),
        ("forecast: { hysteresis_db: .nan }\n", "(0 to 50)"),
        ("watchdog: 10ms\n", "(600ms or more)"),
        ("watchdog: maybe\n", ", or off"),
        ("limit: 3\n", "unknown field `limit`"),
    ];

    #[test]
    fn what_is_wrong_is_refused_at_its_place_with_what_would_be_accepted() {
        for &(text, said) in REFUSED {
            let message = refused(text);
            assert!(message.contains(said), "{text}: {message}");
        }
    }
}
