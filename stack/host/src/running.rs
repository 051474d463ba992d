//! Programs that we run, such as nft, with a bound on the time that they take.
//!
//! A program that hangs must not hang a daemon. Its output goes into memory, so a program that nobody reads from does
//! not wait either. It has a process group of its own: signals of a terminal are for the daemon, and all that the
//! program has started is killed with it.
//!
//! [`UndoCommand`] holds a command that undoes a change at the end, when this process may neither run programs nor
//! change the system. A shell starts with the change, keeps the privileges of that moment, and waits. It does nothing
//! if this process is killed.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::nft::DEAF;
use crate::poller::wait_to_read;

/// The limit for an answer and for an end. Healthy programs take a moment, seconds on a busy machine, and more when a
/// small one starts from a slow card. systemd waits for 90 s.
pub(crate) const WITHIN: Duration = Duration::from_secs(30);

/// A program that runs, in a process group of its own.
#[derive(Debug)]
pub(crate) struct RunningTool {
    pub(crate) child: Child,
    /// Can be read once the program has ended. A confined daemon may wait for it, and may open no such descriptor.
    ended: OwnedFd,
}

impl RunningTool {
    pub(crate) fn start(command: &mut Command) -> io::Result<RunningTool> {
        let mut child = command.process_group(0).spawn()?;
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(ended) => Ok(RunningTool { child, ended }),
            Err(error) => {
                kill(&mut child);
                Err(error.into())
            }
        }
    }

    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Writes the line that the program waits for. The end of its pipe alone would not do: a child of a fork may have
    /// the pipe, too. Returns whether the line was written. A line to a program that has ended would end ours, where
    /// SIGPIPE is not ignored.
    pub(crate) fn let_go(&mut self, input: Option<ChildStdin>) -> bool {
        let input = input.filter(|_| self.is_running());
        input.is_some_and(|mut input| input.write_all(b"now\n").is_ok())
    }

    /// Waits for its end, for this long at most.
    pub(crate) fn end_within(&mut self, most: Duration) -> io::Result<ExitStatus> {
        wait_to_read(self.ended.as_fd(), most)?;
        self.child.wait()
    }

    /// Kills it with all that it has started. A confined daemon may not.
    pub(crate) fn kill(&mut self) {
        kill(&mut self.child);
    }
}

fn kill(child: &mut Child) {
    if kill_process_group(Pid::from_child(child), Signal::KILL).is_ok() {
        let _ = child.wait();
    }
}

/// Runs a program to its end with this on its standard input. It is killed when its time is up.
pub(crate) fn run(program: &mut Command, input: &str) -> io::Result<Output> {
    run_within(program, input, (WITHIN, false))
}

/// Runs a program to its end, and ends what it has left running in its group.
pub(crate) fn run_alone(program: &mut Command) -> io::Result<Output> {
    run_within(program, "", (WITHIN, true))
}

fn run_within(program: &mut Command, input: &str, (most, ends_rest): (Duration, bool)) -> io::Result<Output> {
    let name = program.get_program().to_string_lossy().into_owned();
    let [mut given, mut said, mut complained] = [memory()?, memory()?, memory()?];
    given.write_all(input.as_bytes())?;
    given.rewind()?;
    program.stdin(given).stdout(said.try_clone()?).stderr(complained.try_clone()?);
    let mut running = RunningTool::start(program)?;
    let ended = wait_to_read(running.ended.as_fd(), most);
    // The group has its number for as long as nobody has waited for its first process.
    if ended.is_err() || ends_rest {
        running.kill();
    }
    let named =
        |error: io::Error| if error.kind() == io::ErrorKind::TimedOut { silent(&name, most) } else { error };
    ended.map_err(named)?;
    Ok(Output { status: running.child.wait()?, stdout: whole(&mut said)?, stderr: whole(&mut complained)? })
}

/// The error of a program that was killed after this time.
pub(crate) fn silent(name: &str, waited: Duration) -> io::Error {
    let problem = format!("{name} gave no answer within {} s, and was ended", waited.as_secs_f32());
    io::Error::new(io::ErrorKind::TimedOut, problem)
}

