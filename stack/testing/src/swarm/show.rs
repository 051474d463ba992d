//! A scenario and its events as text, for a replay.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use hopwise_core::trace::TraceEvent;
use hopwise_core::trace::text::TraceText;

use super::scenario::{ConnectionPlan, Scenario};
use crate::memory::{End, Fate, Tap};

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, {:?}, heals at {}", self.seed, self.family, self.heal_at)?;
        for (name, host) in ["A", "B"].iter().zip(&self.hosts) {
            let agents = &host.agents;
            writeln!(f, "host {name}: MTU {}, cookies {:?}", host.link_mtu, host.cookies)?;
            writeln!(f, "  offload {:?}", host.offload)?;
            writeln!(f, "  receiver {}  senders {}", agents.receiver, agents.senders)?;
            writeln!(f, "  shadows {}", agents.shadows)?;
            writeln!(f, "  half-open {}, backlog {}", host.half_open, host.backlog)?;
            writeln!(f, "  accepts every {:?}, {:?}", host.accept_every, host.mood)?;
            writeln!(f, "  {:?}", host.tcp)?;
        }
        for (name, (path, stays)) in ["A", "B"].iter().zip(self.paths.iter().zip(self.mtu_stays)) {
            writeln!(f, "path from {name}: {path:?}, MTU stays: {stays}")?;
        }
        for change in &self.changes {
            writeln!(f, "at {} from {:?}: {:?}", change.at, change.from, change.what)?;
        }
        for (number, connection) in self.connections.iter().enumerate() {
            write_connection(f, number, connection)?;
        }
        Ok(())
    }
}

fn write_connection(f: &mut fmt::Formatter<'_>, number: usize, plan: &ConnectionPlan) -> fmt::Result {
    let ConnectionPlan { opener, opens_at, opening, sides } = plan;
    writeln!(f, "connection {number}: {opener:?} opens at {opens_at}, {opening:?}")?;
    for (end, side) in [*opener, opener.other()].iter().zip(sides) {
        writeln!(f, "  {end:?}: {side:?}")?;
    }
    Ok(())
}

/// Collects both ends' traces and the packets' fates, in the order of events.
pub(super) struct Watcher<'a> {
    sink: &'a mut dyn FnMut(&str),
    traces: [TraceText; 2],
    packets: Rc<RefCell<String>>,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(sink: &'a mut dyn FnMut(&str)) -> Watcher<'a> {
        let mut traces = [TraceText::new(), TraceText::new()];
        traces.iter_mut().for_each(TraceText::clear);
        Watcher { sink, traces, packets: Rc::default() }
    }

    /// Reports the path's effect on a packet, unless it is simply delivered.
    pub(super) fn tap(&self) -> Tap {
        let packets = Rc::clone(&self.packets);
        Box::new(move |now, from, packet, fate| {
            let effect = match fate {
                Fate::Arrives { again: None, .. } => return,
                Fate::Arrives { again: Some(_), .. } => "goes twice".to_owned(),
                Fate::Lost(how) => format!("lost: {how:?}"),
            };
            packets
                .borrow_mut()
                .push_str(&format!("{now}\tpath from {from:?}: {} bytes {effect}\n", packet.len()));
        })
    }

    pub(super) fn take(&mut self, end: End, event: &TraceEvent) {
        self.traces[end as usize].push(event);
    }

    pub(super) fn show(&mut self) {
        for (name, trace) in ["A", "B"].iter().zip(&mut self.traces) {
            for line in trace.as_str().lines() {
                (self.sink)(&format!("{name}\t{line}\n"));
            }
            trace.clear();
        }
        (self.sink)(&self.packets.take());
    }
}
