//! `hopwise mesh up` on wires: what it sets, how it goes back, and what a killed one leaves.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::folder::Folder;
use crate::namespace::{Namespace, Running};
use crate::world::{until, within_patience};

const HOPWISE: &str = env!("CARGO_BIN_EXE_hopwise");

/// A machine with an interface that has a state of its own, and another machine at the end of its wire.
struct Machine {
    node: Namespace,
    _other: Namespace,
    folder: Folder,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Machine {
    fn new(test: &str) -> Machine {
        let folder = Folder::new(test);
        let (node, other) = (Namespace::new(), Namespace::new());
        node.join(&other, "w0", "10.1.0.1/24", "10.9.0.2/24");
        for words in [
            "link set w0 mtu 1400",
            "addr add 10.1.0.7/24 dev w0",
            "addr add fd01::1/64 dev w0 nodad",
            "route add 10.77.0.0/16 via 10.1.0.9 dev w0 metric 50",
            "-6 route add fd77::/32 via fd01::9 dev w0 metric 70",
        ] {
            node.ip(&words.split(' ').collect::<Vec<_>>());
        }
        node.sysctl("ipv4/conf/w0/forwarding", "0");
        node.output(&["ethtool", "-K", "w0", "gro", "on"]);
        let machine = Machine { node, _other: other, folder };
        // The kernel gives the interface an address, and tries it for a while.
        within_patience(until(|| machine.is_settled()));
        machine
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }

    /// Writes a file for one interface, with `more` of it.
    fn file(&self, name: &str, more: &str) -> String {
        self.whole_file(name, &format!("clock: ignore\ninterfaces: [{{ name: w0, mode: wired, {more} }}]\n"))
    }

    fn whole_file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).expect("the folder can be written");
        path
    }

    fn mesh(&self, words: &[&str]) -> Output {
        let state = self.path("state");
        self.node.output(&[&[HOPWISE, "mesh"], words, &["--state", &state]].concat())
    }

    /// The same, and it succeeds.
    fn does(&self, words: &[&str]) -> String {
        let output = self.mesh(words);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        said
    }

    fn doctor(&self, words: &[&str]) -> String {
        let state = self.path("state");
        text(&self.node.output(&[&[HOPWISE, "doctor", "--state", &state], words].concat()).stdout)
    }

    fn is_settled(&self) -> bool {
        let shown = text(&self.node.output(&["ip", "-6", "addr", "show", "dev", "w0"]).stdout);
        shown.contains("fe80::") && !shown.contains("tentative")
    }

    /// The whole state of the interface.
    fn shown(&self) -> String {
        let script = "ip -d addr show dev w0 | grep -v valid_lft; ip route show table all dev w0; \
                      ip -6 route show table all dev w0 | sort; \
                      grep -H . /proc/sys/net/ipv4/conf/w0/forwarding /proc/sys/net/ipv6/conf/*/forwarding \
                      /proc/sys/net/ipv6/conf/*/accept_ra; ethtool -k w0 | grep -e segmentation -e receive-off";
        text(&self.node.output(&["sh", "-c", script]).stdout)
    }

    /// Checks that the interface has this state. The kernel makes an address's routes a moment after the address.
    fn is_again(&self, state: &str) {
        let seen = std::iter::repeat_with(|| self.shown()).take(100).find(|shown| shown == state);
        assert_eq!(seen.unwrap_or_else(|| self.shown()), state);
    }

    fn reaches(&self, address: &str) -> bool {
        self.node.output(&["ping", "-q", "-c", "1", "-W", "5", address]).status.success()
    }

    /// The processes that wait for a confirmation of this machine.
    fn keepers(&self) -> Vec<i32> {
        let state = self.path("state");
        let all = fs::read_dir("/proc").expect("it is mounted").flatten();
        let is_one = |id: &i32| {
            let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            let words = text(&words);
            words.contains("mesh\0keep\0") && words.contains(&state)
        };
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_one).collect()
    }

    fn kill_keeper(&self) {
        for keeper in self.keepers() {
            kill_process(Pid::from_raw(keeper).expect("a number"), Signal::KILL).expect("it runs");
        }
        within_patience(until(|| self.keepers().is_empty()));
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for keeper in self.keepers() {
            let _ = Pid::from_raw(keeper).map(|keeper| kill_process(keeper, Signal::KILL));
        }
    }
}

