//! The parser of one spec. It remembers the place of each part.

use std::cmp::Reverse;
use std::ops::Range;

use super::accepted::AgentSpec;
use super::error::{Problem, SpecError};
use super::role::Role;
use crate::descriptor::{Descriptor, Kind};
use crate::param::{DefaultValue, Form, Param, Switch, Value};
use crate::registry::Registry;

/// The characters that end a word.
const MARKS: [char; 10] = ['(', ')', '[', ']', '{', '}', ',', ':', '=', '"'];

/// Reads the text in `span` as exactly one spec of these agents.
pub(super) fn spec_in<R: Role>(
    agents: &Registry,
    text: &str,
    span: Range<usize>,
) -> Result<AgentSpec<R>, SpecError> {
    let mut parser = Parser { agents, text, at: span.start, end: span.end, around: Vec::new() };
    let spec = parser.spec()?;
    parser.skip_space();
    if parser.at < parser.end {
        return Err(parser.refuse(parser.at..parser.end, Problem::Trailing));
    }
    Ok(spec)
}

/// A parameter, and its place in the table of its agent.
type ParamSlot = (usize, &'static Param);

fn slot(agent: &'static Descriptor, name: &str) -> Option<ParamSlot> {
    agent.params.iter().enumerate().find(|(_, param)| param.name == name)
}

struct Parser<'a> {
    agents: &'a Registry,
    text: &'a str,
    at: usize,
    end: usize,
    /// The wrappers around the current place. None occurs twice, which bounds the recursion.
    around: Vec<&'static str>,
}

