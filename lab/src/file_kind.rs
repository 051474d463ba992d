//! The command that a file is for: a file of another command is refused as such a file, and not for its first unknown
//! key.

use crate::located::{Checked, Document, YamlPath};

/// A kind of file.
#[derive(Debug, PartialEq, Eq)]
pub struct FileOf {
    /// The command that takes such a file.
    command: &'static str,
    /// Two keys that each file of the kind has, and that no other kind has together.
    signs: [&'static str; 2],
    /// A file of the kind.
    example: &'static str,
}

/// For `hopwise run`, `trial` and `air`.
pub static SCENARIO: FileOf =
    FileOf { command: "hopwise run", signs: ["topology", "traffic"], example: "configs/chain.yaml" };
/// For `hopwise node`.
pub static NODE: FileOf =
    FileOf { command: "hopwise node", signs: ["node", "links"], example: "configs/node.yaml" };
/// For `hopwise route`.
pub static ROUTE: FileOf =
    FileOf { command: "hopwise route", signs: ["network", "interfaces"], example: "configs/route.yaml" };
/// For `hopwise proxy`.
pub static PROXY: FileOf =
    FileOf { command: "hopwise proxy", signs: ["fixed", "mobile"], example: "configs/proxy.yaml" };
/// For `hopwise mesh up`.
pub static MESH: FileOf = FileOf {
    command: "hopwise mesh up",
    signs: ["interfaces", "interfaces.0.mode"],
    example: "configs/mesh.yaml",
};

/// For `hopwise thin --config`.
pub static THIN: FileOf = FileOf {
    command: "hopwise thin --config",
    signs: ["interfaces.0", "rules.0.receiver"],
    example: "configs/keys/thin.yaml",
};

impl FileOf {
    /// Refuses a file that is surely of another kind.
    pub fn check(&self, document: &Document) -> Checked {
        let is_there = |key: &&str| document.value_at(key).is_some();
        let mut kinds = [&SCENARIO, &NODE, &ROUTE, &PROXY, &MESH, &THIN].into_iter();
        let surely = kinds.find(|kind| kind.signs.iter().all(is_there));
        let Some(other) = surely.filter(|kind| *kind != self) else { return Ok(()) };
        let problem = format!("this is no {} but a {}", self.words(), other.words());
        let accepted = format!("`{} FILE`, or a {} such as {}", other.command, self.words(), self.example);
        Err(document.refuse_key(&YamlPath::root().key(other.signs[0]), problem, &accepted))
    }

    fn words(&self) -> String {
        if *self == SCENARIO { "scenario".to_owned() } else { format!("file of `{}`", self.command) }
    }
}
