//! Positions of all keys and values in a YAML text.

use std::ops::Range;

use saphyr_parser::{Event, Parser, Span, StrInput};

use super::PathStep;
use crate::plain;

/// The greatest depth, beyond any file of ours; a hostile file must not overflow the stack.
const DEEPEST: usize = 64;
/// The most keys of a map that are compared; no map of ours has this number.
const MOST_COMPARED: usize = 1_000;

#[derive(Clone, Debug)]
pub(super) struct YamlNode {
    /// The place in bytes.
    span: Range<usize>,
    inner: YamlContent,
}

#[derive(Clone, Debug)]
enum YamlContent {
    /// A scalar, or an alias of a value elsewhere.
    Leaf,
    List(Vec<YamlNode>),
    Map(Vec<(String, Range<usize>, YamlNode)>),
}

impl YamlNode {
    /// The place of the value there; for a missing one, the place of the last value on the path.
    pub(super) fn span(&self, steps: &[PathStep]) -> Range<usize> {
        self.find(steps).1
    }

    /// The place of the value's key.
    pub(super) fn key_span(&self, steps: &[PathStep]) -> Range<usize> {
        self.find(steps).0
    }

    /// True if the text has it.
    pub(super) fn has(&self, steps: &[PathStep]) -> bool {
        steps.iter().try_fold(self, |node, step| node.next(step).map(|(next, _)| next)).is_some()
    }

    /// True for a text without a list or a map.
    pub(super) fn is_leaf(&self) -> bool {
        matches!(self.inner, YamlContent::Leaf)
    }

    /// Adds the places of values that have one of these keys.
    pub(super) fn spans_below(&self, is_one: &dyn Fn(&str) -> bool, spans: &mut Vec<Range<usize>>) {
        match &self.inner {
            YamlContent::Leaf => {}
            YamlContent::List(items) => items.iter().for_each(|item| item.spans_below(is_one, spans)),
            YamlContent::Map(entries) => {
                for (key, _, value) in entries {
                    if is_one(key) {
                        spans.push(value.span.clone());
                    } else {
                        value.spans_below(is_one, spans);
                    }
                }
            }
        }
    }

    fn find(&self, steps: &[PathStep]) -> (Range<usize>, Range<usize>) {
        let mut found = (self, self.span.clone());
        for step in steps {
            let Some(next) = found.0.next(step) else { break };
            found = next;
        }
        (found.1, found.0.span.clone())
    }

    /// Ends a list or a map in brackets at its bracket, before the rest of the line.
    fn ended(mut self, text: &str) -> YamlNode {
        let bracket = match text[self.span.start..].chars().next() {
            Some('[') => ']',
            Some('{') => '}',
            _ => return self,
        };
        let last = match &self.inner {
            YamlContent::List(items) => items.last(),
            YamlContent::Map(entries) => entries.last().map(|(.., value)| value),
            YamlContent::Leaf => None,
        };
        let from = last.map_or(self.span.start + 1, |last| last.span.end);
        if let Some(at) = text.get(from..self.span.end).and_then(|rest| rest.find(bracket)) {
            self.span.end = from + at + 1;
        }
        self
    }

    /// The child node at one step, with the place of its key.
    fn next(&self, step: &PathStep) -> Option<(&YamlNode, Range<usize>)> {
        match (&self.inner, step) {
            (YamlContent::Map(entries), PathStep::Key(wanted)) => {
                entries.iter().find(|(key, ..)| key == wanted).map(|(_, span, value)| (value, span.clone()))
            }
            (YamlContent::List(items), PathStep::Index(index)) => {
                items.get(*index).map(|item| (item, item.span.clone()))
            }
            _ => None,
        }
    }
}

/// A list or a map that has begun, with the key that waits for its value.
struct OpenCollection {
    node: YamlNode,
    key: Option<(String, Range<usize>)>,
}

/// The error of a text without a tree.
#[derive(Debug)]
pub(super) struct TreeError {
    pub(super) at: Range<usize>,
    pub(super) problem: String,
    /// None if any YAML would be accepted.
    pub(super) accepted: Option<String>,
}

