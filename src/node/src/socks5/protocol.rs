//! SOCKS version 5 (RFC 1928) for a server with CONNECT, without authentication or with a password (RFC 1929). It turns
//! bytes into requests, and replies into bytes.
//!
//! A method of our own (RFC 1928 §3 leaves 0x80 to 0xFE to private ones) carries a login and the agents that a client
//! asks for. Its message is a version, 1, and four words behind their counts: name, password, receiver agent and sender
//! agents. An absent word is empty. The answer is the version and a status.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hopwise_core::endpoint::AgentChoice;

pub(super) const VERSION: u8 = 5;
/// The version of the login, which has a number of its own.
const LOGIN_VERSION: u8 = 1;
const NOTHING_ACCEPTABLE: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
pub(super) const IPV6: u8 = 4;
/// The version of the message with agents.
const AGENTS_VERSION: u8 = 1;
/// The statuses in answer to it.
pub(super) const GRANTED: u8 = 0;
pub(super) const LOGIN_WRONG: u8 = 1;
pub(super) const AGENTS_UNKNOWN: u8 = 2;

/// The longest message that a client may send before data flows: four words of 255 bytes each.
pub(super) const LONGEST_MESSAGE: usize = 1 + 4 * (1 + 255);

/// Authentication method of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Method {
    None = 0,
    Password = 2,
    /// Our own: a login, where the node has users, and agents.
    Agents = 0xa0,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    pub name: Vec<u8>,
    pub(super) password: Vec<u8>,
}

hopwise_core::shown!(Login: name);

/// A client's login and agents, by our own method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wished {
    pub(super) login: Login,
    pub(super) agents: AgentChoice,
}

/// Target of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SocksTarget {
    Address(SocketAddr),
    Name(String, u16),
}

/// Reply of a server to a request (RFC 1928 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SocksReply {
    Succeeded = 0,
    Failure = 1,
    NotAllowed = 2,
    NetworkUnreachable = 3,
    HostUnreachable = 4,
    Refused = 5,
    TimedOut = 6,
    CommandUnknown = 7,
    AddressTypeUnknown = 8,
}

/// Why a client is refused; each reason has an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientRefusal {
    /// Not SOCKS5 at all: the client would understand no answer.
    NotSocks5,
    /// It does not offer the wanted authentication method.
    Method,
    /// Its login is wrong.
    Login,
    /// Its agents are unknown here.
    Agents,
    Request(SocksReply),
}

impl ClientRefusal {
    pub(super) fn answer(self) -> Vec<u8> {
        match self {
            ClientRefusal::NotSocks5 => Vec::new(),
            ClientRefusal::Method => vec![VERSION, NOTHING_ACCEPTABLE],
            ClientRefusal::Login => logged_in(false).to_vec(),
            ClientRefusal::Agents => granted(AGENTS_UNKNOWN).to_vec(),
            ClientRefusal::Request(reply) => answer(reply, None),
        }
    }
}

/// Result of reading a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MessageRead<T> {
    /// More bytes are needed.
    More,
    /// The message, and how many bytes it took.
    Done(T, usize),
}

/// The client's first message: its authentication methods. Our own comes before the wanted one.
pub(super) fn greeting(bytes: &[u8], wanted: Method) -> Result<MessageRead<Method>, ClientRefusal> {
    match bytes {
        [version, ..] if *version != VERSION => Err(ClientRefusal::NotSocks5),
        [_, count, rest @ ..] => match rest.get(..usize::from(*count)) {
            None => Ok(MessageRead::More),
            Some(methods) => {
                let chosen =
                    [Method::Agents, wanted].into_iter().find(|method| methods.contains(&(*method as u8)));
                chosen.map(|chosen| MessageRead::Done(chosen, 2 + methods.len())).ok_or(ClientRefusal::Method)
            }
        },
        _ => Ok(MessageRead::More),
    }
}

/// The answer to a greeting that offers the wanted method.
pub(super) fn greeted(method: Method) -> [u8; 2] {
    [VERSION, method as u8]
}

