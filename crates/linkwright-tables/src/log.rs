//! What a piece of a log says: lines with marks, rows of nccl-tests, and how many lines say nothing.
//!
//! A caller names its marks. A line passes if it has none, and begins neither like a number nor like the label of a
//! launcher. Lines that differ in numbers alone, such as a connection of each channel, come once. Whatever is not plain
//! is left to the caller: rows that do not agree with themselves, and characters that are not printable ASCII.

use std::collections::HashMap;

/// A mark of another tool.
pub const OTHER: u8 = 1;
/// A mark of a row or a heading.
pub const ROW: u8 = 2;
/// A mark of a line around rows; every line has it that begins in an unusual way.
pub const HEAD: u8 = 4;
/// A mark of a line that says something of the machine.
pub const FACT: u8 = 8;
/// A mark of a connection.
pub const CONNECTION: u8 = 16;

const MOST_LINE: usize = 1 << 16; // characters of which the caller reads no more
const MOST_MICROS: f64 = 1e12;
const MOST_RATE: f64 = 1e9; // 10^9 B/s
const MOST_SIZE: u64 = 1 << 60;
// Of size / time and algbw: stricter than the caller, who judges what is farther apart.
const APART: f64 = 0.01;
const LAST_DIGIT: f64 = 0.005;

/// One measurement of a row: us, 10^9 B/s twice, wrong elements.
pub type Measured = (f64, f64, f64, Option<u64>);
/// Bytes, and what was measured out of place and in place.
pub type Row = (u64, [Measured; 2]);

