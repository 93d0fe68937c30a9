//! Round trips between two processes: a request of i bytes goes there, a reply of o bytes comes back.
//!
//! This is the question of a host and its accelerator (how long until the reply arrives?), for two processes
//! of one machine. The *client* holds the clock; the *server*, a process of its own on another
//! core, answers when the last byte of the request has arrived, never earlier, so the two transfers add.
//!
//! ```text
//!   client   |-- hand over i bytes -->|            |--- take o bytes ----|
//!   server                     |--- take i bytes -- hand over o bytes --|
//!            t0                                                         t1      round trip = t1 - t0
//! ```
//!
//! The *transport* ([`REGISTRY`]) defines "hand over" and "take", one file per mechanism:
//!
//! - [`shared`]: through memory that both map. With user buffers, data are copied in and out on both sides
//!   (four copies); in place, the client writes the request where the server reads it and the other way
//!   round (no copy: each byte is stored once and loaded once); by word stores, the request goes as 8-byte
//!   stores that bypass the cache, as stores into a device's window do.
//! - [`stream`]: through the kernel, by a pipe, a Unix socket or loopback TCP.
//! - [`cross_memory`]: through the kernel, each side reading the memory of the other.
//!
//! Every repetition carries fresh data: the writer stores each byte again, so its cache lines have to
//! cross. Whether all bytes arrive is checked before and after the timed repetitions, over the same path
//! ([`words`]). One clock reading ends a trip and begins the next, so every single trip is a sample;
//! trips are kept or dropped in blocks, each watched by a guard in both processes ([`measure`]).
//!
//! The server is a fork, which shares memory and descriptors without names and leaves nothing behind; it
//! makes system calls and touches memory that exists already, nothing else, as a fork of a process with
//! several threads must. It dies with the client.
//!
//! It does not do transports with more than one request under way, or placements other than two cores.

mod control;
mod cross_memory;
mod error;
mod mapping;
mod measure;
mod peer;
mod server;
mod shared;
mod stream;
mod transport;
mod words;

pub use error::{Result, RoundTripError};
pub use measure::{Plan, RoundTrips};

/// Measures round trips by one transport.
pub type Measure = fn(&Plan) -> Result<RoundTrips>;

/// Every transport, as typed by people.
pub static REGISTRY: &[(&str, Measure)] = &[
    ("user_buffers", measure::on::<shared::Copied>),
    ("in_place", measure::on::<shared::InPlace>),
    ("word_store", measure::on::<shared::WordStore>),
    ("pipe", measure::on::<stream::Pipe>),
    ("unix_socket", measure::on::<stream::UnixSocket>),
    ("tcp", measure::on::<stream::Tcp>),
    ("process_vm_readv", measure::on::<cross_memory::CrossMemory>),
];

/// The transport called `key`.
pub fn find(key: &str) -> Option<Measure> {
    let entry = REGISTRY.iter().find(|(known, _)| *known == key);
    entry.map(|&(_, measure)| measure)
}
