//! The kernel's switches: changed on the mesh alone, and back to their old values after any end.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::{AODV, HOPWISE, Mesh, Signal, until, within_patience};
use crate::namespace::Running;

/// The switches that a routing daemon may change, of every interface but its TUN device.
fn switches(mesh: &Mesh) -> String {
    let script = "grep -H . /proc/sys/net/ipv4/ip_forward \
                  /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv4/conf/*/rp_filter \
                  /proc/sys/net/ipv4/conf/*/send_redirects \
                  /proc/sys/net/ipv4/conf/*/accept_redirects | grep -v hopwise0";
    let output = mesh.nodes[0].output(&["sh", "-c", script]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn value(mesh: &Mesh, key: &str) -> String {
    let output = mesh.nodes[0].output(&["sysctl", "-n", &format!("net.ipv4.{key}")]);
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_killed_routing_daemon_leaves_no_switch_changed_for_good() {
    needs!["ip", "sysctl", "sh", "grep"];
    let mut mesh = Mesh::new("switches", 2, AODV);
    let device = mesh.join(0, 1);
    mesh.nodes[0].ip(&["link", "add", "uplink", "type", "veth", "peer", "name", "uplink1"]);
    for (key, set) in [("all.rp_filter", "1"), ("uplink.rp_filter", "0"), ("uplink.forwarding", "0")] {
        mesh.nodes[0].sysctl(&format!("ipv4/conf/{}", key.replace('.', "/")), set);
    }
    let before = switches(&mesh);
    // A namespace has it from its machine.
    let forwards = value(&mesh, "ip_forward");
    mesh.start(0, std::slice::from_ref(&device));
    assert_eq!(value(&mesh, &format!("conf.{device}.forwarding")), "1");
    assert_eq!(value(&mesh, &format!("conf.{device}.accept_redirects")), "0", "no key signs a redirect");
    assert_eq!(value(&mesh, "conf.all.rp_filter"), "0");
    assert_eq!(value(&mesh, "conf.uplink.rp_filter"), "1", "the uplink is filtered as before");
    assert_eq!(value(&mesh, "conf.uplink.forwarding"), "0", "the uplink does not forward");
    assert_eq!(value(&mesh, "ip_forward"), forwards);

    mesh.end(0, Signal::KILL);
    assert_ne!(switches(&mesh), before, "a killed daemon puts nothing back");
    let folder = mesh.folder.to_string_lossy().into_owned();
    let look = mesh.nodes[0].output(&[HOPWISE, "doctor", "--state", &folder]);
    assert!(String::from_utf8_lossy(&look.stdout).contains("[switches-left]"), "{look:?}");
    let repair = mesh.nodes[0].output(&[HOPWISE, "doctor", "--repair", "--state", &folder]);
    assert!(String::from_utf8_lossy(&repair.stdout).contains("put back"), "{repair:?}");
    assert_eq!(switches(&mesh), before);

    mesh.start(0, std::slice::from_ref(&device));
    mesh.end(0, Signal::KILL);
    let _ = fs::remove_file(mesh.folder.join("log0"));
    mesh.start(0, std::slice::from_ref(&device));
    mesh.end(0, Signal::TERM);
    assert_eq!(switches(&mesh), before, "the next daemon's end puts back what the first one changed");
}

/// A second daemon on the first one's host, on another interface.
fn start_second(mesh: &Mesh, device: &str) -> Running {
    let config = mesh.folder.join("second.yaml");
    let (state, log) = (mesh.folder.join("state-second"), mesh.folder.join("log-second"));
    let text = format!(
        "address: 10.78.0.1\nnetwork: 10.78.0.0/24\ninterfaces: [{device}]\nstate: {}\ntun: hopwise1\n\
         routing: {{ protocol: dymo }}\n",
        state.display()
    );
    fs::write(&config, text).expect("the folder can be written");
    let into = fs::File::create(&log).expect("the folder can be written");
    let mut command = mesh.nodes[0].command(&[HOPWISE, "route", &config.to_string_lossy()]);
    let second = Running(command.stderr(into).spawn().expect("ip netns exec runs"));
    within_patience(until(|| fs::read_to_string(&log).is_ok_and(|log| log.contains("ready address"))));
    second
}

#[test]
fn the_last_of_two_routing_daemons_puts_the_switches_back() {
    needs!["ip", "sysctl", "sh", "grep"];
    let mut mesh = Mesh::new("switches2", 2, AODV);
    let device = mesh.join(0, 1);
    mesh.nodes[0].ip(&["link", "add", "other0", "type", "veth", "peer", "name", "other1"]);
    mesh.nodes[0].ip(&["link", "set", "other0", "up"]);
    mesh.nodes[0].sysctl("ipv4/conf/all/rp_filter", "1");
    let before = switches(&mesh);
    for is_first_to_end in [true, false] {
        mesh.start(0, std::slice::from_ref(&device));
        let mut second = start_second(&mesh, "other0");
        if is_first_to_end {
            mesh.end(0, Signal::TERM);
        } else {
            second.interrupt();
        }
        assert_eq!(value(&mesh, "conf.all.rp_filter"), "0", "the other daemon needs it");
        if is_first_to_end {
            assert_eq!(value(&mesh, "conf.other0.forwarding"), "1");
            second.interrupt();
        } else {
            assert_eq!(value(&mesh, &format!("conf.{device}.forwarding")), "1");
            mesh.end(0, Signal::TERM);
        }
        assert_eq!(switches(&mesh), before, "first to end: {is_first_to_end}");
        let _ = fs::remove_file(mesh.folder.join("log0"));
    }
}

#[test]
fn a_daemon_in_another_namespace_leaves_what_a_killed_one_wrote() {
    needs!["ip", "sysctl", "sh", "grep"];
    let mut mesh = Mesh::new("switches3", 2, AODV);
    let device = mesh.join(0, 1);
    let before = switches(&mesh);
    mesh.start(0, std::slice::from_ref(&device));
    mesh.end(0, Signal::KILL);
    let left = switches(&mesh);
    assert_ne!(left, before);
    // The second daemon has the first one's state file.
    let config = fs::read_to_string(mesh.folder.join("route0.yaml")).expect("it was written");
    let elsewhere = mesh.folder.join("elsewhere.yaml");
    fs::write(&elsewhere, config.replace("10.77.0.1", "10.77.0.2")).expect("the folder can be written");
    let log = mesh.folder.join("log-elsewhere");
    let into = fs::File::create(&log).expect("the folder can be written");
    let mut command = mesh.nodes[1].command(&[HOPWISE, "route", &elsewhere.to_string_lossy()]);
    let mut other = Running(command.stderr(into).spawn().expect("ip netns exec runs"));
    within_patience(until(|| fs::read_to_string(&log).is_ok_and(|log| log.contains("ready address"))));
    other.interrupt();

    mesh.start(0, std::slice::from_ref(&device));
    mesh.end(0, Signal::TERM);
    assert_eq!(switches(&mesh), before);
}

#[test]
fn what_a_daemon_leaves_to_another_one_is_in_its_file_for_its_next_start() {
    needs!["ip", "sysctl", "sh", "grep"];
    let mut mesh = Mesh::new("switches4", 2, AODV);
    let device = mesh.join(0, 1);
    mesh.nodes[0].ip(&["link", "add", "other0", "type", "veth", "peer", "name", "other1"]);
    mesh.nodes[0].ip(&["link", "set", "other0", "up"]);
    mesh.nodes[0].sysctl("ipv4/conf/all/rp_filter", "1");
    let before = switches(&mesh);
    mesh.start(0, std::slice::from_ref(&device));
    mesh.end(0, Signal::KILL);
    // The second daemon takes the values that the killed one has left for the old ones.
    let mut second = start_second(&mesh, "other0");
    let _ = fs::remove_file(mesh.folder.join("log0"));
    mesh.start(0, std::slice::from_ref(&device));
    mesh.end(0, Signal::TERM);
    let log = fs::read_to_string(mesh.folder.join("log0")).expect("it was written");
    assert!(!log.contains("was not written"), "{log}");
    second.interrupt();
    let _ = fs::remove_file(mesh.folder.join("log0"));
    mesh.start(0, std::slice::from_ref(&device));
    mesh.end(0, Signal::TERM);
    assert_eq!(switches(&mesh), before);
}

/// A user of the machine takes the names by which daemons announce switches to each other.
const FORGER: &str = "
import os, re, socket, sys
# A daemon that ran has left its names to be copied.
names = [line.split('@')[1] for line in open('/proc/net/unix').read().splitlines() if '@hopwise-switch-' in line]
prefix = re.match('hopwise-switch-[0-9a-f]+ ', names[0]).group()
held = []
def hold(name):
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].bind('\\0' + name)
    held[-1].listen()
os.setgid(4321)
os.setuid(4321)
hold(prefix + 'turn')
for name in names:
    key, before, after, _ = name.removeprefix(prefix).split(' ')
    hold(f'{prefix}{key} {after} {after} 1.0')
print('held', flush=True)
sys.stdin.read()
";

#[test]
fn names_that_a_user_of_the_machine_takes_keep_no_switch_changed() {
    needs!["ip", "sysctl", "sh", "grep", "python3"];
    let mut mesh = Mesh::new("switches5", 2, AODV);
    let device = mesh.join(0, 1);
    mesh.nodes[0].sysctl("ipv4/conf/all/rp_filter", "1");
    let before = switches(&mesh);
    mesh.start(0, std::slice::from_ref(&device));
    let mut command = mesh.nodes[0].command(&["python3", "-c", FORGER]);
    let mut forger = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 runs");
    let input = forger.stdin.take();
    let mut said = String::new();
    BufReader::new(forger.stdout.take().expect("a pipe")).read_line(&mut said).expect("it speaks");
    assert_eq!(said, "held\n");
    mesh.end(0, Signal::TERM);
    assert_eq!(switches(&mesh), before, "the claims of a stranger count for nothing");
    let log = fs::read_to_string(mesh.folder.join("log0")).expect("it was written");
    assert!(log.contains("holds the turn") && log.contains("in vain"), "{log}");
    let _ = fs::remove_file(mesh.folder.join("log0"));
    mesh.start(0, std::slice::from_ref(&device));
    assert_eq!(value(&mesh, "conf.all.rp_filter"), "0");
    mesh.end(0, Signal::TERM);
    assert_eq!(switches(&mesh), before);
    drop(input);
    forger.wait().expect("it ends");
}

#[test]
fn what_a_killed_daemon_left_in_a_namespace_that_is_gone_is_removed_by_the_next_one() {
    needs!["ip", "sh", "unshare"];
    let mut mesh = Mesh::new("switches6", 2, AODV);
    let device = mesh.join(0, 1);
    let folder = mesh.folder.to_path_buf();
    let left = || {
        let names = fs::read_dir(&folder).expect("it is there").flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("state-gone") && name.ends_with(".switches")).collect::<Vec<_>>()
    };
    // A namespace of no name, with a daemon that is killed there.
    let config = mesh.folder.join("gone.yaml");
    let text = format!(
        "address: 10.79.0.1\nnetwork: 10.79.0.0/24\ninterfaces: [other0]\nstate: {}\ntun: hopwise2\n\
         routing: {{ protocol: aodv }}\n",
        mesh.folder.join("state-gone").display()
    );
    fs::write(&config, text).expect("the folder can be written");
    let script = format!(
        "ip link add other0 type veth peer name other1 && ip link set other0 up && ip link set lo up && \
         {{ {HOPWISE} route {} 2>{}/log-gone & }} && \
         until grep -q 'ready address' {1}/log-gone; do sleep .05; done; kill -9 $!; wait",
        config.display(),
        mesh.folder.display()
    );
    let done = mesh.nodes[0].output(&["unshare", "--net", "sh", "-c", &script]);
    assert_eq!(left().len(), 1, "{done:?}");
    mesh.start(0, std::slice::from_ref(&device));
    let log = fs::read_to_string(mesh.folder.join("log0")).expect("it was written");
    assert!(log.contains("their network namespaces are gone"), "{log}");
    mesh.end(0, Signal::TERM);
    assert_eq!(left(), Vec::<String>::new());
}

#[test]
fn a_device_that_is_gone_ends_the_daemon_and_the_switches_are_put_back() {
    needs!["ip", "sysctl", "sh", "grep"];
    for is_tun in [true, false] {
        let mut mesh = Mesh::new(&format!("gone-{is_tun}"), 3, AODV);
        let devices = [mesh.join(0, 1), mesh.join(0, 2)];
        let before = switches(&mesh);
        mesh.start(0, &devices);
        let gone = if is_tun { "hopwise0" } else { &devices[0] };
        mesh.nodes[0].ip(&["link", "del", gone]);
        if !is_tun {
            mesh.join(0, 1);
        }
        let daemon = mesh.daemons[0].as_mut().expect("it runs");
        let mut status = None;
        within_patience(until(|| {
            status = daemon.try_wait().expect("a child");
            status.is_some()
        }));
        assert!(status.is_some_and(|status| !status.success()), "{status:?}");
        let log = mesh.log(0);
        assert!(log.contains(&format!("the device `{gone}` was removed or made anew")), "{log}");
        assert_eq!(switches(&mesh), before);
    }
}
