//! The rights of daemons: no more than the supplied units leave them, and by themselves no more than they need.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::field::{Daemon, Field, HOPWISE, PAGE, assert_none_refused, text};
use crate::proxy::{By, Network};
use crate::world::{children, until, within_patience};

const SOCKS5: &str = "socks5: { listen: 127.0.0.1:1080 }";
const UNITS: [&str; 4] =
    ["hopwise@.service", "hopwise-route@.service", "hopwise-proxy@.service", "hopwise-thin@.service"];
/// The largest exposure by systemd's measure, in tenths; less is better.
const MOST_EXPOSED: u32 = 25;
/// The largest one of the unit of a mesh's interfaces, which is root's.
const MOST_EXPOSED_OF_ROOT: u32 = 40;
/// The unit of a mesh's interfaces, with names of variables in the place of paths.
const OF_INTERFACES: &str =
    include_str!("../../deploy/ansible/roles/hopwise/templates/hopwise-mesh.service.j2");

fn unit(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("configs").join(name)
}

/// The words of a directive, or none.
fn directive(name: &str, directive: &str) -> Vec<String> {
    let text = fs::read_to_string(unit(name)).expect("the unit is there");
    let value = text.lines().find_map(|line| line.strip_prefix(directive)?.strip_prefix('='));
    value.into_iter().flat_map(|value| value.split(' ')).map(str::to_owned).collect()
}

#[test]
fn systemd_calls_each_unit_well_confined() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        println!(
            "skipped: systemd_calls_each_unit_well_confined: there is no systemd-analyze (package systemd)"
        );
        return;
    }
    let folder = std::env::temp_dir().join(format!("hoplive-unit-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("the temporary folder can be written");
    let of_interfaces = folder.join("hopwise-mesh.service");
    let text = OF_INTERFACES.replace("{{ ", "/").replace(" }}", "");
    fs::write(&of_interfaces, text).expect("the folder can be written");
    let units = UNITS.map(|name| (unit(name), MOST_EXPOSED));
    for (unit, most) in units.into_iter().chain([(of_interfaces, MOST_EXPOSED_OF_ROOT)]) {
        let rated = Command::new("systemd-analyze")
            .args(["security", "--offline=yes", "--no-pager", &format!("--threshold={most}")])
            .arg(&unit)
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&rated.stdout);
        assert!(rated.status.success(), "{}: {}", unit.display(), said.lines().last().unwrap_or_default());
    }
    fs::remove_dir_all(folder).expect("it is ours");
    for name in UNITS {
        assert_eq!(directive(name, "User"), ["hopwise"]);
        assert_eq!(directive(name, "NoNewPrivileges"), ["yes"]);
        // The proxy and the thinning of ACKs read nothing anew.
        let reloads = !name.contains("proxy") && !name.contains("thin");
        let text = fs::read_to_string(unit(name)).expect("the unit is there");
        assert_eq!(text.contains("\nExecReload="), reloads, "{name}");
    }
}

/// A daemon gives up more by itself than a unit can take from it.
#[test]
fn units_leave_a_daemon_the_calls_by_which_it_confines_itself() {
    let landlock = ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"];
    for name in UNITS {
        let text = fs::read_to_string(unit(name)).expect("the unit is there");
        // Later filters add to the earlier ones.
        let (_, after) = text.split_once("SystemCallFilter=~@privileged").expect("it refuses these");
        for call in ["capset", "seccomp"].into_iter().chain(landlock) {
            let is_allowed = |line: &str| {
                line.strip_prefix("SystemCallFilter=")
                    .is_some_and(|calls| calls.split(' ').any(|one| one == call))
            };
            assert!(after.lines().any(is_allowed), "{name} refuses {call}");
        }
    }
}

