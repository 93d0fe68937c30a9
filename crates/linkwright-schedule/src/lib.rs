//! Schedules: what is to be moved, in which order, and how to prove it right.
