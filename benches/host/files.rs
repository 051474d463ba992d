//! A file to the kernel with offload: read straight into the send buffer, and by a buffer of the program's own.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::PathBuf;
use std::thread::JoinHandle;

use hopwise_host::TcpStream;
use tokio::io::AsyncWriteExt;

use crate::bulk::MOVER;
use crate::kernel;
use crate::mover::Mover;
use crate::ours::{CHUNK, Ours};
use crate::place::{Device, KERNELS};
use crate::row::{self, Better, Row};
use crate::usage::measure;

const RUNS: usize = 7;
const FILE_BYTES: usize = 256 << 20;
/// The file is sent so often, over one connection.
const TIMES: usize = 8;

/// A file in the page cache, which goes with this.
struct Cached(PathBuf);

impl Cached {
    fn new() -> Cached {
        let path = std::env::temp_dir().join(format!("hopbench-file-{}", std::process::id()));
        fs::write(&path, vec![7; FILE_BYTES]).expect("there is room for the file");
        Cached(path)
    }

    fn open(&self) -> File {
        File::open(&self.0).expect("it was written")
    }
}

impl Drop for Cached {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The rate in MB/s and the CPU time in ms/GB of `send`, until the sink has everything.
fn figures(sink: JoinHandle<u64>, send: impl FnOnce()) -> [f64; 2] {
    let (took, cpu) = measure(|| {
        send();
        sink.join().expect("the sink ends");
    });
    let bytes = (FILE_BYTES * TIMES) as f64;
    [bytes / took / 1e6, cpu / bytes * 1e12]
}

async fn in_place(stream: &mut TcpStream, file: &File) {
    for _ in 0..TIMES {
        let sent = stream.send_file(file, 0, FILE_BYTES as u64).await.expect("the connection holds");
        assert_eq!(sent, FILE_BYTES as u64);
    }
}

async fn by_a_buffer(stream: &mut TcpStream, mut file: &File) {
    let mut chunk = vec![0; CHUNK];
    for _ in 0..TIMES {
        file.rewind().expect("it is a file");
        while let read @ 1.. = file.read(&mut chunk).expect("it can be read") {
            stream.write_all(&chunk[..read]).await.expect("the connection holds");
        }
    }
}

fn ours(send: impl AsyncFnOnce(&mut TcpStream)) -> [f64; 2] {
    let ours = Ours::start(Device::Offload);
    let (to, sink) = kernel::sink(KERNELS, 1);
    let figures = figures(sink, || ours.talk(to, send));
    ours.stop();
    figures
}

fn mover(mut mover: Mover) -> [f64; 2] {
    let (to, sink) = kernel::sink(KERNELS, 1);
    figures(sink, || mover.send(to, 1, (FILE_BYTES * TIMES) as u64))
}

pub(crate) fn rows() -> Vec<Row> {
    let cached = Cached::new();
    let file = &cached.open();
    let mut runs: [[Vec<f64>; 2]; 3] = Default::default();
    for run in 0..=RUNS {
        let figures = [
            ours(async |stream| in_place(stream, file).await),
            ours(async |stream| by_a_buffer(stream, file).await),
            mover(Mover::start(Device::Offload)),
        ];
        // The first run of each warms up.
        for (runs, figures) in runs.iter_mut().zip(figures).filter(|_| run > 0) {
            runs.iter_mut().zip(figures).for_each(|(runs, figure)| runs.push(figure));
        }
    }
    let [[rate, cpu], others @ ..] = runs.map(|runs| runs.map(row::median));
    let names = ["ours, by a buffer", MOVER];
    let rows = names.into_iter().zip(others).flat_map(|(name, [rate_then, cpu_then])| {
        [
            Row::beside("a file to the kernel", "MB/s", Better::More, rate, (name, rate_then)),
            Row::beside("CPU, a file to the kernel", "ms/GB", Better::Less, cpu, (name, cpu_then)),
        ]
    });
    rows.collect()
}
