//! Configuration of `hopwise proxy`: the keys, their meaning, and the checks that need several keys.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hopwise_agents::base_station::forecast::ForecastSettings;
use hopwise_agents::registry::{DEFAULT_BASE_STATION, Kind};
use hopwise_agents::validate_base_station;
use hopwise_core::{LinkId, StationAddress};
use hopwise_host::nl80211::EVERY;
use hopwise_lab::located::{Document, LoadError, Refusal, YamlPath};
use hopwise_lab::rules::Network;
use hopwise_lab::units::{Size, Time};
use hopwise_mesh::{ProxyConfig, ProxyRule};
use serde::{Deserialize, Deserializer};

use super::watchdog::{self, Patience};
use crate::daemon::confine::Confine;
use crate::node::config::Fault;

/// The proxy's two sides, as its driver numbers them.
pub(super) const FIXED: LinkId = LinkId(0);
pub(super) const MOBILE: LinkId = LinkId(1);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// TUN device of the fixed side, through which packets pass.
    #[serde(default = "fixed")]
    pub(super) fixed: Device,
    /// TUN device of the mobile side.
    #[serde(default = "mobile")]
    pub(super) mobile: Device,
    /// Leads a router's traffic through the proxy.
    pub(super) steer: Option<Steer>,
    /// Agent of every flow without a rule of its own.
    pub(super) agent: Option<String>,
    #[serde(default)]
    pub(super) rules: Vec<Rule>,
    #[serde(default)]
    pub(super) limits: Limits,
    /// Path of the control socket.
    #[serde(default = "control")]
    pub(super) control: PathBuf,
    /// Interfaces whose carrier shows whether their mobiles can be reached.
    #[serde(default)]
    pub(super) carriers: Vec<Carrier>,
    /// Wi-Fi interfaces whose stations are polled.
    #[serde(default)]
    pub(super) stations: Vec<Stations>,
    /// Fades that are known before they come.
    #[serde(default)]
    pub(super) schedule: Vec<Fade>,
    /// Forecasts fades from the strength of mobiles' signals, as `hopwise proxy event signal` reports it.
    pub(super) forecast: Option<Forecast>,
    /// Time without commands after which a proxy is killed; its traffic continues without it.
    #[serde(default)]
    pub(super) watchdog: Patience,
    /// File for the trace.
    pub(super) trace: Option<PathBuf>,
    /// User that the daemon becomes.
    pub(super) user: Option<String>,
    /// Confinement of files and system calls.
    #[serde(default)]
    pub(super) confine: Confine,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Device {
    pub(super) name: String,
    /// Faults that the device applies to packets; for tests.
    pub(super) fault: Option<Fault>,
}

fn fixed() -> Device {
    Device { name: "hopf".to_owned(), fault: None }
}

fn mobile() -> Device {
    Device { name: "hopm".to_owned(), fault: None }
}

pub(super) fn control() -> PathBuf {
    PathBuf::from("/run/hopwise/proxy.sock")
}

/// A router with an interface to the wire and one to the radio.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Steer {
    pub(super) wire: String,
    pub(super) radio: String,
    pub(super) mobiles: Vec<Network>,
    #[serde(default)]
    pub(super) by: By,
    /// With `tun`: the first of two routing tables for the proxy alone, and the priority of the rules that lead there.
    table: Option<u32>,
    priority: Option<u32>,
    /// With `nfqueue`: the first of two queues for the proxy alone.
    queue: Option<u16>,
}

/// The path on which the router's traffic reaches the proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
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

/// Default of the first routing table, of the rules' priority and of the first queue.
const FIRST: u16 = 7100;

impl Steer {
    pub(super) fn table(&self) -> u32 {
        self.table.unwrap_or(FIRST.into())
    }

    pub(super) fn priority(&self) -> u32 {
        self.priority.unwrap_or(FIRST.into())
    }

