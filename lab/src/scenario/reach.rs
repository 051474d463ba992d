//! Refuses flows between nodes without a path, and paths longer than the hop limit. Refuses also more links than a
//! machine can hold.

use std::time::Duration;

use hopwise_air::medium;

use super::nodes::Nodes;
use super::schema::{ScenarioFile, Shape};
use crate::located::{Checked, Document, YamlPath};
use crate::sim::{Plan, Reach};

/// The most links: some 32 bytes each, and 320 where they fade. The count is an upper bound, about three times too
/// high.
const MOST_LINKS: u64 = 4_000_000;

const PLACED_WAY: &str = "nodes within range of each other (two-ray ground: 250 m), one by one along the way";
const RECORDED_WAY: &str =
    "a recording with links at time 0 that are strong enough in its first 10 s, one by one along the way";

/// Result of the check of a random field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldCheck {
    Usable,
    /// The field is not connected; another draw may be.
    Parted,
}

pub(super) fn check(
    document: &Document,
    file: &ScenarioFile,
    nodes: &Nodes,
    plan: &Plan,
) -> Checked<FieldCheck> {
    let topology = YamlPath::root().key("topology");
    let links = medium::most_links(&plan.radio, &plan.channel, &plan.positions);
    if links > MOST_LINKS {
        let problem = format!("up to {links} pairs of nodes would hear each other");
        let accepted = format!("fewer nodes, or farther apart: at most {MOST_LINKS} pairs");
        return Err(document.refuse(&topology, problem, &accepted));
    }
    outlasts(document, plan)?;
    // A moving node may come into range, and routes are found during the run.
    if plan.tracks.iter().any(Option::is_some) {
        return Ok(FieldCheck::Usable);
    }
    let reach = Reach::of(plan);
    if file.topology.kind == Shape::Random {
        return Ok(if reach.is_connected() { FieldCheck::Usable } else { FieldCheck::Parted });
    }
    let mut flow = 0;
    for (nth, traffic) in file.traffic.iter().enumerate() {
        let ends = &plan.flows[flow];
        flow += traffic.flows as usize;
        let hops = reach.hops_to(ends.to);
        let most = ends.traffic.hop_limit();
        let (problem, accepted) = match hops[ends.from as usize] {
            Some(hops) if hops <= most => continue,
            Some(hops) => {
                let way = format!("the route from `{}` to `{}` has {hops} hops", traffic.from, traffic.to);
                let problem = format!("{way}, and packets set out with a hop limit of {most}");
                (problem, format!("a route of at most {most} hops"))
            }
            None => {
                let way = format!("no route leads from `{}` to `{}`", traffic.from, traffic.to);
                match plan.channel.field {
                    Some(_) => (way, RECORDED_WAY.to_owned()),
                    None => (way + &gap(nodes, &hops), PLACED_WAY.to_owned()),
                }
            }
        };
        let traffic_at = YamlPath::root().key("traffic").index(nth);
        let mut paths = vec![traffic_at.key("to"), traffic_at.key("from"), topology.clone()];
        let of_channel = ["trace", "path_loss", "exponent", "shadowing_db", "noise_dbm"];
        paths.extend(of_channel.map(|key| YamlPath::root().key("channel").key(key)));
        return Err(document.refuse_among(&paths, problem, &accepted));
    }
    Ok(FieldCheck::Usable)
}

/// Refuses a run that goes on after its recording.
fn outlasts(document: &Document, plan: &Plan) -> Checked {
    let Some(field) = &plan.channel.field else { return Ok(()) };
    let [ends, has] = [plan.end().0, field.ends_ns].map(Duration::from_nanos);
    if ends <= has {
        return Ok(());
    }
    let paths = [("run", "duration"), ("channel", "trace")];
    let paths = paths.map(|(block, key)| YamlPath::root().key(block).key(key));
    let problem = format!("the run ends at {ends:?}, after the recording's last row at {has:?}");
    Err(document.refuse_among(&paths, problem, "a shorter run, or a longer recording"))
}

/// The nodes next to each other of which one reaches the end and the other does not, and their distance.
fn gap(nodes: &Nodes, hops: &[Option<u8>]) -> String {
    let placed = || {
        let all = nodes.positions.iter().zip(hops).enumerate();
        all.filter_map(|(nth, (position, hops))| Some((nth, (*position)?, hops.is_some())))
    };
    let near = placed().filter(|(.., reaches)| *reaches);
    let pairs = near.flat_map(|(this, here, _)| {
        let others = placed().filter(|(.., reaches)| !*reaches);
        others.map(move |(that, there, _)| (here.distance_m(there), this.min(that), this.max(that)))
    });
    match pairs.min_by(|(one, ..), (other, ..)| one.total_cmp(other)) {
        Some((least, this, that)) => {
            format!(": {least:.1} m lie between {} and {}", nodes.names[this], nodes.names[that])
        }
        None => String::new(),
    }
}
