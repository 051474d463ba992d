//! A host of a test's own, with an ordinary user on it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const HOPWISE: &str = env!("CARGO_BIN_EXE_hopwise");

/// A host on which users may open `/dev/net/tun`, and one on which they may not.
pub(crate) const OPEN: bool = true;
pub(crate) const CLOSED: bool = false;

/// The beginning of each script: a host with addresses of its own, and an ordinary user's `hopwise exec`.
const BEGINNING: &str = "\
set -e
trap 'kill $(jobs -p) 2> /dev/null || true; wait || true' EXIT
ip link set lo up
ip addr add 10.9.0.1/32 dev lo; ip addr add fd09::1/128 dev lo
if [ $OPEN = true ]; then
    mknod tun c 10 200; chmod 666 tun
    [ -e /dev/net/tun ] || { mkdir -p /dev/net; touch /dev/net/tun; }
    mount --bind tun /dev/net/tun
else
    chmod 600 /dev/net/tun 2> /dev/null || true
fi
exec_() { $EXEC \"$@\"; }
";

/// `has_ssh THERE LISTENS` makes keys, an account for the user, sshd's file for the second address, and ssh's options.
/// A file of root's, which ssh's own includes, calls the first address `there`.
pub(crate) const SSH: &str = "\
has_ssh() {
    ssh-keygen -q -t ed25519 -N '' -f own; ssh-keygen -q -t ed25519 -N '' -f key; chown 4242 key
    (cat /etc/passwd; echo \"user:x:4242:4242::$PWD:/bin/sh\") > passwd; mount --bind passwd /etc/passwd
    mount -t tmpfs none /etc/ssh; echo 'Include ssh_config.d/*.conf' > /etc/ssh/ssh_config
    mkdir /etc/ssh/ssh_config.d; printf 'Host there\\n HostName %s\\n' $1 > /etc/ssh/ssh_config.d/root.conf
    mkdir /run/sshd
    printf '%s\\n' \"ListenAddress $2:22\" \"HostKey $PWD/own\" \"AuthorizedKeysFile $PWD/key.pub\" \\
        'StrictModes no' 'PermitRootLogin yes' 'UsePAM no' 'PidFile none' \"SetEnv HOME=$PWD\" > sshd.conf
    asks='-o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no -o LogLevel=ERROR'
}
";

/// Returns whether a test can run. If not, it prints the reason in the form that scripts/test counts.
pub(crate) fn can_run(test: &str, commands: &[&str]) -> bool {
    let has = |command: &&str| {
        let found = Command::new("sh").args(["-c", &format!("command -v {command}")]).output();
        found.is_ok_and(|output| output.status.success())
    };
    let lacking = ["bash", "ip", "setpriv", "unshare"].iter().chain(commands).find(|command| !has(command));
    let obstacle = if !rustix::process::geteuid().is_root() {
        Some("needs root, for a host of its own".to_owned())
    } else if let Some(command) = lacking {
        Some(format!("the command {command} is not installed"))
    } else if !user_may_have_namespaces() {
        Some("ordinary users have no user namespaces here".to_owned())
    } else {
        None
    };
    if let Some(reason) = &obstacle {
        println!("skipped: {test}: {reason}");
    }
    obstacle.is_none()
}

fn user_may_have_namespaces() -> bool {
    let tried = Command::new("setpriv").args(AS_USER).args(["unshare", "-U", "-n", "true"]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// Not 65534: in a user namespace that one seems to be whoever has no number there, such as root.
const AS_USER: [&str; 3] = ["--reuid=4242", "--regid=4242", "--clear-groups"];

/// A folder that every user may write, and what a script in it finds.
#[derive(Debug)]
pub(crate) struct Host {
    folder: PathBuf,
    is_open: bool,
}

impl Host {
    pub(crate) fn new(test: &str, is_open: bool) -> Host {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("hopexec-{}-{number}-{}", std::process::id(), &test[..test.len().min(20)]);
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("the temporary folder can be written");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("it is ours");
        // An ordinary user need not be able to read the folder of the build.
        fs::copy(HOPWISE, folder.join("hopwise")).expect("it has been built");
        Host { folder, is_open }
    }

    /// Runs a script of bash to its end, and returns its output.
    pub(crate) fn run(&self, script: &str) -> String {
        let program = self.folder.join("hopwise").to_string_lossy().into_owned();
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "bash", "-c", &format!("{BEGINNING}{script}")]);
        command.current_dir(&self.folder).env("OPEN", self.is_open.to_string());
        command.env("BARE", &program).env("HOME", &self.folder);
        // The folders that an ordinary user may look into.
        command.env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("EXEC", format!("setpriv {} {program} exec", AS_USER.join(" ")));
        let output = command.stdin(Stdio::null()).output().expect("unshare runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}{errors}{}", logs(&self.folder));
        said
    }
}

/// The ends of the logs that a script has left.
fn logs(folder: &Path) -> String {
    let names = ["said", "node.log", "log4", "log6", "log7"];
    let read = |name: &&str| fs::read_to_string(folder.join(name)).ok().map(|text| format!("{name}: {text}"));
    names.iter().filter_map(read).collect()
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
