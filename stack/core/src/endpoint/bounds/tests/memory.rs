//! Spent memory for buffers: the connections that give way, and those that stay.

use super::*;

#[test]
fn where_buffers_are_spent_the_connection_goes_whose_data_has_stood_still_longest() {
    let mut host = Host::new(Bounds { buffer_bytes: 1 << 20, ..bounds() });
    let (moving, mut next) = host.open(999, 4000);
    for port in 1000..1014 {
        let (id, _) = host.open(port, 0);
        assert_eq!(host.write(id, 64 << 10), 64 << 10);
    }
    for _ in 0..20 {
        host.wait(Duration::from_millis(500));
        assert_eq!(host.write(moving, 1000), 1000);
        next += 1000;
        host.say(999, (1, next), Flags::ACK, 4000, &[]);
    }
    for port in 2000..2010 {
        let (id, _) = host.open(port, 0);
        assert!(host.write(id, 64 << 10) >= LEAST_BYTES as usize);
        host.check();
        assert!(host.endpoint.holds().buffer_bytes < (1 << 20) + 65_536);
    }
    let gone = host.resets();
    assert!(gone.starts_with(&[1000, 1001]) && !gone.contains(&999), "{gone:?}");
    assert_eq!(host.endpoint.gave_way(Scarce::BufferBytes), gone.len() as u64);
    assert_eq!(host.write(moving, 1000), 1000, "it goes on");
}

#[test]
fn from_three_quarters_of_the_bytes_on_buffers_grow_no_more() {
    let mut account = Account::new(Bounds { buffer_bytes: 1000, ..bounds() }, key());
    let at = [0, 749, 750, 999, 1000, 750, 749].map(|bytes| {
        account.change_bytes(u32::try_from(account.bytes).expect("few"), bytes);
        account.memory
    });
    use Memory::{Plenty, Spent, Tight};
    assert_eq!(at, [Plenty, Plenty, Tight, Tight, Spent, Tight, Plenty]);
}

#[test]
fn from_a_quarter_above_the_bytes_on_no_new_connection_is_taken() {
    let mut account = Account::new(Bounds { buffer_bytes: 1000, ..bounds() }, key());
    account.change_bytes(0, 1249);
    assert!(!account.is_overdrawn());
    account.change_bytes(1249, 1250);
    assert!(account.is_overdrawn());
}

#[test]
fn where_buffers_are_spent_each_connection_goes_on_with_the_least() {
    let mut host = Host::new(Bounds { buffer_bytes: 256 << 10, ..bounds() });
    let mut writers = Vec::new();
    for port in 1000..1008 {
        let (id, _) = host.open(port, 0);
        writers.push(host.write(id, 64 << 10));
    }
    assert_eq!(writers[..3], [64 << 10; 3], "there is enough");
    assert_eq!(writers[4..], [LEAST_BYTES as usize; 4], "nothing stands still for long yet");
    let (reader, ours) = host.open(2000, 60_000);
    for nth in 0..20 {
        host.say(2000, (1 + nth * 1000, ours), Flags::ACK, 60_000, &[5; 1000]);
    }
    assert_eq!(host.endpoint.readable(reader), 4000);
    assert_eq!(host.endpoint.drops(DropReason::NoMemory), 16);
    let mut out = vec![0; 4000];
    assert_eq!(host.endpoint.recv(host.now, reader, &mut out), Ok(4000));
    host.say(2000, (4001, ours), Flags::ACK, 60_000, &[5; 1000]);
    assert_eq!(host.endpoint.readable(reader), 1000, "what was read made room");
    assert_eq!(host.resets(), []);
}

/// RFC 9293 §3.8.6: the right edge of a window does not move left, and need not move right.
#[test]
fn where_a_shared_memory_is_spent_windows_promise_no_more_than_buffers_have() {
    let mut host = Host::new(bounds());
    let (reader, ours) = host.open(2000, 60_000);
    let mut seq = 1;
    let mut take = |host: &mut Host, segments: u32| {
        for _ in 0..segments {
            host.say(2000, (seq, ours), Flags::ACK, 60_000, &[5; 1000]);
            host.endpoint.recv(host.now, reader, &mut [0; 1000]).expect("it is open");
            host.send();
            seq += 1000;
        }
        u32::from(host.window)
    };
    let before = take(&mut host, 10);
    assert!(before > 40_000, "{before}");
    host.endpoint.set_shared_memory(Memory::Spent);
    assert!(take(&mut host, 10) >= before - 10_000, "what was promised stays so");
    let lean = take(&mut host, 100);
    assert!((1000..=LEAST_BYTES).contains(&lean), "{lean}");
    assert_eq!(host.endpoint.drops(DropReason::NoMemory) + host.endpoint.drops(DropReason::NoBuffer), 0);
    host.endpoint.set_shared_memory(Memory::Plenty);
    assert!(take(&mut host, 10) > 40_000, "{}", host.window);
}

/// Segments may be larger than the guaranteed buffer.
#[test]
fn large_segments_keep_no_window_closed_where_memory_is_spent() {
    let mut host = Host::new(bounds());
    let (reader, ours) = host.open(2000, 60_000);
    host.endpoint.set_shared_memory(Memory::Spent);
    let mut seq = 1;
    let mut take = |host: &mut Host| {
        host.say(2000, (seq, ours), Flags::ACK, 60_000, &[5; 6000]);
        let mut out = [0; 10_000];
        let read = host.endpoint.recv(host.now, reader, &mut out).expect("it is open");
        host.send();
        seq += read as u32;
        (read, u32::from(host.window))
    };
    let mut taken = 0;
    for _ in 0..40 {
        let (read, window) = take(&mut host);
        assert!(read >= LEAST_BYTES as usize - 1 && window >= LEAST_BYTES / 2, "{read} bytes, {window}");
        taken += read;
    }
    assert!(taken > 65_536, "more than was promised in the beginning: {taken}");
    assert_eq!(u32::from(host.window), LEAST_BYTES);
    host.endpoint.set_shared_memory(Memory::Plenty);
    assert!((0..3).any(|_| take(&mut host).1 > 40_000), "{}", host.window);
}

/// A window that closed while memory was spent opens by the peer's probe, although the probe itself finds no room.
#[test]
fn a_probe_finds_the_window_open_once_there_is_memory_again() {
    let mut host = Host::new(bounds());
    let (reader, ours) = host.open(2000, 60_000);
    host.endpoint.set_shared_memory(Memory::Spent);
    let mut seq = 1;
    while host.window > 0 {
        let bytes = u32::from(host.window).min(1000);
        host.say(2000, (seq, ours), Flags::ACK, 60_000, &vec![5; bytes as usize]);
        seq += bytes;
        if seq < 100_000 {
            host.endpoint.recv(host.now, reader, &mut [0; 1000]).expect("it is open");
            host.send();
        }
    }
    let unread = host.endpoint.readable(reader);
    assert!(unread <= LEAST_BYTES, "{unread}");
    host.endpoint.set_shared_memory(Memory::Plenty);
    host.say(2000, (seq, ours), Flags::ACK, 60_000, &[5]);
    assert!(host.window > 0, "there is memory, and the probe asked");
}
