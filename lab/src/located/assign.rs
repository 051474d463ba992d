//! Values set over a file's own: `--set topology.hops=7`. A refusal of such a value shows the option that set it.

use std::ops::Range;

use serde_yaml::Value;
use sha2::{Digest, Sha256};

use crate::located::tree::{self, TreeError};
use crate::located::{Checked, Document, Mark, PathStep, Refusal, YamlPath};
use crate::{hex, plain};

/// The longest list that a scenario may have.
const LONGEST_LIST: usize = 10_000;

#[derive(Clone, Debug)]
pub(super) struct Assigned {
    path: YamlPath,
    from: From,
}

/// Origin of a value that was set.
#[derive(Clone, Debug)]
enum From {
    Text {
        /// The option that set it, such as `--set`.
        by: String,
        text: String,
        /// Offset of the value in it.
        value_at: usize,
    },
    /// The value stands elsewhere in the file.
    Elsewhere(YamlPath),
}

/// Place at which a refusal is shown.
pub(super) enum RefusalPlace {
    InText(Box<Refusal>),
    At(YamlPath),
}

impl Assigned {
    /// The place that a refusal of `path` shows. `path` is the assigned one, lies within it, or exists by it alone.
    pub(super) fn shown(
        &self,
        path: &YamlPath,
        mark: Mark,
        (problem, accepted): (&str, Option<&String>),
    ) -> RefusalPlace {
        let within = path.0.get(self.path.0.len()..).unwrap_or_default();
        match &self.from {
            From::Text { by, text, value_at } => {
                let (problem, accepted) = (problem.to_owned(), accepted.cloned());
                let span = if matches!(mark, Mark::Key) && self.path.0.starts_with(&path.0) {
                    last_key(&text[..*value_at], &path.0)
                } else {
                    let span = within_text(&text[*value_at..], (within, mark));
                    *value_at + span.start..*value_at + span.end
                };
                RefusalPlace::InText(Box::new(Refusal::new(by, text, span, problem, accepted)))
            }
            From::Elsewhere(from) => {
                // One of a list's values stands for its path: the key is the list's.
                let is_item = |step: &PathStep| matches!(step, PathStep::Index(_));
                let items = from.0.iter().rev().take_while(|step| is_item(step)).count();
                let cut = if matches!(mark, Mark::Key) && within.is_empty() { items } else { 0 };
                let from = &from.0[..from.0.len() - cut];
                RefusalPlace::At(YamlPath(from.iter().chain(within).cloned().collect()))
            }
        }
    }
}

/// Position of a part of a value in its text.
fn within_text(value: &str, (within, mark): (&[PathStep], Mark)) -> Range<usize> {
    match (tree::parse(value), mark) {
        (Ok(root), Mark::Value) if !within.is_empty() => root.span(within),
        (Ok(root), Mark::Key) if !within.is_empty() => root.key_span(within),
        _ => 0..value.len(),
    }
}

/// Position of the last of these steps in `PATH=`, which begins with them.
fn last_key(path: &str, steps: &[PathStep]) -> Range<usize> {
    let length = |step: &PathStep| match step {
        PathStep::Key(key) => key.len(),
        PathStep::Index(index) => index.to_string().len(),
    };
    let Some((last, before)) = steps.split_last() else { return 0..path.len() };
    let indent = path.len() - path.trim_start().len();
    let start = before.iter().fold(indent, |at, step| at + length(step) + 1);
    start..start + length(last)
}

