//! Prints plans for people, or for a program.

use std::fmt::Write as _;

use hopwise_agents::base_station::plan::Plan;
use serde_json::{Value, json};

use super::{Arguments, draw};

pub(super) fn text(arguments: &Arguments, plans: &[Plan]) -> String {
    let unit = if arguments.outage.parse::<f64>().is_ok() { " s" } else { "" };
    let outage = format!("{} ACKs over an outage of {}{unit}", arguments.acks, arguments.outage);
    plans.iter().fold(outage, |text, plan| format!("{text}\n\n{}", described(plan)))
}

/// The plan of one mode, or all plans by their modes. `tried` has what the search for each plan compared, if that is
/// wanted.
pub(super) fn json(plans: &[Plan], tried: &[Vec<Plan>], is_of_one_mode: bool) -> String {
    let with_tried = |(nth, plan): (usize, &Plan)| {
        let mut value = value(plan);
        if let Some(all) = tried.get(nth) {
            value["every_n"] = all.iter().map(self::tried).collect();
        }
        value
    };
    let values: Vec<_> = plans.iter().enumerate().map(with_tried).collect();
    match &values[..] {
        [one] if is_of_one_mode => one.to_string(),
        _ => {
            let modes = plans.iter().map(|plan| plan.mode.name().to_owned());
            Value::Object(modes.zip(values).collect()).to_string()
        }
    }
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// The values that a search compares.
pub(super) fn tried(plan: &Plan) -> Value {
    let Plan { n, feasible, theta_s, final_rto_s, .. } = plan;
    json!({
        "n": n,
        "feasible": feasible,
        "theta_s": theta_s.map(rounded),
        "final_rto_s": rounded(*final_rto_s),
    })
}

/// The plan as JSON; times to the microsecond.
pub(super) fn value(plan: &Plan) -> Value {
    let all = |times: &[f64]| times.iter().copied().map(rounded).collect::<Vec<_>>();
    json!({
        "mode": plan.mode.name(),
        "choice": plan.choice.name(),
        "feasible": plan.feasible,
        "n": plan.n,
        "theta_s": plan.theta_s.map(rounded),
        "final_rto_s": rounded(plan.final_rto_s),
        "covers_s": rounded(plan.covers_s),
        "timeouts": plan.timeouts,
        "release_at_s": all(&plan.release_at_s),
        "rto_s": all(&plan.rto_s),
    })
}

pub(super) fn described(plan: &Plan) -> String {
    let Plan { mode, choice, feasible, n, theta_s, final_rto_s, covers_s, timeouts, release_at_s, .. } = plan;
    let mut text = format!("{}: {}", mode.name(), choice.name());
    if !release_at_s.is_empty() {
        let _ = write!(text, ", {n} ACKs wait as long as they can");
        if let Some(theta_s) = theta_s {
            let _ = write!(text, ", the other {} every {theta_s:.3} s", release_at_s.len() - *n as usize);
        }
    }
    let covers = match (*feasible, *timeouts) {
        (true, _) => "no timeout".to_owned(),
        (false, 0) => {
            format!("cannot cover the outage with these ACKs, but their timer runs {covers_s:.3} s")
        }
        (false, count) => {
            format!("cannot cover the outage: first timeout after {covers_s:.3} s, {count} in all")
        }
    };
    let _ = write!(text, "\n  {covers}; the RTO is then {final_rto_s:.3} s\n");
    if !release_at_s.is_empty() {
        text.push_str(&draw::terminal(plan));
    }
    text
}
