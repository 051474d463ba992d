//! Tables that are larger than a sample: a flood may not take what quieter sources have.

use super::*;

const TABLE: usize = 256;

fn node(number: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, 50 + number).into()
}

/// A server with this table, whose connections the sources of this list have opened, in turn.
fn full_of(sources: &[IpAddr]) -> Host {
    let options = ListenOptions { half_open: TABLE, backlog: TABLE, ..ListenOptions::default() };
    let mut host = Host::with(bounds(), options);
    host.endpoint.config.most_connections = TABLE;
    for (source, port) in sources.iter().cycle().take(TABLE).zip(10_000..) {
        host.peer = *source;
        host.open(port, 60_000);
    }
    host
}

impl Host {
    /// The connections of this source that are alive.
    fn alive_of(&self, source: IpAddr) -> usize {
        let table = &self.endpoint.table;
        let of_it = table.iter().filter(|(_, entry)| entry.conn.ends().remote.ip == source);
        of_it.filter(|(_, entry)| entry.conn.closed.is_none()).count()
    }

    /// A source tries to open a connection, as a program does that gives up after one answer to its SYN.
    fn try_to_open(&mut self, source: IpAddr, port: u16) -> bool {
        self.peer = source;
        self.left.clear();
        self.say(port, (0, Seq(0)), Flags::SYN, 60_000, &[]);
        let is_cookie =
            |(to, _, flags, _): &&(u16, Seq, Flags, usize)| *to == port && flags.contains(Flags::SYN);
        let Some((_, cookie, ..)) = self.left.iter().find(is_cookie).copied() else { return false };
        self.say(port, (1, cookie + 1), Flags::ACK, 60_000, &[]);
        self.close_what_is_over();
        self.endpoint.accept(self.now, self.listener).is_some()
    }
}

#[test]
fn a_source_that_floods_evicts_nobody_who_has_less() {
    let quiet: Vec<IpAddr> = (1..65).map(node).collect();
    let sources: Vec<IpAddr> = quiet.iter().copied().chain([THEIRS; 192]).collect();
    let mut host = full_of(&sources);
    for port in 20_000..22_000 {
        assert!(!host.try_to_open(THEIRS, port));
    }
    assert_eq!((host.endpoint.gave_way(Scarce::Connections), host.alive_of(THEIRS)), (0, 192));
    assert!(quiet.iter().all(|source| host.alive_of(*source) == 1));
    host.check();
}

/// Each of 64 choices misses the three quarters of the flood with a chance of 4⁻¹⁶.
#[test]
fn new_sources_take_places_of_the_flood_alone() {
    let quiet: Vec<IpAddr> = (1..65).map(node).collect();
    let sources: Vec<IpAddr> = quiet.iter().copied().chain([THEIRS; 192]).collect();
    let mut host = full_of(&sources);
    let come = (100..164).filter(|number| host.try_to_open(node(*number), 20_000)).count();
    assert_eq!((come, host.alive_of(THEIRS)), (64, 128));
    assert!(quiet.iter().all(|source| host.alive_of(*source) == 1));
    host.check();
}

/// Hosts of a botnet look like quiet ones in a sample: what counts is how many each has in the whole table.
#[test]
fn a_flood_of_many_sources_gives_places_up_and_takes_none() {
    let botnet: Vec<IpAddr> = (1..33).map(node).collect();
    let mut host = full_of(&botnet);
    for (source, port) in botnet.iter().cycle().zip(20_000..21_000) {
        assert!(!host.try_to_open(*source, port), "each has eight");
    }
    let come = (100..132).filter(|number| host.try_to_open(node(*number), 20_000)).count();
    assert_eq!(come, 32);
    assert!(botnet.iter().all(|source| host.alive_of(*source) >= 5), "the fuller gave way first");
    host.check();
}

/// A source with more than a quarter of the memory loses its own connections first, whoever wants some.
#[test]
fn a_source_that_hoards_memory_gives_way_before_quieter_ones() {
    let mut host = Host::new(Bounds { buffer_bytes: 8 << 20, ..bounds() });
    let quiet: Vec<IpAddr> = (0..48).map(node).collect();
    for (source, port) in quiet.iter().copied().chain([THEIRS; 72]).zip(10_000..) {
        host.peer = source;
        let (id, _) = host.open(port, 0);
        assert_eq!(host.write(id, 64 << 10), 64 << 10);
    }
    host.wait(Duration::from_secs(10));
    for port in 20_000..20_030 {
        host.peer = if port % 2 == 0 { THEIRS } else { OTHER };
        let (id, _) = host.open(port, 0);
        host.write(id, 64 << 10);
        host.check();
    }
    assert!(
        host.endpoint.gave_way(Scarce::BufferBytes) >= 20,
        "{}",
        host.endpoint.gave_way(Scarce::BufferBytes)
    );
    assert!(quiet.iter().all(|source| host.alive_of(*source) == 1));
}

/// A sample may miss a hoard in few connections, here one choice in nine. Only then does a quieter one go.
#[test]
fn a_hoard_in_few_connections_is_found_too() {
    let mut host = Host::new(Bounds { buffer_bytes: 2 << 20, ..bounds() });
    let quiet: Vec<IpAddr> = (0..150).map(node).collect();
    for (source, port) in quiet.iter().copied().zip(10_000..) {
        host.peer = source;
        let (id, _) = host.open(port, 0);
        host.write(id, 4 << 10);
    }
    host.peer = THEIRS;
    let mut port = 20_000;
    while host.endpoint.gave_way(Scarce::BufferBytes) == 0 {
        let (id, _) = host.open(port, 0);
        host.write(id, 64 << 10);
        host.wait(Duration::from_secs(6));
        port += 1;
    }
    let hoard = host.alive_of(THEIRS);
    for port in 30_000..30_010 {
        host.peer = OTHER;
        let (id, _) = host.open(port, 0);
        host.write(id, 64 << 10);
    }
    let lost = quiet.iter().filter(|source| host.alive_of(**source) == 0).count();
    assert!(hoard - host.alive_of(THEIRS) > 2 * lost, "of {hoard} and {lost}");
}
