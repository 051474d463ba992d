//! The rows of the report: what an agent costs, and whether that is within what it may.

use std::fmt::Write;

#[derive(Debug)]
pub(crate) struct Row {
    name: String,
    unit: &'static str,
    ours: f64,
    /// The most that it may cost.
    goal: Option<f64>,
}

impl Row {
    /// The plainest of its kind, which the others are held against.
    pub(crate) fn plainest(name: &str, unit: &'static str, ours: f64) -> Row {
        Row { name: name.to_owned(), unit, ours, goal: None }.told()
    }

    pub(crate) fn more(name: impl Into<String>, ours: f64, goal: Option<f64>) -> Row {
        Row { name: name.into(), unit: "ns more", ours, goal }.told()
    }

    /// With the goal, when there is one.
    fn met(&self) -> Option<(f64, &'static str)> {
        self.goal.map(|goal| (goal, if self.ours <= goal { "met" } else { "missed" }))
    }

    /// Progress, for whoever waits.
    fn told(self) -> Row {
        let Row { name, unit, ours, .. } = &self;
        match self.met() {
            Some((goal, met)) => eprintln!("  {name}: {ours:.1} {unit} of {goal}: {met}"),
            None => eprintln!("  {name}: {ours:.1} {unit}"),
        }
        self
    }
}

/// The one object that goes to standard output.
pub(crate) fn object(bench: &str, rows: &[Row]) -> String {
    let mut out = format!("{{\"bench\":\"{bench}\",\"rows\":[");
    for (nth, row) in rows.iter().enumerate() {
        let comma = if nth > 0 { "," } else { "" };
        let Row { name, unit, ours, .. } = row;
        write!(out, "{comma}{{\"name\":\"{name}\",\"unit\":\"{unit}\",\"ours\":{ours:.1}")
            .expect("a String grows");
        if let Some((goal, met)) = row.met() {
            write!(out, ",\"goal\":{goal},\"met\":\"{met}\"").expect("a String grows");
        }
        out.push('}');
    }
    out + "]}"
}
