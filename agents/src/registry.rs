//! Every agent by name: the one table that specs, `hopwise agents` and the README are made from.

mod header;

pub use header::Header;

pub use crate::descriptor::{Descriptor, Kind, Make};
use crate::param::{DefaultValue, Param};
use crate::{base_station, receiver, sender};

/// What runs where a rule names no receiver.
pub const DEFAULT_RECEIVER: &str = "delayed";
/// What runs where a rule names no senders.
pub const DEFAULT_SENDERS: &str = "[cubic]";

/// What a base station does where nothing else is said.
pub const DEFAULT_BASE_STATION: &str = "none";

/// Each agent, and the file that it stands in.
macro_rules! agents {
    ($($kind:ident::$name:ident),+ $(,)?) => {
        static ALL: &[&Descriptor] = &[$(&$kind::$name::DESCRIPTOR),+];
        static FILES: &[&str] = &[$(include_str!(concat!(stringify!($kind), "/", stringify!($name), ".rs"))),+];
    };
}

// Adding an agent is its file and its line here.
agents! {
    receiver::immediate,
    receiver::delayed,
    receiver::altman_jimenez,
    receiver::daa,
    receiver::dca,
    receiver::tda,
    receiver::ada,
    receiver::adw,
    receiver::aad,
    receiver::tack,
    receiver::tarr,
    receiver::train,
    receiver::dup_count,
    sender::newreno,
    sender::cubic,
    sender::westwood,
    sender::train,
    sender::limit,
    sender::cwl,
    sender::paced,
    sender::tcp_ap,
    sender::elfn,
    sender::pgy,
    sender::daa_peer,
    sender::tell_cwnd,
    sender::ask_rate,
    base_station::none,
    base_station::ack_hold,
    base_station::snoop,
    base_station::delayed_dupacks,
    base_station::freeze,
    base_station::m_tcp,
    base_station::split,
    base_station::ack_filter,
}

/// Every registered agent, receivers first, then senders, then those of base stations.
pub fn all() -> &'static [&'static Descriptor] {
    ALL
}

/// Agents of this name: at most one of each kind.
pub fn find(name: &str) -> impl Iterator<Item = &'static Descriptor> {
    ALL.iter().copied().filter(move |descriptor| descriptor.name == name)
}

/// The names that are accepted where an agent of this kind is wanted.
pub fn names(kind: Kind) -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(move |descriptor| descriptor.kind() == kind).map(|descriptor| descriptor.name)
}

/// What the header of the agent's file says of it.
pub fn header(agent: &Descriptor) -> Header {
    let is_it = |one: &&Descriptor| (one.name, one.kind()) == (agent.name, agent.kind());
    let file = ALL.iter().position(is_it).and_then(|place| FILES.get(place));
    Header::read(file.copied().unwrap_or_default())
}

/// The agent's row in the README's table: `| name | rule | source | parameters |`.
pub fn readme_row(agent: &Descriptor) -> String {
    let (inner, rule, source) = (if agent.wraps() { "(SPEC)" } else { "" }, agent.rule, agent.source);
    let params: Vec<_> = agent.params.iter().map(readme_param).collect();
    format!("| `{}{inner}` | {rule} | {source} | {} |", agent.name, params.join(", "))
}

fn readme_param(param: &Param) -> String {
    match param.default {
        DefaultValue::Is(value) => format!("`{}={value}`", param.name),
        DefaultValue::Unset(means) => format!("`{}` ({means})", param.name),
        DefaultValue::Required => format!("`{}` (needed)", param.name),
    }
}
