//! Which agents a connection gets: rules by direction, port and address, resolved once, at SYN.

use std::ops::Deref;
use std::sync::Arc;

use crate::agent::AgentSpecs;
use crate::ip::Prefix;
use crate::tcp::Flow;
use crate::trace::ChosenBy;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// We opened it.
    Outgoing,
    /// The peer opened it.
    Incoming,
}

/// What a rule asks of a connection; what is absent matches everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Match {
    pub direction: Option<Direction>,
    /// The port that was connected to, whoever opened.
    pub port: Option<u16>,
    /// Who opened the connection.
    pub from: Option<Prefix>,
    /// Who was connected to.
    pub to: Option<Prefix>,
}

/// The agents of the connections that match; what is absent stays as the endpoint's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    pub matches: Match,
    pub receiver: Option<String>,
    pub senders: Option<String>,
    pub shadows: Option<String>,
}

impl Match {
    fn covers(&self, flow: &Flow, direction: Direction) -> bool {
        let (from, to) = match direction {
            Direction::Outgoing => (flow.local, flow.remote),
            Direction::Incoming => (flow.remote, flow.local),
        };
        self.direction.is_none_or(|wanted| wanted == direction)
            && self.port.is_none_or(|port| port == to.port())
            && self.from.is_none_or(|prefix| prefix.contains(from.ip()))
            && self.to.is_none_or(|prefix| prefix.contains(to.ip()))
    }
}

/// What the application said for one connection; it goes before every rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentChoice {
    pub receiver: Option<String>,
    pub senders: Option<String>,
    pub shadows: Option<String>,
}

impl AgentChoice {
    pub(super) fn is_default(&self) -> bool {
        *self == AgentChoice::default()
    }
}

/// What a connection gets, and who said so.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    agents: AgentSpecs,
    pub(super) by: ChosenBy,
}

impl Deref for Chosen {
    type Target = AgentSpecs;

    fn deref(&self) -> &AgentSpecs {
        &self.agents
    }
}

/// The rules with their specs completed, so that connections share them.
#[derive(Debug)]
pub(super) struct Rules {
    rules: Vec<(Match, Arc<Chosen>)>,
    default: Arc<Chosen>,
}

impl Rules {
    pub(super) fn new(rules: &[Rule], default: &AgentSpecs) -> Rules {
        let complete = |(rule, nth): (&Rule, u16)| {
            let choice = AgentChoice {
                receiver: rule.receiver.clone(),
                senders: rule.senders.clone(),
                shadows: rule.shadows.clone(),
            };
            let agents = chosen(&choice, default);
            (rule.matches, Arc::new(Chosen { agents, by: ChosenBy::Rule(nth) }))
        };
        Rules {
            rules: rules.iter().zip(0..).map(complete).collect(),
            default: Arc::new(Chosen { agents: default.clone(), by: ChosenBy::Default }),
        }
    }

    /// Every complete choice that a connection may get.
    pub(super) fn all(&self) -> impl Iterator<Item = &AgentSpecs> {
        self.rules.iter().map(|(_, chosen)| chosen).chain([&self.default]).map(|chosen| &chosen.agents)
    }

    /// A choice with the defaults where it says nothing, to be checked before any connection has it.
    pub(super) fn complete(&self, choice: &AgentChoice) -> AgentSpecs {
        chosen(choice, &self.default)
    }

    /// The first rule that matches wins.
    pub(super) fn resolve(&self, flow: &Flow, direction: Direction, choice: &AgentChoice) -> Arc<Chosen> {
        let by_rule = self.rules.iter().find(|(matches, _)| matches.covers(flow, direction));
        let by_rule = by_rule.map_or(&self.default, |(_, chosen)| chosen);
        if choice.is_default() {
            return Arc::clone(by_rule);
        }
        Arc::new(Chosen { agents: chosen(choice, by_rule), by: ChosenBy::Program })
    }
}

fn chosen(choice: &AgentChoice, from: &AgentSpecs) -> AgentSpecs {
    AgentSpecs {
        receiver: choice.receiver.as_ref().unwrap_or(&from.receiver).clone(),
        senders: choice.senders.as_ref().unwrap_or(&from.senders).clone(),
        shadows: choice.shadows.as_ref().unwrap_or(&from.shadows).clone(),
    }
}
