//! hyper over a TCP of the program's own: HTTP/1.1, and HTTP/2 with bodies that stream both ways, as gRPC has them.
//!
//! `cargo run -p hopwise-sockets --example hyper` joins two networks by a wire, and needs no rights. A program on a
//! real device opens `Network::tun` or `Network::device` in place of `Network::pair`.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use hopwise_sockets::{AgentChoice, ConnectOptions, Network, TcpListener, TcpStream};
use http_body_util::channel::Channel;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, client, server};
use hyper_util::rt::{TokioExecutor, TokioIo};
use sha2::{Digest, Sha256};

type Failure = Box<dyn Error + Send + Sync>;

const SERVER: &str = "10.7.0.2:80";

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let (here, there) = Network::pair("10.7.0.1/24", "10.7.0.2/24")?;
    let listener = TcpListener::bind(&there, SERVER).await?;
    tokio::spawn(serve(listener));
    println!("HTTP/1.1: {}", get(&here, "/greeting").await?);
    let sums = echo(&here, 64, 16 << 10).await?;
    println!("HTTP/2: sent a body with the SHA-256 {}, got {}", sums.sent, sums.got);
    here.close(Duration::from_secs(1));
    Ok(())
}

/// Serves each connection in a task of its own: HTTP/1.1 first, and HTTP/2 on the next port.
async fn serve(listener: TcpListener) -> std::io::Result<()> {
    let second = SocketAddr::new(listener.local_addr().ip(), listener.port() + 1);
    let h2 = TcpListener::bind(listener.stack(), second).await?;
    loop {
        tokio::select! {
            stream = listener.accept() => tokio::spawn(serve_http1(stream?)),
            stream = h2.accept() => tokio::spawn(serve_http2(stream?)),
        };
    }
}

async fn serve_http1(stream: TcpStream) -> Result<(), hyper::Error> {
    server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await
}

async fn serve_http2(stream: TcpStream) -> Result<(), hyper::Error> {
    let connection = server::conn::http2::Builder::new(TokioExecutor::new());
    connection.serve_connection(TokioIo::new(stream), service_fn(answer)).await
}

/// A greeting, or the body that came, while it comes.
async fn answer(request: Request<Incoming>) -> Result<Response<BoxBody<Bytes, hyper::Error>>, Infallible> {
    let never = |never: Infallible| match never {};
    let answer = match (request.method(), request.uri().path()) {
        (&Method::GET, "/greeting") => {
            Response::new(Full::from("hello over the mesh").map_err(never).boxed())
        }
        (&Method::POST, "/echo") => Response::new(request.into_body().boxed()),
        _ => {
            let mut none = Response::new(Empty::new().map_err(never).boxed());
            *none.status_mut() = StatusCode::NOT_FOUND;
            none
        }
    };
    Ok(answer)
}

/// One request by HTTP/1.1, over a connection with agents of its own.
async fn get(network: &Network, path: &str) -> Result<String, Failure> {
    let agents = AgentChoice::default().with_receiver("delayed:d=4").with_senders("[newreno, limit:40]");
    let stream = TcpStream::connect_with(network, SERVER, &ConnectOptions::from(agents)).await?;
    stream.set_nodelay(true)?;
    let (mut requests, connection) = client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::get(path).header("host", "mesh").body(Empty::<Bytes>::new())?;
    let answer = requests.send_request(request).await?;
    let (status, body) = (answer.status(), answer.into_body().collect().await?.to_bytes());
    Ok(format!("{status}, {}", String::from_utf8_lossy(&body)))
}

struct Sums {
    sent: String,
    got: String,
}

/// Streams a body by HTTP/2, and reads the answer at the same time.
async fn echo(network: &Network, chunks: u8, bytes: usize) -> Result<Sums, Failure> {
    let stream = TcpStream::connect(network, "10.7.0.2:81").await?;
    let (mut requests, connection) =
        client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let (mut sender, body) = Channel::<Bytes>::new(1);
    let request = Request::post("http://mesh/echo").body(body)?;
    let sending = tokio::spawn(async move {
        let mut sum = Sha256::new();
        for chunk in 0..chunks {
            let data = vec![chunk; bytes];
            sum.update(&data);
            sender.send_data(data.into()).await?;
        }
        Ok::<_, Failure>(sum)
    });
    let mut answer = requests.send_request(request).await?.into_body();
    let mut sum = Sha256::new();
    while let Some(frame) = answer.frame().await {
        sum.update(frame?.data_ref().map_or(&[][..], |data| data));
    }
    Ok(Sums { sent: hex(sending.await??), got: hex(sum) })
}

fn hex(sum: Sha256) -> String {
    sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn hyper_serves_both_versions_of_http_and_streams_bodies_whole() {
        let (here, there) = Network::pair("10.7.0.1/24", "10.7.0.2/24").expect("a pair needs no rights");
        let listener = TcpListener::bind(&there, SERVER).await.expect("the port is free");
        tokio::spawn(serve(listener));
        let greeting = get(&here, "/greeting").await.expect("the server answers");
        assert_eq!(greeting, "200 OK, hello over the mesh");
        assert_eq!(get(&here, "/").await.expect("the server answers"), "404 Not Found, ");
        // More than all buffers together hold: the answer must stream.
        let sums = echo(&here, 255, 100_000).await.expect("the server answers");
        assert_eq!(sums.sent, sums.got);
    }
}
