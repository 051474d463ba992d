//! A stack that the program's own runtime drives.

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hopwise_core::endpoint::{AgentChoice, ConnectOptions, ListenOptions};
use hopwise_core::tcp::{AckMerge, TcpConfig};
use hopwise_host::{ConnectError, Drives, Stack, StackConfig, TcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::stream::{read_all, receive_all, send_all, write_all};
use crate::world::{KERNELS, OURS, PATIENCE, World, until, within_patience};

const BYTES: u64 = 20_000_000;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts")
}

/// A world of that runtime, which merges the ACKs of segments read in a row.
fn world(runtime: &Runtime) -> World {
    let _inside = runtime.enter();
    let change = |config: &mut StackConfig| {
        config.drives = Drives::Runtime;
        config.endpoint.tcp = Arc::new(TcpConfig { ack_merge: AckMerge::Read, ..TcpConfig::modern() });
    };
    World::with(change, |link| link)
}

#[test]
fn a_runtime_drives_a_stack_both_ways() {
    needs![];
    let runtime = runtime();
    let world = world(&runtime);
    let (listener, address) = world.kernel_listener(KERNELS);
    let kernel = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let read = read_all(&mut stream)?;
        write_all(&mut stream, 2, BYTES).map(|hash| (read, (BYTES, hash)))
    });
    let (sent, received) = runtime.block_on(async {
        let mut stream = world.connect(address).await;
        let sent = send_all(&mut stream, 1, BYTES).await.expect("the connection holds");
        stream.shutdown().await.expect("the connection holds");
        ((BYTES, sent), receive_all(&mut stream).await.expect("the connection holds"))
    });
    let kernel = kernel.join().expect("the kernel's end ends").expect("it reads and writes");
    assert_eq!((sent, received), kernel);
    // No task runs any more: the caller of `stop` drives the stack to its end.
    assert_eq!(world.stack.clone().stop(PATIENCE).reset, 0);
}

/// The program's task runs first: its answer carries the ACK that the stack would have sent by itself.
#[test]
fn a_short_connection_is_three_packets_of_ours() {
    needs![];
    let runtime = runtime();
    let world = world(&runtime);
    let agents = AgentChoice { receiver: Some("delayed:hold=490ms".into()), ..AgentChoice::default() };
    let options = ListenOptions { agents, ..ListenOptions::default() };
    let listener = world.stack.listen(None, 80, options).expect("the port is free");
    let serving = async move {
        let mut stream = listener.accept().await.expect("the stack lives");
        let mut byte = [0; 2];
        while let Ok(read @ 1..) = stream.read(&mut byte).await {
            stream.write_all(&byte[..read]).await.expect("the connection holds");
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = world.kernel_connects((OURS, 80).into()).expect("we listen");
            let mut byte = [7];
            stream.write_all(&byte).and_then(|()| stream.read_exact(&mut byte)).expect("it comes back");
        });
        runtime.block_on(runtime.spawn(serving)).expect("the task ends");
    });
    let packets = world.stack.counters()[0].sent.packets;
    assert_eq!(packets, 3, "SYN-ACK, the byte with an ACK, FIN with an ACK");
}

const TALKS: usize = 8;

/// Sends back all bytes of this many connections, until each has ended.
fn echo(listener: TcpListener, connections: usize) -> JoinHandle<()> {
    let one = |stream: io::Result<std::net::TcpStream>| {
        let mut stream = stream.expect("we connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout can be set");
        std::thread::spawn(move || {
            let mut bytes = [0; 1 << 16];
            while let Ok(read @ 1..) = stream.read(&mut bytes) {
                if stream.write_all(&bytes[..read]).is_err() {
                    break;
                }
            }
        })
    };
    std::thread::spawn(move || {
        let threads: Vec<_> = listener.incoming().take(connections).map(one).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
    })
}

/// Writes and reads at once until neither is possible any more.
async fn talk(stream: TcpStream, moved: Arc<AtomicU64>) {
    let (mut from, mut to) = stream.into_split();
    let writing = async { while to.write_all(&[7; 1 << 14]).await.is_ok() {} };
    let reading = async {
        let mut bytes = vec![0; 1 << 14];
        while let Ok(read @ 1..) = from.read(&mut bytes).await {
            moved.fetch_add(read as u64, Ordering::Relaxed);
        }
    };
    tokio::join!(writing, reading);
}

/// Each attempt is kept and never answered: one that began during a stop would be under way to its end.
async fn connect_on_and_on(stack: Stack) {
    let (nobody, options) = (([10, 7, 0, 77], 80).into(), ConnectOptions::default());
    let mut kept = Vec::new();
    loop {
        let mut connecting = Box::pin(stack.connect(nobody, &options));
        let shortly = Duration::from_millis(10);
        if let Ok(Err(ConnectError::Stopped)) = tokio::time::timeout(shortly, &mut connecting).await {
            return;
        }
        kept.push(connecting);
    }
}

/// Stops a stack under tasks of several threads that talk, wait to accept, and connect; each of them ends.
fn stops_in_the_midst(drives: Drives, deadline: Duration, stop: impl FnOnce(Stack, &Runtime)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime starts");
    let world = {
        let _inside = runtime.enter();
        World::with(|config| config.drives = drives, |link| link)
    };
    let (listener, address) = world.kernel_listener(KERNELS);
    let kernel = echo(listener, TALKS);
    let moved = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..TALKS {
        let stream = runtime.block_on(world.connect(address));
        tasks.spawn_on(talk(stream, Arc::clone(&moved)), runtime.handle());
    }
    let ours = world.stack.listen(None, 80, ListenOptions::default()).expect("the port is free");
    tasks.spawn_on(async move { while ours.accept().await.is_ok() {} }, runtime.handle());
    let stack = world.stack.clone();
    tasks.spawn_on(connect_on_and_on(stack), runtime.handle());
    within_patience(until(|| moved.load(Ordering::Relaxed) > 10_000_000));
    stop(world.stack.clone(), &runtime);
    let ended = runtime.block_on(async {
        tokio::time::timeout(PATIENCE, async { while tasks.join_next().await.is_some() {} }).await
    });
    assert!(ended.is_ok(), "{drives:?} {deadline:?}: {} tasks have not heard of it", tasks.len());
    kernel.join().expect("the kernel has heard of it, too");
}

#[test]
fn tasks_on_several_threads_learn_that_their_stack_is_stopped() {
    needs![];
    for drives in [Drives::Thread, Drives::Runtime] {
        for deadline in [Duration::ZERO, PATIENCE] {
            stops_in_the_midst(drives, deadline, |stack, _| {
                let stopped = stack.stop(deadline);
                assert!(deadline.is_zero() || stopped.reset == 0, "{drives:?}: {stopped:?}");
            });
            // The stop runs on one of the threads that the tasks need.
            stops_in_the_midst(drives, deadline, |stack, runtime| {
                let stopping = runtime.spawn(async move { stack.stop(deadline) });
                let stopped = runtime.block_on(stopping).expect("it ends");
                assert!(deadline.is_zero() || stopped.reset == 0, "{drives:?}: {stopped:?}");
            });
        }
    }
}
