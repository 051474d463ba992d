//! The rules under which figures are run.

use hopwise_lab::located::Checked;
use hopwise_lab::scenario::point::{MatrixPoint, plain};
use hopwise_lab::scenario::{LeftOut, Replaced, Scenario};

use super::Arguments;

const NO_RTS: &str = "radio.rts_threshold=off";

/// Rules under which a figure is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleSetting {
    pub name: &'static str,
    sets: &'static [&'static str],
    /// The profile of all radios, where it is not the figure's own.
    radio: Option<&'static str>,
    /// The number of parts of the file's time, one of which a run lasts.
    parts: u32,
}

impl RuleSetting {
    const fn of(name: &'static str, sets: &'static [&'static str]) -> RuleSetting {
        RuleSetting { name, sets, radio: None, parts: 1 }
    }

    /// The values that it sets over a file's.
    fn sets(&self, figure: &Scenario) -> Vec<String> {
        let rules = self.sets.iter().map(|set| (*set).to_owned());
        // Linux sends no RTS unless it is told to.
        let radio = self.radio.map(|profile| [format!("radio.profile={profile}"), NO_RTS.to_owned()]);
        rules.chain(radio.into_iter().flatten()).chain(figure.shortened(self.parts)).collect()
    }

    /// The name of the folder of its runs.
    pub(super) fn folder(&self) -> String {
        let name = self.name.replace(", ", "-").replace(' ', "").to_lowercase();
        if self.parts == 1 { name } else { format!("{name}-shorter-{}", self.parts) }
    }
}

/// The paper's own rules first, today's rules last.
const STATIC: [RuleSetting; 2] =
    [RuleSetting::of("ns2", &["mac.rules=ns2"]), RuleSetting::of("standard", &["mac.rules=standard"])];

/// The same with AODV.
const AODV: [RuleSetting; 3] = [
    RuleSetting::of("ns2", &["mac.rules=ns2", "routing.rules=ns2"]),
    RuleSetting::of("ns2, RFC 3561", &["mac.rules=ns2", "routing.rules=rfc3561"]),
    RuleSetting::of("standard, RFC 3561", &["mac.rules=standard", "routing.rules=rfc3561"]),
];

/// A figure under its rules.
#[derive(Debug)]
pub(super) struct Ruled {
    pub(super) setting: RuleSetting,
    pub(super) scenario: Scenario,
    /// Values of the file that are replaced, and the first reading's values if it alone is run: no point has them.
    pub(super) fixed: MatrixPoint,
}

/// A figure under all its rules, and the readings that are not run over the radio that was asked for. If these are all,
/// it is run under no rules.
pub(super) fn ruled(arguments: &Arguments, figure: &Scenario) -> Checked<(Vec<Ruled>, LeftOut)> {
    let (mut all, mut left_out) = (Vec::new(), LeftOut::default());
    for setting in settings(arguments, figure) {
        let sets = setting.sets(figure);
        let (mut scenario, mut fixed) = match setting.radio {
            None => (figure.with(&sets)?, MatrixPoint::new()),
            Some(_) => {
                let Replaced { scenario, values, left_out: of_radio } = figure.replacing(&sets)?;
                left_out = of_radio;
                let Some(scenario) = scenario else { return Ok((Vec::new(), left_out)) };
                (scenario, values)
            }
        };
        if arguments.quick || arguments.first_reading {
            let reading = scenario.first_reading()?;
            let sets: Vec<_> =
                reading.iter().map(|(path, value)| format!("{path}={}", plain(value))).collect();
            scenario = scenario.with(&sets)?;
            fixed.extend(reading);
        }
        all.push(Ruled { setting, scenario, fixed });
    }
    Ok((all, left_out))
}

/// The rules that a figure is run under.
fn settings(arguments: &Arguments, figure: &Scenario) -> Vec<RuleSetting> {
    let all: &[RuleSetting] = if figure.has_routing_rules() { &AODV } else { &STATIC };
    match (arguments.radio, all) {
        (Some(radio), [own, .., today]) => {
            let parts = arguments.shorter.unwrap_or(1);
            vec![*own, RuleSetting { name: radio, radio: Some(radio), parts, ..*today }]
        }
        _ if arguments.quick => all[..1].to_vec(),
        _ => all.to_vec(),
    }
}