/// Runs a command as a user with the unit's capabilities and no path to more. The kernel's device is open to all users,
/// as udev makes it.
fn confined(unit: &str, command: &str) -> String {
    let capabilities: Vec<_> = directive(unit, "AmbientCapabilities")
        .iter()
        .map(|name| format!("+{}", name.trim_start_matches("CAP_").to_lowercase()))
        .collect();
    let capabilities = capabilities.join(",");
    let tunables = match directive(unit, "ProtectKernelTunables").join("").as_str() {
        "yes" => "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && ",
        _ => "",
    };
    format!(
        "{tunables}mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200 && \
         exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --bounding-set=-all,{capabilities} \
         --inh-caps=-all,{capabilities} --ambient-caps=-all,{capabilities} {command}"
    )
}

#[test]
fn a_node_works_with_no_more_than_its_unit_leaves_it() {
    needs!["curl", "python3", "setpriv", "mknod"];
    for kind in ["kind: tun", "kind: tun-fast, queues: 2"] {
        let field = Field::new("confined");
        let _server = field.serve(&field.web, "10.9.0.2", "80");
        let config = field.config_over(kind, SOCKS5);
        std::os::unix::fs::chown(&field.folder, Some(65534), Some(65534)).expect("root may");
        let command = confined(UNITS[0], &format!("{HOPWISE} node {config}"));
        let mut daemon = field.spawn_as(&["sh", "-c", &command]);
        let page = field.curl(&["-s", "--socks5-hostname", "127.0.0.1:1080", "http://10.9.0.2/"]);
        assert_eq!(String::from_utf8_lossy(&page.stdout), PAGE, "{kind} {}", field.log());
        assert!(!field.log().contains("addresses of IPv6 will go"), "{}", field.log());
        assert!(field.log().contains("user=\"nobody\""), "its user has a name: {}", field.log());
        daemon.tell(Signal::TERM);
        assert_eq!(daemon.ended(), Some(0), "{kind} {}", field.log());
    }
}

fn assert_nobody(process: u32) {
    let ids = facts(process, "Uid");
    assert!(ids.iter().all(|ids| ids == "65534\t65534\t65534\t65534"), "{ids:?}");
}

#[test]
fn routing_daemons_find_each_other_with_no_more_than_their_unit_leaves_them() {
    needs!["setpriv", "mknod"];
    for protocol in ["aodv", "dymo"] {
        let field = Field::new(&format!("confined-{protocol}"));
        std::os::unix::fs::chown(&field.folder, Some(65534), Some(65534)).expect("root may");
        let begin = |namespace, nth: u8, log| {
            let config = field.path(&format!("route{nth}.yaml"));
            let text = format!(
                "address: 10.77.0.{nth}\nnetwork: 10.77.0.0/24\ninterfaces: [wire0]\nstate: {}\n\
                 routing: {{ protocol: {protocol} }}\n",
                field.path(&format!("state{nth}"))
            );
            fs::write(&config, text).expect("the folder can be written");
            let command = confined(UNITS[1], &format!("{HOPWISE} route {config}"));
            field.spawn_in(namespace, log, &["sh", "-c", &command])
        };
        let mut daemons = [begin(&field.node, 1, "log"), begin(&field.web, 2, "log2")];
        let log = || field.log() + &fs::read_to_string(field.path("log2")).unwrap_or_default();
        let socket = field.node.run(|| UdpSocket::bind(("10.77.0.1", 0)).expect("a free port"));
        let other = field.web.run(|| UdpSocket::bind(("10.77.0.2", 7)).expect("a free port"));
        other.set_nonblocking(true).expect("it can be set");
        within_patience(until(|| {
            let _ = socket.send_to(&[7; 100], ("10.77.0.2", 7));
            other.recv(&mut [0; 100]).is_ok()
        }));
        let routes = text(&field.node.output(&["ip", "route", "show", "proto", "87"]).stdout);
        assert!(routes.contains("10.77.0.2"), "{routes} {}", log());
        for daemon in &mut daemons {
            assert_nobody(daemon.0.id());
            daemon.tell(Signal::TERM);
            assert_eq!(daemon.ended(), Some(0), "{}", log());
        }
        assert_none_refused(&log());
    }
}

