//! Serves the command's device: a stack that ends its TCP, a relay for each connection, and its datagrams.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_core::LinkId;
use hopwise_core::endpoint::{AnswersFor, EndpointConfig, LinkConfig, ListenOptions, SynAck};
use hopwise_core::tcp::{BufferLimits, TcpConfig};
use hopwise_core::trace::StateName;
use hopwise_host::enclosure::{self, Enclosed, Given};
use hopwise_host::{Drives, Stack, StackConfig, TcpListener, TcpStream as InnerStream, describe, random_key};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep};

use super::datagrams::Datagrams;
use super::outward::Outward;
use super::resolver::LoopbackEnd;
use crate::relay::{self, Relayed};
use crate::seats::Seats;
use crate::unfinished::Unfinished;
use hopwise_daemon::failure::{self, Failure};

/// Connections at a time. Descriptors usually end before.
const MOST: usize = 100_000;
/// Data that waits for the way out waits in the command's socket, and not here as well. The path inside the machine is
/// so short that this fills it.
const RECEIVE_BUFFER: BufferLimits = BufferLimits { initial: 256 << 10, max: 256 << 10 };
/// A connection may be quiet for ever.
const FOR_EVER: Duration = Duration::from_secs(3600 * 24 * 365);
/// After the command's end, data that it has sent still goes out while some of it moves within this time.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(10);
/// A command that has ended may leave data and the end of its connections in its kernel, which sends them on.
const KERNEL_SENDS_WITHIN: Duration = Duration::from_millis(250);
const LOOK_EVERY: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) struct ServedCommand {
    stack: Stack,
    relayed: Arc<Relayed>,
    accepting: JoinHandle<()>,
    _datagrams: Datagrams,
}

#[derive(Debug)]
struct CommandContext {
    outward: Outward,
    outside: LoopbackEnd,
    seats: Seats,
    relayed: Arc<Relayed>,
}

impl ServedCommand {
    /// Starts the stack inside the runtime.
    pub(super) fn start(
        given: Given,
        outward: Outward,
        outside: LoopbackEnd,
    ) -> Result<ServedCommand, Failure> {
        let failed = |doing: &'static str| move |error: &dyn std::fmt::Display| Failure::failed(doing, error);
        let (sink, datagrams) = Datagrams::channel();
        let (link, writer) = Enclosed::new(given, sink);
        let datagrams = datagrams.serve(writer, outside);
        let described = describe(&link, LinkId(0), enclosure::outer_addresses());
        let described = LinkConfig { answers_for: AnswersFor::Everyone, ..described };
        let key = random_key().map_err(|error| failed("draw a key")(&error))?;
        let tcp = TcpConfig { recv_buffer: RECEIVE_BUFFER, ..TcpConfig::modern() };
        let endpoint = EndpointConfig { tcp: Arc::new(tcp), ..EndpointConfig::new(described, key) };
        let config = StackConfig { drives: Drives::Runtime, ..StackConfig::new(endpoint) };
        let stack = Stack::start(config, vec![Box::new(link)], Box::new(StandardAgents::default()))
            .map_err(|error| failed("start the stack")(&error))?;
        let options = ListenOptions { syn_ack: SynAck::OnDemand, ..ListenOptions::default() };
        let listener = stack.listen_everywhere(options).map_err(|error| failed("listen")(&error))?;
        let relayed = Arc::new(Relayed::default());
        let seats = Seats::new(MOST, FOR_EVER, None);
        let context = CommandContext { outward, outside, seats, relayed: Arc::clone(&relayed) };
        let accepting = tokio::spawn(accept(listener, Arc::new(context)));
        Ok(ServedCommand { stack, relayed, accepting, _datagrams: datagrams })
    }

    /// Waits, after the command's end, for the data of connections that it has closed.
    pub(super) async fn finish(&self) {
        let (mut moved, mut since) = (self.moved(), Instant::now());
        while since.elapsed() < self.patience() {
            sleep(LOOK_EVERY).await;
            if self.moved() != moved {
                (moved, since) = (self.moved(), Instant::now());
            }
        }
    }

    /// Ends all connections, and says how many of them may still have had data of the command.
    pub(super) fn end(self) {
        self.accepting.abort();
        let cut_off = self.patiences().into_iter().filter(|patience| *patience == LAST_WORDS_WITHIN).count();
        if cut_off > 0 {
            let connections = if cut_off == 1 { "connection" } else { "connections" };
            let problem = "the command's last data may not have arrived";
            failure::remark(&format!("gave up {cut_off} {connections}: {problem}"));
        }
    }

    fn moved(&self) -> u64 {
        self.relayed.from_mesh.load(Ordering::Relaxed)
    }

    /// The longest time in which nothing has to move before all data of the command counts as passed on.
    fn patience(&self) -> Duration {
        self.patiences().into_iter().max().unwrap_or_default()
    }

    fn patiences(&self) -> Vec<Duration> {
        let of_state = |state, readable: u32| match state {
            StateName::CloseWait | StateName::LastAck | StateName::Closing => LAST_WORDS_WITHIN,
            _ if readable > 0 => LAST_WORDS_WITHIN,
            StateName::Established | StateName::FinWait1 | StateName::FinWait2 => KERNEL_SENDS_WITHIN,
            _ => Duration::ZERO,
        };
        self.stack.with(|_, endpoint| {
            let each = |id| Some(of_state(endpoint.state(id)?.0, endpoint.readable(id)));
            endpoint.ids().filter_map(each).collect()
        })
    }
}

async fn accept(listener: TcpListener, context: Arc<CommandContext>) {
    let mut relays = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(inner) => drop(relays.spawn(serve_one(inner, Arc::clone(&context)))),
                Err(_) => return,
            },
            Some(_) = relays.join_next() => {}
        }
    }
}

/// Connects outside, answers the SYN as the destination did, and carries data until both sides have ended.
async fn serve_one(inner: InnerStream, context: Arc<CommandContext>) {
    let to = inner.local_addr();
    let outer = match context.outward.connect(to, context.outside).await {
        Ok(outer) => outer,
        Err(not_reached) => {
            return match not_reached.code(to.ip()) {
                Some(code) => inner.tell_unreachable(code),
                None => inner.abort(),
            };
        }
    };
    let Some(seat) = context.seats.take(inner.peer_addr().ip()) else { return inner.abort() };
    inner.answer();
    let (outer, inner) = (Unfinished::even_if_killed(outer), Unfinished::new(inner));
    relay::carry(outer, inner, &context.relayed, seat.sitter(), FOR_EVER).await;
}
