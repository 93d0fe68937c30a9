//! The clock of searches. WebAssembly without a system has none: there, the page that loads the module brings one.

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use std::time::Instant;

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub use page::Instant;

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod page {
    use std::ops::Add;
    use std::time::Duration;

    #[link(wasm_import_module = "page")]
    extern "C" {
        /// Milliseconds since some instant, never fewer than before.
        fn now_ms() -> f64;
    }

    /// As that of the standard library: time since some instant.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Instant(Duration);

    impl Instant {
        /// Return the current time.
        pub fn now() -> Self {
            // SAFETY: the function of the page takes nothing and touches no memory of the module.
            let seconds = unsafe { now_ms() } / 1e3;
            Instant(Duration::try_from_secs_f64(seconds).unwrap_or_default())
        }

        /// Return the instant `time` later, or `None` on overflow.
        pub fn checked_add(self, time: Duration) -> Option<Self> {
            self.0.checked_add(time).map(Instant)
        }

        /// Return the time since `earlier`, zero if `earlier` is later.
        pub fn saturating_duration_since(self, earlier: Self) -> Duration {
            self.0.saturating_sub(earlier.0)
        }

        /// How long ago it was.
        pub fn elapsed(self) -> Duration {
            Instant::now().saturating_duration_since(self)
        }
    }

    impl Add<Duration> for Instant {
        type Output = Self;

        fn add(self, time: Duration) -> Self {
            Instant(self.0 + time)
        }
    }
}
