//! The checks of an agent that a program adds to ours.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;

use super::{Listed, Registry};
use crate::descriptor::{Descriptor, Kind};
use crate::param::{DefaultValue, Param};

/// The name by which rules ask for the TCP of the kernel.
const KERNELS: &str = "kernel";

/// Agents of a program's own that were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAdded {
    /// Others were added before, or an agent was looked up.
    TooLate,
    /// A description is wrong.
    Wrong {
        /// Its name, however wrong.
        agent: &'static str,
        /// Its kind, by the variant of `make`.
        kind: Kind,
        /// The problem, and what would be accepted.
        problem: String,
    },
}

impl Error for NotAdded {}

impl fmt::Display for NotAdded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAdded::TooLate => f.write_str(
                "agents of one's own were added twice or too late: expected all of them at once, before the first spec \
                 is read",
            ),
            NotAdded::Wrong { agent, kind, problem } => write!(f, "the {kind} agent `{agent}`: {problem}"),
        }
    }
}

/// Refuses an agent that specs could not name, or whose description is wrong.
pub(super) fn check(&(agent, file): &Listed, known: &Registry) -> Result<(), NotAdded> {
    let kind = agent.kind();
    let taken = || format!("there is a {kind} agent of this name: expected another name");
    let problem = if known.find(agent.name).any(|other| other.kind() == kind) {
        Some(taken())
    } else if file.trim().is_empty() {
        Some("it has no text: expected that of its file, by `include_str!`".to_owned())
    } else {
        problem(agent)
    };
    problem.map_or(Ok(()), |problem| Err(NotAdded::Wrong { agent: agent.name, kind, problem }))
}

/// The first mistake in a description.
pub(crate) fn problem(agent: &Descriptor) -> Option<String> {
    if !is_name(agent.name) {
        return Some(format!("expected {NAME} as its name"));
    }
    if agent.name == KERNELS {
        return Some("this name means the TCP of the kernel: expected another one".to_owned());
    }
    for (field, text) in [("rule", agent.rule), ("source", agent.source)] {
        if text.trim().is_empty() || text.contains('\n') {
            return Some(format!("`{field}` is {text:?}: expected one line"));
        }
    }
    if let Some(name) = agent.shorthand.filter(|name| agent.param(name).is_none()) {
        return Some(format!("`shorthand` is {name:?}: expected one of its parameters"));
    }
    let mut names = BTreeSet::new();
    agent.params.iter().find_map(|param| {
        if !names.insert(param.name) {
            return Some(format!("it has the parameter `{}` twice", param.name));
        }
        problem_of(agent, param).map(|problem| format!("its parameter `{}`: {problem}", param.name))
    })
}

fn problem_of(agent: &Descriptor, param: &Param) -> Option<String> {
    if !is_name(param.name) {
        return Some(format!("expected {NAME} as its name"));
    }
    if param.doc.trim().is_empty() {
        return Some("nothing says what it means: expected a doc comment before it".to_owned());
    }
    if let Some(above) = param.below.filter(|above| agent.param(above).is_none()) {
        return Some(format!("it is to be below `{above}`: expected another parameter of this agent"));
    }
    let default = match param.default {
        DefaultValue::Is(value) => Some(value),
        DefaultValue::Required | DefaultValue::Unset(_) => None,
    };
    let out_of_range = |value: &_| param.form.parse(&format!("{value}")) != Some(*value);
    let wrong = default.into_iter().chain(param.ns2).find(out_of_range)?;
    Some(format!("its default is {wrong}: expected {}", param.form))
}

const NAME: &str = "small letters, digits and dashes, first a letter,";