    pub(super) fn queue(&self) -> u16 {
        self.queue.unwrap_or(FIRST)
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    #[serde(default, rename = "match")]
    pub(super) matches: Match,
    pub(super) agent: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Match {
    pub(super) mobile: Option<Network>,
    pub(super) fixed: Option<Network>,
    /// Port of either end.
    pub(super) port: Option<u16>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Limits {
    pub(super) flows: usize,
    /// Memory for waiting packets of all flows, and for the buffers of flows that are cut in two.
    pub(super) kept: Size,
    /// Memory for waiting packets of one flow.
    pub(super) kept_a_flow: Size,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { flows: 10_000, kept: Size(64 << 20), kept_a_flow: Size(8 << 20) }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Carrier {
    pub(super) interface: String,
    pub(super) mobiles: Vec<IpAddr>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Forecast {
    pub(super) threshold_dbm: f64,
    pub(super) hysteresis_db: f64,
    pub(super) lead: Time,
    /// The time span of the samples that the trend is fitted to.
    pub(super) window: Time,
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
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stations {
    pub(super) interface: String,
    pub(super) mobiles: Vec<StationOf>,
    /// Time between two looks at the mobiles; the driver reports every 50 ms.
    #[serde(default = "every")]
    pub(super) every: Time,
    /// Age beyond which a signal is ignored.
    #[serde(default = "stale")]
    pub(super) stale: Time,
    /// Time without a frame after which a station is gone.
    #[serde(default = "silence")]
    pub(super) silence: Time,
    /// Consecutive undelivered frames after which a station is gone.
    #[serde(default = "failures")]
    pub(super) failures: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StationOf {
    pub(super) address: IpAddr,
    pub(super) station: Hardware,
}

/// An address as `iw dev wlan0 station dump` writes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hardware(pub(super) StationAddress);

impl<'de> Deserialize<'de> for Hardware {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Hardware, D::Error> {
        let text = String::deserialize(from)?;
        let custom = |error| serde::de::Error::custom(format_args!("`{text}`: {error}"));
        text.parse().map(Hardware).map_err(custom)
    }
}

fn every() -> Time {
    Time(Duration::from_millis(100))
}

fn stale() -> Time {
    Time(Duration::from_millis(500))
}

fn silence() -> Time {
    Time(Duration::from_secs(2))
}

fn failures() -> u32 {
    50
}

/// A fade, with times from the proxy's start.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fade {
    pub(super) mobile: IpAddr,
    pub(super) begins: Time,
    pub(super) ends: Time,
    #[serde(default = "lead")]
    pub(super) lead: Time,
}

fn lead() -> Time {
    Time(Duration::from_millis(200))
}

pub(super) fn load(path: &Path) -> Result<Config, LoadError> {
    let document = Document::load(path)?;
    read(&document).map_err(LoadError::Refused)
}

fn read(document: &Document) -> Result<Config, Box<Refusal>> {
    let config: Config = document.read()?;
    let spec = |at: &YamlPath, spec: &str| {
        validate_base_station(spec).map_err(|error| document.refuse_spec(at, Kind::BaseStation, &error))
    };
    if let Some(agent) = &config.agent {
        spec(&YamlPath::root().key("agent"), agent)?;
    }
    for (nth, rule) in config.rules.iter().enumerate() {
        spec(&YamlPath::root().key("rules").index(nth).key("agent"), &rule.agent)?;
    }
    if config.fixed.name == config.mobile.name {
        let at = YamlPath::root().key("mobile").key("name");
        return Err(document.refuse_key(&at, "both sides have the same device", "another name"));
    }
    if let Some(steer) = &config.steer {
        check_steer(document, steer)?;
    }
    if config.limits.flows == 0 {
        let at = YamlPath::root().key("limits").key("flows");
        return Err(document.refuse(&at, "zero flows leave no work", "1 or more"));
    }
    if config.watchdog.0.is_some_and(|patience| patience < watchdog::LEAST) {
        let at = YamlPath::root().key("watchdog");
        return Err(document.refuse(&at, "a busy proxy would be taken for a hanging one", "600ms or more"));
    }
    if let Some(forecast) = &config.forecast {
        check_forecast(document, forecast)?;
    }
    for (nth, stations) in config.stations.iter().enumerate() {
        if stations.every.0 < EVERY {
            let at = YamlPath::root().key("stations").index(nth).key("every");
            return Err(document.refuse(&at, "the interval is too short", "50ms or more"));
        }
    }
    for (nth, fade) in config.schedule.iter().enumerate() {
        if fade.ends.0 <= fade.begins.0 {
            let at = YamlPath::root().key("schedule").index(nth).key("ends");
            return Err(document.refuse(&at, "the end is before the beginning", "later than `begins`"));
        }
    }
    Ok(config)
}

fn check_forecast(document: &Document, forecast: &Forecast) -> Result<(), Box<Refusal>> {
    let at = YamlPath::root().key("forecast");
    if !(-150.0..=0.0).contains(&forecast.threshold_dbm) {
        let problem = format!("threshold_dbm: {}", forecast.threshold_dbm);
        return Err(document.refuse(&at.key("threshold_dbm"), problem, "a number from -150 to 0"));
    }
    if !(0.0..=50.0).contains(&forecast.hysteresis_db) {
        let problem = format!("hysteresis_db: {}", forecast.hysteresis_db);
        return Err(document.refuse(&at.key("hysteresis_db"), problem, "a number from 0 to 50"));
    }
    Ok(())
}

fn check_steer(document: &Document, steer: &Steer) -> Result<(), Box<Refusal>> {
    let at = YamlPath::root().key("steer");
    if steer.mobiles.is_empty() {
        let accepted = "a network such as 10.9.0.0/24";
        return Err(document.refuse(&at.key("mobiles"), "no mobile is named", accepted));
    }
    if steer.wire == steer.radio {
        return Err(document.refuse(
            &at.key("radio"),
            "the wire and the radio are the same interface",
            "another interface",
        ));
    }
    // The kernel's own tables end at 255, and the second table is the next one.
    if steer.table() <= 255 || steer.table() == u32::MAX {
        let accepted = "256 or more";
        return Err(document.refuse(&at.key("table"), format!("table {}", steer.table()), accepted));
    }
    if steer.queue() == u16::MAX {
        let accepted = "65534 or less";
        return Err(document.refuse(&at.key("queue"), "there is no second queue", accepted));
    }
    let others = [
        ("table", steer.table.is_some(), By::Tun, "tun"),
        ("priority", steer.priority.is_some(), By::Tun, "tun"),
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

impl Config {
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
        let text = include_str!("../../configs/proxy.yaml");
        let config = read(&Document::parse("proxy.yaml", text).expect("a document")).expect("accepted");
        let proxy = config.proxy(0);
        let agents: Vec<_> = proxy.rules.iter().map(|rule| rule.agent.as_str()).collect();
        assert_eq!(agents, ["none", "ack-hold"]);
        assert!(config.steer.is_some());
        assert_eq!(config.watchdog, Patience::default());
        let off = read(&Document::parse("proxy.yaml", "watchdog: off\n").expect("a document"));
        assert_eq!(off.expect("accepted").watchdog, Patience(None));
    }

    /// A file, and the refusal.
    const REFUSED: &[(&str, &str)] = &[
        ("agent: ack-hild\n", "proxy.yaml:1:8: no base-station agent is called `ack-hild`"),
        ("agent: delayed\n", "a base-station agent is wanted"),
        ("rules:\n  - { agent: \"ack-hold:mode=best\" }\n", "`mode` cannot be `best`"),
        ("fixed: { name: x }\nmobile: { name: x }\n", "both sides have the same device"),
        ("steer: { wire: a, radio: b, mobiles: [] }\n", "no mobile is named"),
        ("steer: { wire: a, radio: a, mobiles: [10.0.0.0/8] }\n", "another interface"),
        ("steer: { wire: a, radio: b, mobiles: [10.0.0.0/8], table: 254 }\n", "(256 or more)"),
        ("schedule: [{ mobile: 10.0.0.1, begins: 5s, ends: 4s }]\n", "the end is before the beginning"),
        ("schedule: [{ mobile: 10.0.0.1, begins: -5s, ends: 4s }]\n", "a time with its unit"),
        ("steer: { wire: a, radio: b, mobiles: [10.0.0.0/8], queue: 3 }\n", "it goes with `by: nfqueue`"),
        ("steer: { wire: a, radio: b, mobiles: [10.0.0.0/8], by: bridge, table: 300 }\n", "`by: tun`"),
        ("steer: { wire: a, radio: b, mobiles: [10.0.0.0/8], by: veth }\n", "unknown variant `veth`"),
        (
            "stations: [{ interface: w, mobiles: [{ address: 10.0.0.1, station: 2:0 }] }]\n",
            "no Ethernet address",
        ),
        ("stations: [{ interface: w, every: 1ms, mobiles: [] }]\n", "(50ms or more)"),
        ("limits: { flows: 0 }\n", "zero flows leave no work"),
        ("forecast: { threshold_dbm: 3 }\n", "a number from -150 to 0"),
        ("forecast: { hysteresis_db: .nan }\n", "a number from 0 to 50"),
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
