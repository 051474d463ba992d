//! Packets that this machine lost in a run: no program or processor took them in time.

use std::fs;

/// Packets that this network namespace's devices did not send because their queues were full. `is_counted` takes a
/// device's name. None if the system does not tell.
pub fn by_devices(is_counted: impl Fn(&str) -> bool) -> Option<u64> {
    let table = fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    Some(in_devices(&table, is_counted))
}

fn in_devices(table: &str, is_counted: impl Fn(&str) -> bool) -> u64 {
    let of_device = |line: &str| {
        let (name, counters) = line.split_once(':')?;
        counters.split_whitespace().nth(11)?.parse::<u64>().ok().filter(|_| is_counted(name.trim()))
    };
    table.lines().filter_map(of_device).sum()
}

/// Packets that waited for a processor of this machine, and found its queue full. None if the system does not tell.
pub fn by_processors() -> Option<u64> {
    let table = fs::read_to_string("/proc/net/softnet_stat").ok()?;
    Some(in_processors(&table))
}

fn in_processors(table: &str) -> u64 {
    let of_processor = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    table.lines().filter_map(of_processor).sum()
}

/// Datagrams that the sockets of this network namespace did not take because their queues were full, or that could not
/// be read. Sockets that were closed do not count. None if the system does not tell.
pub fn by_sockets() -> Option<u64> {
    let table = fs::read_to_string("/proc/thread-self/net/udp").ok()?;
    Some(in_sockets(&table))
}

fn in_sockets(table: &str) -> u64 {
    let of_socket = |line: &str| line.split_whitespace().last()?.parse::<u64>().ok();
    table.lines().skip(1).filter_map(of_socket).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_the_devices_that_are_asked_for_are_counted_and_no_others() {
        let table = "Inter-|   Receive                      |  Transmit\n face |bytes|bytes\n\
                     \x20 air0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                     \x20   lo: 1 2 3 4 5 6 7 8 9 10 11 99 13 14 15 16\n\
                     \x20wire1: 0 0 0 0 0 0 0 0 0 0 0 30 0 0 0 0\n";
        assert_eq!(in_devices(table, |name| name != "lo"), 42);
        assert_eq!(in_devices(table, |name| name == "lo"), 99);
    }

    #[test]
    fn packets_that_no_processor_took_are_the_second_column_of_each_row() {
        assert_eq!(in_processors("0000a3f2 00000010 00000000 0\n00000001 00000002 0 0\n"), 18);
        assert_eq!(in_processors(""), 0);
    }

    #[test]
    fn datagrams_that_no_socket_took_are_the_last_column() {
        let table = "   sl  local_address rem_address   st ref pointer drops             \n\
                     \x20 76: 0000000A:1F90 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 51 2 0 40\n\
                     \x20 77: 0000000A:1F91 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 52 2 0 2\n";
        assert_eq!(in_sockets(table), 42);
        assert_eq!(in_sockets(""), 0);
    }

    #[test]
    fn datagrams_that_a_full_socket_drops_are_counted() {
        let (here, there) = ("127.0.0.1:0", "127.0.0.1:0");
        let taking = std::net::UdpSocket::bind(here).expect("a port is free");
        let sending = std::net::UdpSocket::bind(there).expect("a port is free");
        let to = taking.local_addr().expect("it is bound");
        let Some(before) = by_sockets() else {
            return println!("skipped: datagrams_that_a_full_socket: no /proc");
        };
        for _ in 0..4_000 {
            let _ = sending.send_to(&[0; 1_000], to);
        }
        assert!(by_sockets().expect("it was there") > before, "four megabytes are more than a socket holds");
    }
}
