//! Asks all hosts of a fleet for their reports at once. A host that does not answer is a report with the reason.

use std::sync::Arc;
use std::time::Duration;

use hopwise_host::Clock;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::inventory::Host;
use super::report::{ClockReport, HostReport, Reports};
use super::ssh::{SshConnections, Unreached};
use hopwise_daemon::failure::Failure;
use hopwise_daemon::signals::Ending;

/// Hosts that are asked at one time.
const MOST_AT_ONCE: usize = 32;

/// The hosts, with a connection to each that stays open between two rounds.
#[derive(Debug)]
pub struct Asking {
    hosts: Arc<Vec<Host>>,
    connections: Arc<SshConnections>,
}

impl Asking {
    /// Each host has that time for each of its reports.
    pub fn new(hosts: Vec<Host>, within: Duration) -> Result<Asking, Failure> {
        Ok(Asking::over(hosts, Arc::new(SshConnections::new(within)?)))
    }

    /// The same over connections that stay open for others.
    pub fn over(hosts: Vec<Host>, connections: Arc<SshConnections>) -> Asking {
        Asking { hosts: Arc::new(hosts), connections }
    }

    /// A report of each host, in their order.
    pub async fn round(&self) -> Reports {
        let said = self.each(status).await;
        Reports { hosts: self.hosts.iter().zip(said).map(|(host, said)| report(host, said)).collect() }
    }

    /// Runs `hopwise` with these words on each host, and returns what each printed, in their order.
    pub async fn each(&self, words: impl Fn(&Host) -> Vec<String>) -> Vec<Result<HostWords, Unreached>> {
        let permits = Arc::new(Semaphore::new(MOST_AT_ONCE));
        let mut asking = JoinSet::new();
        for (nth, host) in self.hosts.iter().enumerate() {
            let (hosts, connections) = (Arc::clone(&self.hosts), Arc::clone(&self.connections));
            let (permits, words) = (Arc::clone(&permits), words(host));
            asking.spawn(async move {
                let _permit = permits.acquire().await;
                (nth, said(&hosts[nth], &connections, &words).await)
            });
        }
        let mut all = Vec::new();
        while let Some(joined) = asking.join_next().await {
            all.push(joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic())));
        }
        all.sort_unstable_by_key(|(nth, _)| *nth);
        all.into_iter().map(|(_, said)| said).collect()
    }

    /// Runs `hopwise` with these words on the host with that number.
    pub async fn one(&self, nth: usize, words: &[String]) -> Result<HostWords, Unreached> {
        said(&self.hosts[nth], &self.connections, words).await
    }

    /// The names of the hosts, in their order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.name.clone()).collect()
    }

    /// Asks each host again and again, with that time between two reports, and hands each report to `sink`.
    pub(crate) fn follow(
        &self,
        runtime: &Runtime,
        every: Duration,
        sink: impl Fn(usize, HostReport) + Clone + Send + 'static,
    ) -> JoinSet<()> {
        let mut following = JoinSet::new();
        for nth in 0..self.hosts.len() {
            let (hosts, connections) = (Arc::clone(&self.hosts), Arc::clone(&self.connections));
            let sink = sink.clone();
            let asking = async move {
                loop {
                    let said = said(&hosts[nth], &connections, &status(&hosts[nth])).await;
                    sink(nth, report(&hosts[nth], said));
                    tokio::time::sleep(every).await;
                }
            };
            following.spawn_on(asking, runtime.handle());
        }
        following
    }

    /// Asks the hosts until a signal comes, and ends the connections.
    pub async fn answers<T>(
        self,
        ask: impl AsyncFnOnce(&Asking) -> T,
        ending: &mut Ending,
    ) -> Result<T, Failure> {
        let answers = tokio::select! {
            answers = ask(&self) => Ok(answers),
            () = ending.next() => Err(Failure::failed("ask the hosts", "a signal ended it")),
        };
        self.close().await;
        answers
    }

    /// Ends the connections.
    pub async fn close(self) {
        if let Ok(connections) = Arc::try_unwrap(self.connections) {
            connections.close(&self.hosts).await;
        }
    }
}

/// The report of one host.
pub async fn ask(host: &Host, connections: &SshConnections) -> HostReport {
    report(host, said(host, connections, &status(host)).await)
}

/// The words that a host printed, between two times of this machine's day, in seconds since 1970.
#[derive(Clone, Debug)]
pub struct HostWords {
    pub text: Vec<u8>,
    pub asked_s: f64,
    pub heard_s: f64,
}

async fn said(host: &Host, connections: &SshConnections, words: &[String]) -> Result<HostWords, Unreached> {
    let asked = Clock::wall();
    let text = connections.run(host, words).await?;
    Ok(HostWords { text, asked_s: asked.as_secs_f64(), heard_s: Clock::wall().as_secs_f64() })
}

/// The words that ask for a report.
fn status(host: &Host) -> Vec<String> {
    let mut words: Vec<_> = ["mesh", "status", "--json"].map(str::to_owned).into();
    for socket in &host.control {
        words.extend(["--control".to_owned(), socket.to_string_lossy().into_owned()]);
    }
    words
}

fn report(host: &Host, said: Result<HostWords, Unreached>) -> HostReport {
    let times = said.as_ref().map(|said| (said.asked_s, said.heard_s)).unwrap_or_default();
    match said.and_then(|said| read(&said.text)) {
        Ok(report) => {
            let between = |told| ClockReport::between(times.0, told, times.1);
            // This machine has one clock.
            let clock = report.told_at_s.filter(|_| host.ssh.is_some()).map(between);
            HostReport { host: host.name.clone(), clock, ..report }
        }
        Err(Unreached(problem)) => HostReport::none(&host.name, problem),
    }
}

fn read(said: &[u8]) -> Result<HostReport, Unreached> {
    let reports: Reports = serde_json::from_slice(said)
        .map_err(|error| Unreached(format!("its `hopwise mesh status --json` is not understood: {error}")))?;
    let first = reports.hosts.into_iter().next();
    first.ok_or_else(|| Unreached("its `hopwise mesh status --json` names no host".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn hosts_are_asked_at_once_and_one_that_hangs_or_babbles_is_a_report_with_its_reason() {
        let json = r#"{"hosts": [{"host": "other", "version": "7", "routes_valid": 3}]}"#;
        let hosts = vec![
            Host::here("n1", &format!("echo '{json}';:")),
            Host::here("n2", "sleep 60;:"),
            Host::here("n3", "echo hello;:"),
            Host::here("n4", "echo '{\"hosts\": []}';:"),
        ];
        let asking = Asking::new(hosts, Duration::from_secs(5)).expect("a folder");
        let Reports { hosts } = asking.round().await;
        let [n1, n2, n3, n4] = &hosts[..] else { panic!("{hosts:?}") };
        assert_eq!((n1.host.as_str(), n1.routes_valid, n1.problem.as_deref()), ("n1", Some(3), None));
        assert_eq!(n2.problem.as_deref(), Some("no answer within 5 s"));
        assert!(n3.problem.as_ref().is_some_and(|said| said.contains("is not understood")), "{n3:?}");
        assert!(n4.problem.as_ref().is_some_and(|said| said.contains("names no host")), "{n4:?}");
        asking.close().await;
    }
}
