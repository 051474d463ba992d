//! What agents are tested with.
