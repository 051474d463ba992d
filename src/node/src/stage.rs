//! Stage of a node's end, for the services of its clients.

use tokio::sync::watch;
use tokio::task::JoinSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Open,
    /// New clients are refused.
    Finishing,
    /// Present clients are cut off.
    Over,
}

/// Lets present clients finish while there is time. Returns how many did not.
pub(super) async fn finish(mut served: JoinSet<()>, mut stage: watch::Receiver<Stage>) -> usize {
    tokio::select! {
        () = async { while served.join_next().await.is_some() {} } => {}
        _ = stage.wait_for(|stage| *stage == Stage::Over) => {}
    }
    while served.try_join_next().is_some() {}
    let cut_off = served.len();
    served.shutdown().await;
    cut_off
}
