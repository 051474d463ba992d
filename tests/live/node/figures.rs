//! The figures of a node and of measurements: status, captures, `hopwise send` and `recv`.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::process::Stdio;

use crate::field::{Field, HOPWISE, PAGE, SOCKS5, THROUGH, text};
use crate::namespace::Running;
use crate::world::{PATIENCE, until, within_patience};

/// The kernel's TCP neither reads nor sends the options of our agents.
#[test]
fn status_says_who_the_agents_are_what_they_lack_and_how_far_the_peer_is() {
    needs!["python3"];
    let field = Field::new("lacks");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let _daemon = field.daemon(
        "forwards: [{ listen: 127.0.0.1:8080, to: mesh:10.9.0.2:80 }]\n\
         rules: [{ receiver: dca, sender: [newreno, pgy, \"ask-rate:4\"], shadows: [immediate, \"delayed:d=4\"] }]",
    );
    let _open = field.node.run(|| TcpStream::connect("127.0.0.1:8080").expect("it listens"));
    let found = || {
        let status = field.status();
        let of_ours = |conn: &&serde_json::Value| conn["state"] == "established";
        status["connections"].as_array().and_then(|all| all.iter().find(of_ours)).cloned()
    };
    let mut conn = None;
    within_patience(until(|| {
        conn = found();
        conn.is_some()
    }));
    let conn = conn.expect("it was found");
    for (key, expected) in [
        ("receiver", serde_json::json!("dca")),
        ("sender", serde_json::json!("[newreno, pgy, ask-rate:4]")),
        ("receiver_lacks", serde_json::json!(["peer-cwnd"])),
        ("sender_lacks", serde_json::json!(["dup-count", "rate-request"])),
        // The hops come from the hop limit, which shows the reverse path alone. The step through the kernel to the
        // device is no hop.
        ("hops", serde_json::json!(null)),
        ("hops_back", serde_json::json!(1)),
        ("hops_back_source", serde_json::json!("ttl")),
    ] {
        assert_eq!(conn[key], expected, "{key}: {conn}");
    }
    let shadows = conn["shadows"].as_array().expect("a list");
    let names: Vec<_> = shadows.iter().map(|shadow| &shadow["receiver"]).collect();
    assert_eq!(names, ["immediate", "delayed:4"], "{conn}");
    let table = text(&field.ask(&["status"]).stdout);
    assert!(table.contains(": immediate would have sent "), "{table}");
    assert!(table.contains("dca") && table.contains("[newreno, pgy, ask-rate:4]"), "{table}");
}

#[test]
fn a_capture_of_a_node_gives_every_packet_of_ours_its_reason() {
    needs!["python3", "tshark"];
    let field = Field::new("capture");
    fs::write(field.path("www/big"), vec![7; 2_000_000]).expect("the folder can be written");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let _daemon = field.daemon(&format!(
        "{SOCKS5}\nrules: [{{ match: {{ port: 1 }} }}, {{ receiver: \"delayed:d=4,hold=50ms\" }}]"
    ));
    let file = field.path("a.pcapng");
    let began = field.ask(&["capture", "start", &file]);
    assert!(began.status.success(), "{}", text(&began.stderr));
    let mut client = field.node.run(|| TcpStream::connect("127.0.0.1:1080")).expect("the proxy listens");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    client.write_all(&[5, 1, 0, 5, 1, 0, 1, 10, 9, 0, 2, 0, 80]).expect("it is open");
    // The file's writer looks up the connection's rule at its first packet, and must do so while the rule is there.
    within_patience(until(|| field.status()["capture"]["packets_written"].as_u64() > Some(0)));
    client.write_all(b"GET /big HTTP/1.0\r\n\r\n").expect("it is open");
    let came = std::io::copy(&mut client, &mut std::io::sink()).expect("it is served");
    assert!(came > 2_000_000, "{came}");
    drop(client);
    let ended = field.ask(&["capture", "stop"]);
    assert!(text(&ended.stdout).contains(" packets, "), "{}", text(&ended.stderr));
    let shown = |filter: &str, fields: &[&str]| {
        let told = field.node.output(&[&["tshark", "-r", &file, "-Y", filter], fields].concat());
        text(&told.stdout)
    };
    assert_eq!(shown("ip.src == 10.7.0.2 && !frame.comment", &[]), "");
    assert_eq!(shown("_ws.malformed || _ws.expert.severity == error", &[]), "");
    let held = shown(
        "frame.comment contains \"ACK withheld by delayed:d=4\"",
        &["-T", "fields", "-e", "frame.number"],
    );
    let frame = held.lines().next().expect("some ACKs were withheld");
    let why = field.node.output(&[HOPWISE, "capture", "why", &file, frame]);
    assert!(
        text(&why.stdout).contains("ACK withheld by delayed:d=4,hold=50ms: count"),
        "{}",
        text(&why.stdout)
    );
    assert!(text(&why.stdout).contains("; agents by rules.1"), "{}", text(&why.stdout));
    assert_eq!(shown("ip.src == 10.7.0.2 && !(frame.comment contains \"agents by rules.1\")", &[]), "");
}

