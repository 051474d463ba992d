//! The calls of a script's program: the endpoint's API, a line a call. `-> WORD` at the end gives the result of a call
//! that is not done: the name of the error, or another value.

use std::fmt::Debug;
use std::sync::Arc;

use hopwise_core::agent::{HopSource, Path, PathEvent};
use hopwise_core::endpoint::{
    AgentChoice, ConnId, ConnectOptions, Cookies, ListenOptions, PathSeam, RecvError,
};
use hopwise_core::tcp::Options;
use hopwise_core::wire::SourceRoute;
use hopwise_core::{LinkEvent, LinkId, Machine, Seq};

use super::peer::{Side, stretch};
use super::run::Run;
use super::segment::{PartialSocket, address, read_route};
use super::settings::{CONNECT_PORT, LISTEN_PORT, Settings, duration, keep_alive};
use super::text::{Read, Words, field, pair, problem, switch};

impl Run {
    pub(crate) fn call(&mut self, verb: &str, words: &mut Words) -> Read<()> {
        let outcome = words.take_outcome();
        let outcome = outcome.as_deref();
        match verb {
            "open" => self.open(words),
            "listen" => self.listen(words, outcome),
            "stop_listening" => self.stop_listening(words),
            "connect" => self.connect(words, outcome),
            "accept" => self.accept(words, outcome),
            "send" => self.send(words, outcome),
            "recv" => self.recv(words, outcome),
            "shutdown" | "close" | "abort" => self.leave(verb, words, outcome),
            "set" => self.set(words, outcome),
            "link" => self.link(words),
            "path" => self.path(words),
            "incarnation" => self.incarnation(words),
            other => Err(problem!("`{other}` is nothing that a script can do")),
        }
    }

    /// `listen [port N] [at ADDRESS] [backlog N] [half_open N] [cookies never|when_full|always]`
    fn listen(&mut self, words: &mut Words, outcome: Option<&str>) -> Read<()> {
        let (mut port, mut at, mut options) = (LISTEN_PORT, None, ListenOptions::default());
        while let Some(key) = words.next().map(str::to_owned) {
            let value = words.want(&format!("the value of `{key}`"))?;
            match key.as_str() {
                "port" => port = field(value)?,
                "at" => at = Some(address(value)?),
                "backlog" => options.backlog = field(value)?,
                "half_open" => options.half_open = field(value)?,
                "cookies" => options.cookies = read_cookies(value)?,
                other => {
                    return Err(problem!("`{other}`: listen takes port, at, backlog, half_open, cookies"));
                }
            }
        }
        let made = self.endpoint.listen(at, port, options);
        if let Some(listener) = judge(made, outcome)? {
            self.listeners.insert(port, listener);
        }
        Ok(())
    }

    fn stop_listening(&mut self, words: &mut Words) -> Read<()> {
        let port = words.next().map_or(Ok(LISTEN_PORT), field)?;
        let listener = self.listeners.remove(&port).ok_or_else(|| problem!("nobody listens on {port}"))?;
        self.endpoint.stop_listening(self.instant(), listener);
        Ok(())
    }

    /// `connect [PEER] [to PLACE] [from PLACE] [route loose A,B] [KEY=VALUE of the TCP] [receiver=SPEC …]`
    fn connect(&mut self, words: &mut Words, outcome: Option<&str>) -> Read<()> {
        let peer = self.take_peer(words);
        let mut remote = self.peers[peer].remote;
        let mut options = ConnectOptions { local_port: Some(CONNECT_PORT), ..ConnectOptions::default() };
        let mut agents = AgentChoice::default();
        while let Some(word) = words.next().map(str::to_owned) {
            match word.as_str() {
                "to" => remote = PartialSocket::read(words.want("a place")?)?.or(remote),
                "from" => {
                    let place = PartialSocket::read(words.want("a place")?)?;
                    (options.local_ip, options.local_port) = (place.ip, place.port.or(options.local_port));
                }
                "any_port" => options.local_port = None,
                "route" => {
                    let (kind, hops) = read_route(words)?;
                    options.source_route = SourceRoute::new(kind, &hops);
                }
                other => match pair(other)? {
                    ("receiver", spec) => agents.receiver = Some(spec.to_owned()),
                    ("senders", spec) => agents.senders = Some(spec.to_owned()),
                    ("shadows", spec) => agents.shadows = Some(spec.to_owned()),
                    _ => options.tcp = Some(self.other_tcp(other)?),
                },
            }
        }
        options.agents = agents;
        let now = self.instant();
        let made = self.endpoint.connect(now, remote, &options);
        let Some(conn) = judge(made, outcome)? else { return Ok(()) };
        self.adopt(peer, conn)
    }

    /// The endpoint's TCP with one setting changed.
    fn other_tcp(&self, setting: &str) -> Read<Arc<hopwise_core::tcp::TcpConfig>> {
        let mut settings = Settings::new()?;
        settings.tcp = self.settings.tcp.clone();
        let mut words = Words::split(&format!("config {setting}"))?;
        settings.take(&mut words)?;
        Ok(Arc::new(settings.tcp))
    }