impl Parser<'_> {
    fn spec<R: Role>(&mut self) -> Result<AgentSpec<R>, SpecError> {
        let wanted = R::KIND;
        let (agent, name) = self.agent(wanted)?;
        let inner = self.inner(agent, &name)?;
        let mut given = vec![None; agent.params.len()];
        let mut places = vec![name.clone(); agent.params.len()];
        if self.take(':') {
            let (start, word) = (self.at, self.word());
            let is_printed = &self.text[word] == "as-printed";
            match agent.as_printed().filter(|_| is_printed) {
                Some("") => {}
                Some(text) => {
                    let mut printed = Parser { text, at: 0, end: text.len(), around: Vec::new(), ..*self };
                    printed.args(agent, &mut given, &mut places)?;
                }
                None => {
                    self.at = start;
                    self.args(agent, &mut given, &mut places)?;
                }
            }
        }
        self.check_order(agent, &given, &places)?;
        let required = |(param, given): &(&'static Param, &Option<Value>)| {
            param.default == DefaultValue::Required && given.is_none()
        };
        if let Some((param, _)) = agent.params.iter().zip(&given).find(required) {
            return Err(self.refuse(name, Problem::Missing { agent, param }));
        }
        let spec = AgentSpec::new(agent, given, inner);
        spec.ok_or_else(|| self.refuse(name, Problem::OtherKind { agent, wanted }))
    }

    fn agent(&mut self, wanted: Kind) -> Result<(&'static Descriptor, Range<usize>), SpecError> {
        let place = self.word();
        let name = &self.text[place.clone()];
        if name.is_empty() {
            return Err(self.refuse(self.next_char(), Problem::NoName(wanted)));
        }
        if self.peek() == Some('=') {
            return Err(self.refuse(place.start..self.end, Problem::StrayKey));
        }
        if let Some(agent) = self.agents.find(name).find(|agent| agent.kind() == wanted) {
            return Ok((agent, place));
        }
        let problem = match self.agents.find(name).next() {
            Some(agent) => Problem::OtherKind { agent, wanted },
            None => Problem::UnknownAgent { wanted, nearest: nearest(name, self.agents.names(wanted)) },
        };
        Err(self.refuse(place, problem))
    }

    /// Reads the `(SPEC)` of a wrapper.
    fn inner<R: Role>(
        &mut self,
        agent: &'static Descriptor,
        name: &Range<usize>,
    ) -> Result<Option<AgentSpec<R>>, SpecError> {
        self.skip_space();
        let open = self.next_char();
        match (self.take('('), agent.wraps()) {
            (false, false) => return Ok(None),
            (false, true) => return Err(self.refuse(name.clone(), Problem::WrapsNothing(agent))),
            (true, false) => return Err(self.refuse(open, Problem::CannotWrap(agent))),
            (true, true) => {}
        }
        if self.around.contains(&agent.name) {
            return Err(self.refuse(name.clone(), Problem::WrappedTwice(agent)));
        }
        self.around.push(agent.name);
        let inner = self.spec()?;
        self.around.pop();
        self.skip_space();
        if self.at == self.end {
            return Err(self.refuse(open, Problem::Unclosed('(')));
        }
        if self.take(')') { Ok(Some(inner)) } else { Err(self.refuse(self.next_char(), Problem::Trailing)) }
    }

    /// Refuses a parameter that is not below the one that bounds it.
    fn check_order(
        &self,
        agent: &'static Descriptor,
        given: &[Option<Value>],
        places: &[Range<usize>],
    ) -> Result<(), SpecError> {
        for (nth, param) in agent.params.iter().enumerate() {
            let above = agent.params.iter().position(|other| Some(other.name) == param.below);
            let Some(above) = above else { continue };
            let value = |nth: usize| given[nth].or(agent.params[nth].default_value());
            if let (Some(is), Some(limit)) = (value(nth), value(above))
                && is >= limit
            {
                let place = if given[nth].is_some() { &places[nth] } else { &places[above] };
                let problem = Problem::NotBelow { param, is, above: &agent.params[above], limit };
                return Err(self.refuse(place.clone(), problem));
            }
        }
        Ok(())
    }

    fn args(
        &mut self,
        agent: &'static Descriptor,
        given: &mut [Option<Value>],
        places: &mut [Range<usize>],
    ) -> Result<(), SpecError> {
        loop {
            let ((slot, param), value, place) = self.arg(agent)?;
            if given[slot].replace(value).is_some() {
                return Err(self.refuse(place, Problem::Repeated(param)));
            }
            places[slot] = place;
            if !self.take(',') {
                return Ok(());
            }
        }
    }

    /// Reads `key=value`, or a word alone.
    fn arg(&mut self, agent: &'static Descriptor) -> Result<(ParamSlot, Value, Range<usize>), SpecError> {
        let first = self.word();
        if first.is_empty() {
            return Err(self.refuse(self.next_char(), Problem::NoParameter(agent)));
        }
        if !self.take('=') {
            let (slot, value) = self.bare(agent, &first)?;
            return Ok((slot, value, first));
        }
        let key = &self.text[first.clone()];
        let Some(slot) = slot(agent, key) else { return Err(self.unknown_parameter(agent, first)) };
        let value = self.word();
        Ok((slot, self.value(slot.1, &value, &first)?, first))
    }

    /// The name of a switch turns it on. Any other word is the value of the agent's shorthand.
    fn bare(&self, agent: &'static Descriptor, word: &Range<usize>) -> Result<(ParamSlot, Value), SpecError> {
        match slot(agent, &self.text[word.clone()]) {
            Some(slot) if slot.1.form == Form::Switch => return Ok((slot, Value::Switch(Switch::On))),
            Some((_, param)) => return Err(self.refuse(word.clone(), Problem::NoValue(param))),
            None => {}
        }
        let Some(slot) = agent.shorthand.and_then(|name| slot(agent, name)) else {
            return Err(self.unknown_parameter(agent, word.clone()));
        };
        Ok((slot, self.value(slot.1, word, word)?))
    }

    fn unknown_parameter(&self, agent: &'static Descriptor, place: Range<usize>) -> SpecError {
        let nearest = nearest(&self.text[place.clone()], agent.params.iter().map(|param| param.name));
        self.refuse(place, Problem::UnknownParameter { agent, nearest })
    }

    /// An error about a missing value points at `place`.
    fn value(
        &self,
        param: &'static Param,
        value: &Range<usize>,
        place: &Range<usize>,
    ) -> Result<Value, SpecError> {
        if value.is_empty() {
            return Err(self.refuse(place.clone(), Problem::NoValue(param)));
        }
        let parsed = param.form.parse(&self.text[value.clone()]);
        parsed.ok_or_else(|| self.refuse(value.clone(), Problem::Refused(param)))
    }

    fn refuse(&self, place: Range<usize>, problem: Problem) -> SpecError {
        SpecError::new(self.text, place, problem).among(self.agents)
    }

    /// Reads a run of characters without marks and space. The run is empty if a mark comes next.
    fn word(&mut self) -> Range<usize> {
        self.skip_space();
        let start = self.at;
        let ends = |c: char| MARKS.contains(&c) || c.is_whitespace();
        self.at = self.rest().find(ends).map_or(self.end, |length| start + length);
        start..self.at
    }

    fn take(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(mark);
        if found {
            self.at += mark.len_utf8();
        }
        found
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.rest().chars().next()
    }

    /// The place of the next character; empty at the end of the spec.
    fn next_char(&self) -> Range<usize> {
        self.at..self.at + self.rest().chars().next().map_or(0, char::len_utf8)
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn rest(&self) -> &str {
        &self.text[self.at..self.end]
    }
}

