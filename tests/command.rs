//! The command as a shell sees it: exit status, streams, pipes.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::unistd::geteuid;

const HEAD: &str = "# hopwise-trace 1\ntime_s\tconn\tpacket\tevent\tdetails\n";

/// The command, with three pipes.
fn start(words: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopwise"));
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the command was built with the tests")
}

fn hopwise(words: &[&str], input: &str) -> Output {
    fed(start(words), input)
}

/// The output of a command that gets this input.
fn fed(mut child: Child, input: &str) -> Output {
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    // A command that refuses its options closes the pipe unread.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("the command ends")
}

const CHAIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/configs/chain.yaml");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_trace_on_standard_input_is_printed() {
    let done = hopwise(&["capture", "trace", "-"], &format!("{HEAD}0.5\t1\t0\tmarked\t\n"));
    assert_eq!(done.status.code(), Some(0));
    assert!(text(&done.stdout).contains("0.500000000     1        -  marked"), "{}", text(&done.stdout));
}

#[test]
fn refused_input_ends_with_status_2_and_names_its_place() {
    for (words, input, wanted) in [
        (&["capture", "trace", "-"][..], "nonsense\n", "standard input: line 1, column 1: expected"),
        (&["capture", "trace", "no-such-file"], "", "no-such-file: "),
        (
            &["capture", "trace", "-", "--since", "2s", "--until", "1s"],
            HEAD,
            "--until: expected a time not before --since",
        ),
        (&["capture", "trace", "-", "--event", "x"], HEAD, "possible values"),
        (
            &["capture", "trace", "-", "--conn", "x"],
            HEAD,
            "expected the number of a connection, 0 to 4294967295",
        ),
        (&["agents", "show", "dcaa"], "", "dcaa: no agent is called that; did you mean `dca`?"),
        (&["air", "netns", CHAIN, "--prefix", "a/b"], "", "`a/b`, expected letters, digits"),
        (
            &["air", "netns", CHAIN, "--set", "topology={ kind: grid, rows: 14, columns: 15 }"],
            "",
            "210 nodes, expected at most 200",
        ),
        (&["air", "netns", CHAIN, "--arm", "nobody"], "", "expected one of every, delayed, shallow"),
        (&["air", "netns", CHAIN, "--for", "5"], "", "expected a time"),
        (&["proxy", "calibrate", "--slope", "0"], "", "--slope: 0, expected from 0.1 to 1000000 dB/s"),
        (&["proxy", "calibrate", "--noise", "99"], "", "--noise: 99, expected from 0 to 40 dB"),
        (&["proxy", "calibrate", "--shadow=-1"], "", "--shadow: -1, expected from 0 to 40 dB"),
        (&["fly"], "", "unrecognized subcommand"),
        (&[], "", "Usage: hopwise <COMMAND>"),
    ] {
        let done = hopwise(words, input);
        assert_eq!(done.status.code(), Some(2), "{words:?}");
        assert!(text(&done.stderr).contains(wanted), "{words:?}: {}", text(&done.stderr));
        assert!(done.stdout.is_empty() || words.ends_with(&["trace", "-"]), "{words:?}");
    }
}

#[test]
fn wireshark_reads_what_a_radio_sent_and_decoded() {
    let test = "wireshark_reads_what_a_radio_sent_and_decoded";
    let out = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&out);
    let out = out.to_string_lossy();
    let sets = ["run={ duration: 2s }", "topology.hops=2", "radio.arp=true"];
    let mut words = vec!["run", CHAIN, "--arm", "every", "--capture", "--out", &out];
    words.extend(sets.into_iter().flat_map(|set| ["--set", set]));
    assert_eq!(hopwise(&words, "").status.code(), Some(0));
    let fields = ["wlan.fc.type_subtype", "radiotap.dbm_antsignal", "ip.dst", "arp.opcode", "_ws.malformed"];
    let mut tshark = Command::new("tshark");
    tshark.args(["-r", &format!("{out}/n1.pcapng"), "-T", "fields", "-E", "separator=,"]);
    tshark.args(fields.into_iter().flat_map(|field| ["-e", field]));
    let Ok(done) = tshark.output() else {
        println!("skipped: {test}: tshark is not installed");
        return;
    };
    let text = text(&done.stdout);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    // RTS, CTS, ACK, data.
    for (number, kind) in [(27, "RTS"), (28, "CTS"), (29, "ACK"), (32, "data")] {
        let is_it = |row: &&Vec<&str>| {
            let code = row[0].trim_start_matches("0x");
            u32::from_str_radix(code, if code.len() < row[0].len() { 16 } else { 10 }) == Ok(number)
        };
        assert!(rows.iter().filter(is_it).count() > 50, "{kind} in {} frames", rows.len());
    }
    assert!(rows.iter().any(|row| row[2] == "10.0.0.3") && rows.iter().any(|row| row[3] == "1"));
    // Its own frames leave at 24 dBm; frames that arrive are far weaker.
    let signals: Vec<i32> = rows.iter().filter_map(|row| row[1].parse().ok()).collect();
    assert!(signals.len() == rows.len() && signals.iter().all(|dbm| *dbm == 24 || *dbm < -50), "{signals:?}");
    assert!(rows.iter().all(|row| row[4].is_empty()), "nothing is malformed");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut input = HEAD.to_owned();
    input.push_str(&"0.5\t1\t0\tmarked\t\n".repeat(50_000));
    let mut child = start(&["capture", "trace", "-"]);
    drop(child.stdout.take());
    let done = fed(child, &input);
    assert_eq!((done.status.code(), text(&done.stderr)), (Some(0), String::new()));
}

