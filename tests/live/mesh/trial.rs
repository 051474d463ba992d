//! A trial on a fleet: hosts in a line behind real ssh, with a host that is lost and comes back.

mod settings;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::HOPWISE;
use super::fleet::{make_keys, start_server};
use crate::folder::Folder;
use crate::namespace::{Namespace, Running};
use crate::world::{until, within_patience};

const TEXT: &str = "\
world: mesh\n\
topology: { kind: chain, hops: 2 }\n\
traffic:\n\
\x20 - { from: first, to: last, kind: bulk }\n\
\x20 - { from: last, to: first, kind: cbr, every: 20ms, segment_bytes: 200, background: true }\n\
arms:\n\
\x20 delayed: { receiver: delayed }\n\
\x20 kernel: { receiver: kernel, sender: kernel:reno }\n\
run: { duration: 4s, warmup: 1s, seeds: 1, stop: all-seeds }\n";

/// Hosts on one wire, each of which reaches its neighbours alone, and a machine that reaches them by ssh.
struct Hosts {
    nodes: Vec<Namespace>,
    admin: Namespace,
    _air: Namespace,
    servers: Vec<Running>,
    folder: Folder,
}

/// The words of an inventory about a host's address.
fn own_address(nth: usize) -> String {
    format!(", address: 10.66.0.{}", nth + 1)
}

impl Hosts {
    fn new(test: &str) -> Hosts {
        Hosts::in_line(test, 3)
    }