#[test]
fn a_page_passes_a_proxy_with_no_more_than_its_unit_leaves_it() {
    needs!["nft", "ethtool", "setpriv", "mknod", "curl", "python3"];
    let network = Network::new("confined-proxy");
    std::os::unix::fs::chown(network.path(""), Some(65534), Some(65534)).expect("root may");
    let config = network.path("proxy.yaml");
    let command = confined(UNITS[2], &format!("{HOPWISE} proxy {}", config.display()));
    let mut proxy = network.proxy_as("ack-hold", &["sh", "-c", &command]);
    assert_nobody(proxy.0.id());
    let folder = network.path("www");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("index.html"), PAGE).expect("a file");
    let folder = folder.to_string_lossy().into_owned();
    let server = ["python3", "-m", "http.server", "80", "-b", "10.8.0.1", "-d", &folder];
    let _server = network.fixed.start(&server);
    within_patience(until(|| network.fixed.has_listener(80)));
    let page = network.mobile.output(&["curl", "-sS", "--max-time", "60", "http://10.8.0.1/"]);
    assert_eq!(text(&page.stdout), PAGE, "{} {}", text(&page.stderr), network.log());
    let status = network.tell("{\"tell\":\"status\"}");
    assert!(!status.contains("\"packets\":0"), "they passed the proxy: {status}");
    let status = proxy.ended_by(Signal::TERM);
    assert_eq!(status, Some(0), "{}", network.log());
}

const NET_ADMIN: u64 = 1 << 12;

/// The kernel's value of a field for each thread of a process.
fn facts(process: u32, name: &str) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("it lives").flatten();
    let statuses = threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    let value = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.expect("the kernel tells").trim().to_owned()
    };
    let values: Vec<_> = statuses.map(value).collect();
    assert!(!values.is_empty());
    values
}

/// Checks that every thread has these capabilities alone, in the sets that count, and can get no more.
fn assert_only(process: u32, capabilities: u64) {
    for (set, expected) in [
        ("CapEff", capabilities),
        ("CapPrm", capabilities),
        ("CapInh", 0),
        ("CapAmb", 0),
        ("CapBnd", capabilities),
    ] {
        for value in facts(process, set) {
            let has = u64::from_str_radix(&value, 16).expect("a number");
            assert_eq!(has, expected, "{set}: {value}");
        }
    }
    assert!(facts(process, "NoNewPrivs").iter().all(|value| value == "1"));
    assert!(facts(process, "Seccomp").iter().all(|value| value == "2"), "{:?}", facts(process, "Seccomp"));
    assert!(facts(process, "Uid").iter().all(|ids| !ids.split('\t').any(|id| id == "0")));
}

fn name_of(process: u32) -> String {
    fs::read_to_string(format!("/proc/{process}/comm")).expect("it lives").trim().to_owned()
}

#[test]
fn each_thread_of_a_node_has_nothing_and_reloads_only_a_file_that_its_user_may_read() {
    needs!["curl", "python3"];
    let field = Field::new("least-node");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let config = field.config(SOCKS5);
    let allow = |mode| fs::set_permissions(&config, fs::Permissions::from_mode(mode)).expect("it is ours");
    allow(0o600);
    let mut daemon = field.spawn(&config);
    let page = field.curl(&["-s", "--socks5-hostname", "127.0.0.1:1080", "http://10.9.0.2/"]);
    assert_eq!(text(&page.stdout), PAGE, "{}", field.log());
    let capture = field.path("a.pcapng");
    assert!(field.ask(&["capture", "start", &capture]).status.success(), "{}", field.log());
    assert_only(daemon.0.id(), 0);
    assert!(children(daemon.0.id()).is_empty());
    daemon.tell(Signal::HUP);
    within_patience(until(|| field.log().contains("the old rules stay")));
    assert!(field.log().contains("who may not read it"), "{}", field.log());
    allow(0o644);
    daemon.tell(Signal::HUP);
    within_patience(until(|| field.log().contains("rules reloaded")));
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
}

