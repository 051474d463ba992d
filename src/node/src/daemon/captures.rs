//! The beginning of a daemon's capture, by the file or a request, and its counts.

use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use hopwise_core::LinkId;
use hopwise_host::{CaptureCounts, CaptureError, CaptureSettings, ConnNames, Names as ConnNamer, Stack};

use super::Daemon;
use crate::snapshot::CaptureSnapshot;
use crate::unmet::UnmetRequirement;
use crate::{config, confined};
use hopwise_daemon::failure::Failure;

impl Daemon {
    /// Explains a file that may not be written: it lies outside the allowed folders.
    pub(super) fn why_not(&self, path: &Path, error: &CaptureError) -> String {
        let denied = io::ErrorKind::PermissionDenied;
        let is_denied = matches!(error, CaptureError::File { error, .. } if error.kind() == denied);
        if !is_denied {
            return error.to_string();
        }
        tracing::warn!(path = %path.display(), "a capture was refused: the daemon may not write there");
        let folders = confined::captures(&self.config);
        let folders: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        let user = self.user.as_str();
        format!(
            "{error}: `{user}` writes below {} alone, where that user may; `captures:` adds folders",
            folders.join(", ")
        )
    }

    pub(super) fn begin_capture(&self) -> Result<(), Failure> {
        let Some(capture) = &self.config.capture else { return Ok(()) };
        let request =
            (capture.file.clone(), &capture.links[..], capture.rotate.map(|size| size.0), capture.files);
        let started = self.start_capture(request).map(|_| ());
        started.map_err(|problem| UnmetRequirement::Capture(problem).failure(&self.document, &self.config))
    }

    pub(super) fn start_capture(
        &self,
        (path, links, rotate_bytes, files): (PathBuf, &[String], Option<u64>, u32),
    ) -> Result<CaptureSnapshot, String> {
        let unknown = links.iter().find(|name| self.config.link_by_name(name).is_none());
        if let Some(unknown) = unknown {
            return Err(format!("no link is named `{unknown}`"));
        }
        rotate_bytes
            .map_or(Ok(()), config::check_rotation)
            .map_err(|problem| format!("rotate: {problem}"))?;
        let files = NonZeroU32::new(files).ok_or("files: no file would stay: expected 1 or more")?;
        let wanted = self
            .config
            .links
            .iter()
            .enumerate()
            .filter(|(_, link)| links.is_empty() || links.contains(&link.name));
        let wanted: Vec<LinkId> = wanted.map(|(nth, _)| config::link_id(nth)).collect();
        let names = |stack: &Stack| -> ConnNamer {
            let stack = stack.clone();
            Box::new(move |conn| names_of(&stack, conn))
        };
        let settings = CaptureSettings {
            path: path.clone(),
            rotate_bytes,
            files,
            links: self.config.links.iter().map(config::Link::captured).collect(),
            wanted,
            wall_clock_offset: self.shards.clock().wall_offset(),
            names: self.shards.stacks().iter().map(names).collect(),
        };
        self.capture.start(settings).map_err(|error| self.why_not(&path, &error))?;
        Ok(snapshot(&path, &CaptureCounts::default()))
    }
}

fn names_of(stack: &Stack, conn: u32) -> Option<ConnNames> {
    stack.with(|now, endpoint| ConnNames::of(now, endpoint, conn))
}

pub(super) fn snapshot(path: &Path, counts: &CaptureCounts) -> CaptureSnapshot {
    CaptureSnapshot {
        file: path.display().to_string(),
        packets_written: counts.packets_written,
        bytes_written: counts.bytes_written,
        files_begun: counts.files_begun,
        packets_missed: counts.packets_missed,
        events_missed: counts.events_missed,
        packets_unwritten: counts.packets_unwritten,
        last_error: counts.last_error.clone(),
    }
}
