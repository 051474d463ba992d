//! Settings that a trial changes on hosts behind ssh: they come back however it ends.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Child;

use super::*;

const CHANGED: &str = "\
world: mesh\n\
topology: { kind: chain, hops: 2 }\n\
traffic: [{ from: first, to: last, kind: bulk }]\n\
host: { gro: false, txqueuelen: 333, sysctl: { net.ipv4.tcp_slow_start_after_idle: 0 } }\n\
arms: { kernel: { receiver: kernel, sender: kernel:reno } }\n\
run: { duration: 2s, warmup: 500ms, seeds: 1 }\n";

impl Hosts {
    /// The settings of a host as its own programs show them.
    fn shown(&self, nth: usize) -> String {
        let script = format!(
            "ip -o link show air{nth} | grep -o 'qlen [0-9]*'; ethtool -k air{nth} | grep generic-receive; \
             cat /proc/sys/net/ipv4/tcp_slow_start_after_idle"
        );
        String::from_utf8_lossy(&self.nodes[nth].output(&["sh", "-c", &script]).stdout).into_owned()
    }

    fn all_shown(&self) -> [String; 3] {
        [0, 1, 2].map(|nth| self.shown(nth))
    }

    /// The file of old values of a host.
    fn old_values(&self, nth: usize) -> PathBuf {
        let facts = self.nodes[nth].run(|| fs::metadata("/proc/thread-self/ns/net")).expect("it is there");
        PathBuf::from(format!("/run/hopwise-mesh/trial.{}-{}.up", facts.dev(), facts.ino()))
    }

    /// A trial without an end, whose hosts have all settings.
    fn changed(&self) -> Child {
        let mut command = self.command(&["--set", "run.duration=1h"]);
        let trial = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let is_changed = |shown: &String| shown.contains("qlen 333") && shown.ends_with("\n0\n");
        within_patience(until(|| self.all_shown().iter().all(is_changed)));
        let _ = fs::remove_dir_all(self.path("out"));
        trial
    }
}

#[test]
fn hosts_behind_ssh_have_their_settings_during_a_run_alone() {
    needs!["ip", "tc", "ssh", "sshd", "ssh-keygen", "ethtool"];
    let hosts = Hosts::new("settings");
    hosts.write("line.yaml", CHANGED);
    let before = hosts.all_shown();
    let output = hosts.trial(&[]);
    assert!(output.status.success(), "{}", said(&output));
    for node in ["n0", "n1", "n2"] {
        let rows = &hosts.records()[0]["result"]["live"]["host"][node];
        let row = &rows.as_array().expect("a list")[2];
        assert_eq!(
            (&row["name"], &row["wanted"], &row["after"]),
            (&"txqueuelen".into(), &"333".into(), &"333".into())
        );
    }
    assert_eq!(hosts.all_shown(), before);
}

#[test]
fn hosts_behind_ssh_keep_no_setting_of_a_trial_that_is_killed_five_times() {
    needs!["ip", "tc", "ssh", "sshd", "ssh-keygen", "ethtool"];
    let hosts = Hosts::new("unsettled");
    hosts.write("line.yaml", CHANGED);
    let before = hosts.all_shown();
    for nth in 0..5 {
        let mut trial = hosts.changed();
        kill_process(Pid::from_child(&trial), Signal::KILL).expect("it lives");
        trial.wait().expect("it ends");
        within_patience(until(|| hosts.all_shown() == before));
        within_patience(until(|| (0..3).all(|node| !hosts.old_values(node).exists())));
        println!("kill {nth}: nothing is left");
    }
    // A host that loses its part keeps the settings until the doctor or the next run.
    for is_repaired in [true, false] {
        let mut trial = hosts.changed();
        let [part] = hosts.processes(1, "part")[..] else { panic!("one part") };
        kill_process(part, Signal::KILL).expect("it lives");
        let _ = trial.kill();
        trial.wait().expect("it ends");
        within_patience(until(|| hosts.shown(0) == before[0] && hosts.shown(2) == before[2]));
        assert!(hosts.shown(1).contains("qlen 333") && hosts.old_values(1).exists());
        if is_repaired {
            let found = hosts.nodes[1].output(&[HOPWISE, "doctor"]).stdout;
            assert!(String::from_utf8_lossy(&found).contains("[mesh-up-left]"));
            hosts.nodes[1].output(&[HOPWISE, "doctor", "--repair"]);
        } else {
            let output = hosts.trial(&[]);
            assert!(output.status.success(), "{}", said(&output));
        }
        assert_eq!(hosts.all_shown(), before, "by the doctor: {is_repaired}");
        assert!(!hosts.old_values(1).exists());
    }
}
