//! Data that programs have written in parts, and that is still to be pushed (H4).

use std::task::Waker;

use hopwise_core::endpoint::{ConnId, SendError};
use hopwise_core::{Endpoint, Instant};

/// Connections with data that was written in parts (H4).
#[derive(Debug, Default)]
pub(super) struct Unpushed {
    pub(super) connections: Vec<ConnId>,
    /// Wakes the task that pushes. Without one, nothing is written in parts. It is set only in a runtime of one thread:
    /// with several, the task would wait for the thread that woke it.
    pub(super) task: Option<Waker>,
}

/// A write of this size fills a packet of any size, and more such writes usually follow.
pub(super) const PART: usize = 1 << 16;

/// A program's bytes.
pub(crate) enum Bytes<'a> {
    /// In memory of its own.
    There(&'a [u8]),
    /// At most so many, which it puts into the send buffer itself. It returns their number.
    ToCome(usize, &'a mut dyn FnMut(&mut [u8]) -> usize),
}

impl Bytes<'_> {
    fn len(&self) -> usize {
        match self {
            Bytes::There(data) => data.len(),
            Bytes::ToCome(most, _) => *most,
        }
    }
}

impl Unpushed {
    pub(super) fn write(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        id: ConnId,
        bytes: Bytes<'_>,
    ) -> Result<usize, SendError> {
        if self.task.is_none() || bytes.len() < PART {
            return match bytes {
                Bytes::There(data) => endpoint.send(now, id, data),
                Bytes::ToCome(most, fill) => endpoint.send_with(now, id, most, fill),
            };
        }
        let taken = match bytes {
            Bytes::There(data) => endpoint.send_part(now, id, data)?,
            Bytes::ToCome(most, fill) => {
                let mut has_more = true;
                let filled = |room: &mut [u8]| {
                    let bytes = fill(room);
                    has_more = bytes == room.len();
                    bytes
                };
                let taken = endpoint.send_part_with(now, id, most, filled)?;
                if !has_more {
                    // A forgotten connection has nothing to push.
                    let _ = endpoint.push(now, id);
                    return Ok(taken);
                }
                taken
            }
        };
        if !self.connections.contains(&id) {
            self.connections.push(id);
        }
        Ok(taken)
    }

    pub(super) fn push(&mut self, now: Instant, endpoint: &mut Endpoint) {
        for id in self.connections.drain(..) {
            // A forgotten connection has nothing to push.
            let _ = endpoint.push(now, id);
        }
    }
}
