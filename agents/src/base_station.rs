//! Agents of a base station: what it does with the packets of a link that fades.

pub mod plan;
