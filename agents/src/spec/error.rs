//! Errors in specs: what is wrong, where, and what would be accepted.

use std::error::Error;
use std::fmt;
use std::ops::Range;

use crate::descriptor::{Descriptor, Kind};
use crate::param::{DefaultValue, Form, Param, Value};
use crate::registry::{self, Registry};

/// A spec that was refused. It prints as four lines: the problem, the spec, a caret under the place, and what is
/// accepted there.
#[derive(Clone, Debug)]
pub struct SpecError {
    /// The spec that was refused.
    pub spec: String,
    /// The place of the error, in bytes.
    pub place: Range<usize>,
    problem: Problem,
    /// The agents that would be accepted; none for all agents of the program.
    agents: Option<Registry>,
}

/// The reason for a refusal. [`SpecError`]'s place is the part of the spec that it is about.
#[derive(Clone, Copy, Debug)]
pub enum Problem {
    /// An agent's name is missing.
    NoName(Kind),
    /// No agent of any kind has this name.
    UnknownAgent {
        /// The kind that the place asks for.
        wanted: Kind,
        /// A similar name of that kind, if there is one.
        nearest: Option<&'static str>,
    },
    /// An agent of another kind, such as a sender in place of a receiver.
    OtherKind {
        /// The first agent of this name.
        agent: &'static Descriptor,
        /// The kind that the place asks for.
        wanted: Kind,
    },
    /// A wrapper without its `(SPEC)`.
    WrapsNothing(&'static Descriptor),
    /// A `(SPEC)` behind an agent that wraps no other.
    CannotWrap(&'static Descriptor),
    /// A wrapper within itself, however deep.
    WrappedTwice(&'static Descriptor),
    /// A key that the agent does not know, or a lone word for an agent without a shorthand.
    UnknownParameter {
        /// The agent whose parameters are accepted.
        agent: &'static Descriptor,
        /// A similar key, if there is one.
        nearest: Option<&'static str>,
    },
    /// A parameter is missing.
    NoParameter(&'static Descriptor),
    /// A key without a value, or a lone key that is no switch.
    NoValue(&'static Param),
    /// A value that the parameter's [`Form`] does not accept.
    Refused(&'static Param),
    /// A parameter that is set twice.
    Repeated(&'static Param),
    /// A value that is not below the value of another parameter.
    NotBelow {
        /// The parameter that has to be lower.
        param: &'static Param,
        /// Its value, given or by default.
        is: Value,
        /// The parameter that bounds it.
        above: &'static Param,
        /// The bound's value, given or by default.
        limit: Value,
    },
    /// A required parameter is not set.
    Missing {
        /// The agent that requires it.
        agent: &'static Descriptor,
        /// The first of them, if several are not set.
        param: &'static Param,
    },
    /// `hold=200ms` without an agent: YAML may have cut a spec at its comma.
    StrayKey,
    /// A parenthesis, bracket or quote without its end.
    Unclosed(char),
    /// Text behind the end of a spec, an item or a list.
    Trailing,
    /// A comma of a list with no item before or behind it.
    EmptyItem,
    /// The list is empty, or its first item does not own cwnd.
    NoOwner,
    /// A later item owns cwnd, too.
    TwoOwners {
        /// The agent that owns it already.
        first: &'static Descriptor,
    },
    /// A list of senders names an agent twice.
    AgentRepeated,
    /// Two agents set a recovery setting differently.
    Conflict {
        /// The earlier agent; the place is the later one.
        first: &'static Descriptor,
        /// The setting in words: `least RTO`.
        tunable: &'static str,
    },
    /// A list with more items than are allowed.
    TooMany {
        /// [`MOST_SHADOWS`](super::MOST_SHADOWS) or [`MOST_SENDERS`](super::MOST_SENDERS).
        most: usize,
    },
}

impl SpecError {
    pub(super) fn new(spec: &str, place: Range<usize>, problem: Problem) -> SpecError {
        SpecError { spec: spec.to_owned(), place, problem, agents: None }
    }

    /// The same, where these agents could have been named.
    pub(super) fn among(self, agents: &Registry) -> SpecError {
        SpecError { agents: Some(agents.clone()), ..self }
    }

    fn agents(&self) -> &Registry {
        self.agents.as_ref().unwrap_or_else(|| registry::in_force())
    }

    fn found(&self) -> &str {
        self.spec.get(self.place.clone()).unwrap_or_default()
    }

    fn write_wrong(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Excerpt { text: self.found(), skip: 0, most: MOST_FOUND };
        match self.problem {
            Problem::NoName(wanted) => write!(f, "expected the name of a {wanted} agent"),
            Problem::UnknownAgent { wanted, .. } => write!(f, "no {wanted} agent is called `{found}`"),
            Problem::OtherKind { agent, wanted } => {
                write!(f, "`{}` is a {} agent, and a {wanted} agent is wanted", agent.name, agent.kind())
            }
            Problem::WrapsNothing(agent) => write!(f, "`{}` needs an agent to wrap", agent.name),
            Problem::CannotWrap(agent) => write!(f, "`{}` wraps no other agent", agent.name),
            Problem::WrappedTwice(agent) => write!(f, "`{}` is already around this", agent.name),
            Problem::UnknownParameter { agent, .. } => {
                write!(f, "`{}` has no parameter `{found}`", agent.name)
            }
            Problem::NoParameter(agent) => write!(f, "expected a parameter of `{}`", agent.name),
            Problem::NoValue(param) => write!(f, "`{}` has no value", param.name),
            Problem::Refused(param) => write!(f, "`{}` cannot be `{found}`", param.name),
            Problem::Repeated(param) => write!(f, "`{}` is set twice", param.name),
            Problem::NotBelow { param, is, above, limit } => {
                write!(f, "`{}` cannot be {is} where `{}` is {limit}", param.name, above.name)
            }
            Problem::Missing { agent, param } => write!(f, "`{}` needs `{}`", agent.name, param.name),
            Problem::StrayKey => write!(f, "`{found}` is a parameter without its agent"),
            Problem::Unclosed(open) => write!(f, "this `{open}` is never closed"),
            Problem::Trailing => write!(f, "`{found}` does not belong here"),
            Problem::EmptyItem => write!(f, "an item of the list is empty"),
            Problem::NoOwner => write!(f, "the first sender has to own the congestion window"),
            Problem::TwoOwners { first } => {
                write!(f, "`{found}` and `{}` both own the congestion window", first.name)
            }
            Problem::AgentRepeated => write!(f, "`{found}` stands in this list twice"),
            Problem::Conflict { first, tunable } => {
                write!(f, "`{found}` and `{}` set the {tunable} differently", first.name)
            }
            Problem::TooMany { most } => write!(f, "the list has more than {most} items"),
        }
    }

    fn write_accepted(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem {
            Problem::NoName(wanted) => self.write_names(f, wanted),
            Problem::UnknownAgent { wanted, nearest } => {
                write_nearest(f, nearest)?;
                self.write_names(f, wanted)
            }
            Problem::OtherKind { wanted, .. } => self.write_names(f, wanted),
            Problem::WrapsNothing(agent) => write!(f, "accepted: `{}(delayed)`", agent.name),
            Problem::CannotWrap(agent) => write!(f, "accepted: `{}` alone", agent.name),
            Problem::WrappedTwice(_) => f.write_str("accepted: once"),
            Problem::UnknownParameter { agent, nearest } => {
                write_nearest(f, nearest)?;
                write_params(f, agent)
            }
            Problem::NoParameter(agent) => write_params(f, agent),
            Problem::NoValue(param) | Problem::Refused(param) => {
                write!(f, "accepted: {}", param.form)?;
                write_example(f, param)
            }
            Problem::NotBelow { param, above, .. } => {
                write!(f, "accepted: `{}` below `{}`", param.name, above.name)?;
                match (param.default_value(), above.default_value()) {
                    (Some(low), Some(high)) => {
                        write!(f, ", as in `{}={low},{}={high}`", param.name, above.name)
                    }
                    _ => Ok(()),
                }
            }
            Problem::Repeated(_) | Problem::AgentRepeated => f.write_str("accepted: once"),
            Problem::Missing { agent, param } => {
                write!(f, "accepted: `{}:{}=…` with {}", agent.name, param.name, param.form)
            }
            Problem::StrayKey => {
                f.write_str("in a list a comma ends an item: quote an item that has one, as in ")?;
                f.write_str("[\"delayed:d=3,hold=200ms\"]")
            }
            Problem::Unclosed(open) => {
                write!(f, "accepted: a matching `{}`", closing(open))?;
                let advice = "; in a list an item with a comma has to be quoted";
                f.write_str(if open == '(' { advice } else { "" })
            }
            Problem::Trailing => f.write_str("accepted: `name`, `name:value`, `name:key=value,key=value`"),
            Problem::EmptyItem => f.write_str("accepted: one agent between two commas"),
            Problem::NoOwner | Problem::TwoOwners { .. } => self.write_owners(f),
            Problem::Conflict { .. } => f.write_str("accepted: one of the two"),
            Problem::TooMany { most } => write!(f, "accepted: at most {most}"),
        }
    }

    fn write_names(&self, f: &mut fmt::Formatter<'_>, wanted: Kind) -> fmt::Result {
        f.write_str("accepted: ")?;
        write_listed(f, self.agents().all().filter(|agent| agent.kind() == wanted))
    }

    fn write_owners(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("accepted: exactly one of these, first: ")?;
        write_listed(f, self.agents().all().filter(|agent| agent.owns_cwnd()))
    }
}

impl Error for SpecError {}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_wrong(f)?;
        let before = self.spec.get(..self.place.start).unwrap_or_default().chars().count();
        let skip = if before < MOST_SHOWN / 2 { 0 } else { before - MOST_SHOWN / 4 };
        let shown = Excerpt { text: &self.spec, skip, most: MOST_SHOWN };
        let before = before - skip + usize::from(skip > 0);
        let width = self.found().chars().count().clamp(1, MOST_SHOWN - before);
        write!(f, "\n  {shown}\n  {:before$}{:^<width$}\n", "", "")?;
        self.write_accepted(f)
    }
}

/// The most columns of a spec in a message, and the most of its wrong part.
const MOST_SHOWN: usize = 100;
const MOST_FOUND: usize = 60;

/// Text from outside, one column for each character. Control characters are replaced, and a long text is cut.
struct Excerpt<'a> {
    text: &'a str,
    /// The number of characters at the beginning that are left out.
    skip: usize,
    most: usize,
}

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        if self.skip > 0 {
            f.write_char('…')?;
        }
        let mut rest = self.text.chars().skip(self.skip);
        let replaced = |c: char| if c.is_control() { '\u{FFFD}' } else { c };
        rest.by_ref().take(self.most).try_for_each(|c| f.write_char(replaced(c)))?;
        if rest.next().is_some() { f.write_char('…') } else { Ok(()) }
    }
}

fn write_nearest(f: &mut fmt::Formatter<'_>, nearest: Option<&str>) -> fmt::Result {
    nearest.map_or(Ok(()), |name| write!(f, "did you mean `{name}`? "))
}

fn write_listed(
    f: &mut fmt::Formatter<'_>,
    agents: impl Iterator<Item = &'static Descriptor>,
) -> fmt::Result {
    for (i, agent) in agents.enumerate() {
        let (comma, inner) = (if i == 0 { "" } else { ", " }, if agent.wraps() { "(…)" } else { "" });
        write!(f, "{comma}{}{inner}", agent.name)?;
    }
    Ok(())
}

fn write_params(f: &mut fmt::Formatter<'_>, agent: &Descriptor) -> fmt::Result {
    if agent.params.is_empty() {
        return f.write_str("accepted: no parameters");
    }
    f.write_str("accepted: ")?;
    for (i, param) in agent.params.iter().enumerate() {
        write!(f, "{}{}", if i == 0 { "" } else { ", " }, param.name)?;
    }
    Ok(())
}

fn write_example(f: &mut fmt::Formatter<'_>, param: &Param) -> fmt::Result {
    match (param.form, param.default) {
        (Form::Switch | Form::Choice(_), _) => Ok(()),
        (_, DefaultValue::Is(value)) => write!(f, ", as in `{}={value}`", param.name),
        (_, DefaultValue::Required | DefaultValue::Unset(_)) => Ok(()),
    }
}

fn closing(open: char) -> char {
    match open {
        '(' => ')',
        '[' => ']',
        quote => quote,
    }
}