/// At most this many letters are compared. Longer texts resemble no name, and the work stays bounded.
const LONGEST_COMPARED: usize = 32;

/// The accepted name that is nearest to a wrong one: the candidate that needs the fewest changes, unless it needs many.
/// Among equal candidates it is the one with the longest common beginning.
pub fn nearest<'a>(wrong: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if wrong.chars().count() > LONGEST_COMPARED {
        return None;
    }
    let alike = |name: &str| wrong.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
    let measured = candidates.map(|name| (changes_between(wrong, name), Reverse(alike(name)), name));
    // A name of equal length and equal first letter may need one change more: `tun` for `tap`.
    let more = |alike: usize, name: &str| usize::from(alike > 0 && name.len() == wrong.len());
    // A name in which every letter would change resembles nothing: `a` for `c`.
    let is_near = |(changes, Reverse(alike), name): &(usize, Reverse<usize>, &str)| {
        *changes <= name.len().div_ceil(3) + more(*alike, name) && *changes < name.len().max(wrong.len())
    };
    measured.filter(is_near).min().map(|(.., name)| name)
}

/// The number of letters to insert, delete or exchange, and of neighbours to swap (optimal string alignment).
fn changes_between(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let exchanged = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = exchanged.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_of_the_finger_is_one_change() {
        assert_eq!(changes_between("delyed", "delayed"), 1);
        assert_eq!(changes_between("dleayed", "delayed"), 1);
        assert_eq!(changes_between("delayyed", "delayed"), 1);
        assert_eq!(changes_between("delaxed", "delayed"), 1);
        assert_eq!(changes_between("", "cubic"), 5);
    }

    #[test]
    fn of_names_that_are_equally_near_the_one_that_begins_alike_is_suggested() {
        assert_eq!(nearest("dcaa", ["daa", "dca"].into_iter()), Some("dca"));
        assert_eq!(nearest("daaa", ["daa", "dca"].into_iter()), Some("daa"));
        assert_eq!(nearest("tap", ["tun", "tun-fast", "raw", "pcap", "replay"].into_iter()), Some("tun"));
    }

    #[test]
    fn nothing_is_suggested_for_a_name_that_resembles_none() {
        let names = || ["immediate", "delayed"].into_iter();
        assert_eq!(nearest("imediate", names()), Some("immediate"));
        assert_eq!(nearest("window", names()), None);
        assert_eq!(nearest(&"delayed".repeat(9), names()), None);
        assert_eq!(
            [nearest("c", ["a", "b"].into_iter()), nearest("ab", ["a"].into_iter())],
            [None, Some("a")]
        );
    }
}
