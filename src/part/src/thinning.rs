//! The daemon beside this node's programs that thins the ACKs of its kernel, in an arm that has one.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};

use hopwise_lab::live::part::{NodePart, NodeResults, PartMessage};
use hopwise_lab::scenario::Prepared;

use crate::host::interfaces_of;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::own_files::OwnFolder;

/// It ends when its pipe does, and so with this process.
#[derive(Debug)]
pub(crate) struct ThinningDaemon {
    child: Child,
    says: BufReader<ChildStdout>,
    folder: OwnFolder,
}

/// Starts the daemon of a node that receives data over TCP, and waits until its rules stand.
pub(crate) fn start(prepared: &Prepared, part: &NodePart) -> Result<Option<ThinningDaemon>, Failure> {
    let receives = prepared.plan.flows.iter().any(|flow| flow.brings_tcp_to(part.node));
    let Some(agent) = prepared.plan.arm.thin.as_deref().filter(|_| receives) else { return Ok(None) };
    let interfaces = interfaces_of(part)?;
    let mut daemon = ThinningDaemon::start(agent, &interfaces).map_err(|error| failed(&error))?;
    match daemon.hear()? {
        PartMessage::Ready => Ok(Some(daemon)),
        other => Err(failed(&format_args!("{other:?}, expected that it is ready"))),
    }
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::failed("thin the ACKs of a node's kernel", error)
}

impl ThinningDaemon {
    fn start(agent: &str, interfaces: &[String]) -> io::Result<ThinningDaemon> {
        let folder = OwnFolder::make("hopwise-part-thin-")?;
        let log = File::create(folder.path().join("log"))?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("hopwise").arg("thin").args(interfaces).args(["--receiver", agent, "--with-trial"]);
        command.arg("--control").arg(folder.path().join("thin.sock"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn()?;
        let says = child.stdout.take().ok_or_else(|| io::Error::other("it has no pipes"))?;
        Ok(ThinningDaemon { child, says: BufReader::new(says), folder })
    }

    /// Ends the daemon, once all ACKs that wait have left, and adds its counts to the results. The ACKs that it dropped
    /// were not sent; of which flow of several they were is unknown.
    pub(crate) fn end(mut self, mut ended: NodeResults) -> Result<NodeResults, Failure> {
        drop(self.child.stdin.take());
        let counts = match self.hear()? {
            PartMessage::Thinned(counts) => counts,
            other => return Err(failed(&format_args!("{other:?}, expected its counts"))),
        };
        let mut sent: Vec<_> = ended.ends.iter_mut().map(|end| &mut end.counted.acks_sent).collect();
        sent.retain(|acks| acks.is_some());
        let is_one = sent.len() == 1;
        for acks in sent {
            *acks = acks.filter(|_| is_one).map(|acks| acks.saturating_sub(counts.replaced + counts.ridden));
        }
        Ok(NodeResults { thinned: Some(counts), ..ended })
    }

    /// Its next message. A daemon that ends without one has said why in its last line.
    fn hear(&mut self) -> Result<PartMessage, Failure> {
        let mut line = String::new();
        self.says.read_line(&mut line).map_err(|error| failed(&error))?;
        if !line.is_empty() {
            return serde_json::from_str(&line).map_err(|error| failed(&error));
        }
        let status = self.child.wait().map_err(|error| failed(&error))?;
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        Err(failed(&format_args!("{} ({status})", log.lines().next_back().unwrap_or("it said nothing"))))
    }
}

impl Drop for ThinningDaemon {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
