//! The socket at which the routing daemon of this node tells the programs' endpoint of paths, and asks for arrivals.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

use hopwise_daemon::control::{Answer, BoundSocket};
use hopwise_daemon::failure::Failure;
use hopwise_host::Driver;
use hopwise_lab::live::LiveNode;
use hopwise_node::control::{Request, Response};
use hopwise_node::paths;

pub(crate) struct RoutingQuestions {
    asked: Receiver<(Request, Sender<Response>)>,
    _bound: BoundSocket,
}

impl RoutingQuestions {
    pub(crate) fn open(path: &Path, driver: &Driver<LiveNode>) -> Result<RoutingQuestions, Failure> {
        let (ask, asked) = channel();
        let poller = driver.poller();
        let bound = BoundSocket::bind(path)?;
        bound.serve_beside(move |request: Request| {
            let (sender, answer) = channel();
            let _ = ask.send((request, sender));
            poller.wake();
            answer.recv().unwrap_or_else(|_| Response::refused("the run is over".to_owned()))
        })?;
        Ok(RoutingQuestions { asked, _bound: bound })
    }

    /// Answers all questions that have come.
    pub(crate) fn answer(&self, driver: &mut Driver<LiveNode>) {
        for (request, sender) in self.asked.try_iter() {
            let said = driver
                .act(|now, node| node.with_endpoint(now, |endpoint| paths::answer(now, endpoint, request)));
            // A daemon that waits no longer asks again.
            let _ = sender.send(said);
        }
    }
}
