//! All agents by name. Specs, `hopwise agents` and `docs/agents.md` come from this one table.

mod header;

use std::sync::LazyLock;

pub use header::Header;

use crate::descriptor::Listed;

pub use crate::descriptor::{Descriptor, Kind, Make};
use crate::param::{DefaultValue, Param};
use crate::{base_station, receiver, sender};

/// The receiver agent if a rule names none.
pub const DEFAULT_RECEIVER: &str = "delayed";
/// The sender agents if a rule names none.
pub const DEFAULT_SENDERS: &str = "[cubic]";
/// The shadows if a rule names none.
pub const DEFAULT_SHADOWS: &str = "[]";
/// The base-station agent if none is named.
pub const DEFAULT_BASE_STATION: &str = "none";

static ALL: LazyLock<Vec<&'static Descriptor>> =
    LazyLock::new(|| listed().map(|(agent, _)| *agent).collect());

/// The agent that `docs/own-agent.md` shows.
#[cfg(test)]
static SHOWN: &[&Descriptor] = &[&receiver::shown::DESCRIPTOR];
#[cfg(not(test))]
static SHOWN: &[&Descriptor] = &[];

fn listed() -> impl Iterator<Item = &'static Listed> {
    [receiver::AGENTS, sender::AGENTS, base_station::AGENTS].into_iter().flatten()
}

/// Every registered agent: receivers first, then senders, then base-station agents.
pub fn all() -> &'static [&'static Descriptor] {
    &ALL
}

/// The agents with this name: at most one of each kind.
pub fn find(name: &str) -> impl Iterator<Item = &'static Descriptor> {
    ALL.iter().chain(SHOWN).copied().filter(move |descriptor| descriptor.name == name)
}

/// The names of all agents of this kind.
pub fn names(kind: Kind) -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(move |descriptor| descriptor.kind() == kind).map(|descriptor| descriptor.name)
}

/// The paragraphs in the header of the agent's file.
pub fn header(agent: &Descriptor) -> Header {
    let is_it = |(one, _): &&Listed| (one.name, one.kind()) == (agent.name, agent.kind());
    Header::read(listed().find(is_it).map_or("", |(_, file)| file))
}

/// The table of this kind in `docs/agents.md`: its head, and a row for each agent.
pub fn markdown_table(kind: Kind) -> String {
    let mut table = String::from("| agent | rule | source | parameters |\n|---|---|---|---|\n");
    ALL.iter().filter(|agent| agent.kind() == kind).for_each(|agent| table.push_str(&markdown_row(agent)));
    table
}

fn markdown_row(agent: &Descriptor) -> String {
    let (inner, rule, source) = (if agent.wraps() { "(SPEC)" } else { "" }, agent.rule, agent.source);
    let params: Vec<_> = agent.params.iter().map(markdown_param).collect();
    format!("| `{}{inner}` | {rule} | {source} | {} |\n", agent.name, params.join(", "))
}

fn markdown_param(param: &Param) -> String {
    match param.default {
        DefaultValue::Is(value) => format!("`{}={value}`", param.name),
        DefaultValue::Unset(means) => format!("`{}` ({means})", param.name),
        DefaultValue::Required => format!("`{}` (needed)", param.name),
    }
}
