//! The places in specs that agents fill. A spec that was read for a place has the constructor that this place calls.

use hopwise_core::agent::{EnsembleMember, Owner, ReceiverAgent, SenderAgent, Serves};

use super::accepted::AgentSpec;
use crate::descriptor::{Kind, Make};
use crate::param::Args;
use crate::sender::train::SharedPath;

/// The constructor of an agent for one place.
pub trait Role: Sized {
    /// The kind of the agents that fill the place.
    const KIND: Kind;

    /// The constructor of an agent around `inner`; `None` if the agent cannot fill the place.
    fn of(make: Make, inner: Option<AgentSpec<Self>>) -> Option<Self>;

    /// The wrapped agent.
    fn inner(&self) -> Option<&AgentSpec<Self>> {
        None
    }
}

/// A receiver, alone or around a second receiver.
#[derive(Clone, Debug)]
pub enum Receiver {
    Alone(fn(&Args) -> Box<dyn ReceiverAgent>),
    Around(fn(&Args, Box<dyn ReceiverAgent>) -> Box<dyn ReceiverAgent>, Box<AgentSpec<Receiver>>),
}

impl Role for Receiver {
    const KIND: Kind = Kind::Receiver;

    fn of(make: Make, inner: Option<AgentSpec<Receiver>>) -> Option<Receiver> {
        match (make, inner) {
            (Make::Receiver(make), None) => Some(Receiver::Alone(make)),
            (Make::ReceiverAround(make), Some(inner)) => Some(Receiver::Around(make, Box::new(inner))),
            _ => None,
        }
    }

    fn inner(&self) -> Option<&AgentSpec<Receiver>> {
        match self {
            Receiver::Alone(_) => None,
            Receiver::Around(_, inner) => Some(inner),
        }
    }
}

impl Receiver {
    pub(super) fn make(&self, args: &Args) -> Box<dyn ReceiverAgent> {
        match self {
            Receiver::Alone(make) => make(args),
            Receiver::Around(make, inner) => make(args, inner.make(args.profile)),
        }
    }
}

/// A sender of a list, before its place in the list is known.
#[derive(Clone, Debug)]
pub(crate) struct Unplaced;

impl Role for Unplaced {
    const KIND: Kind = Kind::Sender;

    fn of(make: Make, _: Option<AgentSpec<Unplaced>>) -> Option<Unplaced> {
        matches!(make, Make::Owner(_) | Make::Member(_) | Make::Narrower(_)).then_some(Unplaced)
    }
}

/// The first sender of a list, which owns cwnd.
#[derive(Clone, Debug)]
pub(crate) enum CwndOwner {
    Alone(fn(&Args) -> Box<dyn SenderAgent>),
    Member(fn(&Args, SharedPath) -> Box<dyn EnsembleMember>),
}

impl Role for CwndOwner {
    const KIND: Kind = Kind::Sender;

    fn of(make: Make, _: Option<AgentSpec<CwndOwner>>) -> Option<CwndOwner> {
        match make {
            Make::Owner(make) => Some(CwndOwner::Alone(make)),
            Make::Member(make) => Some(CwndOwner::Member(make)),
            _ => None,
        }
    }
}

impl CwndOwner {
    pub(super) fn make(&self, args: &Args, shared: impl FnOnce() -> SharedPath) -> Owner {
        match self {
            CwndOwner::Alone(make) => Owner::Alone(make(args)),
            CwndOwner::Member(make) => Owner::Member(make(args, shared())),
        }
    }
}

/// A later sender of a list.
#[derive(Clone, Debug)]
pub(crate) struct Narrower(pub(super) fn(&Args) -> Box<dyn SenderAgent>);

impl Role for Narrower {
    const KIND: Kind = Kind::Sender;

    fn of(make: Make, _: Option<AgentSpec<Narrower>>) -> Option<Narrower> {
        if let Make::Narrower(make) = make { Some(Narrower(make)) } else { None }
    }
}

/// The agent of a base station.
#[derive(Clone, Debug)]
pub struct AtBaseStation(pub(super) fn(&Args) -> Serves);

impl Role for AtBaseStation {
    const KIND: Kind = Kind::BaseStation;

    fn of(make: Make, _: Option<AgentSpec<AtBaseStation>>) -> Option<AtBaseStation> {
        if let Make::BaseStation(make) = make { Some(AtBaseStation(make)) } else { None }
    }
}
