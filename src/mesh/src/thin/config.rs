//! The file of `hopwise thin`: interfaces, and agents by interface, port and network.

use std::path::Path;

use hopwise_agents::StandardAgents;
use hopwise_agents::registry::Kind;
use hopwise_core::agent::AgentMaker;
use hopwise_lab::located::{Checked, Document, YamlPath, one_of};
use hopwise_lab::rules::{Network, receiver};
use hopwise_lab::{file_kind, keys};
use hopwise_mesh::ThinRule;
use schemars::JsonSchema;
use serde::Deserialize;

use hopwise_daemon::check_interfaces;
use hopwise_daemon::failure::Failure;

pub(super) const DEFAULT_RECEIVER: &str = "delayed:d=8";

/// Interfaces whose ACKs wait, and the agents that decide.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ThinSettings {
    /// Interfaces by which ACKs leave, at least one.
    pub(super) interfaces: Vec<String>,
    /// Receiver agent of flows without a rule (default delayed:d=8).
    #[schemars(schema_with = "receiver")]
    #[serde(default)]
    receiver: Option<String>,
    /// Rules that choose the receiver agent of a flow; the first one that matches applies (default: none).
    #[serde(default)]
    rules: Vec<FlowRule>,
}

/// A rule that chooses the receiver agent of a flow.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FlowRule {
    /// Flows that the rule applies to (default: all).
    #[serde(default, rename = "match")]
    matches: FlowMatch,
    /// Receiver agent, such as `aad`; `immediate` lets each ACK go on.
    #[schemars(schema_with = "receiver")]
    receiver: String,
}

/// Conditions on a flow. A rule applies if all conditions given here hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct FlowMatch {
    /// Interface by which the ACKs leave, one of `interfaces` (default: any).
    interface: Option<String>,
    /// Port of either end (default: any).
    port: Option<u16>,
    /// Address or network of the end that gets the ACKs (default: any).
    network: Option<Network>,
}

hopwise_lab::schema_of!(ThinSettings, checked by read);

/// Reads and checks a file, whose interfaces have to be there.
pub(super) fn load(path: &Path) -> Result<ThinSettings, Failure> {
    let (document, settings) = Document::load_with(path, read)?;
    let at = |nth| YamlPath::root().key("interfaces").index(nth);
    let all = settings.interfaces.iter().enumerate().map(|(nth, name)| (at(nth), name.as_str()));
    hopwise_daemon::absent(&document, all).map_or(Ok(settings.clone()), Err)
}

fn read(document: &Document) -> Checked<ThinSettings> {
    file_kind::THIN.check(document)?;
    keys::check(document, json_schema())?;
    let settings: ThinSettings = document.read()?;
    let root = YamlPath::root();
    let spec = |at: &YamlPath, spec: &str| {
        let checked = hopwise_agents::validate_receiver(spec).map(drop);
        checked.map_err(|error| document.refuse_spec(&at.key("receiver"), Kind::Receiver, &error))
    };
    let names: Vec<&str> = settings.interfaces.iter().map(String::as_str).collect();
    if names.is_empty() {
        let accepted = "a list such as [wlan0]";
        return Err(document.refuse(&root.key("interfaces"), "no interface is named", accepted));
    }
    check_interfaces(document, &root.key("interfaces"), &settings.interfaces)?;
    settings.receiver.as_deref().map_or(Ok(()), |receiver| spec(&root, receiver))?;
    for (nth, rule) in settings.rules.iter().enumerate() {
        let at = root.key("rules").index(nth);
        spec(&at, &rule.receiver)?;
        let at = at.key("match");
        if let Some(name) = rule.matches.interface.as_deref().filter(|name| !names.contains(name)) {
            let problem = format!("`{name}` is none of `interfaces`");
            return Err(document.refuse(&at.key("interface"), problem, &one_of(name, &names)));
        }
        if let Some(first) = settings.rules[..nth].iter().position(|before| before.matches == rule.matches) {
            let problem = format!("the rule {} has these conditions already and applies first", first + 1);
            let at = root.key("rules").index(nth);
            return Err(document.refuse(&at, problem, "another `match`, or a single rule with it"));
        }
    }
    Ok(settings)
}

