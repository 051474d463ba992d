//! Scenarios: YAML files with the positions of nodes, the traffic, and the agents on trial.

mod armed;
mod channel;
mod check;
mod flows;
mod gateway;
mod host;
mod mask;
mod matrix;
mod motion;
mod nodes;
pub mod point;
mod queue;
mod radio;
mod reach;
mod recipe;
mod replaced;
mod routing;
mod schema;
pub(crate) mod settings;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::file_kind;
use crate::keys;
use crate::live::part::{NodePart, WORD_WITHIN_S};
use crate::located::{Checked, Document, LoadError, Refusal, YamlPath};
use crate::plain;
use crate::routing::RoutingConfig;
use crate::sim::Plan;
use crate::version;
use crate::world::World;
use point::{MatrixPoint, Stop};
use schema::ScenarioFile;

pub use armed::Armed;
pub use host::HostPlan;
pub use matrix::MatrixCell;
pub(crate) use matrix::Sweep;
pub use nodes::Nodes;
pub use replaced::{LeftOut, Replaced};
pub use schema::{Bound, Claim, Measure, PointCombination, Premise, Stated};

/// A scenario that was read, with the values set over it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The file's stem.
    pub name: String,
    read: Arc<ParsedScenario>,
    /// Values set over the file's own, as they were given.
    sets: Arc<[String]>,
    /// The only readings that it has, where some were left out.
    readings: Option<Arc<replaced::Readings>>,
}

/// A file that was read: its text with all places, and its content. It is read anew where a value is set in it.
#[derive(Debug)]
struct ParsedScenario {
    document: Document,
    file: ScenarioFile,
}

impl ParsedScenario {
    fn of(document: Document) -> Checked<Arc<ParsedScenario>> {
        keys::check(&document, json_schema())?;
        let mut file: ScenarioFile = document.read()?;
        host::simulate(&mut file);
        file.traffic.iter_mut().for_each(schema::TrafficFlows::fill);
        Ok(Arc::new(ParsedScenario { document, file }))
    }
}

/// One arm of a scenario, ready to run.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The nodes, radios, flows and agents of the run.
    pub plan: Plan,
    /// Names of the nodes in results.
    pub names: Vec<String>,
    /// The section `routing:`, for the daemons of a live world.
    pub routing: RoutingConfig,
    /// The settings of the hosts of a live world.
    pub host: HostPlan,
}

impl Prepared {
    /// Name of a node.
    pub fn name_of(&self, node: u32) -> &str {
        self.names.get(node as usize).map_or("", String::as_str)
    }
}

/// Settings of the trial in a scenario.
#[derive(Clone, Debug)]
pub struct TrialRequest {
    /// The title for tables and reports.
    pub title: Option<String>,
    /// The world of the trial.
    pub world: World,
    /// The baseline first, then in the file's order.
    pub arms: Vec<String>,
    /// The paths that arms set.
    pub arm_paths: Vec<String>,
    /// The points of the trial; at least one.
    pub cells: Vec<MatrixCell>,
    /// The number of seeds at each point.
    pub seeds: u32,
    /// The share by which arms may differ and still count as equal.
    pub margin: f64,
    /// The condition for the end of the trial.
    pub stop: Stop,
    /// The names of the figures that decide the verdicts, as the file has them.
    pub figures: Vec<String>,
}

/// The reason why there is no plan.
#[derive(Debug)]
pub enum NoPlan {
    /// The scenario is refused.
    Refused(Box<Refusal>),
    /// An arm must be named.
    WhichArm {
        /// The names that it may be.
        arms: Vec<String>,
    },
}

impl From<Box<Refusal>> for NoPlan {
    fn from(refusal: Box<Refusal>) -> NoPlan {
        NoPlan::Refused(refusal)
    }
}

crate::schema_of!(ScenarioFile);

impl Scenario {
    /// Reads a file and sets `PATH=VALUE`s over it.
    pub fn load(path: &Path, sets: &[String]) -> Result<Scenario, LoadError> {
        let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let document = Document::load(path)?;
        Scenario::new(name, document, sets).map_err(LoadError::Refused)
    }

    /// The same, from a text.
    pub fn parse(name: &str, text: &str, sets: &[String]) -> Checked<Scenario> {
        Scenario::new(name.to_owned(), Document::parse(name, text)?, sets)
    }

