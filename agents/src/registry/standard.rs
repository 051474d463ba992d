//! The maker of agents that an endpoint is given.

use std::error::Error;

use hopwise_core::agent::{AgentMaker, AgentSpecs, ReceiverAgent, SenderAgent};

use crate::spec::{self, SpecError};

/// Which defaults are in force where a spec is silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    #[default]
    Modern,
    /// What reproduces ns-2's senders: see the parameters that list a second default.
    Ns2,
}

/// Makes every agent of the [registry](crate::registry) by its spec.
#[derive(Clone, Copy, Debug, Default)]
pub struct StandardAgents {
    profile: Profile,
}

impl StandardAgents {
    pub const fn new(profile: Profile) -> StandardAgents {
        StandardAgents { profile }
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
        checked(spec::parse_receiver(spec)).make(self.profile)
    }

    fn shadows(&self, spec: &str) -> Vec<Box<dyn ReceiverAgent>> {
        checked(spec::parse_shadows(spec)).make(self.profile)
    }

    fn senders(&self, spec: &str) -> Vec<Box<dyn SenderAgent>> {
        checked(spec::parse_senders(spec)).make(self.profile)
    }
}

fn checked<T>(parsed: Result<T, SpecError>) -> T {
    match parsed {
        Ok(spec) => spec,
        Err(error) => panic!("invariant: specs are validated when rules are read\n{error}"),
    }
}