    /// Gives this connection the peer's name from now on.
    fn adopt(&mut self, peer: usize, conn: ConnId) -> Read<()> {
        let info = self.endpoint.info(self.instant(), conn).map_err(|error| problem!("{error}"))?;
        self.turn_to(peer);
        let peer = &mut self.peers[peer];
        peer.conn = Some(conn);
        (peer.local, peer.remote) = (info.flow.local, info.flow.remote);
        Ok(())
    }

    /// `accept [PEER] [port N]`, `accept -> nothing`
    fn accept(&mut self, words: &mut Words, outcome: Option<&str>) -> Read<()> {
        let named = words.peek().is_some_and(|word| word != "port");
        let peer = self.take_peer(words);
        let port = if words.take("port") { field(words.want("a port")?)? } else { LISTEN_PORT };
        let listener = *self.listeners.get(&port).ok_or_else(|| problem!("nobody listens on {port}"))?;
        let accepted = self.endpoint.accept(self.instant(), listener);
        let conn = match (accepted, outcome == Some("nothing")) {
            (Some(conn), false) => conn,
            (None, true) => return Ok(()),
            (other, _) => return Err(problem!("accept gave {other:?}")),
        };
        let info = self.endpoint.info(self.instant(), conn).map_err(|error| problem!("{error}"))?;
        let of_flow = self.latest(|peer| peer.remote == info.flow.remote);
        let place = of_flow.ok_or_else(|| problem!("{} is no peer of this script", info.flow.remote))?;
        if place != peer && named {
            return Err(problem!("the connection is that of `{}`", self.peers[place].name));
        }
        self.adopt(place, conn)
    }

    pub(crate) fn conn(&self, peer: usize) -> Read<ConnId> {
        let peer = &self.peers[peer];
        peer.conn.ok_or_else(|| problem!("there is no connection with `{}` yet", peer.name))
    }

    /// `send [PEER] N [urgent]`; `-> took N` when not all of it fits.
    fn send(&mut self, words: &mut Words, outcome: Option<&str>) -> Read<()> {
        let peer = self.take_peer(words);
        let (conn, now) = (self.conn(peer)?, self.instant());
        let len: u32 = field(words.want("a number of bytes")?)?;
        let data = stretch(Side::Ours, self.peers[peer].sent + 1, len);
        let taken = if words.take("urgent") {
            self.endpoint.send_urgent(now, conn, &data)
        } else {
            self.endpoint.send(now, conn, &data)
        };
        let expected = match outcome.and_then(|outcome| outcome.strip_prefix("took ")) {
            Some(took) => Some(field::<u32>(took)?),
            None => None,
        };
        let refused = outcome.filter(|_| expected.is_none());
        let Some(taken) = judge(taken, refused)? else { return Ok(()) };
        let expected = expected.unwrap_or(len);
        if taken != expected as usize {
            return Err(problem!("it took {taken} bytes, not {expected}"));
        }
        self.peers[peer].sent += expected;
        Ok(())
    }

    /// `recv [PEER] N`: there are that many bytes, or more, and they are the peer's. `recv -> nothing`,
    /// `recv -> Finished`, `recv -> Over`.
    fn recv(&mut self, words: &mut Words, outcome: Option<&str>) -> Read<()> {
        let peer = self.take_peer(words);
        let (conn, now) = (self.conn(peer)?, self.instant());
        let len = match words.next() {
            Some(len) => field::<u32>(len)?,
            None => 1,
        };
        let mut buffer = vec![0; len as usize];
        let read = self.endpoint.recv(now, conn, &mut buffer);
        if outcome == Some("nothing") {
            let is_nothing = matches!(read, Ok(0));
            return if is_nothing { Ok(()) } else { Err(problem!("recv gave {read:?}")) };
        }
        let Some(read): Option<usize> = judge::<usize, RecvError>(read, outcome)? else { return Ok(()) };
        if read != buffer.len() {
            return Err(problem!("there were {read} bytes to read, not {len}"));
        }
        if buffer != stretch(Side::Peers, self.peers[peer].read + 1, len) {
            return Err(problem!("the bytes are not those that the peer sent"));
        }
        self.peers[peer].read += len;
        Ok(())
    }

    fn leave(&mut self, verb: &str, words: &mut Words, outcome: Option<&str>) -> Read<()> {
        let peer = self.take_peer(words);
        let (conn, now) = (self.conn(peer)?, self.instant());
        let done = match verb {
            "shutdown" => self.endpoint.shutdown(now, conn),
            "close" => self.endpoint.close(now, conn),
            _ => self.endpoint.abort(now, conn),
        };
        judge(done, outcome).map(|_| ())
    }

