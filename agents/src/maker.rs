//! The maker of an endpoint's agents.

use std::sync::Arc;

use hopwise_core::agent::{
    AgentMaker, AgentSpecs, BadSpec, BaseStationMaker, MakeReceiver, MakeSenders, MakeServes, MakeShadows,
};

use crate::param::Profile;
use crate::registry::{DEFAULT_RECEIVER, DEFAULT_SENDERS, DEFAULT_SHADOWS};
use crate::sender::train::SharedPaths;
use crate::spec;

/// Reads the spec of every agent of the [registry](crate::registry), and makes the agents of one endpoint.
#[derive(Debug, Default)]
pub struct StandardAgents {
    profile: Profile,
    shared: Arc<SharedPaths>,
}

/// A clone is for another endpoint: the flows of the two share nothing.
impl Clone for StandardAgents {
    fn clone(&self) -> StandardAgents {
        StandardAgents::new(self.profile)
    }
}

impl StandardAgents {
    /// `profile` decides the parameters that a spec leaves out.
    pub fn new(profile: Profile) -> StandardAgents {
        StandardAgents { profile, shared: Arc::default() }
    }
}

impl AgentMaker for StandardAgents {
    fn receiver(&self, spec: &str) -> Result<MakeReceiver, BadSpec> {
        let agent = spec::parse_receiver(spec)?.settle(self.profile);
        Ok(Arc::new(move || agent.make()))
    }

    fn shadows(&self, list: &str) -> Result<MakeShadows, BadSpec> {
        let (list, profile) = (spec::parse_shadows(list)?, self.profile);
        Ok(Arc::new(move || list.make(profile)))
    }

    fn senders(&self, list: &str) -> Result<MakeSenders, BadSpec> {
        let agents = spec::parse_senders(list)?.settle(self.profile);
        let shared = Arc::clone(&self.shared);
        Ok(Arc::new(move |between| agents.make(|| shared.between(between))))
    }

    fn default_specs(&self) -> AgentSpecs {
        AgentSpecs {
            receiver: DEFAULT_RECEIVER.into(),
            senders: DEFAULT_SENDERS.into(),
            shadows: DEFAULT_SHADOWS.into(),
        }
    }
}

impl BaseStationMaker for StandardAgents {
    fn base_station(&self, spec: &str) -> Result<MakeServes, BadSpec> {
        let agent = spec::parse_base_station(spec)?.settle(self.profile);
        Ok(Arc::new(move || agent.make()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_read_once_and_makes_the_same_agent_for_every_connection() {
        let agents = StandardAgents::default();
        let read = |spec: &str| agents.receiver(spec).expect("a spec");
        let (three, four) = (read("delayed:d=3"), read("delayed:d=4"));
        assert_eq!(format!("{:?}", three()), format!("{:?}", three()));
        assert_ne!(format!("{:?}", three()), format!("{:?}", four()));
    }

    #[test]
    fn flows_of_a_maker_and_of_its_clone_have_nothing_in_common() {
        let agents = StandardAgents::default();
        assert!(!Arc::ptr_eq(&agents.shared, &agents.clone().shared));
    }

    #[test]
    fn a_spec_that_names_nothing_is_refused_where_it_is_read() {
        let agents = StandardAgents::default();
        let refused = [
            agents.receiver("delyed").err(),
            agents.shadows("[delyed]").err(),
            agents.senders("[cubik]").err(),
            agents.base_station("snop").err(),
        ];
        for (refused, meant) in refused.into_iter().zip(["delayed", "delayed", "cubic", "snoop"]) {
            let said = refused.expect("it names nothing").to_string();
            assert!(said.contains(&format!("did you mean `{meant}`?")), "{said}");
        }
    }
}