    fn new(name: String, mut document: Document, sets: &[String]) -> Checked<Scenario> {
        for assignment in sets {
            document.set("--set", assignment)?;
        }
        if let Some(problem) = plain::problem_of_name(&name) {
            let problem = format!("the name of the file: {problem}");
            return Err(document.refuse_key(&YamlPath::root(), problem, plain::NAME));
        }
        file_kind::SCENARIO.check(&document)?;
        Ok(Scenario { name, read: ParsedScenario::of(document)?, sets: sets.into(), readings: None })
    }

    /// Parts of a trial of this scenario.
    pub fn asked(&self) -> Checked<TrialRequest> {
        let ParsedScenario { document, file } = &*self.read;
        let mut arms = self.arms()?;
        check::run(document, file)?;
        if let Some(baseline) = &file.run.baseline {
            // The sort is stable: all other arms stay in their order.
            arms.sort_by_key(|arm| arm != baseline);
        }
        if file.run.stop == Stop::WhenSure && arms.len() < 2 {
            let paths = [YamlPath::root().key("run").key("stop"), YamlPath::root().key("arms")];
            let problem = "there is no second arm to compare with";
            return Err(document.refuse_among(&paths, problem, "two arms, or all-seeds"));
        }
        Ok(TrialRequest {
            title: file.title.clone(),
            world: file.world.0,
            arm_paths: file.arms.paths(),
            arms,
            cells: self.cells()?,
            seeds: file.run.seeds,
            margin: f64::from(file.run.margin.0) / 1e6,
            stop: file.run.stop,
            figures: file.run.figure.0.clone(),
        })
    }

    /// The world that the file names.
    pub fn world(&self) -> World {
        self.read.file.world.0
    }

    /// False for an arm of the kernel's TCP in the world that has no kernel.
    pub fn can_run(&self, arm: &str) -> bool {
        let is_kernels = self.read.file.arms.find(arm).is_some_and(check::is_kernels);
        self.world().is_live() || !is_kernels
    }

    /// The message to the nodes of a live run: the scenario, a point of its matrix, an arm and a seed.
    pub fn part(&self, point: &MatrixPoint, arm: &str, seed: u64) -> NodePart {
        NodePart {
            version: version::of_program().to_owned(),
            scenario: self.name.clone(),
            text: self.read.document.text().to_owned(),
            sets: self.sets.to_vec(),
            point: point.clone(),
            arm: arm.to_owned(),
            seed,
            node: 0,
            capture: None,
            trace: None,
            control: None,
            mesh: None,
            word_within_s: WORD_WITHIN_S,
        }
    }

    /// Statements of a paper about this scenario.
    pub fn claims(&self) -> Checked<&[Claim]> {
        let ParsedScenario { document, file } = &*self.read;
        let arms = self.arms()?;
        let paths: BTreeSet<String> =
            self.cells()?.into_iter().flat_map(|cell| cell.point.into_keys()).collect();
        let swept = self.first_reading()?;
        file.claims.iter().enumerate().try_for_each(|(nth, claim)| {
            let at = YamlPath::root().key("claims").index(nth);
            check::claim(document, (&at, claim), &arms, (&paths, &swept))
        })?;
        Ok(&file.claims)
    }

    /// Settings that the paper leaves open, with the values of the first combination of its `sweep`.
    pub fn first_reading(&self) -> Checked<MatrixPoint> {
        match &self.readings {
            Some(readings) => Ok(readings.first()),
            None => matrix::first_reading(&self.read.document, self.read.file.sweep.as_ref()),
        }
    }

    /// The names of values in its `sweep`, for tables.
    pub fn names_of_readings(&self) -> Checked<Vec<(String, MatrixPoint)>> {
        match &self.readings {
            Some(readings) => Ok(readings.names.clone()),
            None => matrix::names(&self.read.document, self.read.file.sweep.as_ref()),
        }
    }

    /// True if the routing protocol has two rule sets.
    pub fn has_routing_rules(&self) -> bool {
        self.read.file.routing.protocol().has_rule_sets()
    }

    /// The refusal of too many runs, or of too few.
    pub(crate) fn refuse_seeds(&self, problem: String, accepted: String) -> Box<Refusal> {
        self.read.document.refuse(&YamlPath::root().key("run").key("seeds"), problem, &accepted)
    }

    /// The refusal of one of the figures that are to decide the verdicts.
    pub(crate) fn refuse_figure(&self, nth: usize, problem: &str, accepted: &str) -> Box<Refusal> {
        let at = YamlPath::root().key("run").key("figure");
        let document = &self.read.document;
        let is_list = document.value_at("run.figure").is_some_and(serde_yaml::Value::is_sequence);
        let at = if is_list && !self.read.file.run.figure.0.is_empty() { at.index(nth) } else { at };
        document.refuse(&at, problem, accepted)
    }

