//! Sends standard input to a server and prints the reply. It uses a TUN device of its own, and an agent for this one
//! connection.
//!
//! As root: `printf 'GET / HTTP/1.0\r\n\r\n' | cargo run -p hopwise-host --example fetch -- 10.7.0.2:80`

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_core::LinkId;
use hopwise_core::endpoint::{AgentChoice, ConnectOptions, EndpointConfig};
use hopwise_host::{Link, Stack, StackConfig, Tun, TunConfig, TunFast, describe, random_key};
use tokio::io::AsyncWriteExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(server) = arguments.first() else {
        println!("Usage: fetch SERVER:PORT [--fast]   (the kernel is 10.7.0.2, this program 10.7.0.1)");
        return Ok(());
    };
    let server: SocketAddr = server.parse()?;
    let config = TunConfig { kernel_addresses: vec!["10.7.0.2/24".parse()?], ..TunConfig::new("hop%d") };
    let link: Box<dyn Link> = if arguments.iter().any(|argument| argument == "--fast") {
        Box::new(TunFast::open(&config)?)
    } else {
        Box::new(Tun::open(&config)?)
    };
    let described = describe(&*link, LinkId(0), vec!["10.7.0.1/24".parse()?]);
    let endpoint = EndpointConfig::new(described, random_key()?);
    let stack = Stack::start(StackConfig::new(endpoint), vec![link], Box::new(StandardAgents::default()))?;

    let agents = AgentChoice { receiver: Some("delayed:d=4".into()), ..AgentChoice::default() };
    let options = ConnectOptions { agents, ..ConnectOptions::default() };
    let (mut reader, mut writer) = stack.connect(server, &options).await?.into_split();
    let asking = async {
        tokio::io::copy(&mut tokio::io::stdin(), &mut writer).await?;
        writer.shutdown().await
    };
    let mut output = tokio::io::stdout();
    let answering = tokio::io::copy(&mut reader, &mut output);
    let (asked, answered) = tokio::join!(asking, answering);
    asked?;
    let bytes = answered?;
    output.flush().await?;
    eprintln!("{bytes} bytes from {}, {:?}", reader.peer_addr(), stack.counters());
    drop((reader, writer));
    stack.stop(Duration::from_secs(1));
    Ok(())
}