#[test]
fn root_stays_where_the_file_asks_for_it_and_confinement_can_be_off() {
    needs![];
    for (more, seccomp) in [("user: root", "2"), ("user: root\nconfine: off", "0"), ("confine: log", "2")] {
        let field = Field::new("least-root");
        let mut daemon = field.daemon(more);
        let id = daemon.0.id();
        let is_root = facts(id, "Uid").iter().all(|ids| ids.starts_with("0\t"));
        assert_eq!(is_root, more.contains("root"), "{more}");
        assert!(facts(id, "Seccomp").iter().all(|value| value == seccomp), "{more}");
        assert!(facts(id, "NoNewPrivs").iter().all(|value| value == "1"), "{more}");
        daemon.tell(Signal::TERM);
        assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    }
}

/// The folder is open to all users: the file's mode refuses nothing.
#[test]
fn a_capture_outside_of_the_folders_is_refused_and_said_and_captures_adds_one() {
    needs![];
    let outside = PathBuf::from(format!("/run/hoplive-outside-{}", std::process::id()));
    fs::create_dir_all(&outside).expect("root may");
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o777)).expect("it is ours");
    let file = outside.join("a.pcapng");
    let start = ["capture", "start", &file.to_string_lossy()];
    for more in [String::new(), format!("captures: [{}]", outside.display())] {
        let field = Field::new("least-files");
        let mut daemon = field.daemon(&more);
        let started = field.ask(&start);
        if more.is_empty() && !field.log().contains("no Landlock") {
            assert!(text(&started.stderr).contains("`captures:` adds folders"), "{started:?}");
            // The log is written while the answer is.
            within_patience(until(|| field.log().contains("a capture was refused")));
            assert!(!file.exists());
        } else {
            assert!(started.status.success(), "{started:?}");
        }
        daemon.tell(Signal::TERM);
        assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    }
    fs::remove_dir_all(outside).expect("it is ours");
}

/// nft runs as long as the link does, as the daemon's user.
#[test]
fn what_holds_a_raw_link_s_rules_is_no_root() {
    needs!["nft"];
    let field = Field::new("least-raw");
    let config = field.path("node.yaml");
    let text = format!(
        "node: {{ name: n2, address: 10.9.0.7/24 }}\nlinks: [{{ kind: raw, name: wire0 }}]\ncontrol: {}\n",
        field.path("control.sock")
    );
    fs::write(&config, text).expect("the folder can be written");
    let mut daemon = field.spawn(&config);
    assert_only(daemon.0.id(), 0);
    let holder = children(daemon.0.id()).into_iter().find(|child| name_of(*child) == "nft").expect("it runs");
    assert!(facts(holder, "Uid").iter().all(|ids| !ids.contains("0\t")), "{:?}", facts(holder, "Uid"));
    let has = u64::from_str_radix(&facts(holder, "CapEff")[0], 16).expect("a number");
    assert_eq!(has & !(NET_ADMIN | 1 << 13), 0, "no more than CAP_NET_ADMIN and CAP_NET_RAW: {has:x}");
    assert_eq!(facts(holder, "NoNewPrivs"), ["1"]);
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
}

#[test]
fn each_thread_of_a_proxy_keeps_what_it_takes_back_by() {
    needs!["nft", "ethtool"];
    for (by, kept) in [(By::Tun, NET_ADMIN), (By::Bridge, 0)] {
        let network = Network::by("least-proxy", by);
        let mut proxy = network.proxy("ack-hold", "none");
        // `ip netns exec` has become the proxy.
        assert_only(proxy.0.id(), kept);
        for child in children(proxy.0.id()) {
            assert!(facts(child, "Uid").iter().all(|ids| !ids.contains("0\t")), "{}", name_of(child));
        }
        network.transfer("cubic").wait_for(100_000);
        proxy.interrupt();
    }
}

/// Turns the next call of a number into a call of another number, as a debugger may.
const INJECT: &str = r#"
import ctypes, os, sys
process, wanted, other = map(int, sys.argv[1:])
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
SYSCALL, GET, SET, ATTACH, DETACH = 24, 12, 13, 16, 17
registers = (ctypes.c_ulonglong * 27)()
def ask(what, data=None):
    if libc.ptrace(what, process, None, data) < 0:
        raise OSError(ctypes.get_errno(), what)