    fn arms(&self) -> Checked<Vec<String>> {
        let arms: Vec<String> = self.read.file.arms.names().map(str::to_owned).collect();
        if arms.is_empty() {
            let wanted = "at least one, such as x: { receiver: delayed, sender: [cubic] }";
            return Err(self.read.document.refuse_key(&YamlPath::root().key("arms"), "no arm", wanted));
        }
        Ok(arms)
    }

    fn cells(&self) -> Checked<Vec<MatrixCell>> {
        let ParsedScenario { document, file } = &*self.read;
        let mut cells = matrix::cells(document, file.matrix.as_ref(), file.sweep.as_ref())?;
        if let Some(readings) = &self.readings {
            cells.retain(|cell| readings.has(&cell.point));
        }
        check::arms_over_matrix(document, file, &cells)?;
        check::routing_of_cells(document, &cells)?;
        Ok(cells)
    }

    /// The scenario at one point of its matrix.
    pub fn at(&self, cell: &MatrixCell) -> Checked<Scenario> {
        let read = if cell.point.is_empty() {
            Arc::clone(&self.read)
        } else {
            let mut document = self.read.document.clone();
            cell.set_in(&mut document)?;
            ParsedScenario::of(document)?
        };
        Ok(Scenario { read, ..self.clone() })
    }

    /// The only point of the matrix; an empty one without a matrix.
    pub fn only_point(&self) -> Checked<MatrixPoint> {
        Ok(self.cells()?.into_iter().next().map(|cell| cell.point).unwrap_or_default())
    }

    /// One arm of the scenario as it stands, or at the only point of its matrix. A single arm need not be named.
    pub fn only(&self, arm: Option<&str>) -> Result<Armed, NoPlan> {
        let arms = self.arms()?;
        let name = match (arm, &arms[..]) {
            (Some(arm), _) if arms.iter().any(|known| known == arm) => arm,
            (None, [only]) => only,
            _ => return Err(NoPlan::WhichArm { arms }),
        };
        match &self.cells()?[..] {
            [only] => Ok(self.at(only)?.under(name)?),
            cells => {
                let problem = format!("a run has one point, and the matrix has {}", cells.len());
                let paths: Vec<_> = cells[0].point.keys().map(|path| format!("--set {path}=…")).collect();
                let matrix = YamlPath::root().key("matrix");
                Err(self.read.document.refuse_key(&matrix, problem, &paths.join(" ")).into())
            }
        }
    }

    /// The plan for that arm and a seed.
    pub fn plan(&self, arm: Option<&str>, seed: u64) -> Result<Prepared, NoPlan> {
        Ok(self.only(arm)?.prepare(seed)?)
    }

    /// A known arm, at the scenario's own point.
    pub fn under(&self, arm: &str) -> Checked<Armed> {
        let sets = self.read.file.arms.find(arm).map(|arm| &arm.set).filter(|sets| !sets.is_empty());
        let Some(sets) = sets else { return Armed::new(Arc::clone(&self.read), arm) };
        let mut document = self.read.document.clone();
        let set_at = YamlPath::root().key("arms").key(arm).key("set");
        for (path, value) in sets {
            let of_host = YamlPath::root().key("arms").key(arm).key("host");
            let of_host = path.strip_prefix("host.").map(|key| of_host.key(key));
            let at = of_host.filter(|at| document.value_of(at).is_some()).unwrap_or_else(|| set_at.key(path));
            check::settable(path)
                .map_err(|problem| document.refuse_key(&at, problem, "a path such as topology.hops"))?;
            let mut value = value.clone();
            let of_file = document.value_at(path).filter(|_| path.starts_with("host."));
            if let Some((all, own)) =
                of_file.and_then(serde_yaml::Value::as_mapping).zip(value.as_mapping_mut())
            {
                // An arm adds to the switches and commands of the file.
                for (name, value) in all {
                    own.entry(name.clone()).or_insert(value.clone());
                }
            }
            document.set_value(path, &value, &at)?;
        }
        Armed::new(ParsedScenario::of(document)?, arm)
    }
}

/// The version and certificate, as records have them with the parameters in force.
pub fn made_by(version: &str, certificate: &str) -> Value {
    json!({ "version": version, "certificate": certificate })
}

#[cfg(test)]
pub(crate) mod tests;
