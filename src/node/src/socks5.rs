//! A SOCKS5 server: programs that know nothing of Hopwise connect through it.
//!
//! Written by hand: crates for SOCKS5 connect by the kernel's sockets, and here the far side is a connection of ours.

mod access;
mod attempts;
pub(crate) mod client;
mod protocol;
mod translated;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hopwise_core::endpoint::{AgentChoice, ConnectError as CoreConnectError, ConnectOptions};
use hopwise_core::tcp::CloseReason;
use hopwise_host::{ConnectError, Shards, TcpStream as MeshStream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::counts::{ClientCounts, count};
use super::hangup;
use super::log_limit::LogLimit;
use super::lookups::Names;
use super::origin::Origin;
use super::places::Places;
use super::relay::{self, Relayed};
use super::seats::Seats;
use super::stage::{self, Stage};
use super::unfinished::Unfinished;
use super::users::Users;

pub(super) use access::Own;
pub(super) use access::{AccessRules, leads_to};
use attempts::Attempts;
use protocol::{ClientRefusal, LONGEST_MESSAGE, Login, MessageRead, Method, SocksReply, SocksTarget};

/// The largest number of clients that have not sent their request yet.
pub(super) const MOST_HANDSHAKES: usize = 1024;
/// The longest time that a client waits for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(60);

/// Counters of the server.
#[derive(Debug, Default)]
pub(super) struct Socks5Counts {
    pub(super) clients: ClientCounts,
    /// Clients that were too slow to send their request.
    pub(super) too_slow: AtomicU64,
    /// Clients from a forbidden address, without a right login, or with a forbidden target.
    pub(super) not_allowed: AtomicU64,
    /// Clients that have not sent their request yet.
    pub(super) handshakes: AtomicU64,
    /// Clients that made room for another client before they had sent their request.
    pub(super) handshakes_gave_way: AtomicU64,
}

pub(super) struct SocksServer {
    pub(super) shards: Shards,
    pub(super) names: Names,
    pub(super) users: Users,
    pub(super) access: AccessRules,
    pub(super) attempts: Attempts,
    pub(super) own: Own,
    pub(super) handshake_within: Duration,
    pub(super) idle: Duration,
    pub(super) seats: Arc<Seats>,
    pub(super) counts: Arc<Socks5Counts>,
    pub(super) relayed: Arc<Relayed>,
}

/// A client that has named its target.
type TargetRequest = Result<(TcpStream, ConnectRequest), Missed>;

/// A target, and the agents of the connection there.
#[derive(Debug, PartialEq, Eq)]
struct ConnectRequest {
    target: SocksTarget,
    agents: AgentChoice,
}

/// Why there is no such client.
#[derive(Debug)]
enum Missed {
    TooSlow,
    Refused,
    NotAllowed,
}

/// Serves until the node begins to end, and then the present clients. When it is dropped, its clients go with it.
/// Returns how many were cut off.
pub(super) async fn serve(
    server: Arc<SocksServer>,
    listener: TcpListener,
    mut stage: watch::Receiver<Stage>,
) -> usize {
    let mut handshakes: JoinSet<TargetRequest> = JoinSet::new();
    let (mut places, failed) = (Places::new(MOST_HANDSHAKES), LogLimit::default());
    let mut relays = JoinSet::new();
    loop {
        let next = async {
            places.room().await;
            listener.accept().await
        };
        tokio::select! {
            accepted = next => match accepted {
                Ok((client, from)) => {
                    count(&server.counts.clients.accepted);
                    if server.access.takes(from.ip()) {
                        let origin = Origin::of(&server.users, &client, from.ip());
                        let handshake = handshakes.spawn(heard(Arc::clone(&server), client, origin));
                        if places.take(handshake, origin) {
                            count(&server.counts.handshakes_gave_way);
                        }
                    } else {
                        count(&server.counts.not_allowed);
                    }
                }
                Err(error) => failed.not_accepted("socks5", &error).await,
            },
            Some(asked) = handshakes.join_next() => match asked {
                Ok(Ok((client, request))) => {
                    relays.spawn(serve_one(Arc::clone(&server), client, request));
                }
                Ok(Err(Missed::Refused)) => count(&server.counts.clients.refused),
                Ok(Err(Missed::NotAllowed)) => count(&server.counts.not_allowed),
                Ok(Err(Missed::TooSlow)) | Err(_) => count(&server.counts.too_slow),
            },
            Some(_) = relays.join_next() => {}
            _ = stage.changed() => break,
        }
        server.counts.handshakes.store(handshakes.len() as u64, Ordering::Relaxed);
    }
    drop(listener);
    handshakes.shutdown().await;
    stage::finish(relays, stage).await
}

async fn serve_one(server: Arc<SocksServer>, mut client: TcpStream, request: ConnectRequest) {
    let from = client.peer_addr().map_or(IpAddr::from([127, 0, 0, 1]), |from| from.ip());
    let from = Origin::of(&server.users, &client, from);
    let seat = server.seats.take(from);
    let connected = match &seat {
        // An idle relay does not keep what connecting took.
        Some(seat) => tokio::select! {
            connected = Box::pin(connect(&server, from, request)) => connected,
            () = hangup::by_local(&client, hangup::WHILE_CONNECTING) => Err(SocksReply::Failure),
            () = seat.sitter().told_to_go() => Err(SocksReply::Failure),
        },
        None => {
            count(&server.counts.clients.refused);
            Err(SocksReply::Failure)
        }
    };
    let (reply, bound) = match &connected {
        Ok(mesh) => (SocksReply::Succeeded, Some(mesh.local_addr())),
        Err(reply) => {
            count(&server.counts.clients.not_connected);
            (*reply, None)
        }
    };
    let answered = timeout(server.handshake_within, client.write_all(&protocol::answer(reply, bound))).await;
    let mesh = connected.map(Unfinished::new);
    if let (Some(seat), Ok(mesh), Ok(Ok(()))) = (&seat, mesh, answered) {
        count(&server.counts.clients.open);
        relay::bound_send_buffer(&client);
        let client = Unfinished::even_if_killed(client);
        let end = relay::carry(client, mesh, &server.relayed, seat.sitter(), server.idle).await;
        server.counts.clients.has_ended(end);
    }
}

async fn heard(server: Arc<SocksServer>, client: TcpStream, from: Origin) -> TargetRequest {
    let logins = Logins { access: &server.access, attempts: &server.attempts, from };
    hear(client, &logins, server.handshake_within).await
}

/// Decides on the login of a client.
struct Logins<'a> {
    access: &'a AccessRules,
    attempts: &'a Attempts,
    from: Origin,
}

