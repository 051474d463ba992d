//! Writes that put their bytes straight into the send buffer: one copy less than from a buffer of the program's own.

use std::cell::Cell;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::task::{Poll, ready};

use rustix::io::{ReadWriteFlags, preadv2};
use tokio::runtime::Handle;
use tokio::task::coop::poll_proceed;

use super::ready::at_once;
use super::{Held, OwnedWriteHalf, TcpStream, taken};
use crate::stack::{Bytes, Side, Waiting};

/// The most that a file gives at once. A processor's second cache keeps it until it leaves.
const CHUNK: usize = 256 << 10;

/// The writes of a whole stream and of its half that writes.
macro_rules! write_in_place {
    ($($stream:ty),+) => {$(
        impl $stream {
            /// Writes at most `most` bytes, which `fill` puts into the send buffer itself. `fill` gets the room that
            /// there is now in one piece, and returns the number of bytes that it put there. Its error becomes the
            /// error of this call.
            ///
            /// The whole stack waits while `fill` runs: it must not block. A call of any stack's streams from there
            /// would wait for ever. An example is `|room| socket.try_read(room)` with a socket of the kernel's. More
            /// bytes than its room make this panic.
            pub async fn write_with(
                &self,
                most: usize,
                fill: impl FnMut(&mut [u8]) -> io::Result<usize>,
            ) -> io::Result<usize> {
                self.held.write_with(most, fill).await
            }

            /// [`write_with`](Self::write_with), without a wait. It fails with
            /// [`WouldBlock`](io::ErrorKind::WouldBlock) where there is no room.
            pub fn try_write_with(
                &self,
                most: usize,
                fill: impl FnMut(&mut [u8]) -> io::Result<usize>,
            ) -> io::Result<usize> {
                self.held.try_write_with(most, fill)
            }

            /// Sends `bytes` of a file from an offset, or fewer if the file ends before. Returns their number. The
            /// file's own position does not matter and stays.
            ///
            /// The file is read into the send buffer without a copy between. Parts that are not in memory are read by a
            /// thread of the runtime's for blocking work: a slow disk stops nothing else. Without a runtime of tokio's
            /// such a part is an error. After an error, or if this is not awaited to its end, some bytes may have been
            /// sent.
            pub async fn send_file(&self, file: &File, offset: u64, bytes: u64) -> io::Result<u64> {
                self.held.send_file(file, offset, bytes).await
            }
        }
    )+};
}

write_in_place!(TcpStream, OwnedWriteHalf);

impl Held {
    async fn write_with(
        &self,
        most: usize,
        mut fill: impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        poll_fn(|cx| {
            let budget = ready!(poll_proceed(cx));
            let wait = |waiting: &mut Waiting| waiting.join(self.id, Side::Writer, cx);
            taken(self.fill_or(most, &mut fill, wait), &budget)
        })
        .await
    }

    fn try_write_with(
        &self,
        most: usize,
        mut fill: impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        at_once(self.fill_or(most, &mut fill, |_| {}))
    }

    async fn send_file(&self, file: &File, offset: u64, bytes: u64) -> io::Result<u64> {
        let mut sent = 0;
        while sent < bytes {
            let most = usize::try_from(bytes - sent).map_or(CHUNK, |left| left.min(CHUNK));
            let at = offset.saturating_add(sent);
            // The kernel takes an offset of -1 for the file's own position.
            i64::try_from(at)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "no file is that long"))?;
            let from_memory = |room: &mut [u8]| {
                let read = preadv2(file, &mut [IoSliceMut::new(room)], at, ReadWriteFlags::NOWAIT);
                read.map_err(io::Error::from)
            };
            let part = match self.write_with(most, from_memory).await {
                // A file system may know no reads that do not wait.
                Err(error) if is_on_disk(&error) => self.send_from_disk(file, at, most).await?,
                // Linux 5.9 and 5.10 may also say so before the end.
                Ok(0) => self.send_from_disk(file, at, most).await?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                part => part?,
            };
            if part == 0 {
                break;
            }
            sent += part as u64;
        }
        Ok(sent)
    }

    async fn send_from_disk(&self, file: &File, at: u64, most: usize) -> io::Result<usize> {
        let file = file.try_clone()?;
        let read = move || {
            let mut data = vec![0; most];
            let read = loop {
                match file.read_at(&mut data, at) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read?,
                }
            };
            data.truncate(read);
            Ok::<_, io::Error>(data)
        };
        let data = Handle::try_current()
            .map_err(io::Error::other)?
            .spawn_blocking(read)
            .await
            .map_err(io::Error::other)??;
        let mut left = &data[..];
        while !left.is_empty() {
            let written = poll_fn(|cx| self.poll_write(cx, left)).await?;
            left = &left[written..];
        }
        Ok(data.len())
    }

    /// Writes what `fill` puts into the room there is, or calls `wait` where there is none.
    fn fill_or(
        &self,
        most: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> io::Result<usize>,
        wait: impl FnOnce(&mut Waiting),
    ) -> Poll<io::Result<usize>> {
        if most == 0 {
            return Poll::Ready(Ok(0));
        }
        let filled = Cell::new(None);
        let mut into_room = |room: &mut [u8]| {
            let result = fill(room);
            let bytes = *result.as_ref().unwrap_or(&0);
            filled.set(Some(result));
            bytes
        };
        let written = self.write_or(Bytes::ToCome(most, &mut into_room), |waiting| {
            let result = filled.take();
            // A source that had nothing does not wait for room.
            if result.is_none() {
                wait(waiting);
            }
            filled.set(result);
        });
        filled.take().map_or(written, Poll::Ready)
    }
}

fn is_on_disk(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EOPNOTSUPP | libc::ENOSYS))
}
