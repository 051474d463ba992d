//! The messages between a trial and the virtual machine that makes its runs: lines of JSON.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::part::Part;
use crate::result::RunResult;

/// A run that the guest is to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub part: Part,
    /// The folder for captures, in the folder for results; none asks for no capture.
    pub capture: Option<PathBuf>,
}

/// The answer to an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    Played(Box<RunResult>),
    /// The run could not be made.
    Failed {
        problem: String,
    },
}
