//! Files that are full, and the next ones.

use super::*;

#[test]
fn a_full_file_makes_room_for_the_next_and_the_oldest_goes() {
    let folder = Folder::new("capture-rotate");
    let (capture, mut tap) = new();
    let path = folder.file("a.pcapng");
    let rotated = CaptureSettings { rotate_bytes: Some(1), files: THREE, ..settings(&path) };
    capture.start(rotated).expect("it starts");
    for id in 1..=5 {
        packet(&mut tap, Direction::Out, 0, id, &[u8::try_from(id).expect("small")]);
        // One write each: the writer is done once the packet is counted.
        let written = |counts: CaptureCounts| counts.packets_written >= id;
        while !capture.running().is_some_and(|(_, counts)| written(counts)) {
            thread::yield_now();
        }
    }
    let (_, counts) = capture.stop().expect("it runs");
    assert_eq!(counts.files_begun, 5);
    let of = |name: &str| read(&folder.file(name)).into_iter().map(|(bytes, _)| bytes[0]).collect::<Vec<_>>();
    assert_eq!((of("a.pcapng"), of("a.1.pcapng"), of("a.2.pcapng")), (vec![5], vec![4], vec![3]));
    assert!(!folder.file("a.3.pcapng").exists());
}

#[test]
fn what_comes_at_once_is_more_than_one_file_takes() {
    const LARGEST: u64 = 4096;
    let folder = Folder::new("capture-burst");
    let (capture, mut tap) = new();
    let rotated =
        CaptureSettings { rotate_bytes: Some(LARGEST), files: THREE, ..settings(&folder.file("a.pcapng")) };
    capture.start(rotated).expect("it starts");
    // Several lengths make files end at several distances from the limit.
    let sent = [7; 900];
    for id in 1..=1000 {
        let len = 100 + usize::try_from(id * 37 % 800).expect("small");
        packet(&mut tap, Direction::Out, 0, id, &sent[..len]);
    }
    capture.stop().expect("it runs");
    for name in ["a.pcapng", "a.1.pcapng", "a.2.pcapng"] {
        let bytes = fs::metadata(folder.file(name)).expect("there were many").len();
        assert!(bytes <= LARGEST, "{name}: {bytes} bytes");
    }
    let kept = ["a.2.pcapng", "a.1.pcapng", "a.pcapng"].map(|name| read(&folder.file(name)));
    assert!(kept[..2].iter().all(|packets| packets.len() > 3), "a file is used up");
    let lens: Vec<_> = kept.iter().flatten().map(|(bytes, _)| bytes.len() as u64 - 100).collect();
    let first = 1000 - lens.len() as u64 + 1;
    assert_eq!(lens, (first..=1000).map(|id| id * 37 % 800).collect::<Vec<_>>());
}

#[test]
fn a_packet_that_is_larger_than_a_file_has_one_to_itself() {
    let folder = Folder::new("capture-large");
    let (capture, mut tap) = new();
    let rotated =
        CaptureSettings { rotate_bytes: Some(4096), files: THREE, ..settings(&folder.file("a.pcapng")) };
    capture.start(rotated).expect("it starts");
    for (id, len) in [(1, 10), (2, 5000), (3, 20)] {
        packet(&mut tap, Direction::Out, 0, id, &vec![7; len]);
    }
    capture.stop().expect("it runs");
    for (name, len) in [("a.2.pcapng", 10), ("a.1.pcapng", 5000), ("a.pcapng", 20)] {
        let lens: Vec<_> = read(&folder.file(name)).into_iter().map(|(bytes, _)| bytes.len()).collect();
        assert_eq!(lens, [len], "{name}");
    }
}
