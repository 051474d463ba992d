//! Positions and names of the nodes: chains, crosses, grids, random fields, files.

use hopwise_air::medium::Position;
use hopwise_air::motion::{Movements, NodeTrack};
use hopwise_air::random::{NumberStream, Purpose};
use hopwise_core::narrow::as_u32;

use super::schema::{ScenarioFile, Shape, Topology};
use super::{check, motion};
use crate::located::{Checked, Document, YamlPath};
use crate::sim::WirePlan;

/// With more nodes a run takes longer than any user waits.
const MOST_NODES: u32 = 10_000;
const FARTHEST_M: f64 = 1e7;
/// Default distance between neighbours.
pub(super) const SPACING_M: f64 = 200.0;

/// The nodes of a scenario.
#[derive(Clone, Debug)]
pub struct Nodes {
    /// The place of each node's radio; `None`: it has wires alone.
    pub positions: Vec<Option<Position>>,
    /// The name of each node.
    pub names: Vec<String>,
    /// The wires between nodes.
    pub wires: Vec<WirePlan>,
    /// Movement of each node; empty: no node moves.
    pub tracks: Vec<Option<NodeTrack>>,
}

impl Nodes {
    /// The name of the last node.
    pub fn last(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    /// The number of a node by its name, or by `first` or `last`.
    pub fn find(&self, name: &str) -> Option<u32> {
        match name {
            "first" => Some(0),
            "last" => Some(as_u32(self.names.len()) - 1),
            _ => self.names.iter().position(|known| known == name).map(as_u32),
        }
    }

    /// The number of the node that the value at `at` names, or a refusal there.
    pub(super) fn named(&self, document: &Document, at: &YamlPath, name: &str) -> Checked<u32> {
        self.find(name).ok_or_else(|| {
            let accepted = format!("first, last, or one of {} to {}", self.names[0], self.last());
            let paths = [at.clone(), YamlPath::root().key("topology")];
            document.refuse_among(&paths, format!("no node is called `{name}`"), &accepted)
        })
    }
}

/// The topology's keys, with the place to refuse them at.
struct TopologyKeys<'a> {
    document: &'a Document,
    topology: &'a Topology,
    at: YamlPath,
}

/// Places the nodes; `draw` counts the draws of a random field.
pub(super) fn place(document: &Document, file: &ScenarioFile, (seed, draw): (u64, u32)) -> Checked<Nodes> {
    let topology = &file.topology;
    let keys = TopologyKeys { document, topology, at: YamlPath::root().key("topology") };
    keys.only_its_own()?;
    let mut tracks = Vec::new();
    let spots = match topology.kind {
        Shape::Chain => keys.chain()?,
        Shape::Cross => keys.cross()?,
        Shape::Grid => keys.grid()?,
        Shape::Random => keys.random(seed, draw)?,
        Shape::File => keys.file()?,
        Shape::Movements => {
            let movements = keys.movements()?;
            tracks = movements.tracks.into_iter().map(Some).collect();
            movements.positions
        }
    };
    let names: Vec<_> = (0..spots.len()).map(|n| format!("n{n}")).collect();
    let mut positions: Vec<_> = spots.into_iter().map(Some).collect();
    if file.mobility.is_some() {
        tracks = motion::tracks(document, file, (&names, &mut positions), seed)?;
    }
    let mut nodes = Nodes { names, positions, tracks, wires: Vec::new() };
    if let Some(wired) = topology.wired {
        nodes.positions.insert(0, None);
        if !nodes.tracks.is_empty() {
            nodes.tracks.insert(0, None);
        }
        nodes.names.insert(0, "w0".to_owned());
        let (bits_per_second, delay) = (wired.rate.0, wired.delay.0);
        let queue_packets = wired.queue_packets.map(|packets| packets as usize);
        nodes.wires.push(WirePlan { ends: (0, 1), bits_per_second, delay, queue_packets });
    }
    Ok(nodes)
}