/// Names must not contain what a spec uses between them.
fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::Make;
    use crate::param::{Args, Form};
    use crate::registry;
    use hopwise_core::agent::ReceiverAgent;

    const FILE: &str = "//! Rule: none.";

    fn any(_: &Args) -> Box<dyn ReceiverAgent> {
        crate::spec::parse_receiver("immediate").expect("ours").make(crate::Profile::Modern)
    }

    const OWN: Descriptor = Descriptor {
        name: "own",
        rule: "does nothing new",
        source: "this test",
        params: &[],
        shorthand: None,
        make: Make::Receiver(any),
    };
    static ONE: Descriptor = OWN;
    static OTHER: Descriptor = Descriptor { name: "other", ..OWN };

    /// The refusal of a program that has this agent.
    fn refused(agent: Descriptor) -> String {
        Registry::with(&[(Box::leak(Box::new(agent)), FILE)]).expect_err("it is wrong").to_string()
    }

    #[test]
    fn agents_of_ones_own_stand_behind_ours_of_their_kind() {
        let registry = Registry::with(&[(&ONE, FILE), (&OTHER, FILE)]).expect("they are right");
        let names: Vec<_> = registry.names(Kind::Receiver).collect();
        let ours: Vec<_> = Registry::ours().names(Kind::Receiver).collect();
        assert_eq!(names, [&ours[..], &["own", "other"]].concat());
        assert!(registry.names(Kind::Sender).eq(Registry::ours().names(Kind::Sender)));
        assert_eq!(registry.find("own").count(), 1);
        assert_eq!(registry.own.len(), 2);
    }

    #[test]
    fn a_table_of_ones_own_changes_no_other() {
        let before = registry::all().count();
        Registry::with(&[(&ONE, FILE)]).expect("it is right");
        assert_eq!((registry::find("own").count(), registry::all().count()), (0, before));
    }

    #[test]
    fn none_can_be_added_after_the_first_look() {
        assert_eq!(registry::find("own").count(), 0);
        assert_eq!(registry::add(&[(&ONE, FILE)]), Err(NotAdded::TooLate));
        assert_eq!(registry::find("own").count(), 0);
    }

    #[test]
    fn ours_keep_to_the_same_rules() {
        for agent in registry::all() {
            assert_eq!(problem(agent), None, "{}", agent.name);
        }
    }

    #[test]
    fn a_name_that_a_spec_cannot_have_or_that_is_taken_is_refused() {
        let named = |name| refused(Descriptor { name, ..OWN });
        let taken = "there is a receiver agent of this name: expected another name";
        let twice = Registry::with(&[(&ONE, FILE), (&ONE, FILE)]).expect_err("it is there twice");
        assert_eq!(twice.to_string(), format!("the receiver agent `own`: {taken}"));
        assert_eq!(named("delayed"), format!("the receiver agent `delayed`: {taken}"));
        assert!(named("kernel").contains("means the TCP of the kernel"));
        for name in ["", "Own", "own agent", "own:1", "1own", "own,other"] {
            assert!(named(name).contains("expected small letters"), "{name}");
        }
    }

    #[test]
    fn a_description_that_is_wrong_is_refused() {
        let param = |form: Form, raw| form.is(raw).called("n", "a number");
        let with =
            |params: Vec<Param>, shorthand| refused(Descriptor { params: params.leak(), shorthand, ..OWN });
        let two = || Form::count("segments", 2, 9);
        let wrong = [
            (refused(Descriptor { rule: "", ..OWN }), "`rule` is \"\": expected one line"),
            (refused(Descriptor { source: "a\nb", ..OWN }), "`source` is \"a\\nb\": expected one line"),
            (with(vec![], Some("n")), "`shorthand` is \"n\": expected one of its parameters"),
            (with(vec![param(two(), 2), param(two(), 3)], None), "it has the parameter `n` twice"),
            (
                with(vec![two().is(2).called("N", "a number")], None),
                "its parameter `N`: expected small letters",
            ),
            (with(vec![two().is(2).called("n", "")], None), "its parameter `n`: nothing says what it means"),
            (with(vec![param(two(), 2).below("m")], None), "its parameter `n`: it is to be below `m`"),
            (
                with(vec![param(two(), 1)], None),
                "its default is 1: expected a whole number of segments from 2 to 9",
            ),
            (with(vec![param(two(), 2).ns2(10)], None), "its default is 10: expected"),
        ];
        for (said, wanted) in wrong {
            assert!(said.starts_with("the receiver agent `own`: ") && said.contains(wanted), "{said}");
        }
        let said = Registry::with(&[(&ONE, " \n")]).expect_err("no text").to_string();
        assert!(said.contains("it has no text: expected that of its file, by `include_str!`"), "{said}");
    }
}
