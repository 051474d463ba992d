//! Commands on other hosts, by the user's own ssh and its configuration.
//!
//! Each host has one connection that later commands share (OpenSSH's ControlMaster). It ends with this program, or by
//! itself a minute after a killed one. No command is waited for longer than its bound, and no password is asked for.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hopwise_host::bound_files;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::inventory::{COMMAND, Destination, Host};
use hopwise_daemon::failure::Failure;
use hopwise_daemon::own_files::OwnFolder;
use hopwise_daemon::shell::quoted;

/// The longest answer of a host.
const LONGEST: u64 = 16 << 20;
/// The longest reason that a host gives.
const LONGEST_REASON: usize = 300;
/// The time between two looks for the end of a program.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The time that a connection stays open without this program.
const PERSIST: &str = "ControlPersist=60";
/// The time for the end of all connections.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);
/// The exit status of ssh itself, and a shell's exit status if it finds no such command.
const OF_SSH: i32 = 255;
const NOT_FOUND: i32 = 127;

/// Why a host gave no answer, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached(pub String);

/// `ssh` with what the inventory says of a host, before its destination.
fn ssh(to: &Destination) -> Command {
    let mut ssh = Command::new("ssh");
    ssh.args(["-T", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR"]).stdin(Stdio::null());
    for (option, value) in [("-F", to.config.as_deref()), ("-i", to.identity.as_deref())] {
        if let Some(value) = value {
            ssh.arg(option).arg(value);
        }
    }
    if let Some(port) = to.port {
        ssh.arg("-p").arg(port.to_string());
    }
    if let Some(user) = &to.user {
        ssh.arg("-l").arg(user);
    }
    ssh.args(&to.options);
    ssh
}

/// A command on a host, over a connection of its own: `words` are what the shell there reads.
pub fn command(to: &Destination, words: &str) -> Command {
    let mut command = ssh(to);
    command.args(["--", &to.host, words]);
    command
}

/// The connections of this program.
#[derive(Debug)]
pub struct SshConnections {
    /// It has a socket and a file of errors for each host.
    folder: OwnFolder,
    /// The bound of a command, from the search for the host to its last word.
    within: Duration,
}

impl SshConnections {
    pub fn new(within: Duration) -> Result<SshConnections, Failure> {
        // A program has one, and its tests have several.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = OwnFolder::make(&format!("hopwise-ssh-{number}-"));
        let folder = folder.map_err(|error| Failure::failed("make a folder for connections", error))?;
        Ok(SshConnections { folder, within })
    }

    /// Runs `hopwise` with these arguments on a host, and returns what it printed.
    pub(crate) async fn run(&self, host: &Host, arguments: &[String]) -> Result<Vec<u8>, Unreached> {
        self.until_it_ends(host, self.command(host, arguments)).await
    }

    /// `hopwise` with these arguments on a host, over its connection.
    pub fn command(&self, host: &Host, arguments: &[String]) -> Command {
        let words: Vec<_> = arguments.iter().map(|word| quoted(word)).collect();
        let words = words.join(" ");
        let Some(to) = &host.ssh else {
            let mut here = Command::new("sh");
            here.arg("-c").arg(format!("{} {words}", here_command(host)));
            return here;
        };
        let mut ssh = ssh(to);
        // ssh's own bound is a second shorter: its reason says more than ours.
        let seconds = self.within.as_secs().saturating_sub(1).max(1);
        ssh.arg("-o").arg(format!("ConnectTimeout={seconds}"));
        ssh.args(["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2"]);
        ssh.args(["-o", "ControlMaster=auto", "-o", PERSIST]);
        ssh.arg("-o").arg(format!("ControlPath={}", self.socket(host).display()));
        ssh.args(["--", &to.host, &format!("{} {words}", host.command)]);
        ssh
    }

    /// Output goes to files: a pipe would stay open with the connection.
    async fn until_it_ends(&self, host: &Host, mut command: Command) -> Result<Vec<u8>, Unreached> {
        let unreached = |problem: &dyn std::fmt::Display| Unreached(problem.to_string());
        let [said, errors] = ["out", "errors"].map(|kind| self.file(host, kind));
        let create = |path: &Path| File::create(path).map_err(|error| unreached(&error));
        command.stdin(Stdio::null()).stdout(create(&said)?).stderr(create(&errors)?);
        let program = command.get_program().to_string_lossy().into_owned();
        let failed = |error: io::Error| unreached(&format_args!("{program}: {error}"));
        let mut running = RunningProgram::start(&mut command).map_err(failed)?;
        let ended = timeout(self.within, running.ended()).await;
        if is_full(&said) || is_full(&errors) {
            return Err(Unreached(format!(
                "its answer is too long, expected less than {} MiB",
                LONGEST >> 20
            )));
        }
        match ended {
            Ok(Ok(status)) if status.success() => read(&said).map_err(|error| unreached(&error)),
            Ok(Ok(status)) => Err(Unreached(reason(host, status, &last_line(&errors)))),
            Ok(Err(error)) => Err(unreached(&error)),
            Err(_) => Err(Unreached(format!("no answer within {} s", self.within.as_secs_f64()))),
        }
    }

    /// Ends all connections, and removes their folder.
    pub(crate) async fn close(self, hosts: &[Host]) {
        self.end(hosts).await;
    }

    /// Ends all connections.
    pub async fn end(&self, hosts: &[Host]) {
        let mut ending = JoinSet::new();
        for host in hosts {
            let (Some(to), socket) = (&host.ssh, self.socket(host)) else { continue };
            if !socket.exists() {
                continue;
            }
            let mut ssh = ssh(to);
            ssh.arg("-S").arg(socket).args(["-O", "exit", "--", &to.host]);
            ssh.stdout(Stdio::null()).stderr(Stdio::null());
            if let Ok(mut running) = RunningProgram::start(&mut ssh) {
                ending.spawn(async move { running.ended().await });
            }
        }
        let all = async { while ending.join_next().await.is_some() {} };
        // One that is stuck ends by itself.
        let _ = timeout(CLOSE_WITHIN, all).await;
    }

    fn socket(&self, host: &Host) -> PathBuf {
        self.file(host, "socket")
    }

    /// A file of a host. Sockets have short names: a path to one has at most 107 bytes.
    fn file(&self, host: &Host, kind: &str) -> PathBuf {
        let mut hash = std::hash::DefaultHasher::new();
        std::hash::Hash::hash(&host.name, &mut hash);
        self.folder.path().join(format!("{kind:.1}{:016x}", std::hash::Hasher::finish(&hash)))
    }
}

/// A program and all that it starts, which do not outlive this value.
#[derive(Debug)]
struct RunningProgram(Child);

impl RunningProgram {
    fn start(command: &mut Command) -> io::Result<RunningProgram> {
        bound_answers(command);
        Ok(RunningProgram(command.process_group(0).spawn()?))
    }

    async fn ended(&mut self) -> io::Result<ExitStatus> {
        loop {
            match self.0.try_wait()? {
                Some(status) => return Ok(status),
                None => sleep(LOOK_EVERY).await,
            }
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // The number is its own until it was waited for.
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

/// Bounds the files that a program writes for a host, such as its answer and its errors: a longer one ends it. A
/// connection that it leaves open for later commands has the same bound.
pub fn bound_answers(command: &mut Command) {
    bound_files(command, LONGEST);
}

/// Returns whether a host's program has written up to the bound.
fn is_full(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| facts.len() >= LONGEST)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut said = Vec::new();
    File::open(path)?.take(LONGEST).read_to_end(&mut said)?;
    Ok(said)
}

/// This program itself, unless the inventory names another command.
fn here_command(host: &Host) -> String {
    let own = std::env::current_exe().ok().filter(|_| host.command == COMMAND);
    own.map_or_else(|| host.command.clone(), |own| quoted(&own.to_string_lossy()))
}

/// The last line that a program wrote about its failure.
fn last_line(errors: &Path) -> String {
    let text = read(errors).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    hopwise_lab::plain::cut(&hopwise_lab::plain::line(line), LONGEST_REASON)
}

fn reason(host: &Host, status: ExitStatus, said: &str) -> String {
    match status.code() {
        Some(NOT_FOUND) => format!("no command `{}` there: {said}", host.command),
        Some(OF_SSH) if host.ssh.is_some() && said.is_empty() => "ssh gave no reason".to_owned(),
        Some(OF_SSH) if host.ssh.is_some() => format!("ssh: {}", said.trim_start_matches("ssh: ")),
        _ if said.is_empty() => format!("`{}` ended there: {status}", host.command),
        _ => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> Vec<String> {
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_destination_becomes_words_of_ssh_and_no_word_of_it_an_option() {
        let to = Destination {
            user: Some("pi".to_owned()),
            port: Some(2222),
            identity: Some("key".into()),
            config: Some("conf".into()),
            options: vec!["-J".to_owned(), "gate".to_owned()],
            ..Destination::at("10.0.0.7")
        };
        let all = words(&command(&to, "hopwise status"));
        let expected = [
            "-F",
            "conf",
            "-i",
            "key",
            "-p",
            "2222",
            "-l",
            "pi",
            "-J",
            "gate",
            "--",
            "10.0.0.7",
            "hopwise status",
        ];
        assert!(all.ends_with(&expected.map(str::to_owned)), "{all:?}");
        assert!(all.contains(&"BatchMode=yes".to_owned()));
    }

    #[tokio::test]
    async fn a_command_that_fails_or_is_not_there_gives_its_reason() {
        let connections = SshConnections::new(Duration::from_secs(120)).expect("a folder");
        let run =
            async |command: &str| connections.run(&Host::here("n1", command), &["a b".to_owned()]).await;
        assert_eq!(run("printf %s").await, Ok(b"a b".to_vec()));
        let problem = async |command: &str| run(command).await.expect_err(command).0;
        assert_eq!(problem("echo out; echo why >&2; false").await, "why");
        assert_eq!(problem("exit 3;").await, "`exit 3;` ended there: exit status: 3");
        let said = problem("no-such-command-of-ours").await;
        assert!(said.starts_with("no command `no-such-command-of-ours` there: "), "{said}");
        connections.close(&[]).await;
    }

    #[tokio::test]
    async fn an_answer_without_an_end_is_cut_off() {
        let connections = SshConnections::new(Duration::from_secs(120)).expect("a folder");
        for command in ["yes;:", "yes >&2;:"] {
            let said = connections.run(&Host::here("n1", command), &[]).await.expect_err("it has no end");
            assert_eq!(said.0, "its answer is too long, expected less than 16 MiB");
        }
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_given_up() {
        let connections = SshConnections::new(Duration::from_millis(300)).expect("a folder");
        let said = connections.run(&Host::here("n1", "sleep 60;:"), &[]).await.expect_err("it hangs");
        assert_eq!(said.0, "no answer within 0.3 s");
    }
}
