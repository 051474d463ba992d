//! Programs that know nothing of us at the other end: curl and nginx, and tshark's verdict on our packets.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use hopwise_core::endpoint::ListenOptions;
use hopwise_core::impairment::Impairment;
use hopwise_host::{Fault, Link};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::folder::Folder;
use crate::stream::{Stream, read_all, send_all};
use crate::world::{KERNELS, OURS, World, until, within_patience};

const BYTES: u64 = 10_000_000;

#[test]
fn curl_fetches_a_page_from_us() {
    needs!["curl"];
    let world = World::new();
    let listener = world.stack.listen(None, 80, ListenOptions::default()).expect("the port is free");
    let namespace = &world.namespace;
    let fetched = std::thread::scope(|scope| {
        let url = format!("http://{OURS}/page");
        let curl = scope.spawn(move || namespace.output(&["curl", "-s", "--max-time", "60", &url]));
        within_patience(async {
            let mut stream = listener.accept().await.expect("the stack lives");
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.expect("curl asks");
            assert!(request[..length].starts_with(b"GET /page HTTP/1.1\r\n"));
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {BYTES}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.expect("the connection holds");
            send_all(&mut stream, 9, BYTES).await.expect("the connection holds");
            stream.shutdown().await.expect("the connection holds");
        });
        curl.join().expect("curl ends")
    });
    assert!(fetched.status.success());
    let mut expected = vec![0; BYTES as usize];
    Stream::new(9, BYTES).next(&mut expected);
    assert!(fetched.stdout == expected, "{} bytes came", fetched.stdout.len());
}

#[test]
fn nginx_serves_us_a_file() {
    needs!["nginx"];
    let world = World::new();
    let folder = Folder::new("nginx");
    let mut file = vec![0; BYTES as usize];
    Stream::new(10, BYTES).next(&mut file);
    fs::write(folder.path("file"), &file).expect("the folder can be written");
    let root = folder.path("");
    let config = format!(
        "user root;\ndaemon off;\nerror_log stderr;\npid {root}nginx.pid;\nevents {{}}\nhttp {{\n\
         access_log off;\nclient_body_temp_path {root};\nproxy_temp_path {root};\nfastcgi_temp_path {root};\n\
         uwsgi_temp_path {root};\nscgi_temp_path {root};\nserver {{ listen {KERNELS}:80; root {root}; }}\n}}\n"
    );
    fs::write(folder.path("nginx.conf"), config).expect("the folder can be written");
    let _nginx = world.namespace.start(&["nginx", "-p", &root, "-c", &folder.path("nginx.conf")]);
    let body = within_patience(async {
        let options = hopwise_core::endpoint::ConnectOptions::default();
        let mut stream = loop {
            match world.stack.connect((KERNELS, 80).into(), &options).await {
                Ok(stream) => break stream,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        let request = "GET /file HTTP/1.1\r\nHost: nginx\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.expect("the connection holds");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("nginx answers");
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
        answer.split_off(end + 4)
    });
    assert!(Sha256::digest(&body) == Sha256::digest(&file), "{} bytes came", body.len());
}

/// The lines that tshark prints for the frames of a file that match a filter.
fn frames(file: &str, filter: &str) -> Vec<String> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-r", file, "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-Y", filter]);
    let output = tshark.stderr(Stdio::null()).output().expect("tshark runs");
    assert!(output.status.success(), "tshark reads the file");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn tshark_finds_nothing_malformed_in_what_we_send() {
    needs!["tcpdump", "tshark"];
    let faults = Impairment { loss_ppm: 10_000, reorder_ppm: 10_000, ..Impairment::NONE };
    let lossy = |link| -> Box<dyn Link> {
        Box::new(Fault::wrap(link, faults, Impairment::NONE, 11).expect("the settings are sound"))
    };
    let world = World::with(|_| {}, lossy);
    let folder = Folder::new("tshark");
    let file = folder.path("wire.pcap");
    let mut tcpdump =
        world.namespace.start(&["tcpdump", "-i", "hop0", "-s", "200", "-B", "16384", "-U", "-w", &file]);
    let is_written = || fs::metadata(&file).is_ok_and(|file| file.len() >= 24);
    within_patience(until(is_written));
    let (listener, address) = world.kernel_listener(KERNELS);
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let read = read_all(&mut stream)?;
        std::io::Write::write_all(&mut stream, &vec![1; 1_000_000]).map(|()| read)
    });
    within_patience(async {
        let mut stream = world.connect(address).await;
        send_all(&mut stream, 12, 3_000_000).await.expect("the connection holds");
        stream.shutdown().await.expect("the connection holds");
        let mut back = Vec::new();
        stream.read_to_end(&mut back).await.expect("the kernel answers");
        assert_eq!(back.len(), 1_000_000);
    });
    reader.join().expect("the reader ends").expect("the kernel reads");
    // An interrupted tcpdump drops the packets that the kernel still holds for it; on a busy machine that is nearly
    // all.
    let has_most = || fs::metadata(&file).is_ok_and(|file| file.len() > 450_000);
    within_patience(until(has_most));
    tcpdump.interrupt();
    let ours = format!("ip.src == {OURS}");
    assert!(frames(&file, &ours).len() > 1000, "the capture has our packets");
    let wrong = "(_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0)";
    let severe = "_ws.expert.severity == error";
    let found = frames(&file, &format!("{ours} && ({wrong} || {severe})"));
    assert!(found.is_empty(), "{}", found.join("\n"));
}
