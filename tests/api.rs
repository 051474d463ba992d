//! The endpoint as a program sees it: the result of each call, the events that follow, and the packets on the wire.
//! Each test is one claim, shown on two endpoints over a path in memory or with packets of its own making.

#[path = "api/addresses.rs"]
mod addresses;
#[path = "api/agents.rs"]
mod agents;
#[path = "api/crowd.rs"]
mod crowd;
#[path = "api/datagrams.rs"]
mod datagrams;
#[path = "api/endings.rs"]
mod endings;
#[path = "api/events.rs"]
mod events;
#[path = "api/facts.rs"]
mod facts;
#[path = "api/first_link.rs"]
mod first_link;
#[path = "api/flows.rs"]
mod flows;
#[path = "api/fragments.rs"]
mod fragments;
#[path = "api/net.rs"]
mod net;
#[path = "api/options.rs"]
mod options;
#[path = "api/progress.rs"]
mod progress;
#[path = "api/refusals.rs"]
mod refusals;
#[path = "api/turns.rs"]
mod turns;
#[path = "api/wires.rs"]
mod wires;
#[path = "api/withheld.rs"]
mod withheld;