impl Logins<'_> {
    /// Returns whether the file knows a login. One of a source with wrong ones waits for its turn.
    async fn knows(&self, login: &Login) -> bool {
        let knows = self.attempts.turn(self.from).await && self.access.knows(login);
        if !knows {
            self.attempts.was_wrong(self.from);
        }
        knows
    }

    /// The status in answer to a client's wishes. A login counts where the file has users.
    async fn status_of(&self, login: &Login, agents: &AgentChoice) -> u8 {
        let receiver =
            agents.receiver.as_deref().map_or(Ok(String::new()), hopwise_agents::validate_receiver);
        let senders = agents.senders.as_deref().map_or(Ok(String::new()), hopwise_agents::validate_senders);
        if self.access.method() == Method::Password && !self.knows(login).await {
            protocol::LOGIN_WRONG
        } else if receiver.is_err() || senders.is_err() {
            protocol::AGENTS_UNKNOWN
        } else {
            protocol::GRANTED
        }
    }
}

/// Reads a client's messages up to its request, and answers the earlier ones. It is bounded by time and by the longest
/// possible messages.
async fn hear<S: AsyncRead + AsyncWrite + Unpin>(
    client: S,
    logins: &Logins<'_>,
    within: Duration,
) -> Result<(S, ConnectRequest), Missed> {
    timeout(within, handshake(client, logins)).await.map_err(|_| Missed::TooSlow)?
}

