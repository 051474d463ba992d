//! The units that come with us: how much they leave to a daemon, and that it works with no more.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::field::{Field, HOPWISE, PAGE};
use crate::namespace::can_run;

const SOCKS5: &str = "socks5: { listen: 127.0.0.1:1080 }";
const UNITS: [&str; 3] = ["hopwise@.service", "hopwise-route@.service", "hopwise-proxy@.service"];
/// Tenths of systemd's measure, of which less is better.
const MOST_EXPOSED: &str = "25";

fn unit(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("configs").join(name)
}

/// The words of a directive.
fn directive(name: &str, directive: &str) -> Vec<String> {
    let text = fs::read_to_string(unit(name)).expect("the unit is there");
    let value = text.lines().find_map(|line| line.strip_prefix(directive)?.strip_prefix('='));
    value.expect("the unit says it").split(' ').map(str::to_owned).collect()
}

#[test]
fn systemd_calls_each_unit_well_confined() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        println!(
            "skipped: systemd_calls_each_unit_well_confined: there is no systemd-analyze (package systemd)"
        );
        return;
    }
    for name in UNITS {
        let rated = Command::new("systemd-analyze")
            .args(["security", "--offline=yes", "--no-pager", &format!("--threshold={MOST_EXPOSED}")])
            .arg(unit(name))
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&rated.stdout);
        assert!(rated.status.success(), "{name}: {}", said.lines().last().unwrap_or_default());
        assert_eq!(directive(name, "User"), ["hopwise"]);
        assert_eq!(directive(name, "NoNewPrivileges"), ["yes"]);
    }
}

/// A user with the unit's capabilities and no way to more. The kernel's device is everybody's, as udev makes it.
fn confined(unit: &str, command: &str) -> String {
    let capabilities: Vec<_> = directive(unit, "AmbientCapabilities")
        .iter()
        .map(|name| format!("+{}", name.trim_start_matches("CAP_").to_lowercase()))
        .collect();
    let capabilities = capabilities.join(",");
    format!(
        "mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200 && \
         exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --bounding-set=-all,{capabilities} \
         --inh-caps=-all,{capabilities} --ambient-caps=-all,{capabilities} {command}"
    )
}

#[test]
fn a_node_works_with_no_more_than_its_unit_leaves_it() {
    let test = "a_node_works_with_no_more_than_its_unit_leaves_it";
    if !can_run(test, &["curl", "python3", "setpriv", "mknod"]) {
        return;
    }
    for kind in ["kind: tun", "kind: tun-fast, queues: 2"] {
        let field = Field::new("confined");
        let _server = field.serve(&field.web, "10.9.0.2", "80");
        let config = field.config_over(kind, SOCKS5);
        std::os::unix::fs::chown(&field.folder, Some(65534), Some(65534)).expect("root may");
        let command = confined(UNITS[0], &format!("{HOPWISE} node {config}"));
        let mut daemon = field.spawn_as(&["sh", "-c", &command]);
        let page = field.curl(&["-s", "--socks5-hostname", "127.0.0.1:1080", "http://10.9.0.2/"]);
        assert_eq!(String::from_utf8_lossy(&page.stdout), PAGE, "{kind} {}", field.log());
        daemon.tell(Signal::TERM);
        assert_eq!(daemon.ended(), Some(0), "{kind} {}", field.log());
    }
}
