//! Traces in the Chrome trace event format: JSON, which most viewers read.
//!
//! A track without a parent is a process and a thread; what is below it is another thread of that process. Times are
//! microseconds with picoseconds behind the point.
//!
//! Format: "Trace Event Format" (Chromium project), read by ui.perfetto.dev and chrome://tracing.

use super::sink::{Sink, Slice, Track, ARGUMENTS};
use rustc_hash::FxHashMap;
use std::fmt::Write as _;
use std::io::{self, Write};

/// A JSON file.
pub(super) struct Chrome<'a> {
    out: &'a mut dyn Write,
    first: bool,
    /// Process of each track, and the name of a counter, which the format knows by its name.
    tracks: FxHashMap<u64, (u64, String)>,
}

impl<'a> Chrome<'a> {
    pub fn new(out: &'a mut dyn Write) -> Self {
        Chrome {
            out,
            first: true,
            tracks: FxHashMap::default(),
        }
    }

    /// One event; `body` is the inside of a JSON object.
    fn event(&mut self, track: u64, body: &str) -> io::Result<()> {
        let separator = if self.first { "" } else { ",\n" };
        self.first = false;
        let process = self.tracks[&track].0;
        write!(
            self.out,
            "{separator}{{\"pid\": {process}, \"tid\": {track}, {body}}}"
        )
    }

    fn arrow(&mut self, phase: &str, slice: &Slice<'_>, id: u64) -> io::Result<()> {
        // An arrow binds to the slice around it, so it leaves where the slice begins.
        let at = micros(slice.from);
        let body =
            format!("{phase}, \"id\": {id}, \"ts\": {at}, \"cat\": \"order\", \"name\": \"order\"");
        self.event(slice.track, &body)
    }
}

impl Sink for Chrome<'_> {
    fn begin(&mut self) -> io::Result<()> {
        writeln!(
            self.out,
            "{{\"displayTimeUnit\": \"ns\", \"traceEvents\": ["
        )
    }

    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        let Track { id, name, .. } = *track;
        let name = text(name);
        let process = match track.parent {
            Some(parent) => self.tracks[&parent].0,
            None => id,
        };
        self.tracks.insert(id, (process, name.clone()));
        if track.parent.is_none() {
            for (key, value) in [
                ("process_name", format!("\"name\": {name}")),
                ("process_sort_index", format!("\"sort_index\": {id}")),
            ] {
                self.event(
                    id,
                    &format!("\"ph\": \"M\", \"name\": \"{key}\", \"args\": {{{value}}}"),
                )?;
            }
        }
        if track.counts {
            return Ok(());
        }
        for (key, value) in [
            ("thread_name", format!("\"name\": {name}")),
            ("thread_sort_index", format!("\"sort_index\": {id}")),
        ] {
            self.event(
                id,
                &format!("\"ph\": \"M\", \"name\": \"{key}\", \"args\": {{{value}}}"),
            )?;
        }
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let (start, length) = (micros(slice.from), micros(slice.to - slice.from));
        let mut body = format!(
            "\"ph\": \"X\", \"ts\": {start}, \"dur\": {length}, \"name\": {}",
            text(slice.name)
        );
        let arguments = slice
            .arguments
            .iter()
            .map(|&(at, value)| format!("\"{}\": {value}", ARGUMENTS[at]));
        let arguments: Vec<String> = arguments.collect();
        if !arguments.is_empty() {
            let _ = write!(body, ", \"args\": {{{}}}", arguments.join(", "));
        }
        self.event(slice.track, &body)?;
        for id in slice.arriving.clone() {
            self.arrow("\"ph\": \"f\", \"bp\": \"e\"", slice, id)?;
        }
        for &id in slice.leaving {
            self.arrow("\"ph\": \"s\"", slice, id)?;
        }
        Ok(())
    }

    fn value(&mut self, track: u64, at: u64, value: f64) -> io::Result<()> {
        let (at, name) = (micros(at), self.tracks[&track].1.clone());
        let body =
            format!("\"ph\": \"C\", \"ts\": {at}, \"name\": {name}, \"args\": {{\"%\": {value}}}");
        self.event(track, &body)
    }

    fn end(&mut self) -> io::Result<()> {
        writeln!(self.out, "\n]}}")
    }
}

/// Picoseconds as microseconds, exactly.
fn micros(ps: u64) -> String {
    format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000)
}

/// A JSON string.
fn text(plain: &str) -> String {
    let mut quoted = String::with_capacity(plain.len() + 2);
    quoted.push('"');
    for c in plain.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        assert_eq!(text("a\"b\\c\n"), r#""a\"b\\c\u000a""#);
    }

    #[test]
    fn picoseconds_stand_behind_the_point() {
        assert_eq!(micros(1_600_001), "1.600001");
    }
}
