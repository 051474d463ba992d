//! The command that a file is for: a file of another command is told to be one, instead of one key after the other.

use crate::located::{Document, Refusal, YamlPath};

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// For `hopwise run`, `trial` and `air`.
    Scenario,
    /// For `hopwise node`.
    Node,
    /// For `hopwise route`.
    Route,
    /// For `hopwise proxy`.
    Proxy,
    /// For `hopwise mesh up`.
    Mesh,
}

/// Two keys that each file of the kind has, and only those.
const SIGNS: [(FileKind, [&str; 2]); 5] = [
    (FileKind::Scenario, ["topology", "traffic"]),
    (FileKind::Node, ["node", "links"]),
    (FileKind::Route, ["network", "interfaces"]),
    (FileKind::Proxy, ["fixed", "mobile"]),
    (FileKind::Mesh, ["interfaces", "interfaces.0.mode"]),
];

impl FileKind {
    /// Refuses a file that is surely of another kind.
    pub fn check(self, document: &Document) -> Result<(), Box<Refusal>> {
        let is_there = |key: &&str| document.value_at(key).is_some();
        let surely = SIGNS.iter().find(|(_, keys)| keys.iter().all(is_there));
        let Some((other, [key, _])) = surely.filter(|(kind, _)| *kind != self) else { return Ok(()) };
        let problem = format!("this is no {} but a {}", self.words(), other.words());
        let (command, example) = (other.command(), self.example());
        let accepted = format!("`{command} FILE`, or a {} such as {example}", self.words());
        Err(document.refuse_key(&YamlPath::root().key(key), problem, &accepted))
    }

    fn words(self) -> String {
        match self {
            FileKind::Scenario => "scenario".to_owned(),
            _ => format!("file of `{}`", self.command()),
        }
    }

    fn command(self) -> &'static str {
        match self {
            FileKind::Scenario => "hopwise run",
            FileKind::Node => "hopwise node",
            FileKind::Route => "hopwise route",
            FileKind::Proxy => "hopwise proxy",
            FileKind::Mesh => "hopwise mesh up",
        }
    }

    fn example(self) -> &'static str {
        match self {
            FileKind::Scenario => "configs/chain.yaml",
            FileKind::Node => "configs/node.yaml",
            FileKind::Route => "configs/route.yaml",
            FileKind::Proxy => "configs/proxy.yaml",
            FileKind::Mesh => "configs/mesh.yaml",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_command_is_told_to_be_one() {
        let files = [
            (FileKind::Scenario, include_str!("../../configs/chain.yaml")),
            (FileKind::Node, include_str!("../../configs/node.yaml")),
            (FileKind::Route, include_str!("../../configs/route.yaml")),
            (FileKind::Proxy, include_str!("../../configs/proxy.yaml")),
            (FileKind::Mesh, include_str!("../../configs/mesh.yaml")),
        ];
        for (kind, text) in files {
            let document = Document::parse("a", text).expect("YAML");
            for (wanted, _) in files {
                let checked = wanted.check(&document).map_err(|refusal| refusal.to_string());
                let said = format!("this is no {} but a {}", wanted.words(), kind.words());
                match checked {
                    Ok(()) => assert_eq!(wanted, kind),
                    Err(refused) => assert!(wanted != kind && refused.contains(&said), "{refused}"),
                }
            }
        }
    }
}
