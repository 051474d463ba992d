//! Bytes that can be made and checked anywhere: a stream by a seed, and its SHA-256.

use std::io::{self, Read, Write};

use hopwise_core::random::SplitMix64;
use sha2::{Digest, Sha256};

/// A loss, a repetition or a swap of any bytes changes the hash.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    numbers: SplitMix64,
    rest: u64,
    hash: Sha256,
}

pub(crate) type Hash = [u8; 32];

impl Stream {
    pub(crate) fn new(seed: u64, bytes: u64) -> Stream {
        Stream { numbers: SplitMix64::new(seed), rest: bytes, hash: Sha256::new() }
    }

    /// The next bytes; fewer than there is room for only at the end.
    pub(crate) fn next(&mut self, into: &mut [u8]) -> usize {
        let bytes = usize::try_from(self.rest).unwrap_or(usize::MAX).min(into.len()) & !7;
        let bytes = if bytes == 0 { into.len().min(self.rest as usize) } else { bytes };
        for word in into[..bytes].chunks_mut(8) {
            word.copy_from_slice(&self.numbers.next_u64().to_le_bytes()[..word.len()]);
        }
        self.rest -= bytes as u64;
        self.hash.update(&into[..bytes]);
        bytes
    }

    pub(crate) fn hash(self) -> Hash {
        self.hash.finalize().into()
    }
}

/// Writes a whole stream to a blocking writer.
pub(crate) fn write_all(to: &mut impl Write, seed: u64, bytes: u64) -> io::Result<Hash> {
    let mut stream = Stream::new(seed, bytes);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = stream.next(&mut buffer);
        if length == 0 {
            return Ok(stream.hash());
        }
        to.write_all(&buffer[..length])?;
    }
}

/// Reads to the end; returns the number of bytes and their hash.
pub(crate) fn read_all(from: &mut impl Read) -> io::Result<(u64, Hash)> {
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok((bytes, hash.finalize().into())),
            length => {
                bytes += length as u64;
                hash.update(&buffer[..length]);
            }
        }
    }
}

/// [`write_all`] for tokio's streams.
pub(crate) async fn send_all<W>(to: &mut W, seed: u64, bytes: u64) -> io::Result<Hash>
where
    W: tokio::io::AsyncWrite + Unpin,
{
    use tokio::io::AsyncWriteExt;
    let mut stream = Stream::new(seed, bytes);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = stream.next(&mut buffer);
        if length == 0 {
            return Ok(stream.hash());
        }
        to.write_all(&buffer[..length]).await?;
    }
}

/// [`read_all`] for tokio's streams.
pub(crate) async fn receive_all<R>(from: &mut R) -> io::Result<(u64, Hash)>
where
    R: tokio::io::AsyncRead + Unpin,
{
    use tokio::io::AsyncReadExt;
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer).await? {
            0 => return Ok((bytes, hash.finalize().into())),
            length => {
                bytes += length as u64;
                hash.update(&buffer[..length]);
            }
        }
    }
}
