//! Control information of client and server: a page that both see, apart from the data.
//!
//! Words that one side spins on have a pair of cache lines each. The mode changes between blocks of
//! trips only, so the server has its line in the cache during a block.

use super::error::{Result, RoundTripError};
use super::mapping::Region;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What the server does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Answer at once.
    Timed,
    /// Answer from the digest of the request.
    Checked,
    /// Answer, and tell how often the core was taken from the server.
    Report,
}

#[repr(C, align(128))]
struct Line<T>(T);

#[repr(C)]
struct Page {
    requests: Line<AtomicU64>,
    replies: Line<AtomicU64>,
    mode: Line<AtomicU32>,
    switches: AtomicI64,
    errno: AtomicI32,
}

/// Requests and replies are counted; this count says that no more will come.
const STOP: u64 = u64::MAX;
/// Reads of a word between two checks of the other process.
const SPINS: u32 = 1 << 18;
/// How long to wait for a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The page, and how to wait.
pub(super) struct Control {
    page: Region,
    /// Both processes share one core, so waiting gives it away.
    pub yields: bool,
    /// The other process, once there are two.
    pub peer: libc::pid_t,
    count: u64,
}

impl Control {
    pub fn new() -> Result<Control> {
        Ok(Control {
            page: Region::new(size_of::<Page>(), libc::MAP_SHARED)?,
            yields: false,
            peer: 0,
            count: 0,
        })
    }

    fn page(&self) -> &Page {
        self.page.as_ref()
    }

    pub fn set_mode(&self, mode: Mode) {
        let mode = match mode {
            Mode::Timed => 0,
            Mode::Checked => 1,
            Mode::Report => 2,
        };
        self.page().mode.0.store(mode, Ordering::Release);
    }

    pub fn mode(&self) -> Mode {
        match self.page().mode.0.load(Ordering::Acquire) {
            0 => Mode::Timed,
            1 => Mode::Checked,
            _ => Mode::Report,
        }
    }

    /// How often the server has lost its core.
    pub fn switches(&self) -> &AtomicI64 {
        &self.page().switches
    }

    /// The number of the system error that ended the server, or 0.
    pub fn errno(&self) -> &AtomicI32 {
        &self.page().errno
    }

    /// Client: the request lies ready.
    #[inline]
    pub fn announce_request(&mut self) {
        self.count += 1;
        self.page().requests.0.store(self.count, Ordering::Release);
    }

    /// Client: waits for the reply to the request announced last.
    #[inline]
    pub fn await_reply(&self) -> Result<()> {
        let mut since = None;
        loop {
            for _ in 0..SPINS {
                if self.page().replies.0.load(Ordering::Acquire) == self.count {
                    return Ok(());
                }
                self.pause();
            }
            let since = *since.get_or_insert_with(Instant::now);
            super::peer::still_runs(self.peer)?;
            if since.elapsed() > PATIENCE {
                let seconds = PATIENCE.as_secs();
                return Err(RoundTripError::NoReply { seconds });
            }
        }
    }

    /// Server: waits for the next request; false when there will be none.
    #[inline]
    pub fn await_request(&mut self) -> bool {
        self.count += 1;
        loop {
            for _ in 0..SPINS {
                match self.page().requests.0.load(Ordering::Acquire) {
                    STOP => return false,
                    count if count == self.count => return true,
                    _ => self.pause(),
                }
            }
            // SAFETY: takes nothing, returns a number.
            if unsafe { libc::getppid() } != self.peer {
                return false;
            }
        }
    }

    /// Server: the reply lies ready.
    #[inline]
    pub fn announce_reply(&self) {
        self.page().replies.0.store(self.count, Ordering::Release);
    }

    /// Client: no request will follow.
    pub fn stop(&self) {
        self.page().requests.0.store(STOP, Ordering::Release);
    }

    #[inline]
    fn pause(&self) {
        if self.yields {
            // SAFETY: takes nothing.
            unsafe { libc::sched_yield() };
        } else {
            std::hint::spin_loop();
        }
    }
}
