use proptest::prelude::*;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn arrival<'a>(to: &str, payload: &'a [u8]) -> UdpArrival<'a> {
    UdpArrival {
        from: "10.7.0.9:654".parse().unwrap(),
        to: to.parse().unwrap(),
        link: LinkId(3),
        hop_limit: 17,
        payload,
    }
}

fn bind(all: &mut UdpSockets, local: Option<&str>, groups: &[&str]) -> UdpId {
    let groups = groups.iter().map(|text| ip(text)).collect();
    all.bind(local.map(ip), 654, UdpOptions { groups, ..UdpOptions::default() }).unwrap()
}

fn small() -> UdpSockets {
    let limits = UdpLimits { sockets: 2, groups_per_socket: 1, queue_datagrams: 3, queue_bytes: 10 };
    UdpSockets::new(limits)
}

#[test]
fn a_datagram_arrives_with_where_it_came_from() {
    let mut all = UdpSockets::default();
    let id = bind(&mut all, None, &[]);
    assert_eq!(all.deliver(&arrival("10.7.0.1:654", b"hello")), Ok(()));
    let want = Datagram {
        from: "10.7.0.9:654".parse().unwrap(),
        to: ip("10.7.0.1"),
        link: LinkId(3),
        hop_limit: 17,
        payload: b"hello".to_vec(),
    };
    assert_eq!(all.recv(id), Some(want));
    assert_eq!(all.recv(id), None);
}

#[test]
fn the_socket_with_the_very_address_comes_before_the_one_without() {
    let mut all = UdpSockets::default();
    let any = bind(&mut all, None, &[]);
    let one = bind(&mut all, Some("10.7.0.1"), &[]);
    assert_eq!(all.deliver(&arrival("10.7.0.1:654", b"a")), Ok(()));
    assert_eq!(all.deliver(&arrival("10.7.0.2:654", b"b")), Ok(()));
    assert_eq!(all.recv(one).unwrap().payload, b"a");
    assert_eq!(all.recv(any).unwrap().payload, b"b");
    assert_eq!((all.recv(one), all.recv(any)), (None, None));
}

#[test]
fn a_port_that_nobody_bound_is_told() {
    let mut all = UdpSockets::default();
    bind(&mut all, Some("10.7.0.1"), &[]);
    assert_eq!(all.deliver(&arrival("10.7.0.1:655", b"")), Err(DropReason::UdpNoSocket));
    assert_eq!(all.deliver(&arrival("10.7.0.2:654", b"")), Err(DropReason::UdpNoSocket));
}

#[test]
fn a_group_reaches_each_socket_that_joined_and_no_other() {
    let mut all = UdpSockets::default();
    let any = bind(&mut all, None, &[]);
    let joined = bind(&mut all, Some("10.7.0.1"), &["224.0.0.109"]);
    let both = bind(&mut all, Some("10.7.0.2"), &["224.0.0.109"]);
    let groups = vec![ip("224.0.0.109")];
    let port = all.bind(None, 655, UdpOptions { groups, ..UdpOptions::default() }).unwrap();
    assert!(all.is_member(ip("224.0.0.109")) && !all.is_member(ip("224.0.0.1")));
    assert_eq!(all.deliver(&arrival("224.0.0.109:654", b"a")), Ok(()));
    assert_eq!(all.recv(joined).unwrap().payload, b"a");
    assert_eq!(all.recv(both).unwrap().payload, b"a");
    assert_eq!((all.recv(any), all.recv(port)), (None, None));
    assert_eq!(all.deliver(&arrival("224.0.0.1:654", b"")), Err(DropReason::UdpNoSocket));
}

#[test]
fn a_broadcast_reaches_sockets_without_address_and_those_that_ask() {
    let mut all = UdpSockets::default();
    let any = bind(&mut all, None, &["255.255.255.255"]);
    let asks = bind(&mut all, Some("10.7.0.1"), &["255.255.255.255"]);
    let deaf = bind(&mut all, Some("10.7.0.2"), &[]);
    assert_eq!(all.deliver(&arrival("255.255.255.255:654", b"a")), Ok(()));
    assert_eq!(all.recv(any).unwrap().payload, b"a");
    assert_eq!(all.recv(any), None, "once, though it asks as well");
    assert_eq!(all.recv(asks).unwrap().payload, b"a");
    assert_eq!(all.recv(deaf), None);
}

