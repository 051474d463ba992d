//! A fleet: hosts with a routing daemon each behind real ssh, and hosts that do not answer.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::{AODV, HOPWISE, Mesh, PORT, address};
use crate::namespace::{Namespace, Running, found};
use crate::world::{until, within_patience};

/// A mesh on a line, and a machine that reaches its hosts by ssh over wires of their own.
struct Fleet {
    mesh: Mesh,
    admin: Namespace,
    /// A host that takes connections and says nothing.
    _deaf: (Namespace, TcpListener),
    _servers: Vec<Running>,
}

impl Fleet {
    fn new(test: &str) -> Fleet {
        let mut mesh = Mesh::new(test, 3, AODV);
        let line: Vec<_> = (1..3).map(|node| mesh.join(node - 1, node)).collect();
        for node in 0..3_usize {
            let devices = line[node.saturating_sub(1)..(node + 1).min(2)].to_vec();
            let control = format!("control: {}/n{node}.sock\n", mesh.folder.display());
            mesh.start_with(node, &devices, &control);
        }
        let admin = Namespace::new();
        for (nth, node) in mesh.nodes.iter().enumerate() {
            let (ours, theirs) = (format!("10.99.{nth}.1/24"), format!("10.99.{nth}.2/24"));
            admin.join(node, &format!("adm{nth}"), &ours, &theirs);
        }
        let deaf = Namespace::new();
        admin.join(&deaf, "adm9", "10.99.9.1/24", "10.99.9.2/24");
        let listener = deaf.run(|| TcpListener::bind("10.99.9.2:22").expect("a free port"));
        let servers = make_keys(&mesh.folder, &mesh.nodes);
        within_patience(until(|| mesh.nodes.iter().all(|node| node.has_listener(22))));
        let fleet = Fleet { mesh, admin, _deaf: (deaf, listener), _servers: servers };
        fleet.write_inventories();
        fleet
    }

    /// Sends packets over the whole line until the value is dropped: AODV says hello only on a route in use.
    fn traffic(&self) -> Traffic {
        let socket = self.mesh.nodes[0].run(|| UdpSocket::bind(("0.0.0.0", 0)).expect("a free port"));
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let _ = socket.send_to(&[0; 100], (address(2), PORT));
                thread::park_timeout(Duration::from_millis(50));
            }
        });
        Traffic(is_over)
    }

    fn path(&self, name: &str) -> String {
        self.mesh.folder.join(name).to_string_lossy().into_owned()
    }

    /// Some hosts in our form, and as Ansible lists them.
    fn write_inventories(&self) {
        let mut ours = format!("ssh_config: ssh_config\ncommand: {HOPWISE}\nhosts:\n");
        let config = self.path("ssh_config");
        let mut variables = serde_json::Map::new();
        for node in 0..3 {
            let socket = self.path(&format!("n{node}.sock"));
            ours += &format!("  - {{ name: n{node}, ssh: 10.99.{node}.2, control: [{socket}] }}\n");
            let of_host = json!({
                "ansible_host": format!("10.99.{node}.2"),
                "ansible_ssh_common_args": format!("-F {config}"),
                "hopwise_command": HOPWISE,
                "hopwise_control": socket,
            });
            variables.insert(format!("n{node}"), of_host);
        }
        ours += "  - { name: deaf, ssh: 10.99.9.2 }\n  - { name: gone, ssh: 10.98.0.1 }\n";
        let names: Vec<_> = variables.keys().collect();
        let list = json!({ "mesh": { "hosts": names }, "_meta": { "hostvars": variables } });
        fs::write(self.path("hosts.yaml"), ours).expect("the folder can be written");
        fs::write(self.path("hosts.json"), list.to_string()).expect("the folder can be written");
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = self.admin.command(&[&[HOPWISE], words].concat());
        command.env("TMPDIR", self.path("tmp")).output().expect("ip netns exec runs")
    }

    fn reports(&self, inventory: &str) -> Vec<Value> {
        let told =
            self.run(&["mesh", "status", "--inventory", &self.path(inventory), "--within", "6s", "--json"]);
        let reports: Value =
            serde_json::from_slice(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:?}"));
        reports["hosts"].as_array().cloned().unwrap_or_default()
    }

    /// The reports of a round in which each host of the line hears its neighbours.
    fn heard(&self, inventory: &str) -> Vec<Value> {
        let mut reports = Vec::new();
        within_patience(until(|| {
            reports = self.reports(inventory);
            reports[..3].iter().map(|report| neighbours(report).len()).eq([1, 2, 1])
        }));
        reports
    }
}

struct Traffic(Arc<AtomicBool>);