impl Document {
    /// Sets the value of `PATH=VALUE`; VALUE is YAML. A refusal shows `by`.
    pub fn set(&mut self, by: &str, assignment: &str) -> Checked {
        let refuse = |span, problem: &str, accepted: &str| {
            Box::new(Refusal::new(by, assignment, span, problem.to_owned(), Some(accepted.to_owned())))
        };
        let whole =
            |problem: &str| refuse(0..assignment.len(), problem, "PATH=VALUE, such as topology.hops=7");
        let (path, value) = assignment.split_once('=').ok_or_else(|| whole("the `=` is missing"))?;
        let value_at = path.len() + 1;
        if let Some(problem) = plain::problem_of_name(path) {
            return Err(refuse(0..path.len(), &problem, plain::NAME));
        }
        let path = path.trim();
        if path.is_empty() || path.split('.').any(str::is_empty) {
            return Err(whole("the path has an empty step"));
        }
        if let Err(TreeError { at, problem, accepted: Some(accepted) }) = tree::parse(value) {
            return Err(refuse(value_at + at.start..value_at + at.end, &problem, &accepted));
        }
        let value: Value = serde_yaml::from_str(value).map_err(|error| {
            let problem = super::without_place(&error.to_string());
            let accepted = "a value in YAML, such as 7, text or [1, 2]";
            refuse(value_at..assignment.len(), &problem, accepted)
        })?;
        let path = self.path_named(path);
        put(&mut self.value, &path.0, value).map_err(|problem| whole(&problem))?;
        let from = From::Text { by: by.to_owned(), text: assignment.to_owned(), value_at };
        self.assigned.push(Assigned { path, from });
        Ok(())
    }

    /// Sets a value that stands elsewhere in the file, where it is shown if it is refused.
    pub(crate) fn set_value(&mut self, path: &str, value: &Value, elsewhere: &YamlPath) -> Checked {
        let path = self.path_named(path);
        put(&mut self.value, &path.0, value.clone())
            .map_err(|problem| self.refuse_key(elsewhere, problem, "a path such as topology.hops"))?;
        self.assigned.push(Assigned { path, from: From::Elsewhere(elsewhere.clone()) });
        Ok(())
    }

    /// Returns whether a value was set over the file's own at that path, or over a value around it.
    pub fn is_set(&self, path: &str) -> bool {
        self.assigned_to(&self.path_named(path)).is_some()
    }

    /// The present value at a path, with all assignments.
    pub fn value_at(&self, path: &str) -> Option<&Value> {
        self.value_of(&self.path_named(path))
    }

    /// The value at a path.
    pub fn value_of(&self, path: &YamlPath) -> Option<&Value> {
        path.0.iter().try_fold(&self.value, |value, step| match step {
            PathStep::Key(key) => value.get(key),
            PathStep::Index(index) => value.get(index),
        })
    }

    /// Numbers are indices where a list is, and keys elsewhere. A present key with dots in it is one key.
    fn path_named(&self, name: &str) -> YamlPath {
        let (mut path, mut at) = (YamlPath::root(), Some(&self.value));
        let mut steps: Vec<&str> = name.split('.').collect();
        while let Some(first) = steps.first().copied() {
            let mut taken = 1;
            match at {
                Some(Value::Sequence(items)) if first.parse::<usize>().is_ok() => {
                    let index = first.parse().unwrap_or_default();
                    at = items.get::<usize>(index);
                    path = path.index(index);
                }
                Some(Value::Mapping(map)) => {
                    let longest =
                        (1..=steps.len()).rev().find(|count| map.contains_key(steps[..*count].join(".")));
                    taken = longest.unwrap_or(1);
                    let key = steps[..taken].join(".");
                    at = map.get(&key);
                    path = path.key(&key);
                }
                _ => {
                    at = None;
                    path = path.key(first);
                }
            }
            steps.drain(..taken);
        }
        path
    }

    /// The place of the last assignment among these places, or within or around them, with the index of that place.
    pub(super) fn set_last(&self, paths: &[YamlPath]) -> Option<(usize, YamlPath)> {
        self.assigned.iter().rev().find_map(|assigned| {
            let set = &assigned.path.0;
            let nth = paths.iter().position(|at| at.0.starts_with(set) || set.starts_with(&at.0))?;
            let at = if paths[nth].0.starts_with(set) { &paths[nth] } else { &assigned.path };
            Some((nth, at.clone()))
        })
    }

    /// The last assignment to this place, or to a value around it.
    pub(super) fn assigned_to(&self, path: &YamlPath) -> Option<&Assigned> {
        self.assigned.iter().rev().find(|assigned| path.0.starts_with(&assigned.path.0))
    }

    /// The last assignment below a place that the file does not have: the place exists because of it.
    pub(super) fn assigned_below(&self, path: &YamlPath) -> Option<&Assigned> {
        if self.root.has(&path.0) {
            return None;
        }
        self.assigned.iter().rev().find(|assigned| assigned.path.0.starts_with(&path.0))
    }
}

