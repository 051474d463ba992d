//! Any bytes are files of keys, or a story of two routers whose files change. A file is taken or refused as its lines
//! say. A router takes what the other one has signed if it has that key, and else nothing.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_mesh::{Keys, OnDemand};
use hopwise_router::route::fuzzing as route;

use crate::input::{Bits, Input};
use crate::network::{Net, cx, drain, hear, pass, routed, router_with};
use crate::routers::address;

const MOST_STEPS: usize = 60;
/// Routes and rates of the last messages are forgotten by then.
const LATER: Duration = Duration::from_secs(3_600);
/// A longer file is none.
const MOST_BYTES: usize = 4_096;

pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    if input.octet() & 1 == 0 {
        return anything(&mut input);
    }
    let net = Net::of(Bits(input.octet() & !2));
    let mut story =
        Story { net, now: Instant::from_millis(1), nodes: [Node::new(net, 1), Node::new(net, 2)] };
    for _ in 0..MOST_STEPS {
        if input.is_empty() {
            return;
        }
        match input.octet() % 4 {
            0 | 1 => story.change(&mut input),
            2 => story.speak(0, 1),
            _ => story.speak(1, 0),
        }
    }
}

/// Any text. Comments say nothing, and other users may not read the file.
fn anything(input: &mut Input<'_>) {
    let mode = u32::from(input.word());
    let Ok(text) = str::from_utf8(input.rest()) else { return };
    let read = |text: &str, mode| route::keys(text.to_owned(), mode);
    assert!(read(text, mode).is_err() || mode & 0o077 == 0 && text.len() <= MOST_BYTES);
    let lines = text.lines().map(|line| format!("{}\n", line.split('#').next().unwrap_or_default()));
    let bare: String = lines.collect();
    if text.len().max(bare.len()) <= MOST_BYTES {
        assert_eq!(read(text, 0o600), read(&bare, 0o600));
    }
}

/// The number of a key, and the byte that fills it.
type Key = (u8, u8);

struct Node {
    own: u8,
    /// The first one signs.
    keys: Vec<Key>,
    read: Keys,
    router: Box<dyn OnDemand>,
}

impl Node {
    fn new(net: Net, own: u8) -> Node {
        let read = route::keys(line((1, 1), Bits(0)), 0o600).expect("one key");
        Node { own, keys: vec![(1, 1)], read: read.clone(), router: router_with(net, own, read) }
    }
}

struct Story {
    net: Net,
    now: Instant,
    nodes: [Node; 2],
}

impl Story {
    /// A node reads another file. A file that is refused changes nothing.
    fn change(&mut self, input: &mut Input<'_>) {
        let node = &mut self.nodes[usize::from(input.octet() % 2)];
        let keys: Vec<Key> = (0..input.octet() % 4).map(|_| (input.octet() % 3, input.octet() % 3)).collect();
        let (mode, manner) = (input.pick([0o600, 0o400, 0o640, 0o604]), Bits(input.octet()));
        let text: String = keys.iter().map(|key| line(*key, manner)).collect();
        let is_sound = match keys[..] {
            [_] => true,
            [(first, _), (second, _)] => first != second,
            _ => false,
        };
        match route::keys(text.clone(), mode) {
            Ok(read) => {
                assert!(is_sound && mode & 0o077 == 0, "{mode:o} {text}");
                node.router.change_keys(read.clone());
                (node.keys, node.read) = (keys, read);
            }
            Err(problem) => assert!(!is_sound || mode & 0o077 != 0, "{problem}: {text}"),
        }
    }

    /// One of them asks for a route to the other one.
    fn speak(&mut self, from: usize, to: usize) {
        let before = self.now;
        self.now += LATER;
        for node in &mut self.nodes {
            drop(pass(&mut *node.router, before, self.now));
            drop(drain(&mut *node.router, self.now));
        }
        let signs = self.nodes[from].keys[0];
        let is_known = self.nodes[to].keys.contains(&signs);
        let (own, other) = (self.nodes[from].own, self.nodes[to].own);
        let said = ask(&mut *self.nodes[from].router, self.now, (own, other));
        let heard = &mut *self.nodes[to].router;
        let state = |router: &dyn OnDemand, now| (router.routes(now), router.poll_timeout());
        let was = state(&*heard, self.now);
        said.iter().for_each(|said| hear(&mut *heard, self.now, said));
        let answers = drain(heard, self.now);
        if !is_known {
            assert_eq!((state(&*heard, self.now), answers.len()), (was, 0), "signed by another key");
        }
        self.begin_anew(from, to, is_known);
    }

    /// The same with routers that have just read these files.
    fn begin_anew(&self, from: usize, to: usize, is_known: bool) {
        let [mut asks, mut hears] = [from, to].map(|nth| {
            let node = &self.nodes[nth];
            router_with(self.net, node.own, node.read.clone())
        });
        let said = ask(&mut *asks, self.now, (self.nodes[from].own, self.nodes[to].own));
        assert!(!said.is_empty(), "it has no route");
        said.iter().for_each(|said| hear(&mut *hears, self.now, said));
        assert_eq!(!drain(&mut *hears, self.now).is_empty(), is_known, "an answer to a holder of the key");
    }
}

fn ask(router: &mut dyn OnDemand, now: Instant, (own, other): (u8, u8)) -> Vec<crate::network::Said> {
    let _ = router.route(&cx(now), &routed(address(own), address(other)));
    drain(router, now)
}

/// A line of a file, and lines around it that say nothing.
fn line((id, byte): Key, manner: Bits) -> String {
    let digits = format!("{byte:02x}").repeat(32);
    let digits = if manner.has(0) { digits.to_uppercase() } else { digits };
    let before = if manner.has(1) { "# a comment\n\n" } else { "" };
    let between = if manner.has(2) { "\t  " } else { " " };
    let behind = if manner.has(3) { " # another\r\n" } else { "\n" };
    format!("{before}{id}{between}{digits}{behind}")
}