impl Drop for Traffic {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One key for all, and a server of ssh on each node.
pub(crate) fn make_keys(folder: &Path, nodes: &[Namespace]) -> Vec<Running> {
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let key = path("key");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &key]).status();
    assert!(made.is_ok_and(|status| status.success()));
    fs::create_dir(path("tmp")).expect("the folder can be written");
    fs::copy(path("key.pub"), path("authorized")).expect("the folder can be written");
    // A shell's start-up files are the tester's own: they may be slow, and a test that kills one may harm it.
    let server = format!(
        "Port 22\nHostKey {key}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\n\
         PermitRootLogin prohibit-password\nStrictModes no\nSetEnv HOME={}\n",
        path("authorized"),
        path("")
    );
    fs::write(path("sshd_config"), server).expect("the folder can be written");
    let client = format!(
        "User root\nIdentityFile {key}\nIdentitiesOnly yes\nStrictHostKeyChecking no\n\
         UserKnownHostsFile {}\n",
        path("known")
    );
    fs::write(path("ssh_config"), client).expect("the folder can be written");
    fs::create_dir_all("/run/sshd").expect("sshd wants it");
    nodes.iter().map(|node| start_server(folder, node)).collect()
}

/// A server of ssh, with the keys that are there.
pub(crate) fn start_server(folder: &Path, node: &Namespace) -> Running {
    node.start(&[&found("sshd"), "-D", "-f", &folder.join("sshd_config").to_string_lossy()])
}

fn neighbours(report: &Value) -> Vec<&str> {
    let all = report["neighbours"].as_array().into_iter().flatten();
    all.filter_map(|neighbour| neighbour["address"].as_str()).collect()
}

#[test]
fn a_fleet_is_one_table_and_hosts_that_do_not_answer_are_rows_with_their_reasons() {
    needs!["ip", "ssh", "sshd", "ssh-keygen"];
    let fleet = Fleet::new("fleet");
    let _traffic = fleet.traffic();
    let reports = fleet.heard("hosts.yaml");
    assert_eq!(neighbours(&reports[0]), ["10.77.0.2"]);
    assert_eq!(neighbours(&reports[1]), ["10.77.0.1", "10.77.0.3"]);
    assert_eq!(reports[1]["address"], "10.77.0.2");
    assert!(reports[1]["routes_valid"].as_u64() >= Some(2) && reports[1]["clock"].is_object());
    assert!(reports[1]["queue"]["packets"].is_u64(), "{}", reports[1]);
    assert!(reports[1]["agents"].is_null());
    let reason = reports[1]["unknown"]["agents"].as_str();
    assert!(reason.is_some_and(|reason| reason.starts_with("no node answers here")), "{reason:?}");
    let problem = |nth: usize| reports[nth]["problem"].as_str().unwrap_or_default().to_owned();
    assert!(problem(3).contains("timed out") || problem(3).contains("no answer within"), "{}", problem(3));
    assert!(problem(4).contains("unreachable"), "{}", problem(4));
    // No connection stays, and no folder of one.
    let left: Vec<_> = fs::read_dir(fleet.path("tmp")).expect("a folder").flatten().collect();
    assert!(left.is_empty(), "{left:?}");

    let by_ansible = fleet.heard("hosts.json");
    assert_eq!(by_ansible.len(), 3);
    assert_eq!(neighbours(&by_ansible[1]), ["10.77.0.1", "10.77.0.3"]);

    let mut table = String::new();
    within_patience(until(|| {
        let inventory = fleet.path("hosts.yaml");
        let told = fleet.run(&[
            "status",
            "--watch",
            "--fleet",
            "--once",
            "--within",
            "6s",
            "--inventory",
            &inventory,
        ]);
        table = String::from_utf8_lossy(&told.stdout).into_owned();
        row(&table, "n0 ").contains(" n1 ")
    }));
    assert!(row(&table, "deaf ").contains("no answer"), "{table}");
    assert!(row(&table, "gone: ").contains("unreachable"), "{table}");
    assert_statuses(&fleet);
}

/// Hosts that do not answer are a failure of the command.
fn assert_statuses(fleet: &Fleet) {
    for (words, status) in [
        (&["status", "--watch", "--fleet", "--once"][..], 1),
        (&["status", "--watch", "--fleet", "--once", "--exit-zero"], 0),
        (&["mesh", "status"], 1),
        (&["mesh", "status", "--exit-zero"], 0),
    ] {
        let more = ["--within", "6s", "--inventory", &fleet.path("hosts.yaml")];
        assert_eq!(fleet.run(&[words, &more].concat()).status.code(), Some(status), "{words:?}");
    }
}

/// The line of a table that begins so.
fn row<'a>(table: &'a str, name: &str) -> &'a str {
    table.lines().find(|line| line.starts_with(name)).unwrap_or_default()
}
