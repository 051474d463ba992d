//! Many connections at once.

use std::io::{Read, Write};
use std::net::TcpStream;

use hopwise_core::endpoint::ListenOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::namespace::can_run;
use crate::world::{OURS, World, within_patience};

const CONNECTIONS: usize = 1000;

#[test]
fn a_thousand_connections_of_the_kernels_are_served_at_once() {
    if !can_run("a_thousand_connections_of_the_kernels_are_served_at_once", &[]) {
        return;
    }
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

fn question(number: usize) -> Vec<u8> {
    (0..3000).map(|at| (at * 7 + number) as u8).collect()
}
