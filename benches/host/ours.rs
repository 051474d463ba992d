//! The stack as programs use it, with its defaults: SACK, timestamps and an agent are on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_core::endpoint::{ConnectOptions, ListenOptions};
use hopwise_core::ip::Prefix;
use hopwise_host::{Drives, Stack, StackConfig, TcpListener, TcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::place::{Device, OURS};
use crate::setup;

pub(crate) const PORT: u16 = 80;
pub(crate) const CHUNK: usize = 256 << 10;

pub(crate) struct Ours {
    stack: Stack,
    runtime: Arc<Runtime>,
}

impl Ours {
    /// Driven by the runtime of the program.
    pub(crate) fn start(device: Device) -> Ours {
        Ours::driven(device, Drives::Runtime)
    }

    pub(crate) fn driven(device: Device, drives: Drives) -> Ours {
        let link = device.open();
        let prefix = Prefix::new(OURS, 24).expect("it fits");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let runtime = Arc::new(runtime.expect("a runtime starts"));
        let config = StackConfig { drives, ..setup::config(&*link, vec![prefix]) };
        let _inside = runtime.enter();
        let stack = Stack::start(config, vec![link], Box::new(StandardAgents::default()));
        Ours { stack: stack.expect("the stack starts"), runtime: Arc::clone(&runtime) }
    }

    /// Opens `count` connections and writes `bytes_each` to each.
    pub(crate) fn send(&self, to: SocketAddr, count: usize, bytes_each: u64) {
        self.runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for _ in 0..count {
                let stack = self.stack.clone();
                tasks.spawn(async move {
                    let options = ConnectOptions::default();
                    let mut stream = stack.connect(to, &options).await.expect("the kernel accepts");
                    let (chunk, mut rest) = (vec![0; CHUNK], bytes_each);
                    while rest > 0 {
                        let length = rest.min(CHUNK as u64) as usize;
                        stream.write_all(&chunk[..length]).await.expect("the connection holds");
                        rest -= length as u64;
                    }
                    stream.shutdown().await.expect("the connection holds");
                    // Wait until the kernel has read everything and closes, too.
                    let _ = stream.read(&mut [0; 1]).await;
                });
            }
            tasks.join_all().await;
        });
    }

    /// Opens a connection and waits until the kernel has read all that `say` writes.
    pub(crate) fn talk(&self, to: SocketAddr, say: impl AsyncFnOnce(&mut TcpStream)) {
        self.runtime.block_on(async {
            let options = ConnectOptions::default();
            let mut stream = self.stack.connect(to, &options).await.expect("the kernel accepts");
            say(&mut stream).await;
            stream.shutdown().await.expect("the connection holds");
            // Wait until the kernel has read everything and closes, too.
            let _ = stream.read(&mut [0; 1]).await;
        });
    }

    pub(crate) fn listen(&self) -> TcpListener {
        self.stack.listen(None, PORT, ListenOptions::default()).expect("the port is free")
    }

    /// Reads `count` connections to their ends.
    pub(crate) fn receive(&self, listener: &TcpListener, count: usize) {
        self.runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for _ in 0..count {
                let mut stream = listener.accept().await.expect("the stack lives");
                tasks.spawn(async move {
                    let mut buffer = vec![0; CHUNK];
                    while stream.read(&mut buffer).await.expect("the connection holds") > 0 {}
                });
            }
            tasks.join_all().await;
        });
    }

    /// Sends received bytes back, on every connection, until it is stopped.
    pub(crate) fn echo(&self) -> Echo {
        let listener = self.listen();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, is_ready) = mpsc::channel();
        let runtime = Arc::clone(&self.runtime);
        let thread = thread::spawn(move || {
            runtime.block_on(async move {
                let serving = async {
                    ready.send(()).expect("the benchmark waits");
                    loop {
                        let stream = listener.accept().await.expect("the stack lives");
                        tokio::spawn(serve(stream));
                    }
                };
                tokio::select! { () = serving => {}, _ = stopped => {} }
            });
        });
        is_ready.recv().expect("the thread starts");
        Echo { stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn stop(self) {
        self.stack.stop(Duration::ZERO);
    }
}

async fn serve(mut stream: TcpStream) {
    let mut buffer = [0; 64];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// Stops with its guard.
pub(crate) struct Echo {
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    /// Waits for an end that does not come by itself.
    pub(crate) fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it serves");
        }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it stops");
        }
    }
}
