//! The agents of a connection: rules by direction, port and address, applied once, at SYN.

use std::borrow::Cow;
use std::sync::Arc;

use crate::agent::{AgentMaker, AgentSpecs, BadSpec, MakeReceiver, MakeSenders, MakeShadows};
use crate::ip::Prefix;
use crate::tcp::Flow;
use crate::trace::ChosenBy;

/// The side that opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// We opened it.
    Outgoing,
    /// The peer opened it.
    Incoming,
}

/// The conditions of a rule; an absent one matches everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// A listener's connections are [`Direction::Incoming`].
    pub direction: Option<Direction>,
    /// The port that was connected to, on either side.
    pub port: Option<u16>,
    /// The end that opened the connection.
    pub from: Option<Prefix>,
    /// The end that was connected to.
    pub to: Option<Prefix>,
}

/// The agents of matching connections; an absent one stays the endpoint's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// All of its conditions must hold when the connection begins.
    pub matches: Match,
    /// Spec of the agent that decides when to acknowledge, such as `delayed`.
    pub receiver: Option<String>,
    /// A list of specs, such as `[newreno, limit:4]`: the agents that bound the data in flight.
    pub senders: Option<String>,
    /// A list of receiver agents that only watch, and count the ACKs that they would have sent.
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

/// A choice of agents that may leave some open. A program's choice for one connection comes before every rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentChoice {
    /// Spec of a receiver agent; None leaves it open.
    pub receiver: Option<String>,
    /// A list of sender agents' specs; None leaves them open.
    pub senders: Option<String>,
    /// A list of receiver agents' specs; None leaves them open.
    pub shadows: Option<String>,
}

impl AgentChoice {
    /// The same choice with this receiver agent, such as `dca:w=3`.
    #[must_use]
    pub fn with_receiver(self, spec: &str) -> AgentChoice {
        AgentChoice { receiver: Some(spec.to_owned()), ..self }
    }

    /// The same choice with these sender agents, such as `[newreno, limit:4]`.
    #[must_use]
    pub fn with_senders(self, list: &str) -> AgentChoice {
        AgentChoice { senders: Some(list.to_owned()), ..self }
    }

    /// The choice, completed from specs where it is open.
    fn over(&self, specs: AgentSpecs) -> AgentSpecs {
        AgentSpecs {
            receiver: self.receiver.clone().map_or(specs.receiver, Cow::Owned),
            senders: self.senders.clone().map_or(specs.senders, Cow::Owned),
            shadows: self.shadows.clone().map_or(specs.shadows, Cow::Owned),
        }
    }
}

impl From<AgentSpecs> for AgentChoice {
    fn from(specs: AgentSpecs) -> AgentChoice {
        let AgentSpecs { receiver, senders, shadows } = specs;
        let [receiver, senders, shadows] = [receiver, senders, shadows].map(|spec| Some(spec.into_owned()));
        AgentChoice { receiver, senders, shadows }
    }
}

/// A program's choice with its specs parsed.
#[derive(Clone)]
pub(super) struct Choice {
    specs: AgentChoice,
    receiver: Option<MakeReceiver>,
    senders: Option<MakeSenders>,
    shadows: Option<MakeShadows>,
}

impl Choice {
    pub(super) fn read(specs: AgentChoice, maker: &dyn AgentMaker) -> Result<Choice, BadSpec> {
        Ok(Choice {
            receiver: specs.receiver.as_deref().map(|spec| maker.receiver(spec)).transpose()?,
            senders: specs.senders.as_deref().map(|list| maker.senders(list)).transpose()?,
            shadows: specs.shadows.as_deref().map(|list| maker.shadows(list)).transpose()?,
            specs,
        })
    }

    /// The choice, completed from another one where it is open.
    fn over(&self, other: &Chosen, by: ChosenBy) -> Arc<Chosen> {
        Arc::new(Chosen {
            specs: self.specs.over(other.specs.clone()),
            receiver: self.receiver.as_ref().unwrap_or(&other.receiver).clone(),
            senders: self.senders.as_ref().unwrap_or(&other.senders).clone(),
            shadows: self.shadows.as_ref().unwrap_or(&other.shadows).clone(),
            by,
        })
    }
}

/// A connection's agents, and the source of the choice.
pub(super) struct Chosen {
    /// The specs for display.
    pub(super) specs: AgentSpecs,
    pub(super) receiver: MakeReceiver,
    pub(super) senders: MakeSenders,
    pub(super) shadows: MakeShadows,
    pub(super) by: ChosenBy,
}

/// The rules with their agents completed, so that connections share them.
pub(super) struct Rules {
    rules: Vec<(Match, Arc<Chosen>)>,
    default: Arc<Chosen>,
}

impl Rules {
    /// Fails on a spec that the maker cannot read.
    pub(super) fn new(
        rules: &[Rule],
        default: &AgentChoice,
        maker: &dyn AgentMaker,
    ) -> Result<Rules, BadSpec> {
        let specs = default.over(maker.default_specs());
        let default = Arc::new(Chosen {
            receiver: maker.receiver(&specs.receiver)?,
            senders: maker.senders(&specs.senders)?,
            shadows: maker.shadows(&specs.shadows)?,
            specs,
            by: ChosenBy::Default,
        });
        let complete = |(rule, nth): (&Rule, u16)| {
            let Rule { matches, receiver, senders, shadows } = rule.clone();
            let choice = Choice::read(AgentChoice { receiver, senders, shadows }, maker)?;
            Ok((matches, choice.over(&default, ChosenBy::Rule(nth))))
        };
        let rules = rules.iter().zip(0..).map(complete).collect::<Result<_, BadSpec>>()?;
        Ok(Rules { rules, default })
    }

    /// The first rule that matches wins.
    pub(super) fn resolve(&self, flow: &Flow, direction: Direction, choice: &Choice) -> Arc<Chosen> {
        let by_rule = self.rules.iter().find(|(matches, _)| matches.covers(flow, direction));
        let by_rule = by_rule.map_or(&self.default, |(_, chosen)| chosen);
        if choice.specs == AgentChoice::default() {
            return Arc::clone(by_rule);
        }
        choice.over(by_rule, ChosenBy::Program)
    }
}
