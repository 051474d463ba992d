//! One TCP connection and what it is made of.
#![allow(dead_code)] // Until the connection uses every part.

mod ranges;
mod recv_buffer;
mod ring;
mod rtt;
mod send_buffer;
mod timers;
