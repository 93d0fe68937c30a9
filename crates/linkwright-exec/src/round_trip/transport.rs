//! A transport: four places for data, and how they are handed over.

use super::control::Control;
use super::error::Result;
use super::mapping::{Region, Words};
use super::words;

/// Smallest and largest size of a request or a reply in bytes; both are multiples of 8.
pub(super) const SIZES: std::ops::RangeInclusive<usize> = 8..=(1 << 20);

/// Bytes of a request and of its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub request: usize,
    pub reply: usize,
}

/// One mechanism. Made before the processes part; then each calls the functions of its side.
pub(super) trait Transport: Sized {
    /// Whether data are written and read where the other side has them: then writing and reading them
    /// is part of a round trip. Else they lie in a buffer of the user before and afterwards.
    const IN_PLACE: bool;

    fn open(sizes: Sizes) -> Result<Self>;
    /// Where each side has the data.
    fn places(&self) -> &Places;

    /// Client, once there are two processes.
    fn become_client(&mut self, _control: &Control) {}
    /// Client: writes the request into its place.
    fn compose_request(&mut self, seed: u64) {
        words::compose(self.places().client_request, seed);
    }
    /// Client: hands the request over.
    fn send_request(&mut self, control: &mut Control) -> Result<()>;
    /// Client: waits for the reply and takes it.
    fn receive_reply(&mut self, control: &mut Control) -> Result<()>;

    /// Server, once there are two processes. Like everything on its side it must not allocate.
    fn become_server(&mut self) {}
    /// Server: waits for a request and takes it; false when there will be none.
    fn receive_request(&mut self, control: &mut Control) -> Result<bool>;
    /// Server: hands the reply over.
    fn send_reply(&mut self, control: &mut Control) -> Result<()>;
}

/// The four places; in place, two of them are the same memory.
#[derive(Debug)]
pub(super) struct Places {
    pub client_request: Words,
    pub server_request: Words,
    pub server_reply: Words,
    pub client_reply: Words,
    _memory: Region,
}

impl Places {
    /// Four buffers, of which each process has its own copy.
    pub fn apart(sizes: Sizes) -> Result<Places> {
        let mut memory = Region::new(2 * (sizes.request + sizes.reply), libc::MAP_PRIVATE)?;
        Ok(Places {
            client_request: memory.words(sizes.request),
            server_request: memory.words(sizes.request),
            server_reply: memory.words(sizes.reply),
            client_reply: memory.words(sizes.reply),
            _memory: memory,
        })
    }

    /// Two buffers that both processes see.
    pub fn shared(sizes: Sizes) -> Result<Places> {
        let mut memory = Region::new(sizes.request + sizes.reply, libc::MAP_SHARED)?;
        let (request, reply) = (memory.words(sizes.request), memory.words(sizes.reply));
        Ok(Places {
            client_request: request,
            server_request: request,
            server_reply: reply,
            client_reply: reply,
            _memory: memory,
        })
    }
}
