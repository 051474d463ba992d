//! Any bytes begin a connection to a transparent node: a header of the PROXY protocol, or none.

pub(crate) fn replay(bytes: &[u8]) {
    hopwise_node::fuzzing::told(bytes);
}
