//! The maker of agents that an endpoint is given.

use std::cell::RefCell;
use std::error::Error;

use hopwise_core::agent::{
    AgentMaker, AgentSpecs, BaseStationMaker, HostPair, ReceiverAgent, SenderAgents, Serves,
};

use crate::param::Profile;
use crate::sender::train::SharedPaths;
use crate::spec::{self, BaseStationSpec, ReceiverSpec, SenderList, ShadowList, SpecError};

/// Specs of a kind that are kept read. A program that makes up more is served all the same.
const MOST_KEPT: usize = 64;

/// Makes every agent of the [registry](crate::registry) by its spec.
#[derive(Clone, Debug, Default)]
pub struct StandardAgents {
    profile: Profile,
    receivers: Kept<ReceiverSpec>,
    senders: Kept<SenderList>,
    shadows: Kept<ShadowList>,
    base_stations: Kept<BaseStationSpec>,
    shared: SharedPaths,
}

/// What was read once: reading a spec costs more than the rest of a handshake.
#[derive(Clone, Debug)]
struct Kept<T>(RefCell<Vec<(String, T)>>);

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept(RefCell::new(Vec::new()))
    }
}

impl<T> Kept<T> {
    fn make<R>(
        &self,
        spec: &str,
        parse: impl FnOnce(&str) -> Result<T, SpecError>,
        make: impl FnOnce(&T) -> R,
    ) -> R {
        let mut kept = self.0.borrow_mut();
        if let Some((_, parsed)) = kept.iter().find(|(known, _)| known == spec) {
            return make(parsed);
        }
        let parsed = checked(parse(spec));
        let made = make(&parsed);
        if kept.len() < MOST_KEPT {
            kept.push((spec.to_owned(), parsed));
        }
        made
    }
}

impl StandardAgents {
    pub fn new(profile: Profile) -> StandardAgents {
        StandardAgents { profile, ..StandardAgents::default() }
    }

    pub const fn profile(&self) -> Profile {
        self.profile
    }
}

/// Panics on a spec that [`validate_receiver`](crate::validate_receiver) and its siblings would refuse:
/// whoever takes specs from outside asks them first, since at a SYN there is nobody left to tell.
impl AgentMaker for StandardAgents {
    fn check(&self, agents: &AgentSpecs) -> Result<(), Box<dyn Error + Send + Sync>> {
        spec::parse_receiver(&agents.receiver)?;
        spec::parse_senders(&agents.senders)?;
        spec::parse_shadows(&agents.shadows)?;
        Ok(())
    }

    fn receiver(&self, spec: &str) -> Box<dyn ReceiverAgent> {
        self.receivers.make(spec, spec::parse_receiver, |parsed| parsed.make(self.profile))
    }

    fn shadows(&self, spec: &str) -> Vec<Box<dyn ReceiverAgent>> {
        self.shadows.make(spec, spec::parse_shadows, |parsed| parsed.make(self.profile))
    }

    fn senders(&self, spec: &str, between: HostPair) -> SenderAgents {
        let shared = || self.shared.between(between);
        self.senders.make(spec, spec::parse_senders, |parsed| parsed.make(self.profile, shared))
    }
}

/// Panics as the other maker does.
impl BaseStationMaker for StandardAgents {
    fn check(&self, spec: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        spec::parse_base_station(spec)?;
        Ok(())
    }

    fn base_station(&self, spec: &str) -> Serves {
        self.base_stations.make(spec, spec::parse_base_station, |parsed| parsed.make(self.profile))
    }
}

fn checked<T>(parsed: Result<T, SpecError>) -> T {
    match parsed {
        Ok(spec) => spec,
        Err(error) => panic!("invariant: specs are validated when rules are read\n{error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const BETWEEN: HostPair = HostPair { link: 0, local: HERE, peer: HERE };

    #[test]
    fn what_was_read_once_makes_the_same_agents_again() {
        let agents = StandardAgents::default();
        let made = || {
            let receiver = agents.receiver("delayed:d=3");
            format!(
                "{receiver:?} {:?} {:?}",
                agents.senders("[newreno, limit:4]", BETWEEN),
                agents.shadows("[immediate]")
            )
        };
        assert_eq!(made(), made());
        assert_eq!(agents.receivers.0.borrow().len(), 1);
        assert_ne!(
            format!("{:?}", agents.receiver("delayed:d=4")),
            format!("{:?}", agents.receiver("delayed:d=3"))
        );
    }

    #[test]
    fn no_more_than_so_many_specs_are_kept() {
        let agents = StandardAgents::default();
        for n in 1..=2 * MOST_KEPT {
            let made = agents.senders(&format!("[newreno, limit:{n}]"), BETWEEN);
            assert!(format!("{made:?}").contains(&n.to_string()));
        }
        assert_eq!(agents.senders.0.borrow().len(), MOST_KEPT);
    }
}
