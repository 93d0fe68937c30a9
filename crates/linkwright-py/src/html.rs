//! Small tables, which a notebook shows instead of one line of text.

use std::fmt::Write;

/// A table with a caption, and a row for each name with its value; all of them plain text.
pub fn table(caption: &str, rows: &[(&str, String)]) -> String {
    let mut html = format!("<table><caption>{}</caption>", escaped(caption));
    for (name, value) in rows {
        let (name, value) = (escaped(name), escaped(value));
        write!(html, "<tr><th>{name}</th><td>{value}</td></tr>").expect("a String takes all text");
    }
    html + "</table>"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
