//! Nodes that move: random waypoint (`mobility:`), and files of ns-2 and BonnMotion (`topology: { kind: movements }`).

use std::io::Error;
use std::path::Path;

use hopwise_air::medium::Position;
use hopwise_air::motion::{NodeTrack, Waypoint};

use super::check;
use super::schema::{ScenarioFile, Shape};
use crate::located::{Checked, Document, YamlPath};
use crate::named;

/// No file of movements or of a channel comes near this.
const LARGEST_FILE: u64 = 256 << 20;

pub(super) fn read_text(name: &str) -> Result<String, Error> {
    named::read_file(Path::new(name), LARGEST_FILE)
}

/// A track for each place, or none if no node moves. A node that does not move is put at its place in the file.
pub(super) fn tracks(
    document: &Document,
    file: &ScenarioFile,
    (names, positions): (&[String], &mut [Option<Position>]),
    seed: u64,
) -> Checked<Vec<Option<NodeTrack>>> {
    let Some(mobility) = &file.mobility else { return Ok(Vec::new()) };
    let at = YamlPath::root().key("mobility");
    if file.topology.kind == Shape::Movements {
        let problem = "the movement file already moves the nodes";
        let paths = [at, YamlPath::root().key("topology").key("kind")];
        return Err(document.refuse_key_among(&paths, problem, "one of the two"));
    }
    let [slowest, fastest] = mobility.speed_mps;
    if slowest > fastest {
        let problem = format!("speeds from {slowest} to {fastest} m/s");
        let accepted = "[lowest, highest]";
        return Err(document.refuse(&at.key("speed_mps"), problem, accepted));
    }
    let length = |key: &str, own: Option<f64>, of_topology: Option<f64>| {
        check::needed(document, ("mobility", key), own.or(of_topology))
    };
    let area = Position {
        x: length("width_m", mobility.width_m, file.topology.width_m)?,
        y: length("height_m", mobility.height_m, file.topology.height_m)?,
    };
    let pause_ns = mobility.pause.nanos();
    let track = |(position, node): (&Option<Position>, u32)| {
        position.map(|start| {
            NodeTrack::Waypoint(Waypoint::new((seed, node), start, area, (slowest, fastest), pause_ns))
        })
    };
    let mut tracks: Vec<_> = positions.iter().zip(0..).map(track).collect();
    for (name, spot) in &mobility.still {
        let node = still(document, &at.key("still").key(name), (name, *spot), names, area)?;
        positions[node] = Some(Position { x: spot[0], y: spot[1] });
        tracks[node] = None;
    }
    Ok(tracks)
}

/// The index of the node that stays, in the field.
fn still(
    document: &Document,
    at: &YamlPath,
    (name, [x, y]): (&str, [f64; 2]),
    names: &[String],
    area: Position,
) -> Checked<usize> {
    let Some(node) = names.iter().position(|known| known == name) else {
        let accepted = format!("one of n0 to n{}", names.len() - 1);
        return Err(document.refuse_key(at, format!("no node is called `{name}`"), &accepted));
    };
    if !(0.0..=area.x).contains(&x) || !(0.0..=area.y).contains(&y) {
        let accepted = format!("[x, y] in the field of {} m by {} m", area.x, area.y);
        return Err(document.refuse(at, format!("{x}, {y} is outside"), &accepted));
    }
    Ok(node)
}
