//! The parser of one spec. It remembers the place of each part.

use std::ops::Range;

use super::accepted::AgentSpec;
use super::error::{Problem, SpecError};
use super::role::Role;
use super::suggest::nearest;
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

/// A parameter, and its place among those of its agent.
type Slot = (usize, &'static Param);

fn slot(agent: &'static Descriptor, name: &str) -> Option<Slot> {
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
            self.args(agent, &mut given, &mut places)?;
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
        if !self.take(')') {
            return Err(self.refuse(self.next_char(), Problem::Trailing));
        }
        Ok(Some(inner))
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
    fn arg(&mut self, agent: &'static Descriptor) -> Result<(Slot, Value, Range<usize>), SpecError> {
        let first = self.word();
        if first.is_empty() {
            return Err(self.refuse(self.next_char(), Problem::NoParameter(agent)));
        }
        if !self.take('=') {
            let (slot, value) = self.bare(agent, &first)?;
            return Ok((slot, value, first));
        }
        let key = &self.text[first.clone()];
        let Some(slot) = slot(agent, key) else {
            return Err(self.unknown_parameter(agent, first));
        };
        let value = self.word();
        Ok((slot, self.value(slot.1, &value, &first)?, first))
    }

    /// The name of a switch turns it on. Any other word is the value of the agent's shorthand.
    fn bare(&self, agent: &'static Descriptor, word: &Range<usize>) -> Result<(Slot, Value), SpecError> {
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