/// A file in memory, for what a program says.
pub(crate) fn memory() -> io::Result<File> {
    Ok(memfd_create("hopwise-program", MemfdFlags::CLOEXEC)?.into())
}

/// All that was written into it.
pub(crate) fn whole(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[derive(Debug)]
pub(crate) struct UndoCommand {
    shell: RunningTool,
    input: Option<ChildStdin>,
}

impl UndoCommand {
    /// Runs the script when this is dropped, in the namespaces of the caller of `by`.
    pub(crate) fn by(script: &str) -> io::Result<UndoCommand> {
        UndoCommand::start(&format!("{DEAF} read -r _ && {{ {script}; }}"), Stdio::null())
    }

    /// Runs the script also when this process is killed. `held` is closed when that is done.
    pub(crate) fn at_any_end(script: &str, held: OwnedFd) -> io::Result<UndoCommand> {
        UndoCommand::start(&format!("{DEAF} read -r _; {{ {script}; }}"), held.into())
    }

    fn start(words: &str, output: Stdio) -> io::Result<UndoCommand> {
        let mut shell = Command::new("sh");
        shell.args(["-c", words]);
        shell.stdin(Stdio::piped()).stdout(output).stderr(Stdio::null());
        let mut shell = RunningTool::start(&mut shell)?;
        let input = shell.child.stdin.take();
        Ok(UndoCommand { shell, input })
    }
}

impl Drop for UndoCommand {
    fn drop(&mut self) {
        let is_told = self.shell.let_go(self.input.take());
        let done = self.shell.end_within(WITHIN);
        let is_done = is_told && done.is_ok_and(|status| status.success());
        if !is_done {
            tracing::warn!("what was changed in the system stays until the next start");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        shell
    }

    #[test]
    fn a_program_reads_and_writes_more_than_a_pipe_holds() {
        let long = "x".repeat(300_000);
        let done = run(&mut shell("cat; echo no >&2; exit 3"), &long).expect("there is a shell");
        assert_eq!((done.status.code(), done.stdout.len()), (Some(3), long.len()));
        assert_eq!(done.stderr, b"no\n");
        assert_eq!(
            run(&mut Command::new("/no/such/program"), "").unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_all_that_it_has_started() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let mut hangs = shell("sleep 10000 & echo begun; wait");
        // Both keep this end open as long as they live.
        let writer = OwnedFd::from(writer);
        rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::empty()).expect("an open descriptor");
        let error = run_within(&mut hangs, "never read", (Duration::from_millis(300), false)).unwrap_err();
        drop(writer);
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "sh gave no answer within 0.3 s, and was ended");
        let mut rest = Vec::new();
        let mut reader = File::from(OwnedFd::from(reader));
        assert_eq!(reader.read_to_end(&mut rest).expect("all have closed it"), 0);
    }

    #[test]
    fn what_a_program_leaves_running_is_not_waited_for() {
        let done = run(&mut shell("sleep 10000 & echo $!"), "").expect("there is a shell");
        let id = String::from_utf8(done.stdout).expect("a number");
        let id = id.trim().parse().ok().and_then(Pid::from_raw).expect("a process");
        rustix::process::kill_process(id, Signal::KILL).expect("it is ours");
    }

    #[test]
    fn a_script_runs_at_the_end_and_not_when_we_are_killed() {
        let path = std::env::temp_dir().join(format!("hopwise-undo-{}", std::process::id()));
        let script = format!("echo done > {}", path.display());
        let mut killed = UndoCommand::by(&script).expect("there is a shell");
        drop(killed.input.take());
        killed.shell.end_within(WITHIN).expect("it ends");
        assert!(!path.exists());
        drop(killed);
        drop(UndoCommand::by(&script).expect("there is a shell"));
        assert_eq!(std::fs::read_to_string(&path).expect("it was run"), "done\n");
        std::fs::remove_file(path).expect("it is there");
    }
}