/// The client's second message with a password (RFC 1929).
pub(super) fn login(bytes: &[u8]) -> Result<MessageRead<Login>, ClientRefusal> {
    let Some((version, rest)) = bytes.split_first() else { return Ok(MessageRead::More) };
    if *version != LOGIN_VERSION {
        return Err(ClientRefusal::Login);
    }
    let Some((name, rest)) = counted(rest) else { return Ok(MessageRead::More) };
    let Some((password, _)) = counted(rest) else { return Ok(MessageRead::More) };
    let taken = 3 + name.len() + password.len();
    Ok(MessageRead::Done(Login { name: name.to_vec(), password: password.to_vec() }, taken))
}

/// The client's second message by our own method.
pub(super) fn wished(bytes: &[u8]) -> Result<MessageRead<Wished>, ClientRefusal> {
    let Some((version, mut rest)) = bytes.split_first() else { return Ok(MessageRead::More) };
    if *version != AGENTS_VERSION {
        return Err(ClientRefusal::Login);
    }
    let mut words = [&[][..]; 4];
    for word in &mut words {
        let Some((found, after)) = counted(rest) else { return Ok(MessageRead::More) };
        (*word, rest) = (found, after);
    }
    let [name, password, receiver, senders] = words;
    let spec = |word: &[u8]| match std::str::from_utf8(word) {
        Ok("") => Ok(None),
        Ok(spec) => Ok(Some(spec.to_owned())),
        Err(_) => Err(ClientRefusal::Agents),
    };
    let agents = AgentChoice { receiver: spec(receiver)?, senders: spec(senders)?, shadows: None };
    let login = Login { name: name.to_vec(), password: password.to_vec() };
    Ok(MessageRead::Done(Wished { login, agents }, bytes.len() - rest.len()))
}

/// The answer to it.
pub(super) fn granted(status: u8) -> [u8; 2] {
    [AGENTS_VERSION, status]
}

/// A client's first message, with one method.
pub(super) fn offer(method: Method) -> [u8; 3] {
    [VERSION, 1, method as u8]
}

/// A client's second message by our own method. Words are at most 255 bytes long.
pub(super) fn wish(login: Option<&(String, String)>, agents: &AgentChoice) -> Vec<u8> {
    let (name, password) = login.map_or(("", ""), |(name, password)| (name, password));
    let specs = [&agents.receiver, &agents.senders].map(|spec| spec.as_deref().unwrap_or_default());
    let mut bytes = vec![AGENTS_VERSION];
    for word in [name, password, specs[0], specs[1]] {
        let word = &word.as_bytes()[..word.len().min(u8::MAX.into())];
        bytes.push(u8::try_from(word.len()).unwrap_or(u8::MAX));
        bytes.extend_from_slice(word);
    }
    bytes
}

/// A client's request for a connection to an address.
pub(super) fn ask(to: SocketAddr) -> Vec<u8> {
    let mut bytes = vec![VERSION, CONNECT, 0];
    append(to, &mut bytes);
    bytes
}

/// Bytes behind their count, and the rest.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (count, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*count))
}

/// The answer to a login.
pub(super) fn logged_in(is_known: bool) -> [u8; 2] {
    [LOGIN_VERSION, u8::from(!is_known)]
}

/// The client's last message.
pub(super) fn request(bytes: &[u8]) -> Result<MessageRead<SocksTarget>, ClientRefusal> {
    match bytes {
        [version, ..] if *version != VERSION => return Err(ClientRefusal::NotSocks5),
        [_, command, ..] if *command != CONNECT => {
            return Err(ClientRefusal::Request(SocksReply::CommandUnknown));
        }
        [_, _, _, kind, ..] if ![IPV4, NAME, IPV6].contains(kind) => {
            return Err(ClientRefusal::Request(SocksReply::AddressTypeUnknown));
        }
        _ => {}
    }
    let Some((kind, rest)) = bytes.get(3).zip(bytes.get(4..)) else { return Ok(MessageRead::More) };
    let host_bytes = match (*kind, rest.first()) {
        (IPV4, _) => 4,
        (IPV6, _) => 16,
        (_, Some(len)) => 1 + usize::from(*len),
        (_, None) => return Ok(MessageRead::More),
    };
    let Some((host, after)) = rest.split_at_checked(host_bytes) else { return Ok(MessageRead::More) };
    let [high, low, ..] = after else { return Ok(MessageRead::More) };
    let port = u16::from_be_bytes([*high, *low]);
    let target = target(host, *kind, port).ok_or(ClientRefusal::Request(SocksReply::Failure))?;
    Ok(MessageRead::Done(target, 4 + host_bytes + 2))
}