async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
    mut client: S,
    logins: &Logins<'_>,
) -> Result<(S, ConnectRequest), Missed> {
    let mut bytes = Vec::with_capacity(LONGEST_MESSAGE);
    let wanted = logins.access.method();
    let heard = read_message(&mut client, &mut bytes, |bytes| protocol::greeting(bytes, wanted)).await;
    let method = answered(&mut client, heard).await?;
    client.write_all(&protocol::greeted(method)).await.map_err(|_| Missed::Refused)?;
    let agents = match method {
        Method::None => AgentChoice::default(),
        Method::Password => {
            let heard = read_message(&mut client, &mut bytes, protocol::login).await;
            let login = answered(&mut client, heard).await?;
            let knows = logins.knows(&login).await;
            let told = tell(&mut client, protocol::logged_in(knows), knows).await;
            told.map(|()| AgentChoice::default())?
        }
        Method::Agents => {
            let heard = read_message(&mut client, &mut bytes, protocol::wished).await;
            let wished = answered(&mut client, heard).await?;
            let status = logins.status_of(&wished.login, &wished.agents).await;
            let told = tell(&mut client, protocol::granted(status), status == protocol::GRANTED).await;
            told.map(|()| wished.agents)?
        }
    };
    let heard = read_message(&mut client, &mut bytes, protocol::request).await;
    let target = answered(&mut client, heard).await?;
    if bytes.is_empty() { Ok((client, ConnectRequest { target, agents })) } else { Err(Missed::Refused) }
}

/// Tells a client whether it may go on.
async fn tell<S: AsyncWrite + Unpin>(client: &mut S, answer: [u8; 2], may: bool) -> Result<(), Missed> {
    client.write_all(&answer).await.map_err(|_| Missed::Refused)?;
    if may { Ok(()) } else { Err(Missed::NotAllowed) }
}

/// Reads byte by byte, if only parsing finds the end of a message: later bytes are data, and stay in the socket.
async fn read_message<S: AsyncRead + Unpin, T>(
    client: &mut S,
    bytes: &mut Vec<u8>,
    parse: impl Fn(&[u8]) -> Result<MessageRead<T>, ClientRefusal>,
) -> Result<Result<T, ClientRefusal>, io::Error> {
    loop {
        match parse(bytes) {
            Err(refused) => return Ok(Err(refused)),
            Ok(MessageRead::Done(message, taken)) => {
                bytes.drain(..taken);
                return Ok(Ok(message));
            }
            Ok(MessageRead::More) => bytes.push(client.read_u8().await?),
        }
    }
}

/// Answers a refused client with the reason.
async fn answered<S: AsyncWrite + Unpin, T>(
    client: &mut S,
    heard: Result<Result<T, ClientRefusal>, io::Error>,
) -> Result<T, Missed> {
    match heard {
        Ok(Ok(message)) => Ok(message),
        Ok(Err(refused)) => {
            // It may have gone already.
            let _ = client.write_all(&refused.answer()).await;
            Err(Missed::Refused)
        }
        Err(_) => Err(Missed::Refused),
    }
}

async fn connect(
    server: &SocksServer,
    from: Origin,
    request: ConnectRequest,
) -> Result<MeshStream, SocksReply> {
    let options = ConnectOptions { agents: request.agents, ..ConnectOptions::default() };
    let addresses = match request.target {
        SocksTarget::Address(address) => vec![address],
        SocksTarget::Name(name, port) => {
            server.names.resolve(from, &name, port).await.map_err(|error| reply_to_lookup(&error))?
        }
    };
    let mut last = SocksReply::HostUnreachable;
    for address in addresses {
        // Without descriptors the kernel could not be asked.
        let is_own = server.own.is_listener(address).map_err(|_| SocksReply::Failure)?;
        if is_own || !server.access.leads_to(address.ip()) {
            count(&server.counts.not_allowed);
            last = SocksReply::NotAllowed;
            continue;
        }
        match timeout(CONNECT_WITHIN, server.shards.connect(address, &options)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = reply_to(&error),
            Err(_) => last = SocksReply::TimedOut,
        }
    }
    Err(last)
}