impl ThinSettings {
    /// Settings of the command line.
    pub(super) fn of(interfaces: &[String], receiver: &str) -> ThinSettings {
        let receiver = Some(receiver.to_owned());
        ThinSettings { interfaces: interfaces.to_vec(), receiver, rules: Vec::new() }
    }

    /// The agent of flows without a rule.
    pub(super) fn receiver(&self) -> &str {
        self.receiver.as_deref().unwrap_or(DEFAULT_RECEIVER)
    }

    /// The rules, and last a rule for all other flows.
    pub(super) fn rules(&self) -> Result<Vec<ThinRule>, Failure> {
        let agents = StandardAgents::default();
        let make = |spec: &str| agents.receiver(spec).map_err(|error| Failure::refused("--receiver", error));
        let rule = |rule: &FlowRule| {
            let FlowMatch { interface, port, network } = &rule.matches;
            let interface = interface.as_ref().and_then(|name| place_of(&self.interfaces, name));
            let network = network.map(|network| network.0);
            Ok(ThinRule { interface, port: *port, network, receiver: make(&rule.receiver)? })
        };
        let last = make(self.receiver()).map(|receiver| ThinRule {
            interface: None,
            port: None,
            network: None,
            receiver,
        });
        self.rules.iter().map(rule).chain([last]).collect()
    }
}

/// The number of an interface in rules.
pub(super) fn place_of(interfaces: &[String], name: &str) -> Option<u16> {
    interfaces.iter().position(|known| known == name).and_then(|nth| u16::try_from(nth).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let document = Document::parse("thin.yaml", text);
        document.and_then(|document| read(&document)).expect_err("it is wrong").to_string()
    }

    #[test]
    fn the_example_chooses_agents_by_interface_port_and_network() {
        let text = include_str!("../../../../configs/keys/thin.yaml");
        let document = Document::parse("thin.yaml", text).expect("a document");
        let settings = read(&document).expect("it is sound");
        let rules = settings.rules().expect("agents that there are");
        assert_eq!(rules.len(), settings.rules.len() + 1);
        assert!(rules.iter().any(|rule| rule.interface.is_some()) && rules[0].port.is_some());
        assert!(rules.iter().any(|rule| rule.network.is_some()));
    }

    #[test]
    fn wrong_files_are_refused_with_their_line() {
        let rule = |keys: &str| format!("interfaces: [a]\nrules:\n  - {keys}\n");
        let twice = "{ match: { port: 1 }, receiver: aad }\n  - { match: { port: 1 }, receiver: dca }";
        for (text, said) in [
            ("interfaces: []\n", "thin.yaml:1:13: no interface is named"),
            ("interfaces: [a, -all]\n", "thin.yaml:1:17: `-all` is no name of an interface"),
            ("interfaces: [a, a]\n", "thin.yaml:1:17: `a` is there twice"),
            ("interfaces: [a]\nreceiver: add\n", "thin.yaml:2:11: no receiver agent is called `add`"),
            (&*rule("receiver: add"), "thin.yaml:3:15: no receiver agent"),
            (&*rule("{ match: { interface: b }, receiver: aad }"), "thin.yaml:3:27: `b`"),
            (&*rule(twice), "thin.yaml:4:5: the rule 1 has these conditions already"),
            (&*rule("{ match: { prot: 1 }, receiver: aad }"), "thin.yaml:3:16: unknown field `prot`"),
            ("node: { name: a }\nlinks: []\n", "a file of `hopwise node`"),
        ] {
            let refused = refused(text);
            assert!(refused.contains(said), "{text}: {refused}");
        }
    }
}
