//! The payload of a job that is a spider.
//!
//! Pure. An error names fields of the payload, never their contents.

use serde_json::{Map, Value};
use tenure_core::percent;

/// Fields of a payload.
const FIELDS: [&str; 5] = ["project", "spider", "args", "settings", "version"];
/// Parameters of `schedule.json` that are no argument of a spider.
const RESERVED: [&str; 6] = ["project", "spider", "_version", "jobid", "priority", "setting"];
/// Names that scrapyd itself passes to a spider beside the arguments.
const TAKEN: [&str; 5] = ["name", "_job", "_project", "_spider", "settings"];

/// A spider to run.
#[derive(Clone, PartialEq, Eq)]
pub struct Spider {
    pub project: String,
    /// The name of the spider in its project.
    pub name: String,
    version: Option<String>,
    args: Vec<(String, String)>,
    settings: Vec<(String, String)>,
}

/// Why a payload is no spider. The job fails for good: another run would find the same.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadPayload {
    /// It is no object at all.
    #[error(
        "the payload must be an object: {{\"project\":\"news\",\"spider\":\"front\",\"args\":{{\"page\":\"1\"}}}}"
    )]
    NoObject,
    /// Missing or of another type.
    #[error("\"{0}\" in the payload must be a string that is not empty")]
    NoText(&'static str),
    /// A field of another type.
    #[error("\"{0}\" in the payload must be an object of strings, numbers, true and false")]
    NoValues(&'static str),
    /// A field that is perhaps misspelt.
    #[error(
        "the payload has an unknown field; it takes project, spider, args, settings and version"
    )]
    Unknown,
    /// An argument would be taken for something else.
    #[error("a spider of scrapyd cannot have an argument named \"{0}\"")]
    Reserved(&'static str),
    /// It cannot be the name of the log's folder.
    #[error(
        "\"{0}\" in the payload cannot be part of the path of a log; it has a \"/\", or is \".\" or \"..\""
    )]
    NoFolder(&'static str),
}

impl Spider {
    /// Reads a payload.
    ///
    /// # Errors
    /// [`BadPayload`].
    pub fn read(payload: &str) -> Result<Self, BadPayload> {
        let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(payload) else {
            return Err(BadPayload::NoObject);
        };
        if fields.keys().any(|name| !FIELDS.contains(&name.as_str())) {
            return Err(BadPayload::Unknown);
        }
        let args = values(&fields, "args")?;
        let is_arg = |name: &str| args.iter().any(|(arg, _)| arg == name);
        if let Some(name) = RESERVED.iter().chain(&TAKEN).find(|name| is_arg(name)) {
            return Err(BadPayload::Reserved(name));
        }
        let version = match fields.get("version") {
            None | Some(Value::Null) => None,
            Some(_) => Some(text(&fields, "version")?),
        };
        Ok(Spider {
            project: folder(&fields, "project")?,
            name: folder(&fields, "spider")?,
            version,
            args,
            settings: values(&fields, "settings")?,
        })
    }

    /// The body of `schedule.json` that runs it under this id.
    pub fn form(&self, id: &str) -> String {
        let settings = self.settings.iter().map(|(name, value)| format!("{name}={value}"));
        let mut pairs = vec![
            ("project", self.project.clone()),
            ("spider", self.name.clone()),
            ("jobid", id.to_owned()),
        ];
        pairs.extend(self.version.iter().map(|version| ("_version", version.clone())));
        pairs.extend(settings.map(|setting| ("setting", setting)));
        pairs.extend(self.args.iter().map(|(name, value)| (name.as_str(), value.clone())));
        form(&pairs)
    }
}

/// Pairs as the body of a form.
pub fn form(pairs: &[(&str, String)]) -> String {
    let pair = |(name, value): &(&str, String)| {
        format!("{}={}", percent::encoded(name), percent::encoded(value))
    };
    pairs.iter().map(pair).collect::<Vec<_>>().join("&")
}

fn text(fields: &Map<String, Value>, name: &'static str) -> Result<String, BadPayload> {
    match fields.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        _ => Err(BadPayload::NoText(name)),
    }
}

fn folder(fields: &Map<String, Value>, name: &'static str) -> Result<String, BadPayload> {
    let text = text(fields, name)?;
    if is_folder(&text) { Ok(text) } else { Err(BadPayload::NoFolder(name)) }
}

/// Whether a text can be one part of a path.
pub fn is_folder(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.contains(['/', '\\', '\0'])
}

fn values(
    fields: &Map<String, Value>,
    name: &'static str,
) -> Result<Vec<(String, String)>, BadPayload> {
    let pairs = match fields.get(name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(pairs)) => pairs,
        Some(_) => return Err(BadPayload::NoValues(name)),
    };
    let pair = |(key, value): (&String, &Value)| {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            // As Python writes them, and Scrapy reads them.
            Value::Bool(true) => "True".to_owned(),
            Value::Bool(false) => "False".to_owned(),
            _ => return Err(BadPayload::NoValues(name)),
        };
        Ok((key.clone(), value))
    };
    pairs.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_becomes_the_form_that_schedules_it() {
        for (payload, is) in [
            (r#"{"project":"news","spider":"front"}"#, "project=news&spider=front&jobid=visit-42"),
            (
                r#"{"project":"a b","spider":"s","version":"r7","args":{"page":1,"url":"http://x/?a=1&b"},
                    "settings":{"DOWNLOAD_DELAY":2.5,"COOKIES_ENABLED":false}}"#,
                "project=a%20b&spider=s&jobid=visit-42&_version=r7&setting=COOKIES_ENABLED%3DFalse\
                 &setting=DOWNLOAD_DELAY%3D2.5&page=1&url=http:%2F%2Fx%2F%3Fa%3D1%26b",
            ),
            (
                r#"{"project":"p","spider":"s","args":null,"settings":{},"version":null}"#,
                "project=p&spider=s&jobid=visit-42",
            ),
        ] {
            assert_eq!(Spider::read(payload).ok().unwrap().form("visit-42"), is);
        }
    }

    #[test]
    fn a_bad_spider_payload_is_refused_without_showing_its_content() {
        for (payload, part) in [
            ("null", "must be an object"),
            ("\"geheim\"", "must be an object"),
            (r#"{"spider":"s"}"#, "\"project\""),
            (r#"{"project":"p","spider":""}"#, "\"spider\""),
            (
                r#"{"project":"../geheim","spider":"s"}"#,
                "\"project\" in the payload cannot be part",
            ),
            (r#"{"project":"p","spider":".."}"#, "\"spider\""),
            (r#"{"project":"p","spider":"s","version":7}"#, "\"version\""),
            (r#"{"project":"p","spider":"s","arg":{"x":"geheim"}}"#, "args, settings and version"),
            (r#"{"project":"p","spider":"s","args":["geheim"]}"#, "\"args\""),
            (r#"{"project":"p","spider":"s","args":{"x":["geheim"]}}"#, "\"args\""),
            (r#"{"project":"p","spider":"s","args":{"jobid":"geheim"}}"#, "named \"jobid\""),
            (r#"{"project":"p","spider":"s","settings":{"X":null}}"#, "\"settings\""),
        ] {
            let Err(bad) = Spider::read(payload) else { panic!("{payload} is a spider") };
            assert!(bad.to_string().contains(part), "{payload}: {bad}");
            assert!(!bad.to_string().contains("geheim"), "{bad}");
        }
    }
}