#[test]
fn a_full_queue_drops_by_count_and_by_bytes() {
    let mut all = small();
    let id = bind(&mut all, None, &[]);
    for _ in 0..3 {
        assert_eq!(all.deliver(&arrival("10.7.0.1:654", b"")), Ok(()));
    }
    assert_eq!(all.deliver(&arrival("10.7.0.1:654", b"")), Err(DropReason::UdpQueueFull));
    while all.recv(id).is_some() {}
    assert_eq!(all.deliver(&arrival("10.7.0.1:654", &[0; 8])), Ok(()));
    assert_eq!(all.deliver(&arrival("10.7.0.1:654", &[0; 3])), Err(DropReason::UdpQueueFull));
    assert_eq!(all.deliver(&arrival("10.7.0.1:654", &[0; 2])), Ok(()));
}

#[test]
fn a_group_is_taken_if_one_member_has_room() {
    let mut all = small();
    let full = bind(&mut all, None, &["224.0.0.109"]);
    let free = bind(&mut all, Some("10.7.0.1"), &["224.0.0.109"]);
    for _ in 0..3 {
        assert_eq!(all.deliver(&arrival("224.0.0.109:654", b"x")), Ok(()));
        assert!(all.recv(free).is_some());
    }
    assert_eq!(all.deliver(&arrival("224.0.0.109:654", b"x")), Ok(()));
    assert!(all.recv(free).is_some());
    while all.recv(full).is_some() {}
    for _ in 0..3 {
        assert_eq!(all.deliver(&arrival("224.0.0.109:654", b"x")), Ok(()));
        assert!(all.recv(full).is_some());
    }
    assert_eq!(all.deliver(&arrival("224.0.0.109:654", b"x")), Ok(()), "the other one is full now");
}

#[test]
fn datagrams_leave_in_order_with_the_sockets_options() {
    let mut all = UdpSockets::default();
    let options = UdpOptions { hop_limit: 1, class: QueueClass::Routing, ..UdpOptions::default() };
    let id = all.bind(Some(ip("10.7.0.1")), 698, options).unwrap();
    let to = "255.255.255.255:698".parse().unwrap();
    assert_eq!(all.send(id, to, Some(LinkId(2)), b"first"), Ok(()));
    assert_eq!(all.send(id, to, None, b"second"), Ok(()));
    let first = OutgoingDatagram {
        socket: id,
        from: Some(ip("10.7.0.1")),
        from_port: 698,
        to,
        via: Some(LinkId(2)),
        hop_limit: 1,
        dscp: 0,
        class: QueueClass::Routing,
        payload: b"first".to_vec(),
    };
    assert_eq!(all.poll_send_if(&mut |_| true), Some(first));
    assert_eq!(all.poll_send_if(&mut |_| true).unwrap().payload, b"second");
    assert_eq!(all.poll_send_if(&mut |_| true), None);
}

#[test]
fn a_full_link_does_not_hold_up_another() {
    let mut all = UdpSockets::default();
    let id = bind(&mut all, None, &[]);
    let to = "10.7.0.2:654".parse().unwrap();
    for (link, payload) in [(1, b"a"), (2, b"b"), (1, b"c")] {
        assert_eq!(all.send(id, to, Some(LinkId(link)), payload), Ok(()));
    }
    let on = |all: &mut UdpSockets, link| {
        all.poll_send_if(&mut |datagram| datagram.via == Some(LinkId(link))).map(|datagram| datagram.payload)
    };
    assert_eq!(on(&mut all, 2).unwrap(), b"b");
    assert_eq!(on(&mut all, 2), None);
    assert_eq!(on(&mut all, 1).unwrap(), b"a");
    assert_eq!(on(&mut all, 1).unwrap(), b"c");
}

#[test]
fn one_socket_cannot_fill_the_queue_of_another() {
    let mut all = small();
    let (greedy, other) = (bind(&mut all, None, &[]), bind(&mut all, Some("10.7.0.1"), &[]));
    let to = "10.7.0.2:654".parse().unwrap();
    for _ in 0..3 {
        assert_eq!(all.send(greedy, to, None, b""), Ok(()));
    }
    assert_eq!(all.send(greedy, to, None, b""), Err(UdpError::QueueFull));
    assert_eq!(all.send(other, to, None, &[0; 10]), Ok(()));
    assert_eq!(all.send(other, to, None, &[0; 1]), Err(UdpError::QueueFull));
    assert!(all.poll_send_if(&mut |_| true).is_some());
    assert_eq!(all.send(greedy, to, None, b""), Ok(()));
}