#[test]
fn help_has_an_example_of_every_subcommand() {
    let all = text(&hopwise(&["--help"], "").stdout);
    let doors =
        all.lines().skip_while(|line| *line != "Compare agents:").take_while(|line| *line != "Options:");
    let names =
        doors.filter_map(|line| line.strip_prefix("  ").and_then(|line| line.split_whitespace().next()));
    let mut seen = 0;
    for name in names {
        let help = hopwise(&[name, "--help"], "");
        assert_eq!(help.status.code(), Some(0), "{name}");
        assert!(text(&help.stdout).contains(&format!("  hopwise {name} ")), "{name} --help shows no example");
        seen += 1;
    }
    assert!(seen > 15, "{all}");
}

#[test]
fn the_schema_is_one_object_that_knows_the_keys_of_scenarios() {
    let done = hopwise(&["keys", "schema"], "");
    assert_eq!(done.status.code(), Some(0));
    let schema: serde_json::Value = serde_json::from_slice(&done.stdout).expect("it is JSON");
    for key in ["topology", "traffic", "arms", "matrix", "run"] {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn a_refused_configuration_is_shown_with_line_and_column() {
    let folder = std::env::temp_dir().join(format!("hopwise-command-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("node.yaml");
    let least = "node: { name: a, address: 10.7.0.2/24 }\nlinks: [{ kind: tun, name: hw0 }]\n";
    std::fs::write(&path, format!("{least}stop_within: 5\n")).expect("a file");
    let named = path.to_string_lossy();
    let done = hopwise(&["node", "--check", &named], "");
    let shown = text(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{shown}");
    for part in ["node.yaml:3:14", "stop_within: 5", "expected a time with its unit"] {
        assert!(shown.contains(part), "{part} is missing in {shown}");
    }
    std::fs::write(&path, least).expect("a file");
    assert_eq!(hopwise(&["node", "--check", &named], "").status.code(), Some(0));
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn what_has_no_place_to_run_or_to_ask_is_refused() {
    for (words, wanted) in [
        (&["send", "10.7.0.3"][..], "expected --address ADDRESS"),
        (&["send", "10.7.0.3:port", "--kernel-tcp"], "expected an address such as 10.7.0.3"),
        (&["send", "10.7.0.3", "--address", "10.7.0.255/24"], "10.7.0.255 is not the address of a host"),
        (&["send", "10.7.0.3", "--address", "10.7.0.2/24", "--kernel", "10.7.0.2/16"], "it is --address"),
        (&["recv", "--address", "fd07::2/64", "--mtu", "1000"], "IPv6 takes 1280 bytes"),
        (
            &["send", "10.7.0.3", "--kernel-tcp", "--requests", "5", "--request-bytes", "0"],
            "from 1 to 1048576",
        ),
        (&["recv", "--address", "10.7.0.3/24", "--receiver", "delaid"], "--receiver"),
        (&["recv", "--kernel-tcp", "--receiver", "delayed"], "cannot be used with"),
        (&["agents", "show", "delaid"], "accepted: immediate"),
        (&["capture", "why", "no-such-file", "1"], "no-such-file: "),
        (&["capture", "start", "a.pcapng", "--rotate", "1KiB"], "expected 64KiB or more"),
        (&["capture", "start", "a.pcapng", "--files", "0"], "a whole number from 1 to 4294967295"),
        (&["recv", "--output", "/no-such-folder/x"], "/no-such-folder/x: No such file or directory"),
        (&["node", "no-such-file"], "no-such-file: "),
        (&["status", "--watch", "--every", "5"], "expected a time with its unit"),
    ] {
        let done = hopwise(words, "");
        assert_eq!(done.status.code(), Some(2), "{words:?}: {}", text(&done.stderr));
        assert!(text(&done.stderr).contains(wanted), "{words:?}: {}", text(&done.stderr));
    }
    let done = hopwise(&["status", "--control", "no-such-socket"], "");
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).contains("is `hopwise node` running?"), "{}", text(&done.stderr));
}

#[test]
fn a_seed_that_is_none_is_told_the_range() {
    for words in [&["run", CHAIN, "--seed", "x"][..], &["proxy", "calibrate", "--seed", "-1"]] {
        let done = hopwise(words, "");
        assert_eq!(done.status.code(), Some(2), "{words:?}: {}", text(&done.stderr));
        let wanted = "expected a whole number from 0 to 18446744073709551615";
        assert!(text(&done.stderr).contains(wanted), "{words:?}: {}", text(&done.stderr));
    }
}

/// A command that `exec` runs may itself end with 2.
#[test]
fn wrong_options_of_exec_are_told_from_a_status_of_its_command() {
    let status = |words: &[&str]| hopwise(words, "").status.code();
    for words in
        [&["exec"][..], &["exec", "--"], &["exec", "--node", "x", "--", "true"], &["exec", "--login"]]
    {
        assert_eq!(status(words), Some(125), "{words:?}");
    }
    assert_eq!((status(&["exec", "--help"]), status(&["status", "--no"])), (Some(0), Some(2)));
}

/// Root may open each link, so these commands run as `nobody`.
#[test]
fn who_may_not_open_a_link_is_told_the_command_of_root() {
    const NODE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/configs/node.yaml");
    let program = std::fs::canonicalize(env!("CARGO_BIN_EXE_hopwise")).expect("it was built");
    let program = program.display().to_string();
    const LIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/configs/live/chain4.yaml");
    for words in [
        &["send", "10.7.0.3", "--config", NODE][..],
        &["recv", "--address", "10.7.0.3/24"],
        &["air", "netns", CHAIN],
        &["trial", LIVE],
    ] {
        let mut command = Command::new(&program);
        command.args(words).current_dir("/").stdin(Stdio::null());
        if geteuid().is_root() {
            command.uid(65_534).gid(65_534);
        }
        let done = match command.output() {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return println!("skipped: a link that takes root: nobody may not run {program}");
            }
            done => done.expect("it starts"),
        };
        assert_eq!(done.status.code(), Some(1), "{words:?}: {}", text(&done.stderr));
        let wanted = format!("; run it as root: sudo {program} {}", words.join(" "));
        assert!(text(&done.stderr).contains(&wanted), "{words:?}: {}", text(&done.stderr));
    }
}

#[test]
fn a_trial_says_which_of_its_arms_are_equal() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("equal-arms");
    let out = folder.to_string_lossy();
    let short = ["--seeds", "1", "--set", "run.duration=2s", "--set", "run.warmup=1s", "--out", &out];
    let said = |arms: &[&str]| {
        let done = hopwise(&[&["trial", CHAIN][..], &short, arms].concat(), "");
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        text(&done.stderr)
    };
    let remark = "the arms `every` and `shallow` have equal settings";
    let alike = said(&["--set", "arms.shallow={ receiver: immediate, sender: [newreno] }"]);
    assert!(alike.contains(remark), "{alike}");
    let different = said(&[]);
    assert!(!different.contains("equal settings"), "{different}");
}

#[test]
fn a_proxy_that_does_not_run_is_said_to_be_missing() {
    let done = hopwise(&["proxy", "status", "--control", "no-such-socket"], "");
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).contains("is `hopwise proxy` running?"), "{}", text(&done.stderr));
}