fn target(host: &[u8], kind: u8, port: u16) -> Option<SocksTarget> {
    let address = |ip: IpAddr| SocksTarget::Address(SocketAddr::new(ip, port));
    if kind == IPV4 {
        return <[u8; 4]>::try_from(host).ok().map(|octets| address(Ipv4Addr::from(octets).into()));
    }
    if kind == IPV6 {
        return <[u8; 16]>::try_from(host).ok().map(|octets| address(Ipv6Addr::from(octets).into()));
    }
    let name = std::str::from_utf8(host.get(1..)?).ok()?;
    // Some clients send an address as a name.
    if let Ok(ip) = name.parse::<IpAddr>() {
        return Some(address(ip));
    }
    let sound = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    sound.then(|| SocksTarget::Name(name.to_owned(), port))
}

/// A reply, with the source address of the connection if there is one.
pub(super) fn answer(reply: SocksReply, bound: Option<SocketAddr>) -> Vec<u8> {
    let bound = bound.unwrap_or(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    let mut bytes = vec![VERSION, reply as u8, 0];
    append(bound, &mut bytes);
    bytes
}

/// Appends an address by its kind.
fn append(address: SocketAddr, bytes: &mut Vec<u8>) {
    match address.ip() {
        IpAddr::V4(v4) => {
            bytes.push(IPV4);
            bytes.extend(v4.octets());
        }
        IpAddr::V6(v6) => {
            bytes.push(IPV6);
            bytes.extend(v6.octets());
        }
    }
    bytes.extend(address.port().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(name: &[u8]) -> Vec<u8> {
        let mut bytes = vec![5, 1, 0, 3, u8::try_from(name.len()).expect("short")];
        bytes.extend(name);
        bytes.extend([0, 80]);
        bytes
    }

    #[test]
    fn every_kind_of_address_is_understood() {
        let v4 = [5, 1, 0, 1, 10, 7, 0, 2, 0x1f, 0x90];
        let at = |text: &str| SocksTarget::Address(text.parse().expect("an address"));
        assert_eq!(request(&v4), Ok(MessageRead::Done(at("10.7.0.2:8080"), 10)));
        let mut v6 = vec![5, 1, 0, 4];
        v6.extend("fd07::2".parse::<Ipv6Addr>().expect("an address").octets());
        v6.extend([0, 80, 0xaa]);
        assert_eq!(request(&v6), Ok(MessageRead::Done(at("[fd07::2]:80"), 22)), "what follows is data");
        assert_eq!(request(&named(b"a.b")), Ok(MessageRead::Done(SocksTarget::Name("a.b".into(), 80), 10)));
        assert_eq!(request(&named(b"10.7.0.2")), Ok(MessageRead::Done(at("10.7.0.2:80"), 15)));
    }

    #[test]
    fn a_message_in_pieces_is_waited_for() {
        for whole in [named(b"host.mesh"), vec![5, 1, 0, 1, 10, 7, 0, 2, 0, 80]] {
            for cut in 0..whole.len() {
                assert_eq!(request(&whole[..cut]), Ok(MessageRead::More), "{cut} bytes");
            }
        }
        for cut in 0..4 {
            assert_eq!(greeting(&[5, 2, 2, 0][..cut], Method::None), Ok(MessageRead::More));
        }
        assert_eq!(greeting(&[5, 2, 2, 0], Method::None), Ok(MessageRead::Done(Method::None, 4)));
    }

    #[test]
    fn a_login_in_pieces_is_waited_for() {
        let whole = b"\x01\x03ada\x02pw";
        for cut in 0..whole.len() {
            assert_eq!(login(&whole[..cut]), Ok(MessageRead::More), "{cut} bytes");
        }
        let known = Login { name: b"ada".to_vec(), password: b"pw".to_vec() };
        assert_eq!(login(&[whole, &b"more"[..]].concat()), Ok(MessageRead::Done(known, whole.len())));
        assert_eq!(login(&[5, 1]), Err(ClientRefusal::Login));
        assert_eq!(greeting(&[5, 2, 0, 2], Method::Password), Ok(MessageRead::Done(Method::Password, 4)));
        assert_eq!(greeting(&[5, 1, 0], Method::Password), Err(ClientRefusal::Method));
    }

    #[test]
    fn wishes_are_read_as_they_are_written_and_one_in_pieces_is_waited_for() {
        let agents = AgentChoice { senders: Some("[train]".to_owned()), ..AgentChoice::default() };
        let login = ("ada".to_owned(), "pw".to_owned());
        let whole = wish(Some(&login), &agents);
        for cut in 0..whole.len() {
            assert_eq!(wished(&whole[..cut]), Ok(MessageRead::More), "{cut} bytes");
        }
        let known = Login { name: b"ada".to_vec(), password: b"pw".to_vec() };
        let read = Wished { login: known, agents };
        assert_eq!(wished(&[&whole[..], b"more"].concat()), Ok(MessageRead::Done(read, whole.len())));
        assert_eq!(wished(&[2]), Err(ClientRefusal::Login));
        assert_eq!(
            wished(&[1, 0, 0, 1, 0xff, 0]).map_err(ClientRefusal::answer),
            Err(vec![1, AGENTS_UNKNOWN])
        );
        let offered = [5, 2, 0, 0xa0];
        assert_eq!(greeting(&offered, Method::Password), Ok(MessageRead::Done(Method::Agents, 4)));
        let asked = ask("[fd07::2]:80".parse().expect("an address"));
        let at = SocksTarget::Address("[fd07::2]:80".parse().expect("an address"));
        assert_eq!(request(&asked), Ok(MessageRead::Done(at, asked.len())));
    }

    #[test]
    fn what_is_not_served_is_refused_in_the_protocols_words() {
        assert_eq!(greeting(b"GET / HTTP/1.1", Method::None), Err(ClientRefusal::NotSocks5));
        assert_eq!(greeting(&[4, 1], Method::None), Err(ClientRefusal::NotSocks5));
        assert_eq!(greeting(&[5, 1, 2], Method::None).map_err(ClientRefusal::answer), Err(vec![5, 0xff]));
        assert_eq!(greeting(&[5, 0], Method::None), Err(ClientRefusal::Method));
        let bind = request(&[5, 2, 0, 1]).map_err(ClientRefusal::answer);
        assert_eq!(bind, Err(vec![5, 7, 0, 1, 0, 0, 0, 0, 0, 0]));
        assert_eq!(request(&[5, 1, 0, 9]), Err(ClientRefusal::Request(SocksReply::AddressTypeUnknown)));
        for name in [&b""[..], b"a b", b"\xff", b"a/b"] {
            assert_eq!(request(&named(name)), Err(ClientRefusal::Request(SocksReply::Failure)), "{name:?}");
        }
    }

    #[test]
    fn a_success_names_the_address_it_comes_from() {
        let bound = "[fd07::2]:4000".parse().ok();
        assert_eq!(answer(SocksReply::Succeeded, bound).len(), 22);
        let bound = "10.7.0.2:4000".parse().ok();
        assert_eq!(answer(SocksReply::Succeeded, bound), [5, 0, 0, 1, 10, 7, 0, 2, 0x0f, 0xa0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn any_bytes_are_decided_within_the_longest_message(bytes in prop::collection::vec(0..7_u8, 0..1100)) {
            let _ = (greeting(&bytes, Method::None), wished(&bytes));
            if let Ok(MessageRead::Done(_, taken)) = request(&bytes) {
                prop_assert!(taken <= bytes.len() && taken <= LONGEST_MESSAGE);
            }
            if bytes.len() >= LONGEST_MESSAGE {
                prop_assert_ne!(request(&bytes), Ok(MessageRead::More));
            }
        }
    }
}
