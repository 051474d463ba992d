//! HTTP for the page of metrics, one request for each connection. By hand: it reads one request line and two headers.
//!
//! A stranger's page in a browser may send requests to this server under a name of its own that leads here (DNS
//! rebinding). A request is answered if it names this server by its address, as `localhost`, or by a name from the
//! file.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::origin::Origin;
use crate::places::Places;
use crate::users::Users;

/// The largest number of scrapers, the time that each has for request and answer, and the longest request.
const MOST_SCRAPERS: usize = 16;
const WITHIN: Duration = Duration::from_secs(5);
const LONGEST_QUESTION: usize = 8 << 10;

/// Answers `GET /metrics`. A new scraper is always served: the oldest of the source with the most makes room.
pub(crate) async fn serve(
    listener: TcpListener,
    names: Vec<String>,
    users: Users,
    page: impl Fn() -> String + Send + Sync + 'static,
) {
    serve_within(WITHIN, listener, (names, users), page).await;
}

async fn serve_within(
    within: Duration,
    listener: TcpListener,
    (names, users): (Vec<String>, Users),
    page: impl Fn() -> String + Send + Sync + 'static,
) {
    let (page, names) = (Arc::new(page), Arc::new(names));
    let (mut scrapers, mut places) = (JoinSet::new(), Places::new(MOST_SCRAPERS));
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, from)) => {
                    let (page, names) = (Arc::clone(&page), Arc::clone(&names));
                    let origin = Origin::of(&users, &client, from.ip());
                    let scraper = scrapers.spawn(async move {
                        // A scraper that is too slow or gone gets nothing.
                        let _ = timeout(within, answer(client, &names, &*page)).await;
                    });
                    places.take(scraper, origin);
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = scrapers.join_next() => {}
        }
    }
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    mut client: S,
    names: &[String],
    page: &(impl Fn() -> String + Sync),
) -> io::Result<()> {
    let mut asked = Vec::new();
    while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 1024];
        let read = client.read(&mut chunk).await?;
        if read == 0 || asked.len() + read > LONGEST_QUESTION {
            return Ok(());
        }
        asked.extend_from_slice(&chunk[..read]);
    }
    let (status, body) = match verdict(&asked, names) {
        Ok(()) => ("200 OK", page()),
        Err((status, problem)) => (status, format!("{problem}\n")),
    };
    let (kind, bytes) = ("text/plain; version=0.0.4", body.len());
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await?;
    client.write_all(body.as_bytes()).await?;
    client.shutdown().await
}

/// Returns whether a request gets the page, or why not.
pub(crate) fn verdict(asked: &[u8], names: &[String]) -> Result<(), (&'static str, &'static str)> {
    let asked = String::from_utf8_lossy(asked);
    let mut lines = asked.split("\r\n");
    let question = lines.next().unwrap_or_default();
    let is_host = |line: &str| {
        let (name, value) = line.split_once(':')?;
        // A field with a space in its name, or a continued one, may be a Host field to others.
        name.trim().eq_ignore_ascii_case("host").then(|| value.trim().to_owned())
    };
    let hosts: Vec<String> = lines.take_while(|line| !line.is_empty()).filter_map(is_host).collect();
    // RFC 9112 §3.2: exactly one in HTTP/1.1. HTTP/1.0 clients may send none, and browsers do not use it.
    match &hosts[..] {
        [] if question.ends_with(" HTTP/1.0") => {}
        [host] if means_us(host, names) => {}
        [_] => {
            return Err((
                "421 Misdirected Request",
                "name this server by its address, or in `metrics.names`",
            ));
        }
        _ => return Err(("400 Bad Request", "one Host field is expected")),
    }
    match question.strip_prefix("GET ").map(|rest| rest.split(' ').next()) {
        Some(Some("/metrics")) => Ok(()),
        Some(_) => Err(("404 Not Found", "the metrics are at /metrics")),
        None => Err(("405 Method Not Allowed", "only GET is answered")),
    }
}

