//! Rules of the RFCs and of our own contracts. Each test is one claim, shown on two endpoints over a path in memory or
//! on one endpoint with a scripted peer.

mod answers;
mod attacks;
mod bbr;
mod bundles;
mod flow;
mod handshake;
mod mtu;
mod peer;
mod recovery;
mod throughput;
mod timers;
mod trains;
