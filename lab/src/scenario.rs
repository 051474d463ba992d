//! Scenarios: YAML files that say where nodes stand, what flows, and which agents are on trial.

mod channel;
mod check;
mod flows;
mod gateway;
mod matrix;
mod motion;
mod nodes;
pub mod point;
mod reach;
mod routing;
mod rules;
mod schema;
mod settings;

use std::path::Path;

use hopwise_agents::Profile;
use hopwise_air::Arp;
use hopwise_air::dcf::{MacConfig, RateControl, Rules};
use hopwise_air::medium::Radio;
use hopwise_air::phy::Phy;
use hopwise_mesh::WhenFull;
use serde_json::{Value, json};

use crate::VERSION;
use crate::located::{Document, LoadError, Place, Refusal};
use crate::routing::Protocol;
use crate::sim::{Plan, certificate_hash};
use point::Stop;
use schema::{RateName, RulesName, RunConfig, ScenarioFile, StopName, TcpProfile, WhenFullName};

pub use matrix::Cell;
pub use nodes::Nodes;
pub use schema::{Bound, Claim, Measure, Over};

/// A scenario that was read, with what was set over it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The file's stem.
    pub name: String,
    document: Document,
}

/// One arm of a scenario, ready to run.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub plan: Plan,
    /// Names of the nodes in results.
    pub names: Vec<String>,
}

impl Prepared {
    /// Name of a node.
    pub fn name_of(&self, node: u32) -> &str {
        self.names.get(node as usize).map_or("", String::as_str)
    }
}

/// Settings of the trial that a scenario asks for.
#[derive(Clone, Debug)]
pub struct Asked {
    pub title: Option<String>,
    pub world: &'static str,
    /// The baseline first, the others as the file has them.
    pub arms: Vec<String>,
    pub cells: Vec<Cell>,
    pub seeds: u32,
    pub margin: f64,
    pub stop: Stop,
}

/// Why there is no plan.
#[derive(Debug)]
pub enum NoPlan {
    Refused(Box<Refusal>),
    /// An arm has to be named.
    WhichArm {
        arms: Vec<String>,
    },
}

impl From<Box<Refusal>> for NoPlan {
    fn from(refusal: Box<Refusal>) -> NoPlan {
        NoPlan::Refused(refusal)
    }
}

/// The JSON Schema of scenarios, for editors.
pub fn json_schema() -> Value {
    schemars::schema_for!(ScenarioFile).to_value()
}

impl Scenario {
    /// Reads a file and sets `PATH=VALUE`s over it.
    pub fn load(path: &Path, sets: &[String]) -> Result<Scenario, LoadError> {
        let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let document = Document::load(path)?;
        Scenario::new(name, document, sets).map_err(LoadError::Refused)
    }

    /// The same, from a text.
    pub fn parse(name: &str, text: &str, sets: &[String]) -> Result<Scenario, Box<Refusal>> {
        Scenario::new(name.to_owned(), Document::parse(name, text)?, sets)
    }

    fn new(name: String, mut document: Document, sets: &[String]) -> Result<Scenario, Box<Refusal>> {
        for assignment in sets {
            document.set("--set", assignment)?;
        }
        Ok(Scenario { name, document })
    }

    /// Parts of a trial of this scenario.
    pub fn asked(&self) -> Result<Asked, Box<Refusal>> {
        let file: ScenarioFile = self.document.read()?;
        let mut arms = self.arms_of(&file)?;
        check::run(&self.document, &file)?;
        if let Some(baseline) = &file.run.baseline {
            // Stable, so that the others stay in their order.
            arms.sort_by_key(|arm| arm != baseline);
        }
        if file.run.stop == StopName::WhenSure && arms.len() < 2 {
            let places = [Place::root().key("run").key("stop"), Place::root().key("arms")];
            let problem = "there is no second arm to compare with";
            return Err(self.document.refuse_among(&places, problem, "two arms, or all-seeds"));
        }
        let cells = matrix::cells(&self.document, file.matrix.as_ref())?;
        check::arms_over_matrix(&self.document, &file, &cells)?;
        Ok(Asked {
            title: file.title,
            world: file.world.name(),
            arms,
            cells,
            seeds: file.run.seeds,
            margin: f64::from(file.run.margin.0) / 1e6,
            stop: match file.run.stop {
                StopName::AllSeeds => Stop::AllSeeds,
                StopName::WhenSure => Stop::WhenSure,
            },
        })
    }