/// What is at a line.
#[derive(Debug, PartialEq)]
pub enum Said<'a> {
    /// A line to be read, its marks, and how many lines it stands for.
    Line(&'a str, u8, u32),
    /// Consecutive rows of growing sizes: their type, operator and root, and the rows.
    Rows([&'a str; 3], Vec<Row>),
}

/// What to look for.
pub struct Scanner {
    marks: Vec<Vec<(String, u8)>>, // by their first two bytes
    types: HashMap<String, u64>,
    operators: Vec<String>,
}

impl Scanner {
    /// Look for marks of two and more ASCII characters, and for rows of these types (with their bytes) and operators.
    pub fn new(
        marks: Vec<(String, u8)>,
        types: HashMap<String, u64>,
        operators: Vec<String>,
    ) -> Self {
        let mut places = vec![Vec::new(); 1 << 16];
        for (mark, kind) in marks {
            places[place(mark.as_bytes())].push((mark, kind));
        }
        Scanner {
            marks: places,
            types,
            operators,
        }
    }

    /// The lines of a text that are to be read, each with its place from 0, and how many others are not blank.
    pub fn scan<'a>(&self, text: &'a str) -> (Vec<(u32, Said<'a>)>, u64) {
        let mut found: Vec<(u32, Said<'a>)> = Vec::new();
        let (mut connections, mut passed) = (HashMap::new(), 0);
        for (at, line) in (0..).zip(text.strip_suffix('\n').unwrap_or(text).split('\n')) {
            let marks = self.marks_of(line);
            if marks == 0 {
                passed += u64::from(!line.trim_ascii().is_empty());
                continue;
            }
            let key = (marks == CONNECTION).then(|| connection(line)).flatten();
            let first = key.map_or(found.len(), |key| {
                *connections.entry(key).or_insert(found.len())
            });
            let row = (marks == ROW | HEAD).then(|| self.row(line)).flatten();
            match (found.get_mut(first), row) {
                (Some((_, Said::Line(_, _, times))), _) => *times += 1,
                (_, Some((kind, row))) => match found.last_mut() {
                    Some((first, Said::Rows(its, rows)))
                        if *its == kind
                            && *first as usize + rows.len() == at as usize
                            && rows.last().is_some_and(|last| last.0 < row.0) =>
                    {
                        rows.push(row);
                    }
                    _ => found.push((at, Said::Rows(kind, vec![row]))),
                },
                _ => found.push((at, Said::Line(line, marks, 1))),
            }
        }
        (found, passed)
    }

    fn marks_of(&self, line: &str) -> u8 {
        let bytes = line.as_bytes();
        if bytes.len() > MOST_LINE || !bytes.iter().all(|byte| matches!(byte, b' '..=b'~')) {
            return OTHER | ROW | HEAD;
        }
        let mut marks = 0;
        for at in 1..bytes.len() {
            for (mark, kind) in &self.marks[place(&bytes[at - 1..])] {
                if bytes[at - 1..].starts_with(mark.as_bytes()) {
                    marks |= kind;
                }
            }
        }
        match line.trim_start_matches([' ', ',']).as_bytes() {
            [b'0'..=b'9', ..] | [b'[', b'0'..=b'9', ..] if marks == 0 && is_stamped(line) => 0,
            [b'0'..=b'9' | b'+' | b'-' | b'"' | b'\\', ..] | [b'[', b'0'..=b'9', ..] => {
                marks | HEAD
            }
            _ => marks,
        }
    }

    /// A row of 13 columns: size, count, type, operator, root, and twice time, algbw, busbw and wrong elements.
    fn row<'a>(&self, line: &'a str) -> Option<([&'a str; 3], Row)> {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let size = whole(words.next()?).filter(|size| (1..=MOST_SIZE).contains(size))?;
        let count = whole(words.next()?)?;
        let kind = [words.next()?, words.next()?, words.next()?];
        let root = kind[2].strip_prefix('-').unwrap_or(kind[2]);
        if count.checked_mul(*self.types.get(kind[0])?) != Some(size)
            || !self.operators.iter().any(|one| one == kind[1])
            || root.len() > 9
        {
            return None;
        }
        whole(root)?;
        let measured = [measured(&mut words, size)?, measured(&mut words, size)?];
        words.next().is_none().then_some((kind, (size, measured)))
    }
}

fn place(text: &[u8]) -> usize {
    usize::from(text[0]) << 8 | usize::from(text[1])
}

fn measured<'a>(words: &mut impl Iterator<Item = &'a str>, size: u64) -> Option<Measured> {
    let time =
        number(words.next()?).filter(|time| (f64::MIN_POSITIVE..=MOST_MICROS).contains(time))?;
    let [algbw, busbw] = [number(words.next()?)?, number(words.next()?)?];
    let wrong = match words.next()? {
        "N/A" => None,
        word => Some(number(word).filter(|wrong| *wrong <= 1e18)? as u64),
    };
    let rate = size as f64 / time / 1e3;
    let agrees = (rate - algbw).abs() <= APART * rate + LAST_DIGIT;
    (agrees && algbw <= MOST_RATE && busbw <= MOST_RATE).then_some((time, algbw, busbw, wrong))
}

fn whole(word: &str) -> Option<u64> {
    let digits = word.len() <= 19 && word.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| word.parse().ok()).flatten()
}

/// Digits, and a point and an exponent between digits.
fn number(word: &str) -> Option<f64> {
    let digits = |text: &str| {
        (1..=30).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let (mantissa, exponent) = word.split_once(['e', 'E']).unwrap_or((word, "0"));
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let power = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let is_number = digits(before) && digits(after) && digits(power) && power.len() <= 3;
    is_number.then(|| word.parse().ok()).flatten()
}

/// Whether a line begins with a date and a time, and goes on with neither a number nor a label.
fn is_stamped(line: &str) -> bool {
    let text = line.strip_prefix('[').unwrap_or(line);
    let mut date = (0..).zip(text.bytes().take(10));
    let is_date = date.all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let Some(end) = text.find(|one: char| !"0123456789-:.,+TZ] ".contains(one)) else {
        return false;
    };
    let words = text[..end].split_ascii_whitespace().count();
    let is_one = text.as_bytes().get(10) == Some(&b'T');
    let is_label = matches!(text.as_bytes()[end..], [b'[', b'0'..=b'9', ..]);
    is_date && words <= if is_one { 1 } else { 2 } && !is_label
}

/// Who writes of a connection, and how ranks are connected.
fn connection(line: &str) -> Option<(&str, &str)> {
    let (before, way) = line.split_once("via ")?;
    let is_known = ["P2P/", "SHM/", "NET/"]
        .iter()
        .any(|kind| way.starts_with(kind));
    let is_plain = before.ends_with(' ') && !way.contains("Channel");
    let writer = before.split_ascii_whitespace().next()?;
    (is_known && is_plain).then_some((writer, way))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> (Vec<(u32, Said<'_>)>, u64) {
        let marks = [
            ("float", ROW),
            ("GB/s", OTHER),
            ("Rank ", FACT),
            ("via ", CONNECTION),
        ];
        let marks = marks.map(|(mark, kind)| (mark.to_owned(), kind));
        let types = HashMap::from([("float".to_owned(), 4)]);
        Scanner::new(marks.to_vec(), types, vec!["sum".to_owned()]).scan(text)
    }

    const ROW_OF_1_KIB: &str = "1024 256 float sum -1 10 0.10 0.18 0 10.5 0.10 0.17 N/A";

    #[test]
    fn rows_of_growing_sizes_are_one_run() {
        let next = ROW_OF_1_KIB
            .replace("1024 256", "2048 512")
            .replace("0.1", "0.2");
        let text = [ROW_OF_1_KIB, &next, ROW_OF_1_KIB].join("\n");
        let (found, passed) = scan(&text);
        assert_eq!((found.len(), passed), (2, 0));
        let (0, Said::Rows(kind, rows)) = &found[0] else {
            panic!("{found:?}")
        };
        assert_eq!(*kind, ["float", "sum", "-1"]);
        let sizes: Vec<u64> = rows.iter().map(|(size, _)| *size).collect();
        assert_eq!(sizes, [1024, 2048]);
        let measured = [(10.0, 0.1, 0.18, Some(0)), (10.5, 0.1, 0.17, None)];
        assert_eq!(rows[0].1, measured);
        assert!(matches!(found[1], (2, Said::Rows(..))));
    }

    #[test]
    fn a_row_that_does_not_agree_is_a_line() {
        for (part, other) in [
            ("256", "255"),
            ("0.10", "0.50"),
            ("0.17", "x"),
            ("N/A", ""),
            ("10 ", "1e999 "),
        ] {
            let text = ROW_OF_1_KIB.replacen(part, other, 1);
            assert_eq!(scan(&text).0, [(0, Said::Line(&text, ROW | HEAD, 1))]);
        }
    }

    #[test]
    fn lines_without_marks_are_counted() {
        let text =
            "chatter\n\n   \n[2026-11-30 12:00:00] said\n2026-11-30T12:00:00,5Z said\nRank 3";
        assert_eq!(scan(text), (vec![(5, Said::Line("Rank 3", FACT, 1))], 3));
    }

    #[test]
    fn unusual_lines_are_left_to_the_caller() {
        for line in [
            "0: said",
            "[3] said",
            "7",
            ",-1",
            "\"said\"",
            "\\# said",
            "\u{b1}",
            "\tsaid",
            "2026-11-30 12:00:00 0: said",
            "2026-11-30T12:00:00 7 said",
            "[2026-11-30 12:00:00] [0] said",
            "12:00:00 said",
        ] {
            let marks = if line.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
                HEAD
            } else {
                OTHER | ROW | HEAD
            };
            assert_eq!(scan(line).0, [(0, Said::Line(line, marks, 1))], "{line}");
        }
        let long = "x".repeat(MOST_LINE + 1);
        assert_eq!(scan(&long).0.len(), 1);
    }

    #[test]
    fn equal_connections_of_a_process_come_once() {
        let of =
            |host, rank, way| format!("{host}:1:2 [0] Channel 00 : {rank}[0] -> 9[1] via {way}");
        let lines: [String; 6] = [
            of("n1", 1, "P2P/IPC"),
            of("n1", 2, "P2P/IPC"),
            of("n2", 3, "P2P/IPC"),
            of("n1", 4, "NET/IB/0"),
            of("n1", 5, "other"),
            of("n1", 6, "other"),
        ];
        let text = lines.join("\n");
        let found = |at: u32, times| {
            let line: &str = &lines[at as usize];
            (at, Said::Line(line, CONNECTION, times))
        };
        let expected = [
            found(0, 2),
            found(2, 1),
            found(3, 1),
            found(4, 1),
            found(5, 1),
        ];
        assert_eq!(scan(&text).0, expected);
    }
}
