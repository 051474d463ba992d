//! All agents by name. Specs, `hopwise agents` and `docs/agents.md` come from this one table.

mod own;

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

pub use own::NotAdded;

pub use crate::descriptor::{Descriptor, Kind, Listed, Make};
use crate::{base_station, receiver, sender};

/// The receiver agent if a rule names none.
pub const DEFAULT_RECEIVER: &str = "delayed";
/// The sender agents if a rule names none.
pub const DEFAULT_SENDERS: &str = "[cubic:hystart=on]";
/// The shadows if a rule names none.
pub const DEFAULT_SHADOWS: &str = "[]";
/// The base-station agent if none is named.
pub const DEFAULT_BASE_STATION: &str = "none";

/// A program's own agents beside ours, if it has added some.
static ADDED: OnceLock<Registry> = OnceLock::new();
static OURS: Registry = Registry::ours();
/// From the first look on, none can be added.
static IS_LOOKED_AT: AtomicBool = AtomicBool::new(false);

/// The agents that specs can name: ours, and the agents of one program.
#[derive(Clone)]
pub struct Registry {
    /// The agents that are not ours, each with the text of its file.
    pub own: &'static [Listed],
}

impl Registry {
    /// Our agents alone.
    pub(crate) const fn ours() -> Registry {
        Registry { own: &[] }
    }

    /// Our agents and these, each with the text of its file. The list stays in memory until the program ends.
    pub fn with(own: &[Listed]) -> Result<Registry, NotAdded> {
        let own: &[Listed] = own.to_vec().leak();
        (0..own.len()).try_for_each(|nth| own::check(&own[nth], &Registry { own: &own[..nth] }))?;
        Ok(Registry { own })
    }

    /// Receivers first, then senders, then base-station agents; in each kind ours come first.
    fn listed(&self) -> impl Iterator<Item = Listed> + use<> {
        let all = [receiver::AGENTS, sender::AGENTS, base_station::AGENTS, self.own];
        let of = move |kind| all.into_iter().flatten().filter(move |(agent, _)| agent.kind() == kind);
        [Kind::Receiver, Kind::Sender, Kind::BaseStation].into_iter().flat_map(of).copied()
    }

    /// Every agent: receivers first, then senders, then base-station agents.
    pub fn all(&self) -> impl Iterator<Item = &'static Descriptor> + use<> {
        self.listed().map(|(agent, _)| agent)
    }

    /// The agents with this name: at most one of each kind.
    pub fn find(&self, name: &str) -> impl Iterator<Item = &'static Descriptor> {
        self.all().filter(move |agent| agent.name == name)
    }

    /// The names of all agents of this kind.
    pub fn names(&self, kind: Kind) -> impl Iterator<Item = &'static str> {
        self.all().filter(move |agent| agent.kind() == kind).map(|agent| agent.name)
    }
}

/// The names alone: the texts of the files would fill pages.
impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all().map(|agent| agent.name)).finish()
    }
}

/// Adds a program's own agents to ours: once, and before anything looks an agent up.
pub fn add(own: &[Listed]) -> Result<(), NotAdded> {
    let registry = Registry::with(own)?;
    if IS_LOOKED_AT.swap(true, Ordering::Relaxed) {
        return Err(NotAdded::TooLate);
    }
    ADDED.set(registry).map_err(|_| NotAdded::TooLate)
}

/// The agents of this program. From the first look on, none can be added. A look waits for no lock: a fork at the time
/// of another thread's first look would leave the lock held in the child.
pub fn in_force() -> &'static Registry {
    IS_LOOKED_AT.store(true, Ordering::Relaxed);
    ADDED.get().unwrap_or(&OURS)
}

/// Every agent of this program: receivers first, then senders, then base-station agents.
pub fn all() -> impl Iterator<Item = &'static Descriptor> {
    in_force().all()
}

/// The agents of this program with this name: at most one of each kind.
pub fn find(name: &str) -> impl Iterator<Item = &'static Descriptor> {
    in_force().find(name)
}

/// The names of all agents of this kind in this program.
pub fn names(kind: Kind) -> impl Iterator<Item = &'static str> {
    in_force().names(kind)
}

/// The paragraphs in the header of the agent's file.
pub fn header(agent: &Descriptor) -> AgentHeader {
    let is_it = |(one, _): &Listed| (one.name, one.kind()) == (agent.name, agent.kind());
    AgentHeader::read(in_force().listed().find(is_it).map_or("", |(_, file)| file))
}

/// The header of an agent's file, split into its paragraphs. `hopwise agents show` prints them.
///
/// Invariant 1: every registered agent's file has all three paragraphs; a test checks this.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentHeader {
    /// The paper or RFC with its full title.
    pub source: String,
    /// The whole rule; [`Descriptor::rule`](crate::Descriptor::rule) sums it up in a line.
    pub rule: String,
    /// The differences between the agent and its source, with reasons.
    pub deviations: String,
}

impl AgentHeader {
    /// A paragraph begins with its name and a colon. It ends at an empty line, at a table or at the next paragraph.
    fn read(file: &str) -> AgentHeader {
        let mut header = AgentHeader::default();
        let mut others = String::new();
        let mut name = "";
        for line in file.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim) {
            let mut words = line;
            if line.is_empty() || line.starts_with('|') {
                (name, words) = ("", "");
            } else if let Some((start, rest)) = line.split_once(": ")
                && NAMES.contains(&start)
            {
                (name, words) = (start, rest);
            }
            let paragraph = match name {
                "Source" => &mut header.source,
                "Rule" => &mut header.rule,
                "Deviations" => &mut header.deviations,
                _ => &mut others,
            };
            if !paragraph.is_empty() && !words.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(words);
        }
        header
    }
}

const NAMES: [&str; 4] = ["Source", "Rule", "Parameters", "Deviations"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_taken_apart_into_its_paragraphs() {
        let file = "//! `x`: does: this.\n//!\n//! Source: a paper,\n//! in two lines.\n//!\n//! Rule: it does.\n\
                    //! Parameters: none.\n//! Deviations: one\n//!\n//! | not | this |\n//! | Rule: | nor this |\n\
                    use x;\n//! Source: too late.\n";
        let header = AgentHeader::read(file);
        assert_eq!(header.source, "a paper, in two lines.");
        assert_eq!(header.rule, "it does.");
        assert_eq!(header.deviations, "one");
    }
}
