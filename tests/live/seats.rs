//! Clients who keep their seats at the proxy or at a forward, and do not read what came for them.

use std::fs;
use std::io::Write;
use std::net::TcpStream;

use crate::field::{Field, PAGE, SOCKS5, THROUGH, text};
use crate::namespace::can_run;
use crate::world::{until, within_patience};

/// Each holds a connection to the proxy and says next to nothing.
#[test]
fn slow_clients_of_the_proxy_keep_nobody_out() {
    if !can_run("slow_clients_of_the_proxy_keep_nobody_out", &["curl", "python3"]) {
        return;
    }
    let field = Field::new("slow");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let _daemon = field.daemon(SOCKS5);
    let slow: Vec<_> = field.node.run(|| {
        let connect = |_| {
            let mut client = TcpStream::connect("127.0.0.1:1080").expect("the proxy listens");
            client.write_all(&[5]).expect("it is open");
            client
        };
        (0..400).map(connect).collect()
    });
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
    let count = |what: &str| field.status()["relays"][what].as_u64().expect("it is counted");
    within_patience(until(|| count("socks5-too-slow") == 400));
    assert_eq!((slow.len(), count("socks5-accepted")), (400, 401));
}

/// Asks the proxy for a large file and reads nothing of what comes.
fn slow_reader() -> TcpStream {
    let mut client = TcpStream::connect("127.0.0.1:1080").expect("the proxy listens");
    let asked = [&[5, 1, 0][..], &[5, 1, 0, 1, 10, 9, 0, 2, 0, 80], b"GET /large HTTP/1.0\r\n\r\n"].concat();
    client.write_all(&asked).expect("it is open");
    client
}

fn resident_bytes(process: u32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{process}/statm")).expect("it lives");
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("the second field");
    pages * 4096
}

/// What came for them waits in buffers that are bounded, and whoever reads gets their seats.
#[test]
fn readers_of_the_proxy_that_do_not_read_cost_little_and_keep_nobody_out() {
    if !can_run("readers_of_the_proxy_that_do_not_read_cost_little_and_keep_nobody_out", &["curl", "python3"])
    {
        return;
    }
    const READERS: u64 = 30;
    let field = Field::new("readers");
    let large = fs::File::create(field.path("www/large")).expect("the folder can be written");
    large.set_len(1 << 30).expect("it is a hole");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let socks5 = "socks5: { listen: 127.0.0.1:1080, connections: 30, reads_within: 500ms }";
    let daemon = field.daemon(socks5);
    let before = resident_bytes(daemon.0.id());
    let slow: Vec<_> = field.node.run(|| (0..READERS).map(|_| slow_reader()).collect());
    let count = |what: &str| field.status()["relays"][what].as_u64().expect("it is counted");
    within_patience(until(|| count("socks5-open") == READERS));
    let mut came = 0;
    within_patience(until(|| {
        let before = std::mem::replace(&mut came, count("bytes-from-mesh"));
        came > 0 && came == before
    }));
    let each = resident_bytes(daemon.0.id()).saturating_sub(before) / READERS;
    assert!(each < 1 << 20, "{each} bytes for each");
    within_patience(until(|| {
        let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
        text(&page.stdout) == PAGE
    }));
    assert!((1..READERS).contains(&count("socks5-gave-way")), "{}", field.status());
    drop(slow);
}
