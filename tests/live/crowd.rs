//! Many connections at once, and a stack that does not sleep between packets.

use std::io::{Read, Write};
use std::net::TcpStream;

use hopwise_core::endpoint::{ConnectOptions, ListenOptions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::world::{KERNELS, OURS, PATIENCE, World, until, within_patience};

const CONNECTIONS: usize = 1000;

#[test]
fn a_thousand_connections_of_the_kernels_are_served_at_once() {
    needs![];
    allow_descriptors();
    let world = World::new();
    let options = ListenOptions { backlog: CONNECTIONS, ..ListenOptions::default() };
    let listener = world.stack.listen(None, 7, options).expect("the port is free");
    let kernel = world.namespace.spawn(move || -> std::io::Result<()> {
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            streams.push(TcpStream::connect((OURS, 7))?);
        }
        for (number, stream) in streams.iter_mut().enumerate() {
            stream.write_all(&question(number))?;
        }
        for (number, mut stream) in streams.into_iter().enumerate() {
            let mut answer = Vec::new();
            stream.shutdown(std::net::Shutdown::Write)?;
            stream.read_to_end(&mut answer)?;
            assert_eq!(answer, question(number));
        }
        Ok(())
    });
    within_patience(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..CONNECTIONS {
            let mut stream = listener.accept().await.expect("the stack lives");
            tasks.spawn(async move {
                let mut data = Vec::new();
                stream.read_to_end(&mut data).await?;
                stream.write_all(&data).await
            });
        }
        while let Some(served) = tasks.join_next().await {
            served.expect("no task panics").expect("the connection holds");
        }
    });
    kernel.join().expect("the kernel's end ends").expect("every connection is served");
}

/// The kernel's end of each connection is a descriptor of this process.
pub(crate) fn allow_descriptors() {
    let most = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: most.maximum, ..most }).expect("up to the hard limit");
}

#[test]
fn a_thousand_connections_of_ours_are_served_by_the_kernel_at_once() {
    needs![];
    allow_descriptors();
    let world = World::new();
    let (listener, address) = world.kernel_listener(KERNELS);
    // All of them may wait to be accepted. A client that is dropped there would never know it, as it sends nothing.
    rustix::net::listen(&listener, CONNECTIONS as i32).expect("it listens");
    let (open, opened) = std::sync::mpsc::channel();
    let kernel = std::thread::spawn(move || -> std::io::Result<()> {
        let streams: Vec<_> = listener.incoming().take(CONNECTIONS).collect::<Result<_, _>>()?;
        open.send(()).expect("the test waits");
        for mut stream in streams {
            let mut data = Vec::new();
            stream.read_to_end(&mut data)?;
            stream.write_all(&data)?;
        }
        Ok(())
    });
    within_patience(async {
        let mut connecting = tokio::task::JoinSet::new();
        for _ in 0..CONNECTIONS {
            let stack = world.stack.clone();
            connecting.spawn(async move { stack.connect(address, &ConnectOptions::default()).await });
        }
        let connected = connecting.join_all().await;
        opened.recv().expect("the kernel has accepted all of them");
        let mut tasks = tokio::task::JoinSet::new();
        for (number, stream) in connected.into_iter().enumerate() {
            let mut stream = stream.expect("the kernel accepts");
            tasks.spawn(async move {
                stream.write_all(&question(number)).await?;
                stream.shutdown().await?;
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).await.map(|_| assert_eq!(answer, question(number)))
            });
        }
        while let Some(asked) = tasks.join_next().await {
            asked.expect("the answer is right").expect("the connection holds");
        }
    });
    kernel.join().expect("the kernel's end ends").expect("it reads and writes");
}

/// The processor's ticks that a thread of this process has used.
fn ticks_of(thread: &str) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("it is always there");
    let stats = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    let of_thread = stats.filter_map(|stat| {
        let (_, rest) = stat.split_once(&format!("({thread}) "))?;
        let fields: Vec<&str> = rest.split(' ').collect();
        Some(fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?)
    });
    of_thread.sum()
}

#[test]
fn a_stack_that_is_told_to_looks_on_when_no_packet_comes() {
    needs![];
    let busy = |config: &mut hopwise_host::StackConfig| {
        (config.busy_poll, config.thread_name) = (PATIENCE, "hop-busy".into());
    };
    let world = World::with(busy, |link| link);
    let (listener, address) = world.kernel_listener(KERNELS);
    let _stream = within_patience(world.connect(address));
    let before = ticks_of("hop-busy");
    within_patience(until(|| ticks_of("hop-busy") > before + 10));
    drop(listener);
}

fn question(number: usize) -> Vec<u8> {
    (0..3000).map(|at| (at * 7 + number) as u8).collect()
}