#[test]
fn a_closed_socket_is_gone_but_what_it_sent_still_leaves() {
    let mut all = UdpSockets::default();
    let id = bind(&mut all, None, &[]);
    let to = "10.7.0.2:654".parse().unwrap();
    assert_eq!(all.send(id, to, None, b"bye"), Ok(()));
    assert_eq!(all.deliver(&arrival("10.7.0.1:654", b"unread")), Ok(()));
    assert_eq!(all.close(id), Ok(()));
    assert_eq!(all.close(id), Err(UdpError::Closed));
    assert_eq!(all.send(id, to, None, b""), Err(UdpError::Closed));
    assert_eq!(all.recv(id), None);
    assert_eq!(all.deliver(&arrival("10.7.0.1:654", b"")), Err(DropReason::UdpNoSocket));
    assert_ne!(bind(&mut all, None, &[]), id, "numbers are not used again");
    assert_eq!(all.poll_send_if(&mut |_| true).unwrap().payload, b"bye");
}

#[test]
fn misuse_says_what_to_do() {
    let mut all = small();
    let mut bind = |local: Option<&str>, port, groups: &[&str]| {
        let groups = groups.iter().map(|text| ip(text)).collect();
        all.bind(local.map(ip), port, UdpOptions { groups, ..UdpOptions::default() })
    };
    assert_eq!(bind(None, 0, &[]), Err(UdpError::PortZero));
    for local in ["0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1"] {
        assert_eq!(bind(Some(local), 1, &[]), Err(UdpError::LocalNotUnicast), "{local}");
    }
    assert_eq!(bind(None, 1, &["224.0.0.1", "224.0.0.2"]), Err(UdpError::TooManyGroups { most: 1 }));
    assert!(bind(None, 1, &[]).is_ok());
    assert_eq!(bind(None, 1, &[]), Err(UdpError::PortInUse { port: 1 }));
    let id = bind(Some("10.7.0.1"), 1, &[]).unwrap();
    assert_eq!(bind(None, 2, &[]), Err(UdpError::TooManySockets { most: 2 }));

    let mut send = |to: &str, len| all.send(id, to.parse().unwrap(), None, &vec![0; len]);
    assert_eq!(send("10.7.0.2:0", 1), Err(UdpError::NoDestination));
    assert_eq!(send("0.0.0.0:9", 1), Err(UdpError::NoDestination));
    assert_eq!(send("[fd00::2]:9", 1), Err(UdpError::OtherFamily));
    assert_eq!(send("10.7.0.2:9", 65_508), Err(UdpError::TooLong { most: 65_507 }));
    assert_eq!(send("10.7.0.2:9", 65_507), Err(UdpError::QueueFull));
    assert!(UdpError::PortInUse { port: 1 }.to_string().contains("port 1"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn queues_stay_within_their_limits_and_lose_nothing_they_took(
        steps in proptest::collection::vec((0u8..5, 0usize..6), 1..200),
    ) {
        let mut all = small();
        let id = bind(&mut all, None, &[]);
        let to = "10.7.0.2:654".parse().unwrap();
        let mut wait = [VecDeque::new(), VecDeque::new()];
        let fits = |wait: &VecDeque<usize>, len| wait.len() < 3 && wait.iter().sum::<usize>() + len <= 10;
        for (what, len) in steps {
            let payload = vec![0; len];
            match what {
                0 | 1 => {
                    let took = all.deliver(&arrival("10.7.0.1:654", &payload)).is_ok();
                    prop_assert_eq!(took, fits(&wait[0], len));
                    wait[0].extend(took.then_some(len));
                }
                2 | 3 => {
                    let took = all.send(id, to, None, &payload).is_ok();
                    prop_assert_eq!(took, fits(&wait[1], len));
                    wait[1].extend(took.then_some(len));
                }
                _ => {
                    prop_assert_eq!(all.recv(id).map(|got| got.payload.len()), wait[0].pop_front());
                    prop_assert_eq!(all.poll_send_if(&mut |_| true).map(|got| got.payload.len()), wait[1].pop_front());
                }
            }
        }
    }
}
