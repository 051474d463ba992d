//! Specs of every registered agent, for the tests that all agents must pass.

use proptest::prelude::*;

use crate::descriptor::{Descriptor, Kind};
use crate::param::{DefaultValue, Form, Param};
use crate::registry::{self, Registry};
use crate::spec::{self, SenderList};

/// A spec for each agent of this kind, with as few parameters as it accepts. Senders come as lists.
pub(crate) fn shortest(kind: Kind) -> Vec<String> {
    let of_kind = registry::all().filter(|agent| agent.kind() == kind);
    of_kind.map(|agent| placed(agent, shortest_alone(agent))).collect()
}

/// Any accepted spec of any receiver agent, alone or in a wrapper.
pub(crate) fn any_receiver(agents: &Registry) -> impl Strategy<Value = String> + use<> {
    let alone = any_of(agents, |agent| agent.kind() == Kind::Receiver && !agent.wraps());
    let around = any_of(agents, |agent| agent.kind() == Kind::Receiver && agent.wraps());
    let around = prop::option::weighted(0.2, around);
    (alone, around).prop_map(|((agent, dice), around)| {
        let inner = with_dice(agent, "", &dice);
        around.map_or(inner.clone(), |(agent, dice)| with_dice(agent, &inner, &dice))
    })
}

/// Any accepted spec of this receiver agent. A wrapper gets any other agent inside.
pub(crate) fn any_of_receiver(
    agents: &Registry,
    agent: &'static Descriptor,
) -> impl Strategy<Value = String> + use<> {
    let inner = any_of(agents, |agent| agent.kind() == Kind::Receiver && !agent.wraps());
    (any_dice(), inner).prop_map(move |(dice, (inner, inner_dice))| {
        let inner = if agent.wraps() { with_dice(inner, "", &inner_dice) } else { String::new() };
        with_dice(agent, &inner, &dice)
    })
}

/// Any accepted list: an owner of cwnd, and up to four agents that narrow.
pub(crate) fn any_senders(agents: &Registry) -> impl Strategy<Value = String> + use<> {
    let (drawn, agents) = ((any_of(agents, Descriptor::owns_cwnd), any_narrowers(agents)), agents.clone());
    drawn.prop_map(move |(owner, narrowers)| listed(&agents, owner, narrowers))
}

/// Any accepted list with this sender agent.
pub(crate) fn any_senders_with(
    agents: &Registry,
    agent: &'static Descriptor,
) -> impl Strategy<Value = String> + use<> {
    let (others, agents) = ((any_of(agents, Descriptor::owns_cwnd), any_narrowers(agents)), agents.clone());
    (any_dice(), others).prop_map(move |(dice, (owner, mut narrowers))| {
        if agent.owns_cwnd() {
            return listed(&agents, (agent, dice), narrowers);
        }
        narrowers.insert(0, (agent, dice));
        listed(&agents, owner, narrowers)
    })
}

type Dice = Vec<(bool, u64)>;
type Thrown = (&'static Descriptor, Dice);

fn any_dice() -> impl Strategy<Value = Dice> {
    prop::collection::vec((any::<bool>(), any::<u64>()), 16)
}

fn any_of(agents: &Registry, is_wanted: fn(&Descriptor) -> bool) -> impl Strategy<Value = Thrown> + use<> {
    let wanted: Vec<_> = agents.all().filter(|agent| is_wanted(agent)).collect();
    (prop::sample::select(wanted), any_dice())
}

fn any_narrowers(agents: &Registry) -> impl Strategy<Value = Vec<Thrown>> + use<> {
    let narrowers = any_of(agents, |agent| agent.kind() == Kind::Sender && !agent.owns_cwnd());
    prop::collection::vec(narrowers, 0..5)
}

fn listed(agents: &Registry, (owner, dice): Thrown, narrowers: Vec<Thrown>) -> String {
    let mut list = vec![with_dice(owner, "", &dice)];
    for (agent, dice) in narrowers {
        list.push(with_dice(agent, "", &dice));
        // The agent occurs twice, or it conflicts with the settings of another agent.
        if SenderList::parse_among(agents, &spec::join(&list)).is_err() {
            list.pop();
        }
    }
    spec::join(&list)
}

fn shortest_alone(agent: &Descriptor) -> String {
    let required = agent.params.iter().filter(|param| param.default == DefaultValue::Required);
    let inner = if agent.wraps() { "delayed:d=3,hold=50ms" } else { "" };
    with_args(agent, inner, required.map(|param| format!("{}={}", param.name, spelled(&param.form, 4))))
}

fn with_dice(agent: &Descriptor, inner: &str, dice: &[(bool, u64)]) -> String {
    let chosen =
        |(param, (given, _)): &(&Param, &(bool, u64))| *given || param.default == DefaultValue::Required;
    let args = agent.params.iter().zip(dice).filter(chosen);
    let mut args: Vec<_> = args.map(|(param, (_, die))| (param, spelled(&param.form, *die))).collect();
    while let Some(param) = too_high(agent, &args) {
        args.retain(|(given, _)| given.name != param.name && Some(given.name) != param.below);
    }
    with_args(agent, inner, args.iter().map(|(param, value)| format!("{}={value}", param.name)))
}

/// A parameter that is not below the one that bounds it.
fn too_high(agent: &Descriptor, args: &[(&Param, String)]) -> Option<&'static Param> {
    let value = |name: &str| {
        let given = args.iter().find(|(param, _)| param.name == name);
        let parsed = given.and_then(|(param, text)| param.form.parse(text));
        parsed.or(agent.param(name)?.default_value())
    };
    agent.params.iter().find(|param| param.below.is_some_and(|above| value(param.name) >= value(above)))
}

fn with_args(agent: &Descriptor, inner: &str, args: impl Iterator<Item = String>) -> String {
    let inner = if inner.is_empty() { String::new() } else { format!("({inner})") };
    let args = args.collect::<Vec<_>>().join(",");
    let colon = if args.is_empty() { "" } else { ":" };
    format!("{}{inner}{colon}{args}", agent.name)
}

/// Puts a narrowing sender behind an owner.
fn placed(agent: &Descriptor, spec: String) -> String {
    match agent.kind() {
        Kind::Receiver | Kind::BaseStation => spec,
        Kind::Sender if agent.owns_cwnd() => format!("[\"{spec}\"]"),
        Kind::Sender => format!("[newreno, \"{spec}\"]"),
    }
}

/// A value that the form accepts: `die`, wrapped into its range.
fn spelled(form: &Form, die: u64) -> String {
    let within = |min: u64, max: u64| min + die.saturating_sub(min) % (max - min + 1);
    match *form {
        Form::Count { min, max, .. } => within(min, max).to_string(),
        Form::Time { min, max } => {
            let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).expect("a short time");
            format!("{}ns", within(nanos(min), nanos(max)))
        }
        Form::Rate { min_bps, max_bps } => format!("{}bps", within(min_bps, max_bps)),
        Form::Ratio { min_milli, max_milli } => {
            let milli = within(min_milli.into(), max_milli.into());
            format!("{}.{:03}", milli / 1_000, milli % 1_000)
        }
        Form::Switch => ["on", "off"][usize::from(die.is_multiple_of(2))].to_owned(),
        Form::Choice(names) => names[usize::try_from(die).unwrap_or(0) % names.len()].to_owned(),
    }
}
