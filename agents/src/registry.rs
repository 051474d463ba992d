//! Every agent by name: the one table that specs, `hopwise agents` and the README are made from.

mod standard;

pub use standard::{Profile, StandardAgents};

pub use crate::descriptor::{Descriptor, Kind, Make};
use crate::param::{DefaultValue, Param};
use crate::{receiver, sender};

/// What runs where a rule names no receiver.
pub const DEFAULT_RECEIVER: &str = "delayed";
/// What runs where a rule names no senders.
pub const DEFAULT_SENDERS: &str = "[cubic]";

/// Adding an agent is its file and its line here.
static ALL: &[&Descriptor] = &[
    &receiver::immediate::DESCRIPTOR,
    &receiver::delayed::DESCRIPTOR,
    &receiver::altman_jimenez::DESCRIPTOR,
    &receiver::daa::DESCRIPTOR,
    &receiver::dca::DESCRIPTOR,
    &receiver::tda::DESCRIPTOR,
    &receiver::ada::DESCRIPTOR,
    &receiver::adw::DESCRIPTOR,
    &receiver::aad::DESCRIPTOR,
    &receiver::tack::DESCRIPTOR,
    &receiver::tarr::DESCRIPTOR,
    &receiver::dup_count::DESCRIPTOR,
    &sender::newreno::DESCRIPTOR,
    &sender::cubic::DESCRIPTOR,
    &sender::westwood::DESCRIPTOR,
    &sender::limit::DESCRIPTOR,
    &sender::cwl::DESCRIPTOR,
    &sender::paced::DESCRIPTOR,
    &sender::tcp_ap::DESCRIPTOR,
    &sender::elfn::DESCRIPTOR,
    &sender::pgy::DESCRIPTOR,
    &sender::daa_peer::DESCRIPTOR,
    &sender::tell_cwnd::DESCRIPTOR,
    &sender::ask_rate::DESCRIPTOR,
];

/// Every registered agent, receivers first.
pub fn all() -> &'static [&'static Descriptor] {
    ALL
}

pub fn find(name: &str) -> Option<&'static Descriptor> {
    ALL.iter().copied().find(|descriptor| descriptor.name == name)
}

/// The names that are accepted where an agent of this kind is wanted.
pub fn names(kind: Kind) -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(move |descriptor| descriptor.kind() == kind).map(|descriptor| descriptor.name)
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
