//! Finds the frames of packets by their ids.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::blocks::{self, Block};
use super::findings::{Findings, PacketName};
use crate::failure::Failure;

/// Completes the differences with the frames of their packets.
pub(super) fn find(paths: &[PathBuf], findings: &mut Findings) -> Result<(), Failure> {
    let mut wanted: BTreeMap<PacketName, Option<(String, u64)>> = BTreeMap::new();
    let differences = findings.connections.iter().filter_map(|connection| connection.difference.as_ref());
    wanted.extend(differences.map(|it| (it.packet, None)).filter(|(packet, _)| packet.id > 0));
    if wanted.is_empty() {
        return Ok(());
    }
    for path in paths {
        let mut frame = 0;
        blocks::each(path, |block| {
            if let Block::Packet(packet) = block {
                frame += 1;
                let name = PacketName { id: packet.id, has_left: packet.has_left };
                if let Some(place) = wanted.get_mut(&name) {
                    place.get_or_insert_with(|| (path.display().to_string(), frame));
                }
            }
            true
        })?;
    }
    for differs in findings.connections.iter_mut().filter_map(|connection| connection.difference.as_mut()) {
        if let Some((file, frame)) = wanted.get(&differs.packet).cloned().flatten() {
            (differs.file, differs.frame) = (Some(file), Some(frame));
        }
    }
    Ok(())
}
