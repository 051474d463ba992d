//! Rules of the RFCs and of our own contracts. Each test is one claim, shown on two endpoints over a path in memory or
//! on one endpoint with a scripted peer.

#[path = "rules/answers.rs"]
mod answers;
#[path = "rules/attacks.rs"]
mod attacks;
#[path = "rules/bbr.rs"]
mod bbr;
#[path = "rules/bundles.rs"]
mod bundles;
#[path = "rules/flow.rs"]
mod flow;
#[path = "rules/handshake.rs"]
mod handshake;
#[path = "rules/mtu.rs"]
mod mtu;
#[path = "rules/peer.rs"]
mod peer;
#[path = "rules/recovery.rs"]
mod recovery;
#[path = "rules/throughput.rs"]
mod throughput;
#[path = "rules/timers.rs"]
mod timers;
#[path = "rules/trains.rs"]
mod trains;
