//! Random agents of the registry, with random parameters.

use hopwise_agents::param::{DefaultValue, Form, Param, Switch, Value};
use hopwise_agents::registry::{self, Descriptor, Kind};
use hopwise_agents::{Profile, StandardAgents, spec};
use hopwise_core::agent::{AgentMaker, AgentSpecs};

use crate::memory::Random;

/// Sets of parameters that contradict each other are rare, and drawn again.
const TRIES: usize = 20;

pub(super) fn draw(random: &mut Random) -> AgentSpecs {
    let drawn = || AgentSpecs {
        receiver: receiver(random).into(),
        senders: senders(random).into(),
        shadows: shadows(random).into(),
    };
    let maker = StandardAgents::new(Profile::Modern);
    let accepted = |specs: &AgentSpecs| {
        maker.receiver(&specs.receiver).is_ok()
            && maker.senders(&specs.senders).is_ok()
            && maker.shadows(&specs.shadows).is_ok()
    };
    std::iter::repeat_with(drawn).take(TRIES).find(accepted).unwrap_or_else(|| maker.default_specs())
}

fn receiver(random: &mut Random) -> String {
    let agents = of(|agent| agent.kind() == Kind::Receiver);
    let agent = random.pick(&agents);
    if !agent.wraps() {
        return format!("{}{}", agent.name, arguments(agent, random));
    }
    let inner = random.pick(&of(|inner| inner.kind() == Kind::Receiver && !inner.wraps()));
    let inside = format!("{}{}", inner.name, arguments(inner, random));
    format!("{}({inside}){}", agent.name, arguments(agent, random))
}

fn senders(random: &mut Random) -> String {
    let owner = random.pick(&of(Descriptor::owns_cwnd));
    let mut list = vec![format!("{}{}", owner.name, arguments(owner, random))];
    for narrower in of(|agent| agent.kind() == Kind::Sender && !agent.owns_cwnd()) {
        if random.one_in(4) {
            let at = random.between(1, list.len() as u64) as usize;
            list.insert(at, format!("{}{}", narrower.name, arguments(narrower, random)));
        }
    }
    spec::join(&list)
}

fn shadows(random: &mut Random) -> String {
    let count = if random.one_in(2) { random.between(1, 3) } else { 0 };
    let list: Vec<_> = (0..count).map(|_| receiver(random)).collect();
    spec::join(&list)
}

fn of(wanted: impl Fn(&Descriptor) -> bool) -> Vec<&'static Descriptor> {
    registry::all().filter(|agent| wanted(agent)).collect()
}

fn arguments(agent: &Descriptor, random: &mut Random) -> String {
    let mut given = Vec::new();
    for param in agent.params {
        if param.default == DefaultValue::Required || random.one_in(3) {
            given.push(format!("{}={}", param.name, value(param, random)));
        }
    }
    if given.is_empty() { String::new() } else { format!(":{}", given.join(",")) }
}

fn value(param: &Param, random: &mut Random) -> Value {
    match param.form {
        // Users choose small numbers; large ones have to work as well.
        Form::Count { min, max, .. } if random.one_in(8) => Value::Count(random.log_between(min, max)),
        Form::Count { min, max, .. } => Value::Count(random.between(min, max.min(min + 9))),
        Form::Time { min, max } => {
            let ms = random.log_between(min.as_millis() as u64, max.as_millis() as u64);
            Value::Time(std::time::Duration::from_millis(ms).clamp(min, max))
        }
        Form::Rate { min_bps, max_bps } => Value::Rate(random.log_between(min_bps, max_bps)),
        Form::Ratio { min_milli, max_milli } => {
            Value::Ratio(random.between(min_milli.into(), max_milli.into()) as u32)
        }
        Form::Switch => Value::Switch(random.pick(&[Switch::On, Switch::Off])),
        Form::Choice(names) => Value::Choice(random.pick(names)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_registered_agent_and_many_combinations_are_drawn() {
        let mut random = Random::new(3, 3);
        let drawn: Vec<_> = (0..400).map(|_| draw(&mut random)).collect();
        let drawable = |agent: &&Descriptor| agent.kind() != Kind::BaseStation;
        for agent in registry::all().filter(drawable) {
            let is_drawn = |specs: &&AgentSpecs| {
                specs.receiver.contains(agent.name) || specs.senders.contains(agent.name)
            };
            assert!(drawn.iter().find(is_drawn).is_some(), "{}", agent.name);
        }
        let lists: BTreeSet<_> = drawn.iter().map(|specs| &specs.senders).collect();
        assert!(lists.len() > 100, "{}", lists.len());
    }
}
