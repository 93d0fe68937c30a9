//! Execution of schedules on real hardware, and the timing of it.
