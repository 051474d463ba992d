//! Listens on port 7 of 10.7.0.1 and returns all data, each connection in a task of its own.
//!
//! As root: `cargo run -p hopwise-host --example echo`, and in another terminal `nc 10.7.0.1 7`.

use std::error::Error;

use hopwise_agents::StandardAgents;
use hopwise_core::LinkId;
use hopwise_core::endpoint::{EndpointConfig, ListenOptions};
use hopwise_host::{Stack, StackConfig, TcpStream, Tun, TunConfig, describe, random_key};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let config = TunConfig { kernel_addresses: vec!["10.7.0.2/24".parse()?], ..TunConfig::new("hop%d") };
    let link = Box::new(Tun::open(&config)?);
    let described = describe(&*link, LinkId(0), vec!["10.7.0.1/24".parse()?]);
    let endpoint = EndpointConfig::new(described, random_key()?);
    let stack = Stack::start(StackConfig::new(endpoint), vec![link], Box::new(StandardAgents::default()))?;
    let listener = stack.listen(None, 7, ListenOptions::default())?;
    println!("listening on 10.7.0.1:{}", listener.port());
    loop {
        let stream = listener.accept().await?;
        tokio::spawn(echo(stream));
    }
}

async fn echo(stream: TcpStream) {
    let peer = stream.peer_addr();
    let (mut reader, mut writer) = stream.into_split();
    match tokio::io::copy(&mut reader, &mut writer).await {
        Ok(bytes) => println!("{peer}: {bytes} bytes"),
        Err(error) => println!("{peer}: {error}"),
    }
}
