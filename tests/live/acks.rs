//! A kernel sends to us over a path that repeats, loses and reorders. A model of its own judges our ACKs, packet by
//! packet, and the kernel's counters show how it understands them.

use std::fs;
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hopwise_agents::registry::{self, Kind};
use hopwise_core::endpoint::{AgentChoice, ListenOptions};
use hopwise_core::impairment::Impairment;
use hopwise_core::tcp::{AckMerge, TcpConfig};
use hopwise_core::trace::TraceEvent;
use hopwise_host::{Direction, Fault, Observer, SeenPacket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stream::{receive_all, write_all};
use crate::world::{OURS, World, within_patience};

mod model;

use model::Model;

const BYTES: u64 = 3_000_000;
const PORT: u16 = 80;

/// One packet in twenty comes again, 5 ms later on the way; none is lost.
const REPEATS: Impairment = Impairment { duplicate_ppm: 50_000, delay: Duration::from_millis(5), ..NO_FAULT };
const LOSES: Impairment = Impairment {
    loss_ppm: 10_000,
    reorder_ppm: 10_000,
    reorder_by: Duration::from_millis(1),
    duplicate_ppm: 5_000,
    delay: Duration::from_millis(5),
    ..NO_FAULT
};
const NO_FAULT: Impairment = Impairment { queue_packets: 100_000, ..Impairment::NONE };

/// Gives the model every packet.
struct Watch(Arc<Mutex<Model>>);

impl Observer for Watch {
    fn on_packet(&mut self, seen: &SeenPacket<'_>) {
        let mut model = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.direction {
            Direction::In => model.came(seen.packet),
            Direction::Out => model.left(Duration::from_nanos(seen.at.0), seen.packet),
        }
    }

    fn on_trace(&mut self, _: &TraceEvent) {}
}

/// A watched world over a bad path.
struct Watched {
    world: World,
    model: Arc<Mutex<Model>>,
    port: u16,
}

impl Watched {
    fn new(merge: AckMerge, incoming: Impairment, outgoing: Impairment) -> Watched {
        let model = Arc::new(Mutex::new(Model::default()));
        let watch = Watch(Arc::clone(&model));
        let world = World::with(
            |config| {
                config.endpoint.tcp = Arc::new(TcpConfig { ack_merge: merge, ..TcpConfig::modern() });
                config.observers.push(Box::new(watch));
            },
            |link| Box::new(Fault::wrap(link, incoming, outgoing, 3).expect("the settings are sound")),
        );
        Watched { world, model, port: PORT }
    }

    /// The kernel sends, and the agent of that spec receives.
    fn download(&mut self, receiver: &str) {
        let agents = AgentChoice { receiver: Some(receiver.to_owned()), ..AgentChoice::default() };
        let options = ListenOptions { agents, ..ListenOptions::default() };
        let listener = self.world.stack.listen(None, self.port, options).expect("the port is free");
        let mut stream = self.world.kernel_connects((OURS, self.port).into()).expect("we listen");
        self.port += 1;
        let writer = std::thread::spawn(move || {
            let hash = write_all(&mut stream, 5, BYTES)?;
            // The kernel keeps the connection until all bytes have come: it receives every ACK.
            stream.read_exact(&mut [0])?;
            Ok::<_, std::io::Error>(hash)
        });
        let received = within_patience(async {
            let mut stream = listener.accept().await.expect("the stack lives");
            let received = receive_all(&mut (&mut stream).take(BYTES)).await.expect("the connection holds");
            stream.write_all(b"!").await.expect("the connection holds");
            assert_eq!(stream.read(&mut [0]).await.expect("the connection holds"), 0);
            received
        });
        let sent = writer.join().expect("the writer ends").expect("the kernel writes");
        assert_eq!(received, (BYTES, sent), "{receiver}");
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[track_caller]
    fn check(&self, what: &str) {
        let model = self.model();
        println!("{what}: {:?}", model.counts);
        assert!(model.wrong.is_empty(), "{what}: {:#?}", model.wrong);
    }

    /// A counter of the kernel, since the namespace began.
    fn kernel_counts(&self, name: &str) -> u64 {
        let read = || fs::read_to_string("/proc/thread-self/net/netstat").expect("the kernel counts");
        let text = self.world.namespace.run(read);
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt: "));
        let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
        let found = names.split(' ').zip(values.split(' ')).find(|(found, _)| *found == name);
        found.and_then(|(_, value)| value.parse().ok()).unwrap_or_else(|| panic!("{name} is not in {names}"))
    }
}

fn receivers() -> impl Iterator<Item = String> {
    let agents = registry::all().filter(|agent| agent.kind() == Kind::Receiver);
    agents.map(|agent| if agent.wraps() { format!("{}(delayed)", agent.name) } else { agent.name.into() })
}

#[test]
fn what_comes_twice_is_reported_as_that_and_as_no_hole() {
    needs![];
    for merge in [AckMerge::Read, AckMerge::Off] {
        let mut watched = Watched::new(merge, REPEATS, REPEATS);
        for _ in 0..5 {
            watched.download("delayed");
        }
        watched.check(&format!("{merge:?}"));
        let counts = watched.model().counts;
        let count = |name| watched.kernel_counts(name);
        assert_eq!(count("TCPSACKReorder"), 0, "{merge:?}");
        // Some of our ACKs come twice, too.
        let heard = count("TCPDSACKRecv");
        assert!(counts.twice > 200 && counts.reported == counts.twice, "{merge:?}: {counts:?}");
        assert!(
            (counts.reported..=counts.reported * 3 / 2).contains(&heard),
            "{merge:?}: {heard} {counts:?}"
        );
    }
}

#[test]
fn every_receiver_reports_what_comes_twice() {
    needs![];
    for merge in [AckMerge::Read, AckMerge::Off] {
        let mut watched = Watched::new(merge, REPEATS, Impairment { duplicate_ppm: 0, ..REPEATS });
        for receiver in receivers() {
            watched.download(&receiver);
            watched.check(&format!("{receiver}, {merge:?}"));
            let counts = watched.model().counts;
            assert_eq!(counts.reported, counts.twice, "{receiver}, {merge:?}");
            assert_eq!(watched.kernel_counts("TCPSACKReorder"), 0, "{receiver}, {merge:?}");
            assert_eq!(watched.kernel_counts("TCPDSACKRecv"), counts.reported, "{receiver}, {merge:?}");
        }
    }
}

/// Without timestamps: they may refuse a segment that comes late, and the model knows nothing of that.
#[test]
fn every_receiver_tells_of_the_holes_that_there_are() {
    needs![];
    for merge in [AckMerge::Read, AckMerge::Off] {
        let mut watched = Watched::new(merge, LOSES, REPEATS);
        watched.world.namespace.sysctl("ipv4/tcp_timestamps", "0");
        for receiver in receivers() {
            watched.download(&receiver);
            watched.check(&format!("{receiver}, {merge:?}"));
        }
        assert!(watched.model().counts.with_blocks > 100, "{merge:?}: {:?}", watched.model().counts);
    }
}
