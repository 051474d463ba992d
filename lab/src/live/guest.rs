//! The messages between a trial and the virtual machine that makes its runs: lines of JSON.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::part::NodePart;
use crate::result::RunResult;

/// A run that the guest is to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuestOrder {
    /// The run, as a node's process would get it.
    pub part: NodePart,
    /// The folder for what is kept of it, in the folder for results.
    pub folder: PathBuf,
    /// The files to keep.
    pub wanted: KeptFiles,
}

/// The files that are kept of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFiles {
    /// The frames of each radio, and the packets of the programs' endpoints.
    pub capture: bool,
    /// The traces of the programs' endpoints.
    pub trace: bool,
}

/// The answer to an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestAnswer {
    /// The result of the run.
    Played(Box<RunResult>),
    /// The run could not be made.
    Failed {
        /// The reason, for the trial's reader.
        problem: String,
    },
}
