//! The messages between a trial and the processes on its nodes: lines of JSON.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::mesh::{HostObservations, OnMesh};
use crate::located::Refusal;
use crate::programs::EndResult;
use crate::scenario::point::MatrixPoint;
use crate::scenario::{Prepared, Scenario};
use crate::version;

/// A node's part of a run. The plan follows from it, on any machine with this version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodePart {
    /// The version of the program that plans the trial.
    pub version: String,
    /// The scenario's name, its text, and the values set over it.
    pub scenario: String,
    /// The text of the scenario's file.
    pub text: String,
    /// The values set over it, each as `path=value`.
    pub sets: Vec<String>,
    /// The values of the run's point.
    pub point: MatrixPoint,
    /// The name of the arm.
    pub arm: String,
    /// The seed of all chance in the run.
    pub seed: u64,
    /// The number of the node.
    pub node: u32,
    /// The file for the packets of the node's endpoint; none asks for no capture.
    pub capture: Option<PathBuf>,
    /// The file for the trace of the node's endpoint; none asks for no trace.
    pub trace: Option<PathBuf>,
    /// The socket at which the node's routing tells its endpoint of paths and asks for arrivals; none without either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<PathBuf>,
    /// The other hosts, for a node that is a host of a mesh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<OnMesh>,
    /// The seconds after `host.settle` in which the word to begin comes. A host that its settings cut off hears none,
    /// and has its old settings then.
    pub word_within_s: u64,
}

/// A message of a process on a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartMessage {
    /// Its sockets are open. It waits for the beginning.
    Ready,
    /// The time of day of its clock, in seconds since 1970.
    Clock {
        /// The seconds.
        at_s: f64,
    },
    /// The length in bytes of a file that follows this line: the capture of a host's endpoint.
    File {
        /// The number of bytes.
        bytes: u64,
    },
    /// The run is over, with these results.
    Ended(NodeResults),
    /// The same of a routing daemon.
    Routed(RoutingCounts),
    /// The same of a transparent node.
    Carried(CarriedCounts),
    /// The same of a daemon that thins ACKs.
    Thinned(ThinnedAcks),
    /// The same of a gateway's proxy.
    Proxied(ProxiedPackets),
    /// It cannot take part.
    Refused {
        /// The reason, for the trial's reader.
        problem: String,
    },
}

/// The results of a node at the run's end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeResults {
    /// The results of the flows' ends at the node.
    pub ends: Vec<EndResult>,
    /// The longest time by which a timer of the node was late, in microseconds.
    pub late_us: u64,
    /// Packets for its programs that they did not take in time; absent where the system does not tell.
    pub lost: Option<u64>,
    /// The observations of a host of a mesh during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<HostObservations>,
    /// The offloads that join or cut segments (GRO, LRO, TSO, GSO) and were on when it began, by interface.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub offloads: BTreeMap<String, Vec<String>>,
    /// The settings that the run has changed here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<SettingRow>,
    /// The counts of the daemon that thinned ACKs beside the node's programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinned: Option<ThinnedAcks>,
}

/// A setting of a host during one run. The run began with the wanted value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingRow {
    /// The interface; absent for a switch of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The setting's name.
    pub name: String,
    /// The value before the change, which it has again.
    pub before: String,
    /// The wanted value.
    pub wanted: String,
    /// The value at the run's end.
    pub after: String,
}

/// The counts of a node's routing at the run's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutingCounts {
    /// Route discoveries that the node began.
    pub discoveries: u64,
    /// Routes of the node that broke.
    pub route_failures: u64,
    /// The longest time by which a timer of the daemon was late, in microseconds.
    pub late_us: u64,
}

/// The counts of a transparent node at the run's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedCounts {
    /// Connections of the host behind it that it carried.
    pub caught: u64,
    /// Connections of that host that went past it.
    pub straight: u64,
}

/// The pure ACKs of a kernel that a daemon has judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinnedAcks {
    /// All pure ACKs of followed flows.
    pub acks: u64,
    /// The part of them that was dropped for a newer ACK.
    pub replaced: u64,
    /// The part of them that was dropped because data left with a newer number.
    pub ridden: u64,
    /// The part of them that passed at once, with news or at a beginning.
    pub news: u64,
}

/// What the proxy of a gateway has done at the run's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxiedPackets {
    /// All packets that came to it.
    pub packets: u64,
    /// The part of them that belonged to no flow which it followed.
    pub untouched: u64,
    /// The mobiles' ACKs that it held back for a while.
    pub held: u64,
    /// Packets of data that went on, of which it kept a copy.
    pub copied: u64,
    /// Connections that were cut in two at the end.
    pub cut: u64,
}

/// The time for the word to begin: no trial takes so long to begin.
pub const WORD_WITHIN_S: u64 = 90;

/// The line that begins the run at a node.
pub const BEGIN: &str = "begin";

/// The line that asks a host of a mesh for its time.
pub const CLOCK: &str = "clock";

/// The reason why a part cannot be prepared.
#[derive(Debug)]
pub enum NoPart {
    /// The scenario is refused.
    Refused(Box<Refusal>),
    /// The trial has another version.
    Version {
        /// The version of the trial.
        theirs: String,
    },
    /// The scenario has no such point.
    NoPoint,
}

impl From<Box<Refusal>> for NoPart {
    fn from(refusal: Box<Refusal>) -> NoPart {
        NoPart::Refused(refusal)
    }
}

impl NodePart {
    /// The plan of the run, from the scenario's text.
    pub fn prepare(&self) -> Result<Prepared, NoPart> {
        if self.version != version::of_program() {
            return Err(NoPart::Version { theirs: self.version.clone() });
        }
        let scenario = Scenario::parse(&self.scenario, &self.text, &self.sets)?;
        let cells = scenario.asked()?.cells;
        let cell = cells.iter().find(|cell| cell.point == self.point).ok_or(NoPart::NoPoint)?;
        Ok(scenario.at(cell)?.under(&self.arm)?.prepare(self.seed)?)
    }
}
