//! Receiver and sender agents: one algorithm, one file.