    /// Statements of a paper about this scenario.
    pub fn claims(&self) -> Result<Vec<Claim>, Box<Refusal>> {
        let file: ScenarioFile = self.document.read()?;
        let arms = self.arms_of(&file)?;
        for (nth, claim) in file.claims.iter().enumerate() {
            let place = Place::root().key("claims").index(nth);
            for (key, arm) in [("arm", Some(&claim.arm)), ("against", claim.against.as_ref())] {
                if let Some(arm) = arm.filter(|arm| !arms.contains(arm)) {
                    let problem = format!("no arm is called `{arm}`");
                    return Err(self.document.refuse(&place.key(key), problem, &arms.join(", ")));
                }
            }
            if !claim.ratio.is_finite() || claim.ratio <= 0.0 {
                return Err(self.document.refuse(&place.key("ratio"), "no ratio", "a number above 0"));
            }
        }
        Ok(file.claims)
    }

    /// True if the routing protocol has two rule sets.
    pub fn has_routing_rules(&self) -> Result<bool, Box<Refusal>> {
        let file: ScenarioFile = self.document.read()?;
        Ok(file.routing.protocol == Protocol::Aodv)
    }

    /// There are too many runs, or too few.
    pub fn refuse_seeds(&self, problem: String, accepted: String) -> Box<Refusal> {
        self.document.refuse(&Place::root().key("run").key("seeds"), problem, &accepted)
    }

    fn arms_of(&self, file: &ScenarioFile) -> Result<Vec<String>, Box<Refusal>> {
        let arms: Vec<String> = file.arms.names().map(str::to_owned).collect();
        if arms.is_empty() {
            let wanted = "at least one, such as x: { receiver: delayed, sender: [cubic] }";
            return Err(self.document.refuse_key(&Place::root().key("arms"), "no arm", wanted));
        }
        Ok(arms)
    }

    /// The scenario at one point of its matrix.
    pub fn at(&self, cell: &Cell) -> Result<Scenario, Box<Refusal>> {
        let mut there = self.clone();
        cell.set_in(&mut there.document)?;
        Ok(there)
    }

    /// The scenario as it stands, or at the only point that its matrix has left.
    fn at_only_point(&self) -> Result<Scenario, Box<Refusal>> {
        let file: ScenarioFile = self.document.read()?;
        let cells = matrix::cells(&self.document, file.matrix.as_ref())?;
        check::arms_over_matrix(&self.document, &file, &cells)?;
        match &cells[..] {
            [only] => self.at(only),
            cells => {
                let problem = format!("a run has one point, and the matrix has {}", cells.len());
                let paths: Vec<_> = cells[0].point.keys().map(|path| format!("--set {path}=…")).collect();
                Err(self.document.refuse_key(&Place::root().key("matrix"), problem, &paths.join(" ")))
            }
        }
    }

    /// The plan for one arm (which may be left out where there is one) and seed.
    pub fn plan(&self, arm: Option<&str>, seed: u64) -> Result<Prepared, NoPlan> {
        let file: ScenarioFile = self.document.read()?;
        let arms = self.arms_of(&file)?;
        let name = match (arm, &arms[..]) {
            (Some(arm), _) if arms.iter().any(|known| known == arm) => arm.to_owned(),
            (None, [only]) => only.clone(),
            _ => return Err(NoPlan::WhichArm { arms }),
        };
        Ok(self.at_only_point()?.prepare(&name, seed)?)
    }

    /// The same of a run, which has one point, with what made it.
    pub fn settings_of_run(&self, arm: &str) -> Result<Value, Box<Refusal>> {
        let mut settings = self.at_only_point()?.settings(arm)?;
        settings["hopwise"] = made_by(VERSION, &certificate_hash());
        Ok(settings)
    }

    /// Every parameter in force under an arm, whatever the seed.
    pub fn settings(&self, arm: &str) -> Result<Value, Box<Refusal>> {
        let (document, file) = self.under(arm)?;
        check::all(&document, &file)?;
        Ok(settings::in_force(&file, &check::agents(&document, &file, arm)?))
    }

