//! The endpoint as a program sees it: the result of each call, the events that follow, and the packets on the wire.
//! Each test is one claim, shown on two endpoints over a path in memory or with packets of its own making.

mod addresses;
mod agents;
mod crowd;
mod datagrams;
mod endings;
mod events;
mod facts;
mod first_link;
mod flows;
mod fragments;
mod net;
mod options;
mod progress;
mod refusals;
mod turns;
mod wires;
mod withheld;
