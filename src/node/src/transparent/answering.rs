//! Nodes that do not answer over Hopwise. No connection waits for them for a while.
//!
//! One connect may fail though its node is well: a host that opens many connections fills the air, and its packets are
//! lost. A node is avoided only if it has answered no connect since the one that failed began. No host chooses what a
//! connect sends, or to which node, beyond the networks and classes of the file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const AVOIDED_FOR: Duration = Duration::from_secs(5);

/// What is known of the nodes of the file.
#[derive(Debug, Default)]
pub(super) struct AnsweringNodes(Mutex<BTreeMap<SocketAddr, NodeAnswer>>);

#[derive(Clone, Copy, Debug)]
enum NodeAnswer {
    AnsweredAt(Instant),
    AvoidedUntil(Instant),
}

impl AnsweringNodes {
    pub(super) fn is_avoided(&self, node: SocketAddr) -> bool {
        let known = self.0.lock().get(&node).copied();
        matches!(known, Some(NodeAnswer::AvoidedUntil(until)) if Instant::now() < until)
    }

    pub(super) fn answers(&self, node: SocketAddr) {
        self.0.lock().insert(node, NodeAnswer::AnsweredAt(Instant::now()));
    }

    /// A connect that began then was not answered. The log names the node once, until it has answered again.
    pub(super) fn does_not_answer(&self, node: SocketAddr, began: Instant) {
        let mut nodes = self.0.lock();
        let known = nodes.get(&node).copied();
        if matches!(known, Some(NodeAnswer::AnsweredAt(at)) if at >= began) {
            return;
        }
        nodes.insert(node, NodeAnswer::AvoidedUntil(Instant::now() + AVOIDED_FOR));
        if !matches!(known, Some(NodeAnswer::AvoidedUntil(_))) {
            tracing::warn!(%node, "a node does not answer over Hopwise: connections go straight on until it does");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_node_is_avoided_that_answers_no_connect_and_not_for_one_that_was_lost() {
        let answering = AnsweringNodes::default();
        let node = SocketAddr::from(([10, 7, 2, 2], 7300));
        let began = Instant::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        answering.answers(node);
        tokio::time::advance(Duration::from_secs(1)).await;
        answering.does_not_answer(node, began);
        assert!(!answering.is_avoided(node), "it answers other connects");
        answering.does_not_answer(node, Instant::now());
        assert!(answering.is_avoided(node));
        tokio::time::advance(AVOIDED_FOR).await;
        assert!(!answering.is_avoided(node));
        answering.does_not_answer(node, began);
        assert!(answering.is_avoided(node), "it has answered nothing since");
        answering.answers(node);
        assert!(!answering.is_avoided(node));
    }
}