/// The tree of the first document; a text without one is an empty map.
pub(super) fn parse(text: &str) -> Result<YamlNode, TreeError> {
    let bytes = ByteIndex::new(text);
    let mut parser = Parser::new(StrInput::new(text));
    let mut open: Vec<OpenCollection> = Vec::new();
    let mut root = None;
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| {
            let at = bytes.at(error.marker().index());
            TreeError { at: at..at, problem: error.info().to_owned(), accepted: None }
        })?;
        let span = bytes.span(&span);
        let done = match event {
            Event::Scalar(value, ..) => leaf(&mut open, &value, span)?,
            Event::Alias(_) => leaf(&mut open, "", span)?,
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if open.len() >= DEEPEST {
                    let problem = format!("more than {DEEPEST} levels deep");
                    return Err(TreeError { at: span, problem, accepted: None });
                }
                let is_list = matches!(event, Event::SequenceStart(..));
                let inner =
                    if is_list { YamlContent::List(Vec::new()) } else { YamlContent::Map(Vec::new()) };
                open.push(OpenCollection {
                    node: YamlNode { span: bytes.first_line(span.start), inner },
                    key: None,
                });
                None
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(|closed| closed.node.ended(text)),
            Event::DocumentEnd => break,
            _ => None,
        };
        if let Some(node) = done {
            root = attach(&mut open, node)?.or(root);
        }
    }
    Ok(root.unwrap_or(YamlNode { span: 0..0, inner: YamlContent::Map(Vec::new()) }))
}

/// A scalar: the key of the open map, if none waits for its value; else a value, which may have several lines.
fn leaf(open: &mut [OpenCollection], text: &str, at: Range<usize>) -> Result<Option<YamlNode>, TreeError> {
    let awaits_key = |open: &&mut OpenCollection| {
        matches!(open, OpenCollection { node: YamlNode { inner: YamlContent::Map(_), .. }, key: None })
    };
    let map = open.last_mut().filter(awaits_key);
    if let Some(problem) = plain::problem_of(text, if map.is_some() { &[] } else { &['\n', '\t'] }) {
        return Err(TreeError { at, problem, accepted: Some(plain::NAME.to_owned()) });
    }
    let Some(map) = map else { return Ok(Some(YamlNode { span: at, inner: YamlContent::Leaf })) };
    map.key = Some((text.to_owned(), at));
    Ok(None)
}

/// Puts a finished value into its parent; returns it if there is no parent.
fn attach(open: &mut [OpenCollection], node: YamlNode) -> Result<Option<YamlNode>, TreeError> {
    let Some(parent) = open.last_mut() else { return Ok(Some(node)) };
    match &mut parent.node.inner {
        YamlContent::List(items) => items.push(node),
        YamlContent::Map(entries) => match parent.key.take() {
            Some((key, span)) => {
                // serde refuses it as well, but without a place; comparing all keys of a long map would take too long.
                if entries.len() < MOST_COMPARED && entries.iter().any(|(known, ..)| *known == key) {
                    let accepted = format!("each key once: another name, or both contents under one `{key}`");
                    let problem = format!("`{key}` is there already");
                    return Err(TreeError { at: span, problem, accepted: Some(accepted) });
                }
                entries.push((key, span, node));
            }
            // A key that is no scalar: nothing of ours has one, and serde refuses it.
            None => parent.key = Some((String::new(), node.span)),
        },
        YamlContent::Leaf => {}
    }
    Ok(None)
}

/// Translates characters, which the parser counts, to bytes.
struct ByteIndex<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl ByteIndex<'_> {
    fn new(text: &str) -> ByteIndex<'_> {
        ByteIndex { text, starts: text.char_indices().map(|(at, _)| at).collect() }
    }

    fn at(&self, index: usize) -> usize {
        self.starts.get(index).copied().unwrap_or(self.text.len())
    }

    fn span(&self, span: &Span) -> Range<usize> {
        let (start, end) = (self.at(span.start.index()), self.at(span.end.index()));
        start..end.max(start)
    }

    /// A list or map is shown by its first line alone.
    fn first_line(&self, start: usize) -> Range<usize> {
        let rest = &self.text[start..];
        let end = rest.find('\n').unwrap_or(rest.len());
        start..start + rest[..end].trim_end().len()
    }
}
