//! Sections that several files share, or one file has twice: one type of the code, which one page describes.

use hopwise_lab::keys::{Key, keys};

use super::FileKind;

/// A block of keys at its place in a kind of file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) kind: FileKind,
    /// The path before the names of its keys, such as `links[]`.
    pub(super) block: String,
}

impl Section {
    /// The keys of its type that a file of its kind does not take, by their paths from here. Keys below such a key are
    /// left out.
    pub(super) fn left_out(&self) -> Vec<String> {
        let taken = relative(&self.block, &self.kind.keys());
        let mut left_out: Vec<String> = Vec::new();
        for key in relative(&self.block, &keys(self.kind.schema())) {
            let is_taken = taken.iter().any(|one| one.path == key.path);
            if !is_taken && !left_out.iter().any(|above| is_within(&key.path, above)) {
                left_out.push(key.path);
            }
        }
        left_out
    }
}

/// The path before the names of the keys that stand below a key.
pub(super) fn block_of(key: &Key, all: &[Key]) -> Option<String> {
    let is_block = |block: &String| all.iter().any(|other| block_with(other) == block);
    ["", "[]", ".NAME"].map(|ending| format!("{}{ending}", key.path)).into_iter().find(is_block)
}

/// The path of the block that a key stands in.
pub(super) fn block_with(key: &Key) -> &str {
    key.path.rsplit_once('.').map_or("", |(block, _)| block)
}

/// True if a path leads to a block or below it.
pub(super) fn is_within(path: &str, block: &str) -> bool {
    path.strip_prefix(block).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// All sections of types with a name, in the order of files and of their keys, each with its type and keys.
fn named() -> Vec<(Section, String, Vec<Key>)> {
    let of = |kind: FileKind| {
        let all = keys(kind.schema());
        let section = |key: &Key| {
            let (name, block) = key.section.clone().zip(block_of(key, &all))?;
            let below = relative(&block, &all);
            Some((Section { kind, block }, name, below))
        };
        all.iter().filter_map(section).collect::<Vec<_>>()
    };
    FileKind::ALL.iter().copied().flat_map(of).collect()
}

/// The keys of a block with their paths from there.
fn relative(block: &str, all: &[Key]) -> Vec<Key> {
    let below = |key: &Key| {
        let path = key.path.strip_prefix(block)?.strip_prefix('.')?.to_owned();
        Some(Key { path, ..key.clone() })
    };
    all.iter().filter_map(below).collect()
}

/// The sections of a kind of file that stand elsewhere before it, each with the place that describes its keys.
pub(super) fn described_elsewhere(kind: FileKind) -> Vec<(Section, Section)> {
    pairs().into_iter().filter(|(section, _)| section.kind == kind).collect()
}

/// The sections whose keys this place describes.
pub(super) fn described_by(kind: FileKind, block: &str) -> Vec<Section> {
    let is_here = |(_, first): &(Section, Section)| first.kind == kind && first.block == block;
    pairs().into_iter().filter(is_here).map(|(section, _)| section).collect()
}

/// Each section that repeats an earlier one, and the earlier one. Sections within it are left out.
fn pairs() -> Vec<(Section, Section)> {
    let named = named();
    let mut pairs: Vec<(Section, Section)> = Vec::new();
    for (nth, (section, name, below)) in named.iter().enumerate() {
        let is_inner = |(outer, _): &(Section, Section)| {
            outer.kind == section.kind && is_within(&section.block, &outer.block)
        };
        if pairs.iter().any(is_inner) {
            continue;
        }
        let is_same = |(_, other, keys): &&(Section, String, Vec<Key>)| other == name && keys == below;
        pairs.extend(named[..nth].iter().find(is_same).map(|(first, ..)| (section.clone(), first.clone())));
    }
    pairs
}