/// Makes missing maps; a list takes one more item at its end.
fn put(value: &mut Value, steps: &[PathStep], new: Value) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        *value = new;
        return Ok(());
    };
    if value.is_null() {
        *value = Value::Mapping(serde_yaml::Mapping::new());
    }
    match (value, step) {
        (Value::Mapping(map), PathStep::Key(key)) => {
            put(map.entry(Value::String(key.clone())).or_insert(Value::Null), rest, new)
        }
        (Value::Sequence(items), PathStep::Index(index))
            if *index <= items.len() && *index < LONGEST_LIST =>
        {
            if *index == items.len() {
                items.push(Value::Null);
            }
            put(&mut items[*index], rest, new)
        }
        (Value::Sequence(items), step) => {
            let name = YamlPath(vec![step.clone()]);
            Err(format!("`{name}` is none of the {} places of the list", items.len()))
        }
        (_, step) => {
            let name = YamlPath(vec![step.clone()]);
            Err(format!("there is nothing to put `{name}` into"))
        }
    }
}

impl Document {
    /// A hash of its content with all assignments. Comments and the way in which it is written do not change it.
    pub fn digest(&self) -> String {
        let content = serde_yaml::to_string(&self.value).unwrap_or_else(|_| self.text.to_string());
        hex(&Sha256::digest(content.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const FILE: &str = "run: { seeds: 5 }\nlist: [1, 2]\n";

    fn document() -> Document {
        Document::parse("a.yaml", FILE).expect("it is YAML")
    }

    #[test]
    fn values_are_replaced_and_made_by_their_path() {
        let mut document = document();
        for assignment in ["run.seeds=7", "run.more.deep=[a, 'b:c']", "list.2=9", "list.0=8"] {
            document.set("--set", assignment).expect("it can be set");
        }
        let read: BTreeMap<String, Value> = document.read().expect("it reads");
        let expected: Value =
            serde_yaml::from_str("{ run: { seeds: 7, more: { deep: [a, 'b:c'] } }, list: [8, 2, 9] }")
                .expect("it is YAML");
        assert_eq!(serde_yaml::to_value(read).ok(), Some(expected));
    }

    #[test]
    fn a_key_with_dots_is_one_where_it_stands() {
        let text = "matrix: { topology.hops: [1], topology: { kind: chain } }\n";
        let mut document = Document::parse("a.yaml", text).expect("it is YAML");
        for assignment in
            ["matrix.topology.hops=[2, 3]", "matrix.topology.kind=grid", "matrix.topology.hops.1=4"]
        {
            document.set("--set", assignment).expect("it can be set");
        }
        let read: Value = document.read().expect("it reads");
        let expected = "{ matrix: { topology.hops: [2, 4], topology: { kind: grid } } }";
        assert_eq!(Some(read), serde_yaml::from_str(expected).ok());
    }

    #[test]
    fn what_was_set_is_refused_where_it_was_set() {
        let mut document = document();
        document.set("--set", "run.seeds=many").expect("it can be set");
        let refusal = document.refuse(&YamlPath::root().key("run").key("seeds"), "no number", "a number");
        assert_eq!(refusal.to_string(), "--set:1:11: no number");
        let other = document.refuse(&YamlPath::root().key("list"), "no", "yes");
        assert_eq!(other.to_string(), "a.yaml:2:7: no");
    }

    #[test]
    fn a_key_that_was_set_is_refused_at_the_key() {
        let mut document = document();
        for assignment in ["run.more=1", "other={ deep: 2 }"] {
            document.set("--set", assignment).expect("it can be set");
        }
        let at = |path: &[&str]| {
            let path = path.iter().fold(YamlPath::root(), |path, key| path.key(key));
            document.refuse_key(&path, "no", "yes").to_string()
        };
        assert_eq!(at(&["run", "more"]), "--set:1:5: no");
        assert_eq!(at(&["other"]), "--set:1:1: no");
        assert_eq!(at(&["other", "deep"]), "--set:1:9: no");
    }

    #[test]
    fn what_is_there_only_by_what_was_set_is_refused_where_it_was_set() {
        let mut document = document();
        for assignment in ["matrix.hops=[1, 2]", "run.more=1"] {
            document.set("--set", assignment).expect("it can be set");
        }
        let whole = document.refuse_key(&YamlPath::root().key("matrix"), "two points", "one");
        assert_eq!(whole.to_string(), "--set:1:1: two points");
        let points = document.refuse(&YamlPath::root().key("matrix"), "two points", "one");
        assert_eq!(points.to_string(), "--set:1:13: two points");
        document.set("--set", " wrong.run.seeds = 3").expect("it can be set");
        let inner = document.refuse_key(&YamlPath::root().key("wrong").key("run"), "no", "yes");
        assert_eq!(inner.to_string(), "--set:1:8: no");
        let of_file = document.refuse_key(&YamlPath::root().key("run"), "no", "yes");
        assert_eq!(of_file.to_string(), "a.yaml:1:1: no");
    }

    #[test]
    fn what_does_not_go_together_is_refused_at_what_was_set_over_the_file() {
        let paths = ["seeds", "more"].map(|key| YamlPath::root().key("run").key(key));
        let refused = |sets: &[&str]| {
            let mut document = document();
            sets.iter().for_each(|set| document.set("--set", set).expect("it can be set"));
            document.refuse_among(&paths, "too many", "fewer").to_string()
        };
        assert_eq!(refused(&[]), "a.yaml:1:15: too many");
        assert_eq!(refused(&["list.0=3"]), "a.yaml:1:15: too many", "others have nothing to do with it");
        assert_eq!(refused(&["run.seeds=7"]), "--set:1:11: too many");
        let with_this = "with this, `run.seeds` does not hold: too many";
        assert_eq!(refused(&["run.more=1"]), format!("--set:1:10: {with_this}"));
        assert_eq!(refused(&["run.more.deep=1"]), format!("--set:1:15: {with_this}"));
        assert_eq!(refused(&["run.seeds=7", "run.more=1"]), format!("--set:1:10: {with_this}"));
        assert_eq!(refused(&["run={ seeds: 7, more: 1 }"]), "--set:1:14: too many");
    }

    #[test]
    fn assignments_that_lead_nowhere_are_refused() {
        for (assignment, problem) in [
            ("run.seeds", "the `=` is missing"),
            ("run..seeds=1", "empty step"),
            ("run.seeds.x=1", "nothing to put `x` into"),
            ("list.9=1", "none of the 2 places"),
            ("run.seeds=[", "--set:1:11: did not find"),
        ] {
            let refused = document().set("--set", assignment).expect_err(assignment).to_string();
            assert!(refused.contains(problem), "{assignment}: {refused}");
        }
    }

    #[test]
    fn letters_that_no_name_has_are_refused_where_they_stand() {
        for (assignment, place) in [
            ("arms.\u{202e}x.receiver=dca", "--set:1:1: there is U+202E in it"),
            ("arms.a\nb.receiver=dca", "--set:1:1: there is U+000A in it"),
            ("arms={ \"a\\nb\": {} }", "--set:1:8: there is U+000A in it"),
            ("list.0=\"\\e[2J\"", "--set:1:8: there is U+001B in it"),
            ("list.0=\"\\P\"", "--set:1:8: there is U+2029 in it"),
        ] {
            let refused = document().set("--set", assignment).expect_err(assignment).to_string();
            assert!(refused.starts_with(place), "{assignment}: {refused}");
        }
        document().set("--set", "list.0=\"two\\nlines\"").expect("a value may have several lines");
    }

    #[test]
    fn comments_and_the_way_of_writing_leave_the_digest_and_content_does_not() {
        let digest = |text: &str| Document::parse("a.yaml", text).expect("it is YAML").digest();
        let first = digest("# One.\nname: a  # the name\nlist: [1, 2]\n");
        assert_eq!(first, digest("name: \"a\"\n# Another.\n\nlist:\n  - 1\n  - 2\n"));
        assert_eq!(first, digest("name: a\nlist: [&one 1, 2]\n"), "nor does a name for an alias");
        for other in ["name: b\nlist: [1, 2]\n", "name: a\nlist: [2, 1]\n", "list: [1, 2]\nname: a\n"] {
            assert_ne!(first, digest(other), "{other}");
        }
    }
}