/// A name whose lookup came too late may be found later.
fn reply_to_lookup(error: &io::Error) -> SocksReply {
    match error.kind() {
        io::ErrorKind::TimedOut => SocksReply::TimedOut,
        _ => SocksReply::HostUnreachable,
    }
}

fn reply_to(error: &ConnectError) -> SocksReply {
    match error {
        ConnectError::Refused(CoreConnectError::NoRoute(_) | CoreConnectError::NoLocalAddress) => {
            SocksReply::NetworkUnreachable
        }
        ConnectError::Failed(CloseReason::Refused) => SocksReply::Refused,
        ConnectError::Failed(CloseReason::TimedOut) => SocksReply::TimedOut,
        ConnectError::Failed(CloseReason::Unreachable) => SocksReply::HostUnreachable,
        ConnectError::Refused(_) | ConnectError::Failed(_) | ConnectError::Stopped => SocksReply::Failure,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    fn logins(access: &AccessRules) -> Logins<'_> {
        let attempts = Box::leak(Box::default());
        Logins { access, attempts, from: Origin::from([10, 7, 0, 9]) }
    }

    #[tokio::test]
    async fn a_client_is_heard_and_its_data_stays_unread() {
        let (mut client, server) = duplex(1024);
        let said = [&[5, 2, 2, 0][..], &[5, 1, 0, 1, 10, 7, 0, 2, 0, 80], b"data"].concat();
        client.write_all(&said).await.expect("open");
        let (mut server, request) =
            hear(server, &logins(&AccessRules::default()), CONNECT_WITHIN).await.expect("it is served");
        assert_eq!(request.target, SocksTarget::Address("10.7.0.2:80".parse().expect("an address")));
        let mut rest = [0; 4];
        server.read_exact(&mut rest).await.expect("the data is there");
        assert_eq!(&rest, b"data");
        let mut answer = [0; 2];
        client.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(answer, [5, 0]);
    }

    /// Returns what a client of ours hears from a server with these users, and what the server has heard.
    async fn talk(
        access: AccessRules,
        wishes: client::ClientWishes,
    ) -> (Result<(), client::ServerProblem>, Option<ConnectRequest>) {
        let (mut ours, server) = duplex(1024);
        let asks = async {
            client::greet(&mut ours, &wishes).await?;
            let to = "10.7.0.2:80".parse().expect("an address");
            ours.write_all(&protocol::ask(to)).await.map_err(client::ServerProblem::Broken)
        };
        let logins = logins(&access);
        let (asked, heard) = tokio::join!(asks, hear(server, &logins, CONNECT_WITHIN));
        (asked, heard.ok().map(|(_, request)| request))
    }

    #[tokio::test]
    async fn a_client_of_ours_gets_the_agents_that_it_asks_for_if_it_may_log_in() {
        let agents = AgentChoice { senders: Some("[newreno, limit:4]".to_owned()), ..AgentChoice::default() };
        let wishes = client::ClientWishes { login: None, agents: agents.clone() };
        let (asked, heard) = talk(AccessRules::default(), wishes.clone()).await;
        assert!(asked.is_ok());
        assert_eq!(heard.expect("it is heard").agents, agents);
        let (asked, heard) = talk(with_users(), wishes.clone()).await;
        assert!(matches!(asked, Err(client::ServerProblem::Login)) && heard.is_none(), "{asked:?}");
        let login = Some(("ada".to_owned(), "secret".to_owned()));
        let (asked, heard) = talk(with_users(), client::ClientWishes { login, ..wishes }).await;
        assert!(asked.is_ok() && heard.is_some(), "{asked:?}");
        let unknown = AgentChoice { receiver: Some("nosuch".to_owned()), ..AgentChoice::default() };
        let (asked, heard) =
            talk(AccessRules::default(), client::ClientWishes { login: None, agents: unknown }).await;
        assert!(matches!(asked, Err(client::ServerProblem::Agents)) && heard.is_none(), "{asked:?}");
    }

    fn with_users() -> AccessRules {
        AccessRules { users: [("ada".to_owned(), "secret".to_owned())].into(), ..AccessRules::default() }
    }

    #[tokio::test]
    async fn a_client_that_knows_its_password_is_heard() {
        let (mut client, server) = duplex(1024);
        let said = [&[5, 2, 0, 2][..], b"\x01\x03ada\x06secret", &[5, 1, 0, 1, 10, 7, 0, 2, 0, 80]].concat();
        client.write_all(&said).await.expect("open");
        let heard = hear(server, &logins(&with_users()), CONNECT_WITHIN).await;
        let (_server, request) = heard.expect("it is allowed");
        assert_eq!(request.target, SocksTarget::Address("10.7.0.2:80".parse().expect("an address")));
        let mut answer = [0; 4];
        client.read_exact(&mut answer).await.expect("two answers");
        assert_eq!(answer, [5, 2, 1, 0]);
    }

    #[tokio::test]
    async fn a_client_that_does_not_log_in_is_told_so() {
        for (said, answer) in [
            (&[5, 1, 0][..], &[5, 0xff][..]),
            (b"\x05\x01\x02\x01\x03ada\x05wrong", &[5, 2, 1, 1]),
            (b"\x05\x01\x02\x01\x03eve\x06secret", &[5, 2, 1, 1]),
        ] {
            let (mut client, server) = duplex(1024);
            client.write_all(said).await.expect("open");
            assert!(hear(server, &logins(&with_users()), CONNECT_WITHIN).await.is_err());
            let mut heard = Vec::new();
            client.read_to_end(&mut heard).await.expect("its end");
            assert_eq!(heard, answer);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_wrong_password_the_next_login_of_its_source_waits() {
        let access = with_users();
        let logins = logins(&access);
        for (password, waits) in [("wrong!", 0), ("secret", 100)] {
            let (mut client, server) = duplex(1024);
            let login = format!("\x01\x03ada\x06{password}");
            let said = [&[5, 1, 2][..], login.as_bytes(), &[5, 1, 0, 1, 10, 7, 0, 2, 0, 80]].concat();
            client.write_all(&said).await.expect("open");
            let began = tokio::time::Instant::now();
            let heard = hear(server, &logins, CONNECT_WITHIN).await;
            assert_eq!((began.elapsed().as_millis(), heard.is_ok()), (waits, waits > 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_a_byte_now_and_then_is_given_up() {
        let (mut client, server) = duplex(1024);
        let slowly = async {
            for byte in [5, 200].into_iter().chain(std::iter::repeat_n(7, 200)) {
                if client.write_u8(byte).await.is_err() {
                    break;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let began = tokio::time::Instant::now();
        let access = AccessRules::default();
        let logins = logins(&access);
        let (heard, ()) = tokio::join!(hear(server, &logins, Duration::from_secs(10)), slowly);
        assert!(matches!(heard, Err(Missed::TooSlow)));
        assert!(began.elapsed() < Duration::from_secs(15));
    }

    #[tokio::test]
    async fn what_is_not_served_is_told_so() {
        for (said, answer) in [
            (&[5, 1, 2][..], &[5, 0xff][..]),
            (&[5, 1, 0, 5, 3, 0, 1], &[5, 0, 5, 7, 0, 1, 0, 0, 0, 0, 0, 0]),
            (b"GET / HTTP/1.1\r\n", b""),
        ] {
            let (mut client, server) = duplex(1024);
            client.write_all(said).await.expect("open");
            assert!(matches!(
                hear(server, &logins(&AccessRules::default()), CONNECT_WITHIN).await,
                Err(Missed::Refused)
            ));
            let mut heard = Vec::new();
            client.read_to_end(&mut heard).await.expect("its end");
            assert_eq!(heard, answer);
        }
    }
}
