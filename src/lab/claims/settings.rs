//! The rules under which figures are run.

use hopwise_lab::scenario::Scenario;

use super::Arguments;

/// Rules under which a figure is run.
#[derive(Clone, Copy)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) sets: &'static [&'static str],
    /// The profile of all radios, where it is not the figure's own.
    pub(super) radio: Option<&'static str>,
}

impl Setting {
    const fn of(name: &'static str, sets: &'static [&'static str]) -> Setting {
        Setting { name, sets, radio: None }
    }

    /// The name of the folder of its runs.
    pub(super) fn folder(&self) -> String {
        self.name.replace(", ", "-").replace(' ', "").to_lowercase()
    }
}

/// The paper's own rules first, those of today last.
const STATIC: [Setting; 2] =
    [Setting::of("ns2", &["mac.rules=ns2"]), Setting::of("standard", &["mac.rules=standard"])];

/// The same with AODV.
const AODV: [Setting; 3] = [
    Setting::of("ns2", &["mac.rules=ns2", "routing.rules=ns2"]),
    Setting::of("ns2, RFC 3561", &["mac.rules=ns2", "routing.rules=rfc3561"]),
    Setting::of("standard, RFC 3561", &["mac.rules=standard", "routing.rules=rfc3561"]),
];

/// The rules that a figure is run under.
pub(super) fn settings(arguments: &Arguments, figure: &Scenario) -> Vec<Setting> {
    let all: &[Setting] = if figure.has_routing_rules() { &AODV } else { &STATIC };
    match (arguments.radio, all) {
        (Some(radio), [own, .., today]) => vec![*own, Setting { name: radio, radio: Some(radio), ..*today }],
        _ if arguments.quick => all[..1].to_vec(),
        _ => all.to_vec(),
    }
}