#[test]
fn a_key_is_explained_for_people_and_for_programs_and_a_wrong_one_is_refused() {
    let done = hopwise(&["keys", "explain", "links.0.mtu", "--json"], "");
    let list: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!((&list[0]["file"], &list[0]["range"]), (&"node".into(), &"576 to 65535".into()), "{list}");
    assert_eq!(list[0]["example"]["line"], "links: [{ mtu: 1500 }]");
    let done = hopwise(&["keys", "explain", "radio.rts_treshold"], "");
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("did you mean `radio.rts_threshold`?"), "{}", text(&done.stderr));
    for kind in ["scenario", "node", "route", "proxy", "mesh"] {
        let done = hopwise(&["keys", "schema", kind], "");
        let schema: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
        assert!(schema["properties"].is_object(), "{kind}");
    }
}

/// A `hopwise recv` with few descriptors, at a port of the loopback that was free.
fn recv_with_few_descriptors() -> (Child, SocketAddr) {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = free.local_addr().expect("it is bound");
    drop(free);
    let script = "ulimit -n 40; exec \"$0\" recv --kernel-tcp --port \"$1\"";
    let mut recv = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_hopwise"), &at.port().to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let mut said = String::new();
    let stdout = recv.stdout.as_mut().expect("it is a pipe");
    BufReader::new(stdout).read_line(&mut said).expect("text");
    assert!(
        said.starts_with("waiting at port") && said.contains("of every address of this machine"),
        "{said}"
    );
    (recv, at)
}

