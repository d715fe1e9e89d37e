//! Problem document (RFC 9457): the form of a refusal on the wire.

use serde::Serialize;

use super::Refusal;

/// A refusal as the server and `--json` write it.
#[derive(Serialize)]
pub struct Problem<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    code: &'a str,
    detail: &'a str,
    hint: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    caller: Option<&'a str>,
}

impl<'a> Problem<'a> {
    /// The document of a refusal.
    pub fn of(no: &'a Refusal) -> Self {
        Problem {
            r#type: format!("urn:tenure:error:{}", no.code),
            title: no.code.title(),
            status: no.code.status(),
            code: no.code.as_str(),
            detail: &no.detail,
            hint: &no.hint,
            pointer: no.pointer.as_deref(),
            index: no.index,
            line: no.line,
            job: no.job.as_deref(),
            caller: no.caller.as_deref(),
        }
    }
}