/// Returns whether it is an address, the loopback's name, or a name from the file. A stranger's name is none of these.
fn means_us(host: &str, names: &[String]) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.parse::<SocketAddr>().is_ok() || bare.parse::<IpAddr>().is_ok() {
        return true;
    }
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(name, _)| name);
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_it = |known: &str| known.eq_ignore_ascii_case(name);
    is_it("localhost") || names.iter().any(|known| is_it(known))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;
    use tokio::task::JoinHandle;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(120);

    async fn server() -> (SocketAddr, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let names = vec!["n2.example".to_owned()];
        // No scraper is dropped for lack of time.
        let within = Duration::from_secs(1 << 20);
        (
            address,
            tokio::spawn(serve_within(within, listener, (names, Users::of_machine()), || {
                "page\n".to_owned()
            })),
        )
    }

    async fn ask(server: SocketAddr, asked: &str) -> String {
        let mut client = TcpStream::connect(server).await.expect("it listens");
        client.write_all(asked.as_bytes()).await.expect("open");
        let mut heard = String::new();
        let answered = timeout(PATIENCE, client.read_to_string(&mut heard)).await;
        answered.expect("somebody listens").expect("an answer");
        heard
    }

    #[tokio::test]
    async fn only_the_page_is_served() {
        let (address, server) = server().await;
        for (asked, wanted) in [
            ("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200"),
            ("GET /metrics HTTP/1.0\r\n\r\n", "HTTP/1.1 200"),
            ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 404"),
            ("POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 405"),
            ("GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 400"),
            ("GET /metrics HTTP/1.1\r\nHost: localhost\r\nhost: localhost\r\n\r\n", "HTTP/1.1 400"),
            ("GET /metrics HTTP/1.1\r\nHost : evil.example\r\nHost: localhost\r\n\r\n", "HTTP/1.1 400"),
            ("GET /metrics HTTP/1.1\r\nHost: localhost\r\n Host: evil.example\r\n\r\n", "HTTP/1.1 400"),
        ] {
            let heard = ask(address, asked).await;
            assert!(heard.starts_with(wanted), "{asked}: {heard}");
        }
        server.abort();
    }

    #[tokio::test]
    async fn a_question_under_a_strangers_name_is_not_answered() {
        let (address, server) = server().await;
        let hosts = [
            ("127.0.0.1:9184", true),
            ("10.7.0.2", true),
            ("[fd07::2]:9184", true),
            ("[fd07::2]", true),
            ("LocalHost:9184", true),
            ("n2.example.", true),
            ("evil.example", false),
            ("evil.example:9184", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example", false),
            ("evil-localhost", false),
            ("evil.n2.example", false),
            ("", false),
        ];
        for (host, is_answered) in hosts {
            let heard = ask(address, &format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
            let wanted = if is_answered { "HTTP/1.1 200" } else { "HTTP/1.1 421" };
            assert!(heard.starts_with(wanted), "{host}: {heard}");
            assert_eq!(heard.ends_with("page\n"), is_answered);
        }
        server.abort();
    }

    /// Each sends three bytes and stays.
    #[tokio::test]
    async fn scrapers_that_say_nothing_keep_no_other_out() {
        let (address, server) = server().await;
        let mut slow = Vec::new();
        for _ in 0..4 * MOST_SCRAPERS {
            let mut client = TcpStream::connect(address).await.expect("it listens");
            client.write_all(b"GET").await.expect("open");
            slow.push(client);
        }
        // The first ones have made room.
        for client in &mut slow[..2 * MOST_SCRAPERS] {
            let read = timeout(PATIENCE, client.read(&mut [0; 1])).await.expect("it was let go");
            assert!(matches!(read, Ok(0) | Err(_)));
        }
        let heard = ask(address, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await;
        assert!(heard.ends_with("page\n"), "{heard}");
        server.abort();
    }
}
