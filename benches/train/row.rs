//! The rows of the report: the goodput of `train`, the best of its peers, and the verdict on the goal.

use serde_json::{Value, json};

/// The least that Jain's index of flows with equal agents may be.
pub(crate) const FAIR: f64 = 0.93;

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) ours: f64,
    pub(crate) peer: &'static str,
    pub(crate) theirs: f64,
    /// The least ratio that is wanted, if there is one.
    pub(crate) goal: Option<f64>,
    /// Jain's index of `train`'s flows, where several are alike: it is part of the goal.
    pub(crate) jain: Option<f64>,
}

impl Row {
    fn ratio(&self) -> f64 {
        self.ours / self.theirs.max(1e-9)
    }

    fn met(&self) -> Option<&'static str> {
        let is_reached = self.ratio() >= self.goal?;
        Some(match (is_reached, self.jain.is_none_or(|jain| jain >= FAIR)) {
            (true, true) => "met",
            (false, _) => "missed",
            (true, false) => "unfair",
        })
    }

    /// Prints the row as progress.
    pub(crate) fn printed(self) -> Row {
        let Row { name, unit, ours, peer, theirs, .. } = &self;
        let goal = match (self.goal, self.met()) {
            (Some(goal), Some(met)) => format!(" of {goal:.2}: {met}"),
            _ => String::new(),
        };
        let jain = self.jain.map_or(String::new(), |jain| format!(", Jain {jain:.2}"));
        eprintln!("  {name}: {ours:.1} {unit}, {peer} {theirs:.1}, ratio {:.3}{goal}{jain}", self.ratio());
        self
    }

    fn value(&self) -> Value {
        let thousandth = |value: f64| (value * 1e3).round() / 1e3;
        let mut value = json!({
            "name": self.name,
            "unit": self.unit,
            "ours": thousandth(self.ours),
            "peer": self.peer,
            "theirs": thousandth(self.theirs),
            "ratio": thousandth(self.ratio()),
            "jain": self.jain.map(thousandth),
        });
        if let (Some(goal), Some(met)) = (self.goal, self.met()) {
            (value["goal"], value["met"]) = (json!(goal), json!(met));
        }
        value
    }
}

/// The mean ratio of these rows, against its goal.
pub(crate) fn mean(name: &str, rows: &[Row], goal: f64) -> Row {
    let ours = rows.iter().map(Row::ratio).sum::<f64>() / rows.len().max(1) as f64;
    Row {
        name: name.to_owned(),
        unit: "ratio",
        ours,
        peer: "the best",
        theirs: 1.0,
        goal: Some(goal),
        jain: None,
    }
    .printed()
}

/// The number of these rows that meet their goals.
pub(crate) fn count(name: &str, rows: &[Row]) -> Row {
    let met = rows.iter().filter(|row| row.met() == Some("met")).count();
    let (ours, theirs) = (met as f64, rows.len() as f64);
    let name = format!("goals met: {name}");
    Row { name, unit: "goals", ours, peer: "all", theirs, goal: Some(1.0), jain: None }.printed()
}

/// The one object that goes to standard output.
pub(crate) fn object(rows: &[Row]) -> String {
    let rows: Vec<_> = rows.iter().map(Row::value).collect();
    json!({ "bench": "train", "rows": rows }).to_string()
}
