//! The names of nodes, as files and the command line tell them.

use std::collections::{BTreeMap, BTreeSet};

use hopwise_core::StationAddress;

use super::super::{RecordingOrigin, plain};
use super::rows::RowReader;
use super::{FileSpan, MergeError, MergeResult, RecordingFile, at_line};
use crate::truncate::quoted;

/// The names of nodes.
#[derive(Debug, Default)]
pub(super) struct NodeNames {
    of: BTreeMap<StationAddress, String>,
    /// In the order of the files, followed by the order of the given names.
    pub(super) all: Vec<String>,
    pub(super) strangers: BTreeSet<StationAddress>,
}

impl NodeNames {
    pub(super) fn of(
        sources: &[RecordingFile<'_>],
        given: &[(StationAddress, String)],
    ) -> MergeResult<NodeNames> {
        let given: Vec<_> = given.iter().map(|(address, name)| (*address, plain(name))).collect();
        let mut names = NodeNames { of: given.iter().cloned().collect(), ..NodeNames::default() };
        for (file, source) in sources.iter().enumerate() {
            let origin = RecordingOrigin::of(source.text).map_err(|error| MergeError { file, error })?;
            for (told, address) in origin.nodes {
                let is_given = given.iter().any(|(known, _)| *known == address);
                let name = names.of.entry(address).or_insert_with(|| told.clone()).clone();
                if name != told && !is_given {
                    let problem = format!(
                        "{address} is called `{}`, and `{}` before, expected one name, or --node {address}=NAME",
                        quoted(&told),
                        quoted(&name)
                    );
                    return Err(at_line(file, 1, problem));
                }
                names.add(&name);
            }
        }
        given.iter().for_each(|(_, name)| names.add(name));
        Ok(names)
    }

    fn add(&mut self, name: &str) {
        if !self.all.iter().any(|known| known == name) {
            self.all.push(name.to_owned());
        }
    }

    pub(super) fn nodes(&self) -> Vec<(String, StationAddress)> {
        self.of.iter().map(|(address, name)| (name.clone(), *address)).collect()
    }

    /// The problem of files without a row between nodes with names.
    pub(super) fn without_rows(&self) -> String {
        let strangers: Vec<_> = self.strangers.iter().map(StationAddress::to_string).collect();
        let expected = match strangers.first() {
            None => "at least one".to_owned(),
            Some(_) => format!("--node ADDRESS=NAME for some of {}", strangers.join(", ")),
        };
        format!("no file has a row between nodes with names, expected {expected}")
    }

    /// The node's number; `None` for a station without a name.
    pub(super) fn number(&self, name: &str) -> Option<usize> {
        let name = match name.parse::<StationAddress>() {
            Ok(address) => self.of.get(&address)?,
            Err(_) => name,
        };
        self.all.iter().position(|known| known == name)
    }

    /// Reads a file for the first time: names that no head tells, and the first and last interval.
    pub(super) fn look_through(&mut self, rows: &mut RowReader<'_>) -> MergeResult<Option<FileSpan>> {
        let mut span: Option<FileSpan> = None;
        while let Some(row) = rows.next()? {
            for name in [row.from, row.to] {
                match name.parse::<StationAddress>() {
                    Ok(address) if !self.of.contains_key(&address) => drop(self.strangers.insert(address)),
                    Ok(_) => {}
                    Err(_) => self.add(name),
                }
            }
            if let Some((from, to)) = self.number(row.from).zip(self.number(row.to)) {
                if from == to {
                    let problem =
                        format!("a link from `{}` to itself, expected a name for each", self.all[to]);
                    return Err(at_line(rows.file, row.line, problem));
                }
                let (first, ..) = span.unwrap_or((row.slot, row.slot, rows.file));
                span = Some((first, row.slot, rows.file));
            }
        }
        Ok(span)
    }
}
