//! Entrances of a node for fuzz targets.

use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_core::endpoint::{ConnectOptions, EndpointConfig, LinkConfig};
use hopwise_core::{Endpoint, Instant, Machine};
use hopwise_lab::located::Checked;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::config::{self, link_id};
use super::control::{Request, Response};
use super::snapshot::Snapshot;
use super::socks5::{AccessRules, Own};
use super::transparent::header::{BadHeader, LONGEST, Told};
use super::{metrics, paths, status};
use hopwise_daemon::fuzzing::each;

const NOW: Instant = Instant::from_millis(1);
/// The peers of its connections.
const PEERS: [[u8; 4]; 3] = [[10, 0, 0, 2], [10, 0, 0, 3], [10, 0, 0, 4]];

/// The clients of a node's control socket, a line each.
pub fn asked(lines: &[u8], is_routing: bool) {
    let mut endpoint = endpoint();
    each(lines, is_routing, |request| answer(&mut endpoint, request));
    endpoint.handle_timeout(NOW + Duration::from_secs(1));
}

/// As a running node answers. Captures are other files than the fuzzer's.
fn answer(endpoint: &mut Endpoint, request: Request) -> Response {
    match request {
        Request::Status => {
            let connections = endpoint.connections();
            Response::Status(Box::new(Snapshot { connections_open: connections, ..Snapshot::default() }))
        }
        Request::Paths { .. } | Request::Arrivals { .. } => paths::answer(NOW, endpoint, request),
        Request::CaptureStart { rotate_bytes, .. } => {
            let checked = rotate_bytes.map_or(Ok(()), config::check_rotation);
            Response::Refused { problem: checked.err().unwrap_or_default() }
        }
        Request::CaptureStop => Response::Refused { problem: String::new() },
    }
}

/// A node with connections under way.
fn endpoint() -> Endpoint {
    let own = "10.0.0.1/24".parse().expect("a prefix");
    let config = EndpointConfig::new(LinkConfig::wire(0, 1500, vec![own]), [1; 32]);
    let mut endpoint =
        Endpoint::new(config, Box::new(StandardAgents::default())).expect("the defaults are sound");
    for (nth, peer) in (0..).zip(PEERS) {
        let options = ConnectOptions { local_port: Some(40_000 + nth), ..ConnectOptions::default() };
        endpoint.connect(NOW, (peer, 5_001).into(), &options).expect("there is room");
    }
    endpoint
}

/// A node's or a routing daemon's answer, as `hopwise status` shows it.
pub fn answered(text: &str) {
    match serde_json::from_str(text) {
        Ok(Response::Status(snapshot)) => {
            let snapshot = *snapshot;
            drop(status::printing::page(&snapshot, true));
            let area = Rect::new(0, 0, 80, 24);
            status::watch::printing::draw(&snapshot, Some(&snapshot), area, &mut Buffer::empty(area));
        }
        Ok(Response::Routing(snapshot)) => drop(snapshot.page()),
        Ok(Response::Thin(snapshot)) => drop(snapshot.page()),
        Ok(Response::Capture(capture)) => {
            let _ = (capture.is_whole(), capture.packets_lost(), capture.summary());
        }
        Ok(_) | Err(_) => {}
    }
}

/// A request for the page of metrics. A browser's page of another name does not get it.
pub fn scraped(request: &[u8]) {
    let taken = metrics::verdict(request, &["n2.example".to_owned()]);
    if taken.is_ok() {
        let request = String::from_utf8_lossy(request).to_ascii_lowercase();
        assert!(request.starts_with("get /metrics"), "{request}");
        assert!(request.contains("host") || request.contains(" http/1.0"), "{request}");
    }
}

/// The first bytes of a connection between transparent nodes. A header is the same whatever follows it, is not taken
/// before it is whole, ends, and is written as one that says the same.
pub fn told(bytes: &[u8]) {
    match header(bytes) {
        (Ok(told), left) => {
            let taken = &bytes[..bytes.len() - left];
            assert!(taken.len() <= LONGEST, "{} bytes are no header", taken.len());
            assert_eq!(header(taken).0.expect("it was taken"), told);
            let cut = header(&taken[..taken.len() - 1]).0;
            assert!(matches!(cut, Err(BadHeader::Ended(_))), "{cut:?}");
            let written = told.bytes().expect("both addresses are of one version");
            assert_eq!(header(&written).0.expect("it was read so"), told);
        }
        (Err(BadHeader::Malformed), left) => assert!(bytes.len() - left <= LONGEST),
        (Err(BadHeader::Ended(_)), _) => assert!(bytes.len() < LONGEST, "it never ends"),
    }
}

/// A header, and the number of the bytes behind it.
fn header(mut bytes: &[u8]) -> (Result<Told, BadHeader>, usize) {
    let read = pin!(Told::read(&mut bytes)).poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(read) = read else { unreachable!("bytes that are there let nobody wait") };
    (read, bytes.len())
}

/// The file of a node. An accepted one makes an endpoint, or the endpoint refuses it.
pub fn file(text: &str) -> Checked {
    let config = config::parse(Path::new("a"), text)?;
    let links = config.links.iter().enumerate().map(|(nth, link)| {
        let mtu = link.mtu.unwrap_or(config::MTU);
        LinkConfig {
            crossings: link.crossings(),
            ..LinkConfig::wire(link_id(nth).0, mtu, config.addresses_of(nth))
        }
    });
    let of_core = config.endpoint(links.collect(), [1; 32]);
    let agents = StandardAgents::new(config.tcp.profile.0);
    if let Ok(mut endpoint) = Endpoint::new(of_core, Box::new(agents)) {
        endpoint.set_rules(config.core_rules()).expect("they are its own");
    }
    drop(config.lacks_connections());
    if let Some(socks5) = &config.socks5 {
        let _ = (AccessRules::new(socks5), Own::new(&config, socks5.listen.port()));
    }
    Ok(())
}
