//! Problem document (RFC 9457): the form of a refusal on the wire.

use serde::Serialize;

use super::Refusal;
use crate::names::JobId;
use crate::view::{self, HasSchema as _};

crate::view! {
    /// A refusal as the server and `--json` write it.
    #[derive(Serialize)]
    pub struct Problem<'a> {
        /// A name for the code: urn:tenure:error:CODE.
        r#type: String,
        /// The code in a few words.
        title: &'a str,
        /// The HTTP status of the answer.
        status: u16,
        /// What is wrong, for programs; it never changes its meaning.
        code: &'a str as view::named("Code"),
        /// What is wrong with this very call, in a sentence.
        detail: &'a str,
        /// What to do next, in a sentence.
        hint: &'a str,
        /// Where it is wrong: a JSON pointer into the body, or /query/NAME, /header/NAME, /path/NAME.
        #[serde(skip_serializing_if = "Option::is_none")]
        pointer: Option<&'a str>,
        /// The number of the item in an array, from 0.
        #[serde(skip_serializing_if = "Option::is_none")]
        index: Option<usize>,
        /// The number of the line in NDJSON, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
        /// The id of the job that is in the way.
        #[serde(skip_serializing_if = "Option::is_none")]
        job: Option<&'a str> as JobId::schema(),
        /// The name of the caller's token, if that has used up its calls or in_flight: the caller waits as long as
        /// Retry-After says.
        #[serde(skip_serializing_if = "Option::is_none")]
        caller: Option<&'a str>,
    }
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
