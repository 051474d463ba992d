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

const fn of(command: &'static str, signs: [&'static str; 2], example: &'static str) -> FileOf {
    FileOf { command, signs, example }
}

/// For `hopwise run`, `trial` and `air`.
pub static SCENARIO: FileOf = of("hopwise run", ["topology", "traffic"], "configs/chain.yaml");
/// For `hopwise node`.
pub static NODE: FileOf = of("hopwise node", ["node", "links"], "configs/node.yaml");
/// For `hopwise route`.
pub static ROUTE: FileOf = of("hopwise route", ["network", "interfaces"], "configs/route.yaml");
/// For `hopwise proxy`.
pub static PROXY: FileOf = of("hopwise proxy", ["fixed", "mobile"], "configs/proxy.yaml");
/// For `hopwise mesh up`.
pub static MESH: FileOf = of("hopwise mesh up", ["interfaces", "interfaces.0.mode"], "configs/mesh.yaml");

/// For `hopwise thin --config`.
pub static THIN: FileOf =
    of("hopwise thin --config", ["interfaces.0", "rules.0.receiver"], "configs/keys/thin.yaml");

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
