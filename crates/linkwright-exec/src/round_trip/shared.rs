//! Through memory that both processes map; a counter per direction says that data lie ready.
//!
//! | transport | client | server | client |
//! |---|---|---|---|
//! | `user_buffers` | copies the user's request in | copies it out, copies its reply in | copies the reply out |
//! | `in_place` | stores the request | loads it, stores the reply | loads the reply |
//! | `word_store` | stores the request word by word past the cache | as above | as above |
//!
//! `word_store` stands for a CPU that stores into a device's window: every 8-byte store is
//! non-temporal (`movnti`), so it leaves through the write-combining buffers without the cache line
//! being fetched first, as stores into a write-combining mapping of a device do; a fence drains the
//! buffers before the request is announced. It is not a device: the far end is memory, and a processor
//! without such stores uses ordinary ones, each ordered before the next.

use super::control::Control;
use super::error::Result;
use super::mapping::Words;
use super::transport::{Places, Sizes, Transport};
use super::words;

/// With user buffers.
pub(super) struct Copied {
    user: Places,
    shared: Places,
}

impl Transport for Copied {
    const IN_PLACE: bool = false;

    fn open(sizes: Sizes) -> Result<Self> {
        let (user, shared) = (Places::apart(sizes)?, Places::shared(sizes)?);
        Ok(Copied { user, shared })
    }

    fn places(&self) -> &Places {
        &self.user
    }

    fn send_request(&mut self, control: &mut Control) -> Result<()> {
        copy(self.user.client_request, self.shared.client_request);
        control.announce_request();
        Ok(())
    }

    fn receive_reply(&mut self, control: &mut Control) -> Result<()> {
        control.await_reply()?;
        copy(self.shared.client_reply, self.user.client_reply);
        Ok(())
    }

    fn receive_request(&mut self, control: &mut Control) -> Result<bool> {
        let more = control.await_request();
        if more {
            copy(self.shared.server_request, self.user.server_request);
        }
        Ok(more)
    }

    fn send_reply(&mut self, control: &mut Control) -> Result<()> {
        copy(self.user.server_reply, self.shared.server_reply);
        control.announce_reply();
        Ok(())
    }
}

/// Without copies; `PAST_CACHE` says how the client stores the request.
pub(super) struct Mapped<const PAST_CACHE: bool>(Places);

/// Stored and loaded by ordinary instructions.
pub(super) type InPlace = Mapped<false>;
/// The request is stored word by word, past the cache.
pub(super) type WordStore = Mapped<true>;

impl<const PAST_CACHE: bool> Transport for Mapped<PAST_CACHE> {
    const IN_PLACE: bool = true;

    fn open(sizes: Sizes) -> Result<Self> {
        Places::shared(sizes).map(Mapped)
    }

    fn places(&self) -> &Places {
        &self.0
    }

    #[inline]
    fn compose_request(&mut self, seed: u64) {
        match PAST_CACHE {
            true => store_words(self.0.client_request, seed),
            false => words::compose(self.0.client_request, seed),
        }
    }

    fn send_request(&mut self, control: &mut Control) -> Result<()> {
        control.announce_request();
        Ok(())
    }

    fn receive_reply(&mut self, control: &mut Control) -> Result<()> {
        control.await_reply()
    }

    fn receive_request(&mut self, control: &mut Control) -> Result<bool> {
        Ok(control.await_request())
    }

    fn send_reply(&mut self, control: &mut Control) -> Result<()> {
        control.announce_reply();
        Ok(())
    }
}

#[inline]
fn copy(from: Words, to: Words) {
    // SAFETY: both exist, are of one length and do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(from.start, to.start, to.len) };
}

#[cfg(target_arch = "x86_64")]
fn store_words(window: Words, seed: u64) {
    use std::arch::x86_64::{_mm_sfence, _mm_stream_si64};
    for k in 0..window.len {
        // SAFETY: the word exists, and every x86-64 processor has the instruction.
        unsafe { _mm_stream_si64(window.start.add(k).cast(), words::word(seed, k) as i64) };
    }
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { _mm_sfence() };
}

#[cfg(not(target_arch = "x86_64"))]
fn store_words(window: Words, seed: u64) {
    use std::sync::atomic::{AtomicU64, Ordering};
    for k in 0..window.len {
        // SAFETY: the word exists and is aligned.
        let word = unsafe { AtomicU64::from_ptr(window.start.add(k)) };
        word.store(words::word(seed, k), Ordering::Release);
    }
}