const NEEDS: [&str; 4] = ["ip", "ping", "ethtool", "sh"];
const WANTED: &str = "addresses: [10.9.0.1/24, \"fd09::1/64\"], mtu: 1500, forwarding: true";

#[test]
fn an_interface_comes_up_is_confirmed_and_goes_down_to_what_it_was() {
    needs!(&NEEDS);
    let machine = Machine::new("whole");
    let file = machine.file("mesh.yaml", WANTED);
    let before = machine.shown();
    let said = machine.does(&["up", &file, "--within", "300s"]);
    assert!(said.contains("w0: add address 10.9.0.1/24") && said.contains("goes back in 300 s"), "{said}");
    let shown = machine.shown();
    for wanted in ["10.9.0.1/24", "fd09::1/64", "mtu 1500", "w0/forwarding:1", "all/forwarding:1"] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    for gone in ["inet 10.1.0", "inet6 fd01", "10.77.0.0"] {
        assert!(before.contains(gone) && !shown.contains(gone), "{gone}: {before}\n{shown}");
    }
    assert!(machine.reaches("10.9.0.2"));
    let busy = machine.mesh(&["up", &file]);
    assert!(text(&busy.stderr).contains("hopwise mesh confirm"), "{busy:?}");

    assert!(machine.does(&["confirm"]).contains("confirmed; "));
    within_patience(until(|| machine.keepers().is_empty()));
    assert!(machine.does(&["confirm"]).contains("confirmed already"));
    machine.is_again(&shown); // A confirmed one stays.
    assert!(machine.doctor(&[]).contains("no killed `hopwise mesh up`"));
    assert_eq!(machine.does(&["up", &file, "--json"]).trim(), r#"{"changed":false,"steps":[],"notes":[]}"#);

    // An administrator has changed it since.
    machine.node.ip(&["addr", "del", "10.9.0.1/24", "dev", "w0"]);
    let said = machine.does(&["up", &file, "--no-confirm"]);
    assert!(said.contains("have changed since"), "{said}");
    machine.is_again(&shown);

    machine.does(&["down"]);
    machine.is_again(&before);
    assert!(machine.does(&["down"]).contains("nothing was up"));
    assert_eq!(fs::read_dir(machine.path("state")).map(Iterator::count).unwrap_or(0), 0);
}

#[test]
fn offloads_stay_on_unless_the_file_turns_them_off() {
    needs!(&NEEDS);
    let machine = Machine::new("offloads");
    let before = machine.shown();
    for (more, stay) in [("", true), ("offloads: true", true), ("offloads: false", false)] {
        machine.does(&["up", &machine.file("mesh.yaml", more), "--no-confirm"]);
        let shown = machine.shown();
        for offload in ["generic-receive-offload: on", "tx-tcp-segmentation: on"] {
            assert!(before.contains(offload), "{before}");
            assert_eq!(shown.contains(offload), stay, "{more}: {shown}");
        }
        machine.does(&["down"]);
        machine.is_again(&before);
    }
}

#[test]
fn what_is_not_confirmed_goes_back_also_after_its_whole_session_was_killed() {
    needs!(&NEEDS);
    let machine = Machine::new("revert");
    let file = machine.file("mesh.yaml", WANTED);
    let (before, state) = (machine.shown(), machine.path("state"));
    let script = format!("{HOPWISE} mesh up {file} --within 2s --state {state}; sleep 600");
    let mut session = machine.node.command(&["sh", "-c", &script]);
    let session = session.process_group(0).stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::null());
    let mut session = session.spawn().expect("it starts");
    within_patience(until(|| {
        fs::read_dir(&state).is_ok_and(|files| {
            files.flatten().any(|file| file.file_name().to_string_lossy().ends_with(".sock"))
        })
    }));
    kill_process_group(Pid::from_child(&session), Signal::KILL).expect("it runs");
    session.wait().expect("it was ours");
    within_patience(until(|| machine.shown() == before));
    within_patience(until(|| machine.keepers().is_empty()));
    let late = machine.mesh(&["confirm"]);
    assert!(!late.status.success() && text(&late.stderr).contains("went back already"), "{late:?}");
    machine.does(&["up", &file]);
    machine.does(&["down"]);
    machine.is_again(&before); // Down needs not to wait.
    within_patience(until(|| machine.keepers().is_empty()));
}

