//! ACKs that observing receiver agents would have sent: one shape for results, measurements and status.

use std::fmt;
use std::time::Duration;

use hopwise_agents::spec::parse_shadows;
use hopwise_core::tcp::Info;
use serde::{Deserialize, Serialize};

/// A receiver agent that watched a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shadow {
    /// Its spec.
    pub receiver: String,
    /// ACKs that it would have sent.
    pub acks: u64,
    /// Mean wait of the first segment of each ACK; none without ACKs.
    pub mean_hold_ms: Option<f64>,
}

impl Shadow {
    /// One for each spec of the list, with its ACKs and their total wait; none for a list that cannot be read.
    pub(crate) fn each(specs: &str, acks: &[u64], held: &[Duration]) -> Vec<Shadow> {
        let receivers = parse_shadows(specs).map(|list| list.each()).unwrap_or_default();
        let counted = acks.iter().zip(held);
        let shadow = |(receiver, (acks, held)): (String, (&u64, &Duration))| Shadow {
            receiver,
            acks: *acks,
            mean_hold_ms: (*acks > 0).then(|| held.as_secs_f64() * 1e3 / to_f64(*acks)),
        };
        receivers.into_iter().zip(counted).map(shadow).collect()
    }

    /// The shadows of a connection.
    pub fn of(info: &Info) -> Vec<Shadow> {
        Shadow::each(&info.shadows, &info.shadow_acks, &info.shadow_holds)
    }
}

impl fmt::Display for Shadow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} would have sent {} ACKs", self.receiver, self.acks)?;
        self.mean_hold_ms.map_or(Ok(()), |ms| write!(f, ", each after {ms:.1} ms"))
    }
}

#[expect(clippy::cast_precision_loss, reason = "a mean that is shown with a few digits")]
fn to_f64(count: u64) -> f64 {
    count as f64
}
