//! Specs of every registered agent, for the tests that all of them have to pass.

use proptest::prelude::*;

use crate::descriptor::{Descriptor, Kind};
use crate::param::{DefaultValue, Form, Param};
use crate::registry;

/// A spec of each agent of this kind, with as few parameters as it accepts. Senders come as lists.
pub(crate) fn shortest(kind: Kind) -> Vec<String> {
    let of_kind = registry::all().iter().filter(|agent| agent.kind() == kind);
    of_kind.map(|agent| placed(agent, shortest_alone(agent))).collect()
}

/// Any accepted spec of any agent of this kind.
pub(crate) fn any_spec(kind: Kind) -> impl Strategy<Value = String> {
    let of_kind: Vec<_> = registry::all().iter().copied().filter(|agent| agent.kind() == kind).collect();
    (prop::sample::select(of_kind), prop::collection::vec((any::<bool>(), any::<u64>()), 16))
        .prop_map(|(agent, dice)| placed(agent, with_dice(agent, &dice)))
}

fn shortest_alone(agent: &Descriptor) -> String {
    let required = agent.params.iter().filter(|param| param.default == DefaultValue::Required);
    with_args(agent, required.map(|param| format!("{}={}", param.name, spelled(&param.form, 4))))
}

fn with_dice(agent: &Descriptor, dice: &[(bool, u64)]) -> String {
    let chosen =
        |(param, (given, _)): &(&Param, &(bool, u64))| *given || param.default == DefaultValue::Required;
    let args = agent.params.iter().zip(dice).filter(chosen);
    with_args(agent, args.map(|(param, (_, die))| format!("{}={}", param.name, spelled(&param.form, *die))))
}

fn with_args(agent: &Descriptor, args: impl Iterator<Item = String>) -> String {
    let inner = if agent.wraps() { "(delayed:d=3,hold=50ms)" } else { "" };
    let args = args.collect::<Vec<_>>().join(",");
    let colon = if args.is_empty() { "" } else { ":" };
    format!("{}{inner}{colon}{args}", agent.name)
}

/// A narrowing sender stands behind an owner.
fn placed(agent: &Descriptor, spec: String) -> String {
    match agent.kind() {
        Kind::Receiver | Kind::BaseStation => spec,
        Kind::Sender if agent.owns_cwnd() => format!("[\"{spec}\"]"),
        Kind::Sender => format!("[newreno, \"{spec}\"]"),
    }
}

/// A value that the form accepts: `die` wrapped into its range.
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