def wait():
    return os.WSTOPSIG(os.waitpid(process, 0x40000000)[1])
ask(ATTACH)
wait()
while True:
    ask(SYSCALL)
    if wait() != 5:
        continue
    ask(GET, registers)
    # At its entry a call has not answered yet.
    if registers[15] == wanted and registers[10] == 2**64 - 38:
        registers[15] = other
        ask(SET, registers)
        break
ask(DETACH)
"#;

/// Numbers of x86-64. A routing daemon makes the first call each second, for its mark.
const FTRUNCATE: &str = "77";
const UNSHARE: &str = "272";

fn route(field: &Field) -> Daemon {
    let config = field.path("route.yaml");
    let text = format!(
        "address: 10.77.0.1\nnetwork: 10.77.0.0/24\ninterfaces: [wire0]\nstate: {}\n\
         routing: {{ protocol: aodv, hello_interval: 200ms }}\n",
        field.path("state")
    );
    fs::write(&config, text).expect("the folder can be written");
    field.spawn_as(&[HOPWISE, "route", &config])
}

/// `hopwise air`, and other commands of root's, make the folder before daemons do.
#[test]
fn daemons_that_root_starts_leave_no_socket_and_no_switches_in_the_folder_of_all() {
    needs!["mount"];
    let field = Field::new("shared");
    let (run, shared) = (field.path("run"), field.path("run/hopwise"));
    for is_there in [true, false] {
        let _ = fs::remove_dir_all(&run);
        fs::create_dir_all(if is_there { &shared } else { &run }).expect("the folder can be written");
        let node = field.path("n2.yaml");
        let text = "node: { name: n2, address: 10.7.0.2/24 }\nlinks: [{ kind: tun, name: hw0 }]\n\
                    control: /run/hopwise/n2.sock\n";
        fs::write(&node, text).expect("the folder can be written");
        let route = field.path("route.yaml");
        let text = "address: 10.77.0.1\nnetwork: 10.77.0.0/24\ninterfaces: [wire0]\n\
                    control: /run/hopwise/route.sock\nrouting: { protocol: aodv }\n";
        fs::write(&route, text).expect("the folder can be written");
        let begin = |log: &str, kind: &str, config: &str| {
            let script = format!("mount --bind {run} /run && exec {HOPWISE} {kind} {config}");
            field.spawn_in(&field.node, log, &["sh", "-c", &script])
        };
        for mut daemon in [begin("log", "node", &node), begin("log2", "route", &route)] {
            daemon.tell(Signal::TERM);
            assert_eq!(daemon.ended(), Some(0), "{}", field.log());
        }
        let log = field.log() + &fs::read_to_string(field.path("log2")).unwrap_or_default();
        assert!(!log.contains("stays until") && !log.contains("nobody"), "{log}");
        let files = fs::read_dir(&shared).expect("it stays").flatten();
        let left: Vec<_> = files.map(|file| file.file_name()).collect();
        // The time of the last routing, for the next start.
        assert_eq!(left, ["route-10.77.0.1"], "{log}");
    }
}

#[test]
fn a_routing_daemon_keeps_one_capability_and_a_call_that_it_never_makes_is_refused_and_said() {
    needs!["python3"];
    let field = Field::new("least-route");
    let mut daemon = route(&field);
    let id = daemon.0.id().to_string();
    within_patience(until(|| facts(daemon.0.id(), "Name").len() == 4));
    assert_only(daemon.0.id(), NET_ADMIN);
    if cfg!(target_arch = "x86_64") {
        let injected = Command::new("python3").args(["-c", INJECT, &id, FTRUNCATE, UNSHARE]).output();
        let injected = injected.expect("it runs");
        assert!(injected.status.success(), "{}", text(&injected.stderr));
        let refused = "refused the system call unshare (272)";
        within_patience(until(|| field.log().contains(refused)));
        field.expect_refusals();
    }
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
}
