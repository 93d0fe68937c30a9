//! Fields of a request.

use serde_json::Value;

/// What a request gives, or why it gives nothing.
pub type Asked<T> = Result<T, String>;

/// The message of an error.
pub fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The text at `key`; none where it is blank or left out.
pub fn word<'a>(request: &'a Value, key: &str) -> Option<&'a str> {
    request[key].as_str().filter(|text| !text.trim().is_empty())
}

/// The whole number at `key`.
pub fn count(request: &Value, key: &str) -> Asked<Option<u64>> {
    match &request[key] {
        Value::Null => Ok(None),
        value => match value.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{key} {value}: is not a whole number; write one")),
        },
    }
}

/// The texts at `key`.
pub fn texts(request: &Value, key: &str) -> Vec<String> {
    let all = request[key].as_array().into_iter().flatten();
    all.filter_map(|text| Some(text.as_str()?.to_string()))
        .collect()
}
