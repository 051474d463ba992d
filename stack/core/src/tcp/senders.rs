//! A connection's list of sender agents. The first owns cwnd and ssthresh; each of the others narrows the allowance of
//! those before it.

use crate::agent::{
    Acked, Allowance, DataNote, DupAck, EnsembleMember, FastRetransmit, Loss, Needs, Owner, PathEvent,
    PathReaction, Recovered, Reduction, SendView, SenderAgent, SenderAgents, Sent, Tunables,
};
use crate::{Instant, Seq};

type Others = Box<[Box<dyn SenderAgent>]>;

#[derive(Debug)]
pub(crate) struct Senders {
    owner: Owner,
    /// Most connections have no others, at the cost of one word.
    others: Option<Box<Others>>,
}

impl Senders {
    pub(crate) fn new(agents: SenderAgents) -> Senders {
        let SenderAgents { owner, others } = agents;
        Senders { owner, others: (!others.is_empty()).then(|| Box::new(others)) }
    }

    pub(crate) fn needs(&self) -> Needs {
        self.others().fold(self.owner.agent().needs(), |needs, agent| needs.union(agent.needs()))
    }

    pub(crate) fn tune(&self, tunables: &mut Tunables) {
        for agent in self.all() {
            agent.tune(tunables);
        }
    }

    pub(crate) fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>) {
        self.owner.agent_mut().on_sent(sent, view);
        for agent in each_mut(&mut self.others) {
            agent.on_sent(sent, view);
        }
    }

    pub(crate) fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) {
        self.owner.agent_mut().on_acked(acked, view);
        for agent in each_mut(&mut self.others) {
            agent.on_acked(acked, view);
        }
    }

    pub(crate) fn on_dup_ack(&mut self, dup: &DupAck, view: &SendView<'_>) -> Option<FastRetransmit> {
        let mut asked = None;
        for agent in self.all_mut() {
            asked = agent.on_dup_ack(dup, view).or(asked);
        }
        asked
    }

    /// Reports a loss. Only the owner may set ssthresh; an answer of another agent is a bug.
    pub(crate) fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Reduction {
        let reduction = self.owner.agent_mut().on_loss(loss, view);
        for agent in each_mut(&mut self.others) {
            let answer = agent.on_loss(loss, view);
            assert!(answer.is_none(), "only the owner of cwnd reduces it, not {agent:?}");
        }
        // An owner that keeps its window returns None: ssthresh is then the flight.
        reduction.unwrap_or(Reduction { ssthresh: loss.flight_before.bytes.max(2 * u64::from(view.mss)) })
    }

    pub(crate) fn on_recovered(&mut self, end: Recovered, view: &SendView<'_>) {
        for agent in self.all_mut() {
            agent.on_recovered(end, view);
        }
    }

    pub(crate) fn on_path(&mut self, event: &PathEvent, view: &SendView<'_>) -> Vec<PathReaction> {
        self.all_mut().map(|agent| agent.on_path(event, view)).collect()
    }

    pub(crate) fn narrow(&self, now: Instant, view: &SendView<'_>, from: Allowance) -> Allowance {
        let mut so_far = narrowed_by(self.owner.agent(), now, view, from);
        for agent in self.others() {
            so_far = narrowed_by(agent, now, view, so_far);
        }
        so_far
    }

    /// The owner of cwnd, if its flow takes turns.
    pub(crate) fn member(&self) -> Option<&dyn EnsembleMember> {
        self.owner.member()
    }

    pub(crate) fn member_mut(&mut self) -> Option<&mut dyn EnsembleMember> {
        self.owner.member_mut()
    }

    pub(crate) fn note(&self, first: Seq, view: &SendView<'_>, allowed: &Allowance) -> DataNote {
        let mut note = DataNote::default();
        self.owner.agent().note(first, view, allowed, &mut note);
        for agent in self.others() {
            agent.note(first, view, allowed, &mut note);
        }
        note
    }

    pub(crate) fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        for agent in self.all() {
            agent.gauges(sink);
        }
    }

    fn others(&self) -> impl Iterator<Item = &dyn SenderAgent> {
        self.others.iter().flat_map(|others| others.iter()).map(|agent| &**agent)
    }

    /// All agents in the order of the list.
    fn all(&self) -> impl Iterator<Item = &dyn SenderAgent> {
        std::iter::once(self.owner.agent()).chain(self.others())
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut dyn SenderAgent> {
        std::iter::once(self.owner.agent_mut()).chain(each_mut(&mut self.others))
    }
}

fn each_mut(others: &mut Option<Box<Others>>) -> impl Iterator<Item = &mut dyn SenderAgent> {
    let agents = others.iter_mut().flat_map(|others| others.iter_mut());
    agents.map(|agent| &mut **agent as &mut dyn SenderAgent)
}

fn narrowed_by(agent: &dyn SenderAgent, now: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
    let narrowed = agent.narrow(now, view, so_far);
    assert!(narrowed.is_within(&so_far), "{agent:?} may only narrow {so_far:?}, not {narrowed:?}");
    narrowed
}
