//! The links that the poller watches. One that is read at each iteration needs no watch.

use hopwise_core::Machine;

use super::Driver;
use crate::poller::Interest;

/// The number of packets without a rest after which links are read without epoll. For each packet on a watched link,
/// the kernel looks for sleepers. This costs about a third of the read.
pub(super) const UNWATCHED_FROM: u32 = 16;

impl<M: Machine> Driver<M> {
    /// Ends the watch of busy links: the driver has listened, and will [listen](Driver::listen) again or
    /// [rest](Driver::rest).
    pub(crate) fn stay_awake(&mut self) {
        if self.without_rest < UNWATCHED_FROM {
            return;
        }
        for index in 0..self.ports.len() {
            let port = &self.ports[index];
            if port.interest == Interest::Read && port.link.descriptor().is_some() {
                self.change_interest(index, Interest::Nothing);
            }
        }
    }

    /// Makes the poller watch every link again. Call it before a wait that does not go through [`wait`](Driver::wait).
    pub fn rest(&mut self) {
        self.without_rest = 0;
        for index in 0..self.ports.len() {
            if self.ports[index].interest == Interest::Nothing {
                self.change_interest(index, Interest::Read);
            }
        }
    }

    pub(super) fn change_interest(&mut self, index: usize, interest: Interest) {
        let port = &mut self.ports[index];
        let before = std::mem::replace(&mut port.interest, interest);
        let (false, Some(fd)) = (port.is_gone, port.link.descriptor()) else { return };
        let changed = match (before, interest) {
            (Interest::Nothing, _) => self.poller.add(fd, index, interest),
            (_, Interest::Nothing) => self.poller.remove(fd),
            _ => self.poller.change(fd, index, interest),
        };
        if let Err(error) = changed {
            tracing::error!(link = port.link.tally().name(), %error, "epoll does not watch it");
            // An unwatched link is read at each iteration, and the next rest tries again.
            port.interest = before;
        }
    }
}