#[test]
fn a_full_disk_under_a_capture_is_survived_and_the_file_can_be_read() {
    needs!["curl", "python3", "tshark", "mount"];
    let field = Field::new("full");
    fs::write(field.path("www/big"), vec![7; 3_000_000]).expect("the folder can be written");
    let file = field.small_disk("512k") + "/a.pcapng";
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let _daemon = field.daemon(SOCKS5);
    assert!(field.ask(&["capture", "start", &file]).status.success());
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/big", "-o", "/dev/null"]].concat());
    assert!(page.status.success(), "{}", text(&page.stderr));
    let ended = text(&field.ask(&["capture", "stop"]).stdout);
    assert!(ended.contains("could not be written") && ended.contains("No space left"), "{ended}");
    let read = field.node.output(&["tshark", "-r", &file, "-T", "fields", "-e", "frame.number"]);
    assert!(read.status.success() && read.stdout.len() > 2, "{}", text(&read.stderr));
    let again = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
    assert_eq!(text(&again.stdout), PAGE, "{}", text(&again.stderr));
}

#[test]
fn send_and_recv_measure_between_two_namespaces() {
    needs![];
    let field = Field::new("measure");
    let file = field.path("file");
    fs::write(&file, (0..3_000_000_u32).map(|nth| nth.to_le_bytes()[0] ^ 0x5a).collect::<Vec<_>>())
        .expect("a file");
    let output = field.path("copy");
    let recv = ["recv", "--address", "10.8.0.2/24", "--kernel", "10.8.0.1/24", "--output", &output];
    let said = fs::File::create(field.path("said")).expect("the folder can be written");
    let mut recv = field.web.command(&[&[HOPWISE], &recv[..]].concat());
    let _recv =
        Running(recv.stdin(Stdio::null()).stdout(said).stderr(Stdio::null()).spawn().expect("it runs"));
    let has_said = || fs::read_to_string(field.path("said")).is_ok_and(|said| said.contains("waiting at "));
    within_patience(until(has_said));
    let send_to = |to: &str, words: &[&str]| {
        let place = [HOPWISE, "send", to, "--address", "10.7.0.2/24", "--kernel", "10.7.0.1/24", "--json"];
        let told = field.node.output(&[&place[..], words].concat());
        assert!(told.status.success(), "{words:?}: {}", text(&told.stderr));
        serde_json::from_slice::<serde_json::Value>(&told.stdout).expect("one object")
    };
    let send = |words: &[&str]| send_to("10.8.0.2", words);
    let of_file = send(&["--file", &file, "--sender", "[newreno, limit:20]"]);
    assert_eq!(of_file["sha256"]["matches"], true, "{of_file}");
    assert_eq!(of_file["flows"][0]["sender"], serde_json::json!(["newreno", "limit:20"]));
    assert!(fs::read(&file).expect("it is there") == fs::read(&output).expect("it was kept"));
    let bytes = send(&["--bytes", "1MB", "--reverse", "--parallel", "3", "--receiver", "immediate"]);
    let flows = bytes["flows"].as_array().expect("flows");
    assert_eq!(flows.len(), 3);
    for flow in flows {
        assert_eq!(
            (&flow["bytes_delivered"], &flow["receiver"]),
            (&1_000_000.into(), &"immediate".into()),
            "{flow}"
        );
    }
    let bulk = send(&["--time", "200ms"]);
    assert!(bulk["scenario"] == "bulk" && bulk["flows"][0]["bytes_delivered"].as_u64() > Some(0), "{bulk}");
    let requests = send(&["--requests", "50"]);
    assert_eq!(requests["requests"]["count"], 50, "{requests}");
    // The kernel forgets its earlier peers.
    let _kernels = field.web.start(&[HOPWISE, "recv", "--kernel-tcp"]);
    within_patience(until(|| field.web.run(|| TcpStream::connect(("10.9.0.2", 5201)).is_ok())));
    let flow = &send_to("10.9.0.2", &["--bytes", "1MB", "--reverse"])["flows"][0];
    let to = flow["to"].as_str().expect("a text");
    assert!(flow["from"] == "10.9.0.2:5201" && to.starts_with("10.7.0.2:"), "{flow}");
}