    /// `set [PEER] nagle=off keep_alive=10s/1s/3 user_timeout=5s hop_limit=3 dscp=8 report_errors=off`
    fn set(&mut self, words: &mut Words, outcome: Option<&str>) -> Read<()> {
        let peer = self.take_peer(words);
        let (conn, now) = (self.conn(peer)?, self.instant());
        let Some(mut options) = judge(self.endpoint.options(conn), outcome)? else { return Ok(()) };
        while let Some(word) = words.next() {
            set_option(&mut options, word)?;
        }
        judge(self.endpoint.set_options(now, conn, options), outcome).map(|_| ())
    }

    /// `link full`, `link room`; `link gone`: the link layer reports the peer as lost.
    fn link(&mut self, words: &mut Words) -> Read<()> {
        match words.want("full, room or gone")? {
            "full" => self.has_room = false,
            "room" => self.has_room = true,
            "gone" => {
                let event = LinkEvent::Gone { peer: self.peers[0].remote.ip() };
                self.endpoint.handle_link_event(self.instant(), LinkId(0), &event);
            }
            other => return Err(problem!("`{other}`: expected full, room or gone")),
        }
        Ok(())
    }

    /// `path [PEER] failed|found|hops|acked=N [there=N] [back=N] [bps=N]`: a report of routing.
    fn path(&mut self, words: &mut Words) -> Read<()> {
        let peer = self.take_peer(words);
        let event = match words.want("what routing says")? {
            "failed" => PathEvent::RouteFailed,
            "found" => PathEvent::RouteFound,
            "hops" => PathEvent::HopsChanged,
            other => match pair(other)? {
                ("acked", number) => PathEvent::AckSeq(Seq(self.peers[peer].our_number(field(number)?))),
                _ => return Err(problem!("`{other}`: expected failed, found, hops or acked=N")),
            },
        };
        let mut path = Path::default();
        while let Some(word) = words.next() {
            match pair(word)? {
                ("there", hops) => path.hops_to_peer = Some((field(hops)?, HopSource::Routing)),
                ("back", hops) => path.hops_from_peer = Some((field(hops)?, HopSource::Routing)),
                ("bps", rate) => path.link_bps = std::num::NonZeroU64::new(field(rate)?),
                (key, _) => return Err(problem!("`{key}`: a path has there=, back= and bps=")),
            }
        }
        let (ip, now) = (self.peers[peer].remote.ip(), self.instant());
        let ports = (self.peers[peer].remote.port(), self.peers[peer].local.port());
        let ports = matches!(event, PathEvent::AckSeq(_)).then_some(ports);
        self.endpoint.handle_path(now, ip, ports, &event, &path);
        Ok(())
    }

    /// `incarnation [PEER] [isn=N | isn=+N]`: the next SYNs begin a new connection between the same sockets; the
    /// peer's initial number moves.
    fn incarnation(&mut self, words: &mut Words) -> Read<()> {
        let peer = self.take_peer(words);
        let old = self.peers[peer].isn;
        let isn = match words.next().map(pair).transpose()? {
            None => old,
            Some(("isn", value)) => match value.strip_prefix('+') {
                Some(more) => old.wrapping_add(field(more)?),
                None => field(value)?,
            },
            Some((key, _)) => return Err(problem!("`{key}`: expected isn=")),
        };
        self.peers[peer].begin_anew(isn);
        Ok(())
    }
}

fn read_cookies(text: &str) -> Read<Cookies> {
    match text {
        "never" => Ok(Cookies::Never),
        "when_full" => Ok(Cookies::WhenFull),
        "always" => Ok(Cookies::Always),
        other => Err(problem!("`{other}`: expected never, when_full or always")),
    }
}

fn set_option(options: &mut Options, word: &str) -> Read<()> {
    let (key, value) = pair(word)?;
    match key {
        "nagle" => options.nagle = switch(value)?,
        "keep_alive" => options.keep_alive = keep_alive(value)?,
        "user_timeout" => options.user_timeout = duration(value)?,
        "hop_limit" => options.hop_limit = field(value)?,
        "dscp" => options.dscp = field(value)?,
        "report_errors" => options.report_errors = switch(value)?,
        other => return Err(problem!("`{other}` is no option of a connection")),
    }
    Ok(())
}

/// Compares the result of a call with the script's; `None` when it was refused as expected.
fn judge<T, E: Debug>(result: Result<T, E>, outcome: Option<&str>) -> Read<Option<T>> {
    let error = result.as_ref().err().map(|error| format!("{error:?}"));
    let name = error.as_ref().map(|error| error.split(['(', ' ', '{']).next().unwrap_or_default());
    match (result, outcome) {
        (Ok(value), None) => Ok(Some(value)),
        (Err(_), Some(outcome)) if name == Some(outcome) => Ok(None),
        (Ok(_), Some(outcome)) => Err(problem!("it was done, and not refused with {outcome}")),
        (Err(_), _) => Err(problem!("it was refused: {}", error.unwrap_or_default())),
    }
}
