//! The files of a capture: their order, and what they lack.

use std::path::{Path, PathBuf};

use hopwise_core::tcp::decisions::{BadBlock, Block as LogBlock};
use hopwise_lab::plain;

use super::blocks::{self, Block, End};
use super::connections::Connections;
use crate::failure::Failure;

/// Puts the files of one capture into their order, and refuses what is none.
pub(super) fn in_order(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut begun = Vec::new();
    for path in paths {
        begun.push((Beginning::of(path)?, path.clone()));
    }
    if begun.iter().all(|(beginning, _)| beginning.block.is_none()) {
        return Err(without_log(&begun[0].1)?);
    }
    begun.sort();
    let twice = begun.windows(2).find(|pair| pair[0].0.block.is_some() && pair[0].0 == pair[1].0);
    if let Some([(_, first), (_, second)]) = twice {
        let problem = format!(
            "it begins as {} does: expected the files of one capture, each of them once",
            first.display()
        );
        return Err(Failure::refused(second.display().to_string(), problem));
    }
    Ok(begun.into_iter().map(|(_, path)| path).collect())
}

/// The beginning of a file. Files of one capture have the order of their first packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Beginning {
    /// The time of the first packet; the latest there is without packets.
    at: u64,
    /// The machine and number of the log's first block.
    block: Option<(u16, u32)>,
}

impl Beginning {
    fn of(path: &Path) -> Result<Beginning, Failure> {
        let (mut at, mut found, mut other) = (None, None, None);
        blocks::each(path, |block| {
            match block {
                Block::Packet(packet) => at = at.or(Some(packet.at)),
                // A block that is damaged may be followed by sound ones.
                Block::Log(body) => match LogBlock::read(body) {
                    Ok(log) => found = found.or(Some((log.machine, log.number))),
                    Err(BadBlock::Version(version)) => other = Some(BadBlock::Version(version)),
                    Err(BadBlock::Damaged | BadBlock::NotOurs) => {}
                },
                Block::Section(_) => {}
            }
            (at.is_none() || found.is_none()) && other.is_none()
        })?;
        match other {
            Some(other) => Err(Failure::refused(path.display().to_string(), other)),
            None => Ok(Beginning { at: at.unwrap_or(u64::MAX), block: found }),
        }
    }
}

/// The reason why a file has no log.
fn without_log(path: &Path) -> Result<Failure, Failure> {
    let (mut writer, mut packets, mut damaged) = (String::new(), 0_u64, false);
    blocks::each(path, |block| {
        match block {
            Block::Section(application) => writer = application,
            Block::Packet(_) => packets += 1,
            Block::Log(body) => damaged |= LogBlock::read(body) == Err(BadBlock::Damaged),
        }
        true
    })?;
    let wanted =
        "expected the capture of a node, or of the ends of flows (ends/NODE.pcapng of `hopwise run`)";
    let problem = if damaged {
        format!("its decision log is damaged, no block is sound: {wanted}")
    } else if !writer.starts_with("hopwise ") {
        let by = if writer.is_empty() { "another program".to_owned() } else { printable(&writer) };
        format!("{by} wrote it, and it has no decision log (tools that copy captures leave it out): {wanted}")
    } else if packets == 0 {
        format!("it has no packets and no decision log: {wanted}")
    } else {
        format!(
            "it has no decision log, as the capture of a radio, or of a time without connections: {wanted}"
        )
    };
    Ok(Failure::refused(path.display().to_string(), problem))
}

/// A stranger's text for a terminal.
fn printable(text: &str) -> String {
    plain::cut(&plain::line(text), 60)
}

/// Hands the logs of all files to the connections.
pub(super) fn read(paths: &[PathBuf], connections: &mut Connections<'_>) -> Result<(), Failure> {
    for path in paths {
        let name = path.display().to_string();
        connections.begin_file(&name);
        let end = blocks::each(path, |block| {
            match block {
                Block::Section(application) => connections.note_writer(&printable(&application)),
                Block::Packet(packet) => connections.note_packet(packet.at),
                Block::Log(body) => connections.take(body),
            }
            true
        })?;
        match end {
            End::Whole => {}
            End::CutOff => connections.note(format!(
                "{name} ends in the middle of a block, as after a kill: its connections are replayed up to there"
            )),
            End::Damaged(at) => {
                connections.note_damage(format!("{name} is damaged at byte {at}: the rest is not read"));
            }
        }
    }
    Ok(())
}