#[test]
fn silent_connections_that_take_all_descriptors_do_not_end_a_recv() {
    let (mut recv, at) = recv_with_few_descriptors();
    let silent: Vec<TcpStream> = (0..60).map(|_| TcpStream::connect(at).expect("it listens")).collect();
    let open = || std::fs::read_dir(format!("/proc/{}/fd", recv.id())).map_or(0, Iterator::count);
    while (1..40).contains(&open()) {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    drop(silent);
    let sent = hopwise(&["send", &at.to_string(), "--kernel-tcp", "--bytes", "1KiB"], "");
    let ended = recv.try_wait().expect("it is ours");
    recv.kill().expect("it is ours");
    recv.wait().expect("it is ours");
    assert!(sent.status.success() && ended.is_none(), "{sent:?} {ended:?}");
}

/// A peer that says it is ready, ends the measurement, and keeps the flow open.
#[test]
fn a_send_ends_when_its_peer_leaves_and_keeps_a_flow_open() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("it is bound").to_string();
    let peer = std::thread::spawn(move || {
        let (control, _) = listener.accept().expect("the control connection comes");
        let mut control = BufReader::new(control);
        control.read_exact(&mut [0; 16]).expect("an opening");
        control.read_line(&mut String::new()).expect("a plan");
        control.get_mut().write_all(b"\"ready\"\n").expect("it is there");
        let (mut flow, _) = listener.accept().expect("it comes");
        drop(control);
        // It ends with the sender.
        let _ = flow.read_to_end(&mut Vec::new());
    });
    let sent = hopwise(&["send", &at, "--kernel-tcp", "--reverse", "--time", "1s"], "");
    let told = String::from_utf8_lossy(&sent.stderr).into_owned();
    assert!(!sent.status.success() && told.contains("it has ended the measurement"), "{told}");
    peer.join().expect("it waits for nothing else");
}

#[test]
fn shells_and_man_know_every_command() {
    for (shell, check) in
        [("bash", "complete -F _hopwise"), ("zsh", "#compdef hopwise"), ("fish", "complete -c hopwise")]
    {
        let done = hopwise(&["--completions", shell], "");
        assert_eq!(done.status.code(), Some(0));
        let script = text(&done.stdout);
        assert!(script.contains(check) && script.contains("doctor"), "{script}");
        assert!(!script.contains("bypass"), "{shell} completes a command that is hidden");
    }
    let out = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("shells_and_man_know_every_command");
    let _ = std::fs::remove_dir_all(&out);
    let place = out.to_string_lossy().into_owned();
    assert_eq!(hopwise(&["--man", &place], "").status.code(), Some(0));
    let page = |name: &str| std::fs::read_to_string(out.join(format!("{name}.1"))).expect("a page");
    // Examples stand as they are, one a line.
    let agents = page("hopwise-agents");
    assert!(agents.contains("  hopwise agents\n  hopwise agents show dca\n"), "{agents}");
    assert!(page("hopwise").contains("hopwise\\-agents(1)"), "{}", page("hopwise"));
    assert!(page("hopwise-capture-merge").contains(".SH NAME\nhopwise\\-capture\\-merge \\- "));
    assert!(!out.join("hopwise-bypass.1").exists() && !out.join("hopwise-help.1").exists());
    let refused = hopwise(&["--man", "/proc/nowhere"], "");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("/proc/nowhere: "), "{}", text(&refused.stderr));
}
