//! The decision log in a capture's files, and what a full queue costs it.

use hopwise_core::tcp::decisions::{BLOCK_TYPE, Block as LogBlock};

use super::*;

/// Machine, number, loss and entries of each block of a file.
fn logs(path: &Path) -> Vec<(u16, u32, bool, Vec<u8>)> {
    let bytes = fs::read(path).expect("the file is there");
    let mut reader = PcapNgReader::new(&bytes[..]).expect("it begins with a section");
    let mut found = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::Unknown(block) = block.expect("whole blocks")
            && block.type_ == BLOCK_TYPE
        {
            let LogBlock { machine, number, is_after_loss, entries, offset } =
                LogBlock::read(&block.value).expect("it is sound");
            assert_eq!(offset, Duration::from_secs(1_000_000_000));
            found.push((machine, number, is_after_loss, entries.to_vec()));
        }
    }
    found
}

#[test]
fn decisions_of_all_shards_are_in_the_file_and_packets_have_their_numbers() {
    let folder = Folder::new("capture-decisions");
    let path = folder.file("a.pcapng");
    let capture = Capture::default();
    let mut taps = [capture.tap(0), capture.tap(1)];
    assert!(!taps[0].takes_decisions());
    taps[0].on_decisions(b"nobody listens");
    capture.start(of_two(&path)).expect("the folder can be written");
    assert!(taps[0].takes_decisions());
    packet(&mut taps[1], Direction::In, 0, 7, b"a packet");
    taps[0].on_decisions(b"one ");
    taps[1].on_decisions(b"three");
    taps[0].on_decisions(b"two");
    capture.stop().expect("it runs");
    let found = logs(&path);
    let of =
        |shard| found.iter().filter(|log| log.0 == shard).flat_map(|log| log.3.clone()).collect::<Vec<_>>();
    assert_eq!((of(0), of(1)), (b"one two".to_vec(), b"three".to_vec()));
    assert!(found.iter().all(|(_, _, is_after_loss, _)| !is_after_loss), "{found:?}");
    // epb_packetid, 8 bytes: the shard and the number.
    let id = [&[5_u16, 8].map(u16::to_ne_bytes).concat()[..], &(1_u64 << 48 | 7).to_ne_bytes()].concat();
    let bytes = fs::read(&path).expect("the file is there");
    assert_eq!(bytes.windows(id.len()).filter(|window| *window == id).count(), 1);
}

#[test]
fn decisions_that_find_the_queue_full_are_missed_from_there_on() {
    let queue = Queue::new();
    queue.open(&[LinkId(0)]);
    let large = vec![7; 9 << 20];
    queue.push_decisions(0, &large);
    queue.push_decisions(0, &large);
    queue.push_decisions(0, b"small enough, but after a loss");
    queue.push_decisions(1, b"another shard");
    let mut batch = queue::Batch::default();
    queue.take(&mut batch, Duration::ZERO);
    let shards: Vec<_> = batch.records().map(|(shard, _)| shard).collect();
    assert_eq!((shards, batch.lost_decisions()), (vec![0, 1], &[0][..]));
    queue.push_decisions(0, b"again");
    queue.take(&mut batch, Duration::ZERO);
    assert_eq!((batch.records().count(), batch.lost_decisions()), (1, &[][..]));
}

#[test]
fn a_block_after_a_loss_says_so_and_numbers_go_on_in_the_next_file() {
    let folder = Folder::new("capture-decisions-rotate");
    let path = folder.file("a.pcapng");
    let settings = CaptureSettings { rotate_bytes: Some(1), files: THREE, ..settings(&path) };
    let mut file = CaptureFile::create(&settings).expect("the folder can be written");
    let mut shards = Shards::new(vec![names("dca")]);
    let queue = Queue::new();
    queue.open(&[LinkId(0)]);
    let mut batch = queue::Batch::default();
    let mut turn = |entries: &[&[u8]], id: u64| {
        entries.iter().for_each(|entries| queue.push_decisions(0, entries));
        let seen = SeenPacket {
            at: Instant(id),
            link: LinkId(0),
            direction: Direction::Out,
            id,
            segment_bytes: None,
            ethernet: None,
            packet: b"a packet",
        };
        queue.push_packet(0, &seen);
        queue.take(&mut batch, Duration::ZERO);
        shards.take(&batch, false, &mut file);
        file.write(&[]).expect("there is room");
    };
    turn(&[b"first", &[0; 17 << 20]], 1);
    turn(&[b"second"], 2);
    // Each packet and each block has a file to itself.
    let all = ["a.2.pcapng", "a.1.pcapng", "a.pcapng"].map(|name| logs(&folder.file(name))).concat();
    let told: Vec<_> = all.iter().map(|(_, number, is_after_loss, _)| (*number, *is_after_loss)).collect();
    assert_eq!(told, [(0, false), (1, true)]);
}