impl TopologyKeys<'_> {
    /// Refuses keys of another shape.
    fn only_its_own(&self) -> Checked {
        let Topology { kind, hops, spacing_m, arm, rows, columns, nodes, width_m, height_m, file, .. } =
            self.topology;
        let (of_shape, needs) = match kind {
            Shape::Chain => (&["hops", "spacing_m"][..], "kind: chain takes hops and spacing_m"),
            Shape::Cross => (&["arm", "spacing_m"][..], "kind: cross takes arm and spacing_m"),
            Shape::Grid => {
                (&["rows", "columns", "spacing_m"][..], "kind: grid takes rows, columns and spacing_m")
            }
            Shape::Random => {
                (&["nodes", "width_m", "height_m"][..], "kind: random takes nodes, width_m and height_m")
            }
            Shape::File => (&["file"][..], "kind: file takes file"),
            Shape::Movements => (&["file"][..], "kind: movements takes file"),
        };
        let given = [
            ("hops", hops.is_some()),
            ("spacing_m", spacing_m.is_some()),
            ("arm", arm.is_some()),
            ("rows", rows.is_some()),
            ("columns", columns.is_some()),
            ("nodes", nodes.is_some()),
            ("width_m", width_m.is_some()),
            ("height_m", height_m.is_some()),
            ("file", file.is_some()),
        ];
        check::only_its_own(self.document, &self.at, &given, (of_shape, "kind", needs))
    }

    /// A key that this shape needs.
    fn needed<T>(&self, key: &str, given: Option<T>) -> Checked<T> {
        check::needed(self.document, ("topology", key), given)
    }

    fn spacing(&self) -> f64 {
        self.topology.spacing_m.unwrap_or(SPACING_M)
    }

    fn at_most(&self, key: &str, nodes: u64) -> Checked {
        if nodes <= u64::from(MOST_NODES) {
            return Ok(());
        }
        let accepted = format!("at most {MOST_NODES} nodes");
        Err(self.document.refuse(&self.at.key(key), format!("that makes {nodes} nodes"), &accepted))
    }

    fn chain(&self) -> Checked<Vec<Position>> {
        let hops = self.needed("hops", self.topology.hops)?;
        let spacing_m = self.spacing();
        Ok((0..=hops).map(|n| Position { x: spacing_m * f64::from(n), y: 0.0 }).collect())
    }

    /// West to east first, then south to north without the centre, which both share.
    fn cross(&self) -> Checked<Vec<Position>> {
        let arm = self.needed("arm", self.topology.arm)?;
        self.at_most("arm", 4 * u64::from(arm) + 1)?;
        let spacing_m = self.spacing();
        let steps = |n: u32| spacing_m * (f64::from(n) - f64::from(arm));
        let row = (0..=2 * arm).map(|n| Position { x: steps(n), y: 0.0 });
        let column = (0..=2 * arm).filter(|n| *n != arm).map(|n| Position { x: 0.0, y: steps(n) });
        Ok(row.chain(column).collect())
    }

    /// Row by row.
    fn grid(&self) -> Checked<Vec<Position>> {
        let rows = self.needed("rows", self.topology.rows)?;
        let columns = self.needed("columns", self.topology.columns)?;
        let of = if self.document.is_set("topology.columns") { "columns" } else { "rows" };
        self.at_most(of, u64::from(rows) * u64::from(columns))?;
        let spacing_m = self.spacing();
        let spot = |n: u32| Position {
            x: spacing_m * f64::from(n % columns),
            y: spacing_m * f64::from(n / columns),
        };
        Ok((0..rows * columns).map(spot).collect())
    }

    /// Evenly over a rectangle, by the seed.
    fn random(&self, seed: u64, draw: u32) -> Checked<Vec<Position>> {
        let nodes = self.needed("nodes", self.topology.nodes)?;
        let width_m = self.needed("width_m", self.topology.width_m)?;
        let height_m = self.needed("height_m", self.topology.height_m)?;
        let spot = |n| {
            let mut stream = NumberStream::new(seed, n, Purpose::Placement);
            for _ in 0..2 * draw {
                stream.next_u64();
            }
            Position { x: width_m * stream.unit(), y: height_m * stream.unit() }
        };
        Ok((0..nodes).map(spot).collect())
    }

    /// The file's name and text.
    fn text(&self, accepted: &str) -> Checked<(&str, String)> {
        let Some(name) = &self.topology.file else {
            return Err(self.document.refuse_key(&self.at, "`file` is missing", accepted));
        };
        let refuse = |error| self.document.refuse(&self.at.key("file"), error, accepted);
        Ok((name, motion::read_text(name).map_err(refuse)?))
    }

    fn movements(&self) -> Checked<Movements> {
        let accepted = "a movement file as ns-2's setdest writes it, or BonnMotion's (.movements, unpacked)";
        let (name, text) = self.text(accepted)?;
        let refuse = |problem: String| self.document.refuse(&self.at.key("file"), problem, accepted);
        let movements = Movements::parse(&text)
            .map_err(|error| refuse(format!("{name}:{}:{}: {error}", error.line, error.column)))?;
        if movements.positions.len() < 2 {
            return Err(refuse(format!("{name} has {} nodes", movements.positions.len())));
        }
        self.at_most("file", movements.positions.len() as u64)?;
        Ok(movements)
    }

    /// A line `x y` for each node, in metres; `#` begins a comment.
    fn file(&self) -> Checked<Vec<Position>> {
        let accepted = "a file with a line `x y` for each node, in metres";
        let (name, text) = self.text(accepted)?;
        let refuse = |problem: String| self.document.refuse(&self.at.key("file"), problem, accepted);
        let mut spots = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let metres: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            match metres[..] {
                [x, y]
                    if x.abs() <= FARTHEST_M
                        && y.abs() <= FARTHEST_M
                        && line.split_whitespace().count() == 2 =>
                {
                    spots.push(Position { x, y });
                }
                _ => return Err(refuse(format!("{name}:{number}: `{line}` is no place"))),
            }
        }
        if spots.len() < 2 {
            return Err(refuse(format!("{name} has {} nodes", spots.len())));
        }
        self.at_most("file", spots.len() as u64)?;
        Ok(spots)
    }
}