#[test]
fn a_killed_one_is_undone_by_down_by_the_next_up_and_by_repair() {
    needs!(&NEEDS);
    let machine = Machine::new("killed");
    let file = machine.file("mesh.yaml", WANTED);
    let before = machine.shown();
    let leave = || {
        machine.does(&["up", &file, "--within", "300s"]);
        machine.kill_keeper();
        assert_ne!(machine.shown(), before, "a killed process puts nothing back");
    };
    leave();
    assert!(text(&machine.mesh(&["confirm"]).stderr).contains("killed half-way"));
    let said = machine.doctor(&[]);
    assert!(
        said.contains("a killed `hopwise mesh up` or trial left interfaces changed [mesh-up-left]"),
        "{said}"
    );
    assert!(machine.doctor(&["--repair"]).contains("changes undone"));
    machine.is_again(&before);
    leave();
    machine.does(&["down"]);
    machine.is_again(&before);
    leave();
    let said = machine.does(&["up", &file, "--no-confirm"]);
    assert!(said.contains("undoing what an interrupted"), "{said}");
    machine.does(&["down"]);
    machine.is_again(&before);
}

#[test]
fn a_step_that_fails_is_named_with_the_kernel_s_answer_and_all_before_it_goes_back() {
    needs!(&NEEDS);
    let machine = Machine::new("fails");
    machine.node.ip(&["link", "add", "m0", "link", "w0", "type", "macvlan"]);
    let text_of = |mtu| {
        format!(
            "interfaces: [{{ name: w0, mode: wired, {WANTED} }}, {{ name: m0, mode: wired, mtu: {mtu} }}]\n"
        )
    };
    let file = machine.whole_file("mesh.yaml", &text_of(9_000));
    let before = machine.shown();
    for more in [&["--no-confirm"][..], &[]] {
        let output = machine.mesh(&[&["up", &file], more].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for wanted in ["m0: set its MTU to 9000 bytes: Invalid argument", "a smaller `mtu`"] {
            assert!(said.contains(wanted), "{wanted}: {said}");
        }
        machine.is_again(&before);
    }
    // The process that waits for a confirmation may end a moment after the command, which hinders nobody.
    let good = machine.file("good.yaml", "addresses: [10.9.0.5/24]");
    machine.does(&["up", &good, "--no-confirm"]);
    let first = machine.shown();
    assert!(!machine.mesh(&["up", &file]).status.success());
    within_patience(until(|| machine.keepers().is_empty()));
    machine.is_again(&first); // The file that was confirmed before is up again.
    machine.does(&["down"]);
    machine.is_again(&before);
}

#[test]
fn another_file_replaces_the_first_which_comes_back_without_a_confirmation() {
    needs!(&NEEDS);
    let machine = Machine::new("second");
    let before = machine.shown();
    let first = machine.file("first.yaml", "addresses: [10.9.0.1/24]");
    let second = machine.file("second.yaml", "addresses: [10.9.0.3/24], mtu: 1300");
    machine.does(&["up", &first, "--no-confirm"]);
    let of_first = machine.shown();
    machine.does(&["up", &second, "--within", "1s"]);
    within_patience(until(|| machine.shown() == of_first));
    within_patience(until(|| machine.keepers().is_empty()));
    let late = machine.mesh(&["confirm"]);
    assert!(!late.status.success() && text(&late.stderr).contains("was not confirmed in time"), "{late:?}");
    machine.does(&["up", &second, "--within", "300s"]);
    machine.does(&["confirm"]);
    assert!(machine.shown().contains("10.9.0.3/24"));
    machine.does(&["down"]);
    machine.is_again(&before);
}

#[test]
fn a_dry_run_changes_nothing_and_what_this_machine_lacks_is_refused_at_its_place() {
    needs!(&NEEDS);
    let machine = Machine::new("dry");
    let file = machine.file("mesh.yaml", WANTED);
    let before = machine.shown();
    let said = machine.does(&["up", &file, "--dry-run"]);
    for wanted in [
        "w0: remove address 10.1.0.1/24",
        "w0: set its MTU to 1500 bytes",
        "w0: set net/ipv4/conf/w0/forwarding to 1",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    // They are undone in reverse: addresses go while IPv6 is still forwarded.
    let place = |words| said.find(words).expect("a step");
    assert!(place("ipv6/conf/all/forwarding") < place("add address fd09::1/64"), "{said}");
    let said = machine.does(&["up", &file, "--dry-run", "--json"]);
    let report: serde_json::Value = serde_json::from_str(said.trim()).expect("one object");
    assert!(report["steps"].as_array().is_some_and(|steps| steps.len() > 5), "{report}");
    machine.is_again(&before);
    assert!(machine.does(&["down"]).contains("nothing was up"));
    for (text_of, wanted) in [
        ("interfaces:\n  - name: w7\n    mode: wired\n", "no interface is called `w7`"),
        ("interfaces: [{ name: w0, mode: ibss, ssid: x, channel: 1 }]\n", "has no radio"),
    ] {
        let output = machine.mesh(&["up", &machine.whole_file("lacks.yaml", text_of)]);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(wanted), "{said}");
    }
}

#[test]
fn a_session_over_an_interface_that_changes_is_warned() {
    needs!(&NEEDS);
    let machine = Machine::new("ssh");
    let file = machine.file("mesh.yaml", WANTED);
    let said = |connection: &str| {
        let state = machine.path("state");
        let words = [HOPWISE, "mesh", "up", &file, "--dry-run", "--json", "--state", &state];
        let mut command: Command = machine.node.command(&words);
        text(&command.env("SSH_CONNECTION", connection).output().expect("it starts").stdout)
    };
    let warning = "this ssh session comes over w0";
    assert!(said("10.1.0.9 50000 10.1.0.1 22").contains(warning));
    assert!(!said("127.0.0.1 50000 127.0.0.1 22").contains(warning));
}

/// Commands of managers that note how they are called, and answer as theirs do.
const NMCLI: &str = "#!/bin/sh\necho nmcli \"$@\" >> $CALLS\n\
    case $* in *managed\\ no) echo no > $CALLS.nm;; *managed\\ yes) rm $CALLS.nm;; esac\n\
    [ \"$1\" = -t ] && if [ -e $CALLS.nm ]; then echo w0:unmanaged; else echo w0:connected; fi\ntrue\n";
const WPA_CLI: &str = "#!/bin/sh\necho wpa_cli \"$@\" >> $CALLS\n\
    case $3 in disconnect) touch $CALLS.wpa; echo OK;; reconnect) rm $CALLS.wpa; echo OK;;\n\
    status) if [ -e $CALLS.wpa ]; then echo wpa_state=DISCONNECTED; else echo wpa_state=COMPLETED; fi;; esac\n";
/// It notes what its daemon would read.
const NETWORKCTL: &str = "#!/bin/sh\nread=$(grep -hv -e '^#' -e '^$' /run/systemd/network/05-* | paste -sd ' ')\n\
    echo networkctl \"$@\" \"$read\" >> $CALLS\n";
const DAEMON: &str = "#!/bin/sh\n[ \"$1\" = run ] && sleep 600\necho ${0##*/} \"$@\" >> $CALLS\n";
/// The unit that brings interfaces up when the machine starts.
const UNIT: &str = include_str!("../../deploy/ansible/roles/hopwise/templates/hopwise-mesh.service.j2");

/// The capabilities that the unit leaves to root, as setpriv takes them.
fn of_unit() -> String {
    let line = UNIT.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let names = line.expect("the unit has a line").split(' ');
    let names = names.map(|name| name.trim_start_matches("CAP_").to_lowercase());
    names.fold("--bounding-set=-all".to_owned(), |all, name| format!("{all},+{name}"))
}

/// Runs a command with another folder in place of /run.
const WITH_RUN: &str = "mount --bind $0 /run && exec \"$@\"";

/// A machine with commands and daemons of managers.
struct Managed {
    machine: Machine,
    _daemons: [Running; 2],
}

impl Managed {
    fn new(test: &str) -> Managed {
        let machine = Machine::new(test);
        for folder in ["bin", "run"] {
            fs::create_dir(machine.path(folder)).expect("the folder can be written");
        }
        let scripts = [
            ("nmcli", NMCLI),
            ("wpa_cli", WPA_CLI),
            ("networkctl", NETWORKCTL),
            ("dhcpcd", DAEMON),
            ("systemd-networkd", DAEMON),
        ];
        for (name, script) in scripts {
            let path = machine.path(&format!("bin/{name}"));
            fs::write(&path, script).expect("the folder can be written");
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
        let daemons = ["dhcpcd", "systemd-networkd"].map(|name| {
            let path = machine.path(&format!("bin/{name}"));
            let daemon = machine.node.start(&[path.clone(), "run".to_owned()]);
            let runs = || {
                let all = fs::read_dir("/proc").expect("it is mounted").flatten();
                let words = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
                words.into_iter().any(|words| text(&words).contains(&path))
            };
            within_patience(until(runs));
            daemon
        });
        Managed { machine, _daemons: daemons }
    }

    fn does(&self, words: &[&str]) -> String {
        let of = |name| self.machine.path(name);
        let (state, run) = (of("state"), of("run"));
        let rights = of_unit();
        let shell = [
            "unshare",
            "-m",
            "sh",
            "-c",
            WITH_RUN,
            &run,
            "setpriv",
            &rights,
            "--inh-caps=-all",
            HOPWISE,
            "mesh",
        ];
        let words = [&shell[..], words, &["--state", &state]].concat();
        let path = format!("{}:{}", of("bin"), std::env::var("PATH").expect("there is one"));
        let mut command = self.machine.node.command(&words);
        let output = command.env("PATH", path).env("CALLS", of("calls")).output().expect("it starts");
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout)
    }

    /// The calls since the last look that tell a manager something.
    fn called(&self) -> Vec<String> {
        let calls = self.machine.path("calls");
        let all = fs::read_to_string(&calls).unwrap_or_default();
        let _ = fs::remove_file(&calls);
        let told = all.lines().filter(|line| !line.contains("-t -f") && !line.contains("status"));
        told.map(|line| line.trim_end().to_owned()).collect()
    }

    /// The files for systemd-networkd.
    fn files(&self) -> usize {
        fs::read_dir(self.machine.path("run/systemd/network")).map_or(0, Iterator::count)
    }
}

const ALONE: [&str; 4] = [
    "nmcli device set w0 managed no",
    "networkctl reload [Match] Name=w0 [Link] Unmanaged=yes",
    "dhcpcd -x w0",
    "wpa_cli -i w0 disconnect",
];
const BACK: [&str; 4] =
    ["wpa_cli -i w0 reconnect", "dhcpcd -n w0", "networkctl reload", "nmcli device set w0 managed yes"];

#[test]
fn managers_are_told_to_leave_the_interface_alone_and_get_it_back() {
    needs!(&[&NEEDS[..], &["unshare", "mount", "setpriv"]].concat());
    let managed = Managed::new("managers");
    let file = managed.machine.file("mesh.yaml", WANTED);
    managed.does(&["up", &file, "--no-confirm"]);
    assert_eq!(managed.called(), ALONE);
    assert!(managed.does(&["up", &file, "--no-confirm"]).contains("up already"), "{:?}", managed.called());
    assert_eq!(managed.called(), [""; 0]);
    managed.does(&["down"]);
    assert_eq!(managed.called(), BACK);
    assert_eq!(managed.files(), 0);
    let file = managed.machine.file("managed.yaml", &format!("{WANTED}, managed: true"));
    managed.does(&["up", &file, "--no-confirm"]);
    managed.does(&["down"]);
    assert_eq!(managed.called(), [""; 0], "with managed: true they keep it");
}

#[test]
fn a_killed_one_and_an_interface_that_is_gone_leave_no_file_for_networkd() {
    needs!(&[&NEEDS[..], &["unshare", "mount", "setpriv"]].concat());
    let managed = Managed::new("networkd");
    let file = managed.machine.file("mesh.yaml", WANTED);
    managed.does(&["up", &file, "--within", "300s"]);
    managed.machine.kill_keeper();
    assert_eq!((managed.called(), managed.files()), (ALONE.map(str::to_owned).to_vec(), 1));
    managed.does(&["down"]);
    assert_eq!((managed.called(), managed.files()), (BACK.map(str::to_owned).to_vec(), 0));
    managed.does(&["up", &file, "--no-confirm"]);
    managed.called();
    managed.machine.node.ip(&["link", "del", "w0"]);
    managed.does(&["down"]);
    assert_eq!((managed.called(), managed.files()), (vec!["networkctl reload".to_owned()], 0));
}
