//! What can go wrong with a round trip; each ends the experiment without a number.

use std::io;

/// Result of everything here.
pub type Result<T, E = RoundTripError> = std::result::Result<T, E>;

/// An error of a round trip.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message names its fields")]
pub enum RoundTripError {
    /// A size outside of what the buffers allow.
    #[error("a {what} of {bytes} bytes: sizes are multiples of 8 from {smallest} to {largest}")]
    Size {
        what: &'static str,
        bytes: usize,
        smallest: usize,
        largest: usize,
    },
    /// The operating system does not allow this transport.
    #[error("this system forbids it ({error}){hint}")]
    Forbidden { error: io::Error, hint: String },
    /// A system call that should work did not.
    #[error("{what} failed: {error}")]
    System {
        what: &'static str,
        error: io::Error,
    },
    /// The other process is gone.
    #[error("the server process ended during the measurement ({how}); something stopped it")]
    ServerEnded { how: String },
    /// Nothing came back.
    #[error(
        "no reply for {seconds} s; the machine is overloaded or the server process is stopped"
    )]
    NoReply { seconds: u64 },
    /// The data that came back are not the data that were sent.
    #[error("word {word} of {words} of the reply is {got:#x} instead of {wanted:#x}; no time is reported")]
    WrongData {
        word: usize,
        words: usize,
        got: u64,
        wanted: u64,
    },
}

impl RoundTripError {
    /// The last error of the operating system, while doing `what`.
    pub(super) fn last(what: &'static str) -> Self {
        RoundTripError::System {
            what,
            error: io::Error::last_os_error(),
        }
    }
}