    /// The file with what the arm sets over it.
    fn under(&self, arm: &str) -> Result<(Document, ScenarioFile), Box<Refusal>> {
        let mut document = self.document.clone();
        let own: ScenarioFile = document.read()?;
        let place = Place::root().key("arms").key(arm).key("set");
        for (path, value) in own.arms.find(arm).iter().flat_map(|arm| &arm.set) {
            let place = place.key(path);
            check::settable(path)
                .map_err(|problem| document.refuse_key(&place, problem, "a path such as topology.hops"))?;
            document.set_value(path, value, &place)?;
        }
        let file = document.read()?;
        Ok((document, file))
    }

    /// The plan for an arm that there is, at the point where the scenario is.
    pub fn prepare(&self, arm: &str, seed: u64) -> Result<Prepared, Box<Refusal>> {
        let (document, file) = self.under(arm)?;
        check::all(&document, &file)?;
        let agents = check::agents(&document, &file, arm)?;
        for draw in 0..MOST_DRAWS {
            let nodes = nodes::place(&document, &file, (seed, draw))?;
            let plan = plan_of(&document, &file, &nodes, &agents, seed)?;
            if reach::check(&document, &file, &plan)? == reach::Field::Usable {
                return Ok(Prepared { plan, names: nodes.names });
            }
        }
        let problem = format!("{MOST_DRAWS} random fields were drawn, and none is connected");
        let accepted = "more nodes, or a smaller field";
        Err(document.refuse(&Place::root().key("topology"), problem, accepted))
    }
}

/// As it stands beside the parameters in force.
pub fn made_by(version: &str, certificate: &str) -> Value {
    json!({ "version": version, "certificate": certificate })
}

/// Random fields that are tried until one is connected.
const MOST_DRAWS: u32 = 50;

fn plan_of(
    document: &Document,
    file: &ScenarioFile,
    nodes: &Nodes,
    agents: &check::Agents,
    seed: u64,
) -> Result<Plan, Box<Refusal>> {
    let RunConfig { duration, warmup, .. } = &file.run;
    let phy = Phy::named(&file.radio.profile).ok_or_else(|| {
        let place = Place::root().key("radio").key("profile");
        let names: Vec<_> = Phy::names().collect();
        document.refuse(&place, format!("no profile is called `{}`", file.radio.profile), &names.join(", "))
    })?;
    let channel = channel::read(document, file, nodes, &phy)?;
    let radio = Radio::default();
    let slowest = match file.radio.rate {
        RateName::Fixed => phy.data,
        RateName::Arf => phy.basic,
    };
    Ok(Plan {
        places: nodes.places.clone(),
        tracks: nodes.tracks.clone(),
        wires: nodes.wires.clone(),
        phy,
        radio: channel.noise_w.map_or(radio, |noise_w| radio.over_noise(noise_w, slowest)),
        channel,
        mac: MacConfig {
            rules: match file.mac.rules {
                RulesName::Standard => Rules::Standard,
                RulesName::Ns2 => Rules::Ns2,
            },
            rts_threshold: file.radio.rts_threshold.0,
            rate: match file.radio.rate {
                RateName::Fixed => RateControl::Fixed,
                RateName::Arf => RateControl::Arf,
            },
            ..MacConfig::default()
        },
        arp: if file.radio.arp { Arp::Asked } else { Arp::Known },
        queue_packets: file.radio.queue_packets as usize,
        when_full: match file.radio.when_full {
            WhenFullName::Drop => WhenFull::Drop,
            WhenFullName::Hold => WhenFull::Hold,
        },
        routing: routing::read(document, &file.routing, nodes)?,
        profile: profile_of(file),
        flows: flows::read(document, file, nodes, seed)?,
        rules: rules::read(document, file, nodes)?,
        arm: agents.arm.clone(),
        gateway: gateway::read(document, file, nodes, agents)?,
        duration: duration.0,
        warmup: warmup.0,
        seed,
        trace_events: 0,
    })
}

/// Which defaults the agents have.
fn profile_of(file: &ScenarioFile) -> Profile {
    match file.tcp.profile {
        TcpProfile::Modern => Profile::Modern,
        TcpProfile::Ns2 => Profile::Ns2,
    }
}

#[cfg(test)]
mod tests;
