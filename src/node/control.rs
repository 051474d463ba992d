//! What a node may be asked over its control socket, and what it answers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::snapshot::{CaptureSnapshot, Snapshot};
use crate::daemon::control::Answer;

pub(crate) mod client;

/// What may be asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Request {
    Status,
    CaptureStart {
        file: PathBuf,
        /// All where none is named.
        links: Vec<String>,
        rotate_bytes: Option<u64>,
        files: u32,
    },
    CaptureStop,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub(crate) enum Response {
    Status(Box<Snapshot>),
    Capture(CaptureSnapshot),
    Refused { problem: String },
}

impl Answer for Response {
    fn refused(problem: String) -> Response {
        Response::Refused { problem }
    }
}
