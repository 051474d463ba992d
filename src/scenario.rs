//! Scenarios: YAML files that say where nodes stand, what flows, and which agents are on trial.

mod channel;
mod check;
mod motion;
mod nodes;
mod reach;
mod schema;

use std::path::Path;
use std::sync::Arc;

use hopwise_agents::Profile;
use hopwise_air::dcf::{MacConfig, RateControl, Rules};
use hopwise_air::medium::Radio;
use hopwise_air::phy::Phy;
use hopwise_core::tcp::TcpConfig;
use hopwise_mesh::WhenFull;

use crate::located::{Document, LoadError, Place, Refusal};
use crate::sim::{Arm, FlowPlan, Plan, TrafficPlan};
use schema::{RateName, RulesName, RunConfig, ScenarioFile, TcpProfile, TrafficKind, WhenFullName};

pub use nodes::Nodes;

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
    /// What results call the nodes.
    pub names: Vec<String>,
    /// Specs of the sender agents, one by one, in their canonical form.
    pub senders: Vec<String>,
}

impl Prepared {
    /// What a node is called.
    pub fn name_of(&self, node: u32) -> &str {
        self.names.get(node as usize).map_or("", String::as_str)
    }
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

    /// The arms' names and how many seeds the file asks for.
    pub fn arms(&self) -> Result<(Vec<String>, u32), Box<Refusal>> {
        let file: ScenarioFile = self.document.read()?;
        Ok((file.arms.keys().cloned().collect(), file.run.seeds))
    }

    /// The plan for one arm (which may be left out where there is one) and seed.
    pub fn plan(&self, arm: Option<&str>, seed: u64) -> Result<Prepared, NoPlan> {
        let file: ScenarioFile = self.document.read()?;
        let arms: Vec<String> = file.arms.keys().cloned().collect();
        let name = match (arm, &arms[..]) {
            (Some(arm), _) if arms.iter().any(|known| known == arm) => arm.to_owned(),
            (None, [only]) => only.clone(),
            (None, []) => {
                let wanted = "at least one, such as x: { receiver: delayed, sender: [cubic] }";
                return Err(self.document.refuse_key(&Place::root().key("arms"), "no arm", wanted).into());
            }
            _ => return Err(NoPlan::WhichArm { arms }),
        };
        Ok(self.prepare(&name, seed)?)
    }

    fn prepare(&self, arm: &str, seed: u64) -> Result<Prepared, Box<Refusal>> {
        let mut document = self.document.clone();
        let own: ScenarioFile = document.read()?;
        let place = Place::root().key("arms").key(arm).key("set");
        for (path, value) in &own.arms[arm].set {
            let set = document.set_value(path, value);
            set.map_err(|problem| {
                document.refuse(&place.key(path), problem, "a path such as topology.hops")
            })?;
        }
        let file: ScenarioFile = document.read()?;
        check::all(&document, &file)?;
        let agents = check::agents(&document, &file, arm)?;
        for draw in 0..MOST_DRAWS {
            let nodes = nodes::place(&document, &file, (seed, draw))?;
            let plan = plan_of(&document, &file, &nodes, agents.arm.clone(), seed)?;
            if reach::check(&document, &file, &plan)? == reach::Field::Usable {
                return Ok(Prepared { plan, names: nodes.names, senders: agents.senders });
            }
        }
        let problem = format!("{MOST_DRAWS} random fields were drawn, and none holds together");
        let accepted = "more nodes, or a smaller field";
        Err(document.refuse(&Place::root().key("topology"), problem, accepted))
    }
}

/// So many random fields are tried until one holds together.
const MOST_DRAWS: u32 = 50;

fn plan_of(
    document: &Document,
    file: &ScenarioFile,
    nodes: &Nodes,
    arm: Arm,
    seed: u64,
) -> Result<Plan, Box<Refusal>> {
    let RunConfig { duration, warmup, .. } = &file.run;
    let phy = Phy::named(&file.radio.profile).ok_or_else(|| {
        let place = Place::root().key("radio").key("profile");
        let names: Vec<_> = Phy::names().collect();
        document.refuse(&place, format!("no profile is called `{}`", file.radio.profile), &names.join(", "))
    })?;
    let profile = match file.tcp.profile {
        TcpProfile::Modern => Profile::Modern,
        TcpProfile::Ns2 => Profile::Ns2,
    };
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
        queue_packets: file.radio.queue_packets as usize,
        when_full: match file.radio.when_full {
            WhenFullName::Drop => WhenFull::Drop,
            WhenFullName::Hold => WhenFull::Hold,
        },
        profile,
        flows: flows(document, file, nodes)?,
        arm,
        duration: duration.0,
        warmup: warmup.0,
        seed,
        trace_events: 0,
    })
}

fn flows(document: &Document, file: &ScenarioFile, nodes: &Nodes) -> Result<Vec<FlowPlan>, Box<Refusal>> {
    let mut flows = Vec::new();
    for (nth, traffic) in file.traffic.iter().enumerate() {
        let place = Place::root().key("traffic").index(nth);
        let end = |key: &str, name: &str| {
            nodes.find(name).ok_or_else(|| {
                let accepted = format!("first, last, or one of {} to {}", nodes.names[0], nodes.last());
                document.refuse(&place.key(key), format!("no node is called `{name}`"), &accepted)
            })
        };
        let (from, to) = (end("from", &traffic.from)?, end("to", &traffic.to)?);
        if from == to {
            let problem = format!("`{}` and `{}` are the same node", traffic.from, traffic.to);
            return Err(document.refuse(&place.key("to"), problem, "another node"));
        }
        let tcp = Arc::new(tcp_config(file, traffic.segment_bytes));
        for copy in 0..traffic.flows {
            let start = traffic.start.0 + traffic.apart.0 * copy;
            let traffic = match traffic.kind {
                TrafficKind::Bulk => TrafficPlan::Bulk { tcp: Arc::clone(&tcp) },
                TrafficKind::Cbr => TrafficPlan::Datagrams {
                    bytes: traffic.segment_bytes,
                    every: traffic.every.map(|every| every.0),
                },
                TrafficKind::Saturated => {
                    TrafficPlan::Datagrams { bytes: traffic.segment_bytes, every: None }
                }
            };
            flows.push(FlowPlan { from, to, start, traffic });
        }
    }
    Ok(flows)
}

fn tcp_config(file: &ScenarioFile, segment_bytes: u16) -> TcpConfig {
    let mut tcp = match file.tcp.profile {
        TcpProfile::Modern => TcpConfig { segment_bytes, ..TcpConfig::modern() },
        TcpProfile::Ns2 => TcpConfig::ns2(segment_bytes),
    };
    let set = |own: Option<bool>, value: &mut bool| *value = own.unwrap_or(*value);
    set(file.tcp.sack, &mut tcp.sack);
    set(file.tcp.timestamps, &mut tcp.timestamps);
    set(file.tcp.ecn, &mut tcp.ecn);
    set(file.tcp.nagle, &mut tcp.nagle);
    if let Some(rto_min) = file.tcp.rto_min {
        tcp.rto.min = rto_min.0;
    }
    tcp
}

#[cfg(test)]
mod tests;
