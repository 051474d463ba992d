//! A connection from its first SYN on: it opens, and then it stands or has failed.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Mutex, OnceLock, PoisonError};

use hopwise_core::endpoint::ConnectOptions;
use hopwise_host::ConnectError;

use super::bell::{Bell, Side};
use crate::{Network, TcpStream};

type Answer = Result<TcpStream, ConnectError>;

/// The way to a connection.
enum Attempt {
    Runs(Pin<Box<dyn Future<Output = Answer> + Send>>),
    Failed(io::Error),
    /// It has ended: the connection stands, or its failure has been told.
    Over,
}

/// A stream, or the attempt to get one.
pub(super) struct Opening {
    stands: OnceLock<TcpStream>,
    attempt: Mutex<Attempt>,
}

impl Opening {
    /// A connection that stands already.
    pub(super) fn done(stream: TcpStream) -> Opening {
        Opening { stands: OnceLock::from(stream), attempt: Mutex::new(Attempt::Over) }
    }

    /// The first [`advance`](Opening::advance) sends the SYN.
    pub(super) fn begin(network: &Network, to: SocketAddr, options: &ConnectOptions) -> Opening {
        let (stack, options) = (network.stack().clone(), options.clone());
        let runs = Box::pin(async move { stack.connect(to, &options).await });
        Opening { stands: OnceLock::new(), attempt: Mutex::new(Attempt::Runs(runs)) }
    }

    /// Goes on with the attempt, which makes the descriptor ready at its end. Returns whether it has just succeeded.
    pub(super) fn advance(&self, bell: &Bell) -> bool {
        let mut attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        let Attempt::Runs(runs) = &mut *attempt else { return false };
        let mut answer = None;
        bell.ask(Side::Both, |cx| {
            runs.as_mut().poll(cx).map(|done| {
                answer = Some(done);
                Ok(())
            })
        });
        match answer {
            None => false,
            Some(Err(error)) => {
                *attempt = Attempt::Failed(error.into());
                false
            }
            // It is set once: the attempt is locked, and ends here.
            Some(Ok(stream)) => {
                *attempt = Attempt::Over;
                self.stands.set(stream).is_ok()
            }
        }
    }

    /// The stream if it stands, without a word about a failure.
    pub(super) fn standing(&self) -> io::Result<&TcpStream> {
        self.stands.get().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// The stream once it stands. While it opens there is none yet (`WouldBlock`), and a failure is told once.
    pub(super) fn stream(&self) -> io::Result<&TcpStream> {
        if let Some(stream) = self.stands.get() {
            return Ok(stream);
        }
        let mut attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*attempt, Attempt::Runs(_)) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        match std::mem::replace(&mut *attempt, Attempt::Over) {
            Attempt::Failed(error) => Err(error),
            // Another thread may have ended the attempt since.
            _ => self.stands.get().ok_or_else(|| io::ErrorKind::NotConnected.into()),
        }
    }
}

hopwise_core::shown!(Opening: stands);