    fn in_line(test: &str, count: usize) -> Hosts {
        let folder = Folder::new(test);
        let (air, admin) = (Namespace::new(), Namespace::new());
        air.ip(&["link", "add", "wire", "type", "bridge"]);
        air.ip(&["link", "set", "wire", "up"]);
        let nodes: Vec<_> = (0..count).map(|_| Namespace::new()).collect();
        for (nth, node) in nodes.iter().enumerate() {
            let own = format!("10.66.0.{}/24", nth + 1);
            node.join(&air, &format!("air{nth}"), &own, "169.254.66.1/32");
            air.ip(&["addr", "flush", "dev", &format!("air{nth}")]);
            air.ip(&["link", "set", &format!("air{nth}"), "master", "wire"]);
            // The rate of a radio: at the rate of memory some packets come while earlier ones are read, and get their
            // time.
            let rate = ["rate", "20mbit", "burst", "10kb", "latency", "50ms"];
            let shaped = ["tc", "qdisc", "add", "dev", &format!("air{nth}"), "root", "tbf"];
            assert!(node.output(&[&shaped[..], &rate].concat()).status.success(), "tc shapes a wire");
            node.sysctl(&format!("ipv4/conf/air{nth}/forwarding"), "1");
            for scope in ["all", &format!("air{nth}")] {
                node.sysctl(&format!("ipv4/conf/{scope}/rp_filter"), "0");
                node.sysctl(&format!("ipv4/conf/{scope}/send_redirects"), "0");
            }
            admin.join(
                node,
                &format!("adm{nth}"),
                &format!("10.99.{nth}.1/24"),
                &format!("10.99.{nth}.2/24"),
            );
        }
        for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
            if from.abs_diff(to) > 1 {
                let next = if from < to { from + 2 } else { from };
                let (to, via) = (format!("10.66.0.{}/32", to + 1), format!("10.66.0.{next}"));
                nodes[from].ip(&["route", "add", &to, "via", &via]);
            }
        }
        let servers = make_keys(&folder, &nodes);
        within_patience(until(|| nodes.iter().all(|node| node.has_listener(22))));
        let hosts = Hosts { nodes, admin, _air: air, servers, folder };
        hosts.write("hosts.yaml", &hosts.inventory(HOPWISE, own_address));
        hosts.write("line.yaml", TEXT);
        hosts
    }

    fn inventory(&self, command: &str, more: impl Fn(usize) -> String) -> String {
        let line = |nth: usize| {
            // No daemon of this machine answers there.
            let socket = self.path("no.sock");
            format!("  - {{ name: n{nth}, ssh: 10.99.{nth}.2, control: [{socket}]{} }}\n", more(nth))
        };
        let hosts: String = (0..self.nodes.len()).map(line).collect();
        format!("ssh_config: ssh_config\ncommand: {command}\nhosts:\n{hosts}")
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the folder can be written");
    }

    fn command(&self, words: &[&str]) -> Command {
        let (file, hosts, out) = (self.path("line.yaml"), self.path("hosts.yaml"), self.path("out"));
        let given = [HOPWISE, "trial", &file, "--inventory", &hosts, "--out", &out, "--late", "10s"];
        let mut command = self.admin.command(&[&given[..], words].concat());
        command.env("TMPDIR", self.path("tmp"));
        command
    }

    fn trial(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("ip netns exec runs")
    }

    /// The inventory of hosts on which `hopwise` runs as an ordinary user, with these words of setpriv.
    fn as_somebody(&self, rights: &str) {
        let program = self.path("hopwise");
        fs::copy(HOPWISE, &program).expect("the folder can be written");
        let command = format!("setpriv --reuid=65534 --regid=65534 --clear-groups {rights} {program}");
        self.write("hosts.yaml", &self.inventory(&command, own_address));
    }

    /// A routing daemon on each host, with more lines for its file.
    fn start_routing(&self, more: impl Fn(usize) -> String) -> Vec<Running> {
        let start = |nth: usize| {
            let (file, own, more) = (format!("route{nth}.yaml"), nth + 1, more(nth));
            let state = self.path(&format!("route{nth}.state"));
            let text = format!(
                "address: 10.66.0.{own}\ninterfaces: [air{nth}]\nrouting: {{ protocol: aodv }}\n\
                 state: {state}\n{more}"
            );
            self.write(&file, &text);
            let log = fs::File::create(self.path(&format!("route{nth}.log"))).expect("a file");
            let mut command = self.nodes[nth].command(&[HOPWISE, "route", &self.path(&file)]);
            Running(command.stdin(Stdio::null()).stderr(log).spawn().expect("ip netns exec runs"))
        };
        let daemons: Vec<_> = (0..self.nodes.len()).map(start).collect();
        let log = |nth: usize| fs::read_to_string(self.path(&format!("route{nth}.log"))).unwrap_or_default();
        let is_ready = |nth: usize| {
            assert!(!log(nth).contains("hopwise: "), "{}", log(nth));
            log(nth).contains("ready")
        };
        within_patience(until(|| (0..self.nodes.len()).all(is_ready)));
        daemons
    }

    fn records(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("out/records.jsonl")).expect("a trial has records");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// The processes of a host with this word in their command lines, or all of them.
    fn processes(&self, node: usize, word: &str) -> Vec<Pid> {
        let listed = self.nodes[node].pids();
        let has = |pid: &Pid| {
            let words = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
            word.is_empty() || words.split(|byte| *byte == 0).any(|found| found == word.as_bytes())
        };
        listed.into_iter().filter(has).collect()
    }

    /// Ends all that runs on a host, at once.
    fn cut_power(&self, node: usize) {
        for pid in self.processes(node, "") {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    fn left_on(&self, node: usize) -> String {
        let routes = self.nodes[node].output(&["ip", "route", "show", "proto", "87"]).stdout;
        let devices = self.nodes[node].output(&["ip", "-o", "link", "show", "type", "tun"]).stdout;
        String::from_utf8_lossy(&[routes, devices].concat()).into_owned()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.servers.clear();
        (0..self.nodes.len()).for_each(|node| self.cut_power(node));
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The words of a run's record about its hosts.
fn assert_hosts(record: &Value) {
    let hosts = record["result"]["live"]["mesh"]["hosts"].as_array().expect("a list");
    assert_eq!(hosts.len(), 3, "{record}");
    for (nth, host) in hosts.iter().enumerate() {
        assert_eq!(host["host"], format!("n{nth}"));
        assert_eq!(host["address"], format!("10.66.0.{}", nth + 1));
        assert_eq!(host["interface"], format!("air{nth}"));
        // All of them have the clock of one machine.
        let clock = |key: &str| host["clock"][key].as_f64().expect("a clock");
        assert!(clock("ahead_ms").abs() <= clock("within_ms") && clock("within_ms") > 0.0, "{host}");
        assert!(clock("drift_ppm").abs() <= clock("drift_within_ppm"), "{host}");
    }
    let via = |nth: usize, to: &str| {
        let routes = hosts[nth]["routes"].as_array().expect("a list").iter();
        let hops: Vec<_> =
            routes.filter(|route| route["to"] == to).filter_map(|route| route["via"].as_str()).collect();
        hops.join(" ")
    };
    assert_eq!([via(0, "n2"), via(2, "n0"), via(1, "n0")], ["n1", "n1", "n0"]);
}

/// A delay is right within the error that the clocks leave it. The hosts have one clock in truth.
fn assert_delays(record: &Value) {
    let flows = record["result"]["flows"].as_array().expect("a list");
    let seen = &flows.iter().find(|flow| flow["id"] == "f1").expect("it is there")["datagrams"];
    let number = |key: &str| seen[key].as_f64().unwrap_or_else(|| panic!("{key} of {seen}"));
    assert!((47.0..=53.0).contains(&number("sent")) && number("loss") < 0.5, "{seen}");
    let (delay, error) = (number("delay_ms"), number("delay_error_ms"));
    assert!(error > 0.0 && delay + error > 0.0 && delay - error < 1000.0, "{seen}");
}

#[test]
fn a_trial_on_hosts_behind_ssh_has_records_of_clocks_and_routes_and_leaves_nothing_there() {
    needs!["ip", "tc", "ssh", "sshd", "ssh-keygen"];
    let hosts = Hosts::new("meshtrial");
    let switch = "ipv4/conf/air0/forwarding";
    hosts.nodes[0].sysctl(switch, "0");
    let output = hosts.trial(&["--capture"]);
    assert!(output.status.success(), "{}", said(&output));
    let after = hosts.nodes[0].run(|| fs::read_to_string(format!("/proc/sys/net/{switch}")));
    assert_eq!(after.expect("a switch").trim(), "0", "an end forwards for as long as a run");
    let records = hosts.records();
    assert_eq!(records.len(), 2);
    for record in &records {
        let result = &record["result"];
        assert_eq!(result["world"], "mesh");
        assert!(result["total"]["goodput_kbps"].as_f64() > Some(1000.0), "{result}");
        assert!(result["air"]["frames_sent"].is_null() && result["routing"]["discoveries"].is_null());
        assert_hosts(record);
        assert_delays(record);
    }
    let found: Value =
        serde_json::from_str(&fs::read_to_string(hosts.path("out/preflight.json")).expect("it is kept"))
            .expect("JSON");
    let examined = found["hosts"].as_array().expect("a list");
    let has_findings = |host: &Value| host["findings"].as_array().is_some_and(|found| !found.is_empty());
    assert!(examined.len() == 3 && examined.iter().all(has_findings), "{found}");
    let report = fs::read_to_string(hosts.path("out/report.html")).expect("a report");
    assert!(report.contains("fig-mesh") && report.contains("10.66.0.2 (air1)"));
    within_patience(until(|| (0..3).all(|node| hosts.processes(node, "part").is_empty())));
    for node in 0..3 {
        assert_eq!(hosts.left_on(node), "", "n{node}");
    }
    assert_captures(&hosts, &records);
    assert_study(&hosts);
    let left: Vec<_> = fs::read_dir(hosts.path("tmp")).expect("a folder").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Its folder is a trial like any, with the facts of the hosts and without the ways to them.
fn assert_study(hosts: &Hosts) {
    let (inventory, out, study) = (hosts.path("hosts.yaml"), hosts.path("out"), hosts.path("study"));
    let made = |licence: &str| {
        let words = [
            HOPWISE,
            "mesh",
            "study",
            &out,
            "--inventory",
            &inventory,
            "--licence",
            licence,
            "--out",
            &study,
        ];
        hosts.admin.command(&words).env("TMPDIR", hosts.path("tmp")).output().expect("it runs")
    };
    let refused = made("MIT");
    assert!(said(&refused).contains("expected CC-BY-4.0, CC0-1.0, ODbL-1.0 or a file"), "{}", said(&refused));
    let output = made("CC0-1.0");
    assert!(output.status.success(), "{}", said(&output));
    let read = |name: &str| fs::read_to_string(Path::new(&study).join(name)).expect("it is there");
    let (told, kernel) =
        (read("hosts.json"), fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux"));
    let facts: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(
        (facts.as_array().map(Vec::len), &facts[0]["doctor"]["kernel"]),
        (Some(3), &kernel.trim().into())
    );
    assert!(!told.contains("ssh_config") && !told.contains("no.sock") && !told.contains("10.99."), "{told}");
    assert!(read("README.md").contains(kernel.trim()) && read("LICENCE").contains("CC0-1.0"));
    assert!(said(&made("CC0-1.0")).contains("it is there already"));
    let beside =
        hosts.admin.command(&[HOPWISE, "report", &study, "--beside", &out]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&beside.stdout).contains("study"), "{}", said(&beside));
}

/// The captures of both ends are there, and become one in which no packet comes before it was sent.
fn assert_captures(hosts: &Hosts, records: &[Value]) {
    let run = records.iter().find(|record| record["arm"] == "delayed").expect("a run of ours");
    let folder = hosts.path(&format!("out/captures/{}/ends", run["id"].as_str().expect("an id")));
    let file = |name: &str| format!("{folder}/{name}.pcapng");
    let merged = hosts.path("merged.pcapng");
    let done = Command::new(HOPWISE)
        .args(["capture", "merge", &file("n0"), &file("n2"), "--json", "--out", &merged])
        .output()
        .expect("it starts");
    assert!(done.status.success(), "{}", said(&done));
    let told: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(told["too_early"], 0, "{told}");
    let names: Vec<_> =
        [0, 1].map(|nth| told["files"][nth]["interfaces"][0].as_str().unwrap_or_default()).into();
    assert_eq!(names, ["n0", "n2"]);
}

/// The daemon thins at the host that receives, and ends with the run.
#[test]
fn an_arm_thins_the_acks_of_a_hosts_kernel_for_a_run_and_leaves_no_rule_there() {
    needs!["ip", "tc", "ssh", "sshd", "ssh-keygen", "nft"];
    let hosts = Hosts::new("meshthin");
    let arms = "arms={ bare: { receiver: kernel, sender: kernel:cubic }, \
                thinned: { receiver: kernel, sender: kernel:cubic, thin: 'delayed:d=8' } }";
    let output = hosts.trial(&["--set", arms]);
    assert!(output.status.success(), "{}", said(&output));
    let records = hosts.records();
    assert_eq!(records.len(), 2);
    for record in &records {
        let counts = &record["result"]["live"]["thinned"];
        if record["arm"] == "bare" {
            assert!(counts.is_null(), "{counts}");
            continue;
        }
        assert!(counts["n0"].is_null() && counts["n1"].is_null(), "{counts}");
        let count = |name: &str| counts["n2"][name].as_u64().unwrap_or_else(|| panic!("{name} of {counts}"));
        assert!(count("replaced") > count("acks") / 4, "{counts}");
    }
    within_patience(until(|| hosts.processes(2, "thin").is_empty()));
    let rules = hosts.nodes[2].output(&["nft", "list", "ruleset"]).stdout;
    assert_eq!(String::from_utf8_lossy(&rules), "");
}

/// Rights of root are for devices and routes of endpoints: a capability gives them, and the kernel's TCP needs none.
#[test]
fn hosts_need_no_root_for_the_kernels_tcp_and_one_capability_for_endpoints() {
    let test = "hosts_need_no_root_for_the_kernels_tcp_and_one_capability_for_endpoints";
    needs!["ip", "tc", "ssh", "sshd", "ssh-keygen", "setpriv"];
    let tun = fs::metadata("/dev/net/tun").map(|facts| facts.permissions().mode());
    if !tun.is_ok_and(|mode| mode & 0o006 == 0o006) {
        println!("skipped: {test}: /dev/net/tun is root's alone here");
        return;
    }
    let hosts = Hosts::new("meshsomebody");
    hosts.as_somebody("");
    let output = hosts.trial(&["--set", "arms={ kernel: { receiver: kernel, sender: kernel:reno } }"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(hosts.records().len(), 1);
    fs::remove_dir_all(hosts.path("out")).expect("a trial's folder");
    let refused = hosts.trial(&[]);
    assert!(said(&refused).contains("n0: net-admin: "), "{}", said(&refused));
    hosts.as_somebody("--inh-caps=+net_admin --ambient-caps=+net_admin");
    let output = hosts.trial(&["--resume"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(hosts.records().len(), 2);
}

/// Routes to programs are the daemon's own, if its file names them.
#[test]
fn where_a_routing_daemon_runs_its_file_names_the_programs_and_the_trial_leaves_routes_alone() {
    needs!["ip", "tc", "ssh", "sshd", "ssh-keygen"];
    let hosts = Hosts::new("meshrouted");
    // A daemon is an ordinary user, and its files stand here.
    fs::set_permissions(&*hosts.folder, fs::Permissions::from_mode(0o777)).expect("it is ours");
    // Its address is the node's, and not an interface's.
    for (nth, node) in hosts.nodes.iter().enumerate() {
        node.ip(&["addr", "flush", "dev", &format!("air{nth}")]);
    }
    let narrow = hosts.start_routing(|_| "network: 10.66.0.0/24\n".to_owned());
    let refused = hosts.trial(&["--despite-doctor"]);
    assert!(said(&refused).contains("expected `serves: [10.64.0."), "{}", said(&refused));
    drop(narrow);
    let serves = |nth: usize| format!("network: 10.0.0.0/9\nserves: [10.64.0.{}]\n", nth + 1);
    let _daemons = hosts.start_routing(serves);
    let output = hosts.trial(&["--despite-doctor", "--resume"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(hosts.records().len(), 2);
    // The daemon's own device stays, and so may routes to its neighbours: a hello keeps the route to its sender, and
    // each node with a route sends hellos (RFC 3561 §6.9). Routes to the trial's programs run out.
    let is_of_a_neighbour = |line: &str| line.starts_with("10.66.0.");
    let left = || hosts.left_on(0).lines().filter(|line| !is_of_a_neighbour(line)).count();
    within_patience(until(|| left() == 1));
}

#[test]
fn a_host_that_dies_in_a_run_is_noticed_and_its_run_is_repeated_once_it_is_back() {
    needs!["ip", "tc", "ssh", "sshd", "ssh-keygen"];
    let mut hosts = Hosts::new("meshlost");
    let mut trial = hosts.command(&["--set", "run.duration=6s"]);
    let log = fs::File::create(hosts.path("log")).expect("the folder can be written");
    let mut trial = trial.stderr(log).stdout(Stdio::null()).spawn().expect("it starts");
    within_patience(until(|| !hosts.processes(1, "part").is_empty()));
    hosts.cut_power(1);
    let log = || fs::read_to_string(hosts.path("log")).unwrap_or_default();
    within_patience(until(|| log().contains("the host n1 (n1) was lost")));
    hosts.servers[1] = start_server(&hosts.folder, &hosts.nodes[1]);
    let status = trial.wait().expect("it ends");
    let told = fs::read_to_string(hosts.path("log")).unwrap_or_default();
    assert!(status.success() && told.contains("n1 answers again"), "{told}");
    let records = hosts.records();
    assert_eq!(records.len(), 2);
    let again: Vec<_> = records
        .iter()
        .flat_map(|record| record["result"]["live"]["mesh"]["again"].as_array().cloned().unwrap_or_default())
        .collect();
    assert_eq!(again.len(), 1, "{again:?}");
    let report = fs::read_to_string(hosts.path("out/report.html")).expect("a report");
    assert!(report.contains("Runs that were repeated"));
}

#[test]
fn a_host_that_stays_away_ends_the_trial_with_the_blocks_that_are_complete() {
    needs!["ip", "tc", "ssh", "sshd", "ssh-keygen"];
    let hosts = Hosts::new("meshgone");
    let out = hosts.path("out.txt");
    let printed = fs::File::create(&out).expect("the folder can be written");
    let words = ["--seeds", "3", "--wait", "1s"];
    let mut trial = hosts.command(&words).stdout(printed).spawn().expect("it starts");
    let done = || fs::read_dir(hosts.path("out/runs")).map_or(0, |entries| entries.flatten().count());
    within_patience(until(|| done() >= 2));
    within_patience(until(|| !hosts.processes(2, "part").is_empty()));
    hosts.cut_power(2);
    let status = trial.wait().expect("it ends");
    let printed = fs::read_to_string(&out).unwrap_or_default();
    assert!(status.success() && printed.contains("a host was lost after "), "{printed}");
    assert!(hosts.records().len() >= 2);
}

#[test]
fn hosts_that_a_trial_cannot_use_are_refused_before_the_first_run() {
    needs!["ip", "tc", "ssh", "sshd", "ssh-keygen"];
    let hosts = Hosts::new("meshrefused");
    let refused = |words: &[&str], wanted: &str| {
        // A trial that has begun goes on with --resume alone.
        let _ = fs::remove_dir_all(hosts.path("out"));
        let output = hosts.trial(words);
        assert!(!output.status.success() && said(&output).contains(wanted), "{wanted}: {}", said(&output));
    };
    refused(&["--set", "topology.hops=3"], "it has no host n3");
    refused(&["--set", "routing.protocol=aodv"], "hosts route by themselves");
    refused(&["--world", "netns"], "no other world has hosts");
    hosts.nodes[1].sysctl("ipv4/conf/air1/forwarding", "0");
    refused(&[], "air1 forwards no packets");
    hosts.nodes[1].sysctl("ipv4/conf/air1/forwarding", "1");
    hosts.nodes[0].ip(&["route", "del", "10.66.0.3/32"]);
    hosts.nodes[0].ip(&["route", "add", "unreachable", "10.66.0.3/32"]);
    refused(&[], "there is no route to 10.66.0.3");
    hosts.write(
        "hosts.yaml",
        &hosts.inventory(HOPWISE, |nth| if nth == 1 { String::new() } else { own_address(nth) }),
    );
    refused(&[], "expected `address:` there");
    hosts.write("hosts.yaml", &hosts.inventory(HOPWISE, |nth| own_address(nth + 6)));
    refused(&[], "n0: interface: no interface has the address 10.66.0.7");
    refused(&["--despite-doctor"], "no interface here has the address 10.66.0.");
}
