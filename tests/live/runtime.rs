//! A stack that the program's own runtime drives.

use std::io::{Read, Write};
use std::sync::Arc;

use hopwise_core::endpoint::{AgentChoice, ListenOptions};
use hopwise_core::tcp::{AckMerge, TcpConfig};
use hopwise_host::{Drives, StackConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;

use crate::namespace::can_run;
use crate::stream::{read_all, receive_all, send_all, write_all};
use crate::world::{KERNELS, OURS, PATIENCE, World};

const BYTES: u64 = 20_000_000;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts")
}

/// A world of that runtime's, which answers once what it reads in a row.
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
    if !can_run("a_runtime_drives_a_stack_both_ways", &[]) {
        return;
    }
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
    // Nobody's task runs any more: who stops it drives it to its end.
    assert_eq!(world.stack.clone().stop(PATIENCE).reset, 0);
}

/// The program's task is asked first: what it answers takes along what the stack would have said by itself.
#[test]
fn a_short_connection_is_three_packets_of_ours() {
    if !can_run("a_short_connection_is_three_packets_of_ours", &[]) {
        return;
    }
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
